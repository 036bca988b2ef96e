"""Rows of a published table: a file, a frame of any kind, or a list; and what stands in their cells.

Files are untrusted. They are read up to a size, must have the columns that are asked for, and a cell that is not what
it should be is refused in one sentence that names the row, the column and the value.
"""

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from noiseaware.check import shown

MOST_BYTES = 500_000_000
_MOST_DIGITS = 400  # of a number that is written as text

Row = Mapping[str, Any]
Group = tuple[tuple[str, str | int], ...]


def rows_of(
    source: object, needed: Sequence[str], *, delimiters: str = ",\t|;", header: Sequence[str] | None = None
) -> list[Row]:
    """The rows of a CSV file, or of a frame (pandas, Polars, Arrow), a list of mappings, or lists under a header.

    With `header`, a file may lack one of its own.
    """
    if isinstance(source, str | os.PathLike):
        rows = _of_file(Path(source), delimiters, header)
    else:
        rows = _of_object(source)
    if not rows:
        raise ValueError("rows must be at least one, got none.")
    for name in needed:
        if name not in rows[0]:
            raise ValueError(f"columns must include {name!r}, got {shown(list(rows[0]))}.")
    return rows


def _of_file(path: Path, delimiters: str, header: Sequence[str] | None) -> list[Row]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"file must have at most {MOST_BYTES:,} bytes, got {path}, which has more.")
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(csv.field_size_limit())
            file.seek(0)
            delimiter = max(delimiters, key=first.count)
            lines = csv.reader(file, delimiter=delimiter)
            names = [name.strip() for name in first.rstrip("\r\n").split(delimiter)]
            if header is not None and not set(header) & set(names):
                names = list(header)
            else:
                names = [name.strip() for name in next(lines, [])]
            return [_named(names, cells, place) for place, cells in enumerate(lines, 1) if cells]
    except FileNotFoundError:
        raise ValueError(f"file must exist, got {path}.") from None
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ValueError(f"file must be a readable UTF-8 table, got {path}.") from None


def _named(names: Sequence[str], cells: Sequence[Any], place: int) -> Row:
    if len(cells) != len(names):
        raise ValueError(f"row {place} must have {len(names)} cells, got {len(cells)}.")
    return dict(zip(names, cells, strict=True))


def _of_object(source: Any) -> list[Row]:
    """A frame by what it can do, whoever made it."""
    if hasattr(source, "to_dicts"):  # Polars
        return source.to_dicts()
    if hasattr(source, "to_pylist"):  # Arrow
        return source.to_pylist()
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # pandas
        return source.to_dict("records")
    if not isinstance(source, Iterable):
        raise ValueError(f"rows must be a path, a frame or a list of rows, got {shown(source)}.")
    rows = list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return rows
    if rows and all(isinstance(row, list | tuple) for row in rows) and all(isinstance(name, str) for name in rows[0]):
        return [_named(rows[0], row, place) for place, row in enumerate(rows[1:], 1)]
    raise ValueError(f"rows must be mappings, or lists under a header, got {shown(rows[:1])}.")


def number(row: Row, name: str, place: int | None = None) -> float:
    """A finite number of a size that can be reckoned with."""
    value, at = row.get(name), "" if place is None else f"row {place}: "
    try:
        if isinstance(value, bool) or (isinstance(value, str) and len(value) > _MOST_DIGITS):
            raise ValueError
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{at}{name} must be a number, got {shown(value)}.") from None
    if not math.isfinite(found):
        raise ValueError(f"{at}{name} must be finite, got {shown(value)}.")
    return found


def positive(row: Row, name: str, place: int | None = None) -> float:
    """A number above 0."""
    found = number(row, name, place)
    if found <= 0:
        at = "" if place is None else f"row {place}: "
        raise ValueError(f"{at}{name} must be positive, got {found:g}.")
    return found


def whole(row: Row, name: str, place: int) -> int:
    """A whole number."""
    found = number(row, name, place)
    if found != math.floor(found) or abs(found) > 2**53:
        raise ValueError(f"row {place}: {name} must be a whole number, got {shown(row[name])}.")
    return int(found)


def is_blank(row: Row, name: str) -> bool:
    """True if a cell is not there, or has nothing in it."""
    value = row.get(name)
    return value is None or (isinstance(value, str) and not value.strip()) or value != value


def group_of(row: Row, leave_out: Iterable[str]) -> Group:
    """The other columns with their values, which tell whose count it is."""
    left_out = set(leave_out)
    return tuple((name, label(value)) for name, value in row.items() if name not in left_out)


def label(value: Any) -> str | int:
    """A whole number as it is, and all else as text."""
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)
