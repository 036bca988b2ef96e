"""Confidential records wherever they live, and exact integer sums of their statistics.

    record → number (anything else is outside the bounds) → clamped or dropped → ⌊· 2^k⌋ → t(x) → Σ

or, for second moments, → u = (x − centre)/half, which lies in ±1 → ⌊u · 2^k + ½⌋ → t(u), all of the second degree → Σ,
in the engine that holds the table, in one scan and as integers, so that the sums are the same to the bit on every
engine. A scan ends in the sums or in one sentence that holds nothing of the records: no value can cause an error,
and an engine's own message, which may quote a record, is never passed on.

What is a number is the same everywhere: text is read by one parser, DuckDB's cast to DOUBLE, with `true` for 1 and
`false` for 0 in any case. NULL, NaN and other text are outside the bounds: dropped, or clamped to the lower bound; and
where bounds are still to be chosen, they lie below every candidate.
"""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw

from noiseaware.custodian.column import fixed_point, placed, scaled
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.scan import Progress, Scan
from noiseaware.custodian.source import source
from noiseaware.family import AbstractFamily

MOST_RECORDS = 2**31
"""The public cap on the number of records: the grid is chosen so that sums of this many cannot overflow."""


class Table:
    """Confidential records: a file (CSV, Parquet, JSON), a frame (pandas, Polars, PyArrow, DuckDB, PySpark, Ibis), or a
    postgresql:// URL with the name of a table. With spark, Spark reads the file. Progress is told of each scan.
    """

    def __init__(
        self,
        table: Any,
        table_name: str | None = None,
        *,
        spark: bool = False,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        self._source, self._progress = source(table, table_name, spark=spark), progress
        self.name = self._source.name

    def sums(
        self, family: AbstractFamily, grid_exponent: int, *, least: int = 1, unit: Unit | None = None
    ) -> tuple[list[int], int]:
        """Σ t(x) in steps of 2^−grid_exponent, and the number of records; refused if these are fewer than least."""
        with self._scan(unit) as scan:
            return _sized(scan.totals(*self._statistics(scan, family, grid_exponent)), least)

    def group_sums(
        self, family: AbstractFamily, grid_exponent: int, groups: Groups, *, unit: Unit | None = None
    ) -> list[tuple[list[int], int]]:
        """The same for each group of records, in one pass."""
        with self._scan(unit, groups) as scan:
            statistics = self._statistics(scan, family, grid_exponent)
            return [_sized(totals, 0) for totals in scan.group_totals(*statistics, len(groups.keys))]

    def records(self, family: AbstractFamily, grid_exponent: int) -> list[int]:
        """Each record after its bounds in steps of 2^−grid_exponent, or its place among the levels."""
        with self._scan() as scan:
            return scan.values(*self._whole(scan, family, grid_exponent))

    def counts(
        self, column: str, candidates: Sequence[float], *, least: int = 1, unit: Unit | None = None
    ) -> tuple[list[int], int]:
        """#{x ≤ c} for each candidate c, and the number of records; what is no number is below every candidate."""
        with self._scan(unit) as scan:
            x = scan.selected(scan.numbers([column]), placed(nw.col("c0")).alias("c0"))
            below = [nw.when(nw.col("c0") <= c).then(nw.lit(1)).otherwise(nw.lit(0)) for c in candidates]
            return _sized(scan.totals(x, below), least)

    def _scan(self, unit: Unit | None = None, groups: Groups | None = None) -> Scan:
        return Scan(self._source, self._progress, unit=unit, groups=groups)

    def _statistics(self, scan: Scan, family: Any, grid_exponent: int) -> tuple[Any, Sequence[nw.Expr]]:
        """A frame of whole numbers, and t(x) of them."""
        if hasattr(family, "degrees"):
            return self._moments(scan, family, grid_exponent)
        frame, x = self._whole(scan, family, grid_exponent)
        return scan.selected(frame, x.alias("c0")), family.statistic(nw.col("c0"))

    def _whole(self, scan: Scan, family: AbstractFamily, grid_exponent: int) -> tuple[Any, nw.Expr]:
        """One column, and the whole number that each of its records is."""
        (column,) = family.columns
        if (levels := getattr(family, "levels", None)) is not None:
            return scan.positions(column, levels), nw.col("c0")
        bounds, outside = family.bounds, family.outside  # type: ignore[attr-defined]
        return scan.numbers([column]), fixed_point(nw.col("c0"), bounds, outside, grid_exponent)

    def _moments(self, scan: Scan, family: Any, grid_exponent: int) -> tuple[Any, list[nw.Expr]]:
        """U_j · 2^k and U_i U_j, all in steps of 2^−2k, for U = 2^k u and 2k = grid_exponent."""
        unit = 2 ** (grid_exponent // 2)
        outside = getattr(family, "outside", "clamp")
        names = [f"c{i}" for i in range(len(family.columns))]
        rows = zip(names, family.intervals, family.centre, family.half, strict=True)
        whole = [scaled(nw.col(name), interval, outside, c, h, unit).alias(name) for name, interval, c, h in rows]
        frame = scan.selected(scan.numbers(family.columns), *whole)
        moments = zip(family.monomials([nw.col(name) for name in names]), family.degrees, strict=True)
        return frame, [moment * unit if degree == 1 else moment for moment, degree in moments]


def _sized(totals: tuple[list[int], int], least: int) -> tuple[list[int], int]:
    """The totals of a table that is neither too small nor too large; where n is private, it is not told."""
    n = totals[1]
    if not least <= n <= MOST_RECORDS:
        told = "" if least == 0 else f", got {n}"
        raise ValueError(f"table must hold {least} to {MOST_RECORDS} records{told}.")
    return totals
