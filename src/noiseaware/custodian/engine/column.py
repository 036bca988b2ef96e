"""A column of numbers, as narwhals expressions: the same lines in every engine that holds a table.

Only what every engine computes alike is used, and nothing that an engine can refuse for the sake of a value:
PostgreSQL takes a product that underflows for an error, and one that overflows; so nothing here does either.
"""

import functools
import math
from collections.abc import Sequence

import narwhals as nw

_DUST = 2.0**-30
"""Numbers nearer to 0 are set aside before a product that makes them smaller; 2^−1074 is the least double."""


def is_missing(x: nw.Expr) -> nw.Expr:
    """True where there is no number: NULL or NaN. The clip changes nothing, and is there for what `_bounded` tells."""
    return x.is_null() | x.cast(nw.Float64).fill_null(0.0).clip(-math.inf).is_nan()


def filled(x: nw.Expr, value: float | None) -> nw.Expr:
    """Return the column with a number in place of missing cells; unchanged if the value is None."""
    if value is None:
        return x
    return nw.when(is_missing(x)).then(nw.lit(float(value))).otherwise(x.cast(nw.Float64))


def readable(columns: Sequence[nw.Expr]) -> nw.Expr:
    """Return 1 for a record with a number in every column, 0 for any other."""
    found = functools.reduce(lambda one, other: one | other, map(is_missing, columns))
    return nw.when(found).then(nw.lit(0)).otherwise(nw.lit(1)).cast(nw.Int64)


def fixed_point(x: nw.Expr, bounds: tuple[float, float], outside: str, grid_exponent: int) -> nw.Expr:
    """Return ⌊x · 2^k⌋ of each record after its bounds; multiplying by a power of two is exact."""
    x = _bounded(x, bounds, outside, 0.0)
    if grid_exponent < 0:
        # The floor of −_DUST is −1, as is that of any negative number nearer to 0.
        x = _swept(x, -_DUST)
    return (x * 2.0**grid_exponent).floor().cast(nw.Int64)


def scaled(x: nw.Expr, bounds: tuple[float, float], outside: str, centre: float, half: float, unit: int) -> nw.Expr:
    """Return ⌊u · 2^k + ½⌋ of each record after its bounds, u = (x − centre)/half and 2^k = unit; 0 where dropped.

    Nearest, since the bias of a floor would add up over the records where k is small. The clip is what the
    sensitivity rests on, however the steps before it round. A product, since Polars divides by a number by multiplying
    with its inverse and the others do not.
    """
    x = _bounded(x, bounds, outside, float(centre)) - float(centre)
    if unit < half:
        x = _swept(x, 0.0)
    return (x * (unit / float(half)) + 0.5).clip(-float(unit), float(unit)).floor().cast(nw.Int64)


def placed(x: nw.Expr) -> nw.Expr:
    """Return each record where it lies on the line: NULL and NaN at −∞, since clamping takes them to the lower bound.

    The clip changes nothing, and is there for the reason that `_bounded` tells.
    """
    x = x.cast(nw.Float64).fill_null(-math.inf).clip(-math.inf)
    return nw.when(x.is_nan()).then(nw.lit(-math.inf)).otherwise(x)


def _bounded(x: nw.Expr, bounds: tuple[float, float], outside: str, dropped: float) -> nw.Expr:
    """Return each record between its bounds, or where a dropped one is put.

    `x <= high` is false of NaN on every engine, and NaN passes `clip` unchanged. The clip from below comes first
    even where it changes nothing: DuckDB answers a comparison, and even isnan, from the least and greatest value in
    a Parquet file's statistics where it can, though NaN is left out of these; it does not see through `greatest`.
    """
    low, high = bounds
    if outside == "clamp":
        x = x.cast(nw.Float64).fill_null(low).clip(low)
        beyond = nw.when(x.is_nan()).then(nw.lit(low)).otherwise(nw.lit(high))
        return nw.when(x <= high).then(x).otherwise(beyond)
    x = x.cast(nw.Float64).fill_null(math.inf).clip(-math.inf)
    return nw.when((x >= low) & (x <= high)).then(x).otherwise(nw.lit(dropped))


def _swept(x: nw.Expr, below: float) -> nw.Expr:
    """Return x without dust: 0, or on the negative side what stands for it there."""
    dust = nw.when(x < 0).then(nw.lit(below)).otherwise(nw.lit(0.0))
    return nw.when((x <= -_DUST) | (x >= _DUST)).then(x).otherwise(dust)
