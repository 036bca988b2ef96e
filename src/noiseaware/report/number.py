"""Numbers and names as a person would write them.

Names in a release come from a file that anyone may have written: they are shortened and stripped of everything
that does not print before they are shown.
"""

import math
from collections.abc import Sequence

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_NAMED = 3  # in a sentence


def number(value: float, sd: float = math.nan, *, is_signed: bool = False) -> str:
    """Write a number to two figures of its sd, or else to four figures of its own.

    A small one has figures of its own too, unless it is one that may be on either side of 0.
    """
    if not math.isfinite(value):
        return "–"
    decimals = 1 - math.floor(math.log10(sd)) if sd > 0 else None
    if decimals is None or (not is_signed and 0 < abs(value) < 10.0 ** (1 - decimals)):
        return written(value, 4 if decimals is None else 3)
    if not 1e-4 <= sd < 1e15 and not 1e-4 <= abs(value) < 1e15:
        return written(value, 3)
    text = f"{value:,.{min(15, max(0, decimals))}f}"
    return (text if text.strip("-0.") else text.lstrip("-")).replace("-", "−")


def written(value: float, figures: int) -> str:
    """Write a number to so many figures."""
    if value and not 1e-4 <= abs(value) < 1e15:
        mantissa, exponent = f"{value:.{min(figures, 3) - 1}e}".split("e")
        return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPT)}".replace("-", "−")
    before = math.floor(math.log10(abs(value))) + 1 if value else 0
    text = f"{value:,.{max(0, figures - before)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def shown(text: object, longest: int = 60) -> str:
    """Return text from a release as it is safe to show."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def several(names: Sequence[str]) -> str:
    """Write names in a sentence: a; a and b; a, b and 3 more."""
    told = [shown(name) for name in names[: MOST_NAMED if len(names) == MOST_NAMED else 2]]
    more = [f"{len(names) - len(told)} more"] if len(names) > len(told) else []
    return listed([*told, *more])


def listed(clauses: list[str]) -> str:
    """Join clauses of one sentence: a and b; a, b and c."""
    return " and ".join(filter(None, (", ".join(clauses[:-1]), clauses[-1])))
