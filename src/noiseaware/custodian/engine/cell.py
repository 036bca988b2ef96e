"""Cells of a pandas column of objects, each of which may be anything: as text, and as somebody's identity.

None of them is an error, and what one becomes does not depend on another.
"""

import math
import numbers
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

_HUGE, _EXACT = 10**400, 2.0**53


def texts(series: Any) -> Any:
    """Return a pandas column that DuckDB can take: objects and categories as text, or missing."""
    return _mapped(series, _text)


def identities(series: Any) -> Any:
    """Return a pandas column that DuckDB can take, in which values are equal where pandas holds them equal.

    1, 1.0, True and Decimal(1) are one person, whom the text "1" is not; None and NaN are nobody.
    """
    return _mapped(series, _identity)


def _mapped(series: Any, spelled: Any) -> Any:
    import pandas as pd

    if str(series.dtype) not in ("object", "category"):
        return series
    cells = pd.Series([spelled(cell) for cell in series], index=series.index, dtype=object)
    return cells.astype("str").where(cells.notna(), None)


def _text(cell: object) -> str | None:
    """Return the text of a cell; None where it is missing, or has no text."""
    if type(cell) is str and cell.isascii():  # most are, and this is quick
        return cell
    try:
        if _is_missing(cell):
            return None
        if isinstance(cell, bytes):
            return cell.decode("utf-8", "replace")
        # Python has no text for an integer of so many digits.
        if isinstance(cell, int) and abs(cell) >= _HUGE:
            return "inf" if cell > 0 else "-inf"
        if (whole := _whole(cell)) is not None:
            return str(whole)
        return str(cell).encode(errors="replace").decode()  # half of a pair of surrogates is no text
    except Exception:  # whatever an object does when it is asked
        return None


def _whole(cell: object) -> int | None:
    """Return the integer that a number is, exactly and as a double; None for any other: 1 may be 1.0 in a frame."""
    if isinstance(cell, bool | np.bool_) or (nearest := _nearest(cell)) is None:
        return None
    return int(nearest) if abs(nearest) <= _EXACT and nearest == cell and nearest.is_integer() else None


def _identity(cell: object) -> str | None:
    """Return a text that equal values share, and no others: Python's hash and the nearest double.

    So two numbers would have to have both in common to be taken for one. What has no hash is known by its text, and
    no text of a person begins as these do.
    """
    if type(cell) is str and cell.isascii() and not cell.startswith("\0"):  # most are, and this is quick
        return cell
    try:
        if _is_missing(cell):
            return None
        if isinstance(cell, str):
            return f"\0text {cell.encode('utf-8', 'surrogatepass').hex()}" if _is_odd(cell) else str(cell)
        # Whoever picks a UUID can choose its hash.
        if isinstance(cell, UUID):
            return f"\0uuid {cell.hex}"
        if isinstance(cell, tuple):
            parts = [str(_identity(part)) for part in cell]
            return f"\0tuple {hash(cell)} " + "".join(f"{len(part)}:{part}" for part in parts)
        return f"\0hash {hash(cell)} {_nearest(cell)}"
    except Exception:  # whatever an object does when it is asked
        text = _text(cell)
        return None if text is None else f"\0object {text}"


def _is_odd(text: str) -> bool:
    """True of a text that begins as no person's does, or that holds half of a pair of surrogates."""
    return text.startswith("\0") or text.encode(errors="replace").decode() != text


def _nearest(cell: object) -> float | None:
    """Return the double nearest to a number, with one zero; None if there is none, or the cell is no number."""
    number = cell.real if isinstance(cell, complex) and cell.imag == 0 else cell
    if not isinstance(number, numbers.Real | Decimal | np.bool_):
        return None
    try:
        nearest = float(number)
    except OverflowError:
        return None
    return nearest + 0.0 if math.isfinite(nearest) else None


def _is_missing(cell: Any) -> bool:
    import pandas as pd

    # For a list, isna returns a list.
    return pd.isna(cell) is True
