"""Confidential records wherever they live, and exact integer sums of their statistics.

    record → number (anything else is outside the bounds) → clamped or dropped → ⌊· 2^k⌋ → t(x) → Σ

or, for second moments, → u = (x − centre)/half, which lies in ±1 → ⌊u · 2^k + ½⌋ → t(u), all of the second degree → Σ,
in the engine that holds the table, in one scan and as integers, so that the sums are the same to the bit on every
engine. A scan ends in the sums or in one sentence that holds nothing of the records: no value can cause an error,
and an engine's own message, which may quote a record, is never passed on.

What is a number is the same everywhere: text is read by one parser, DuckDB's cast to DOUBLE, with `true` for 1 and
`false` for 0 in any case. NULL, NaN and other text are missing (missing.py): unless it is said what they count as, they
are outside the bounds, dropped or clamped to the lower bound; and where bounds are still to be chosen, they lie below
every candidate.
"""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw

from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine.column import filled, fixed_point, placed, readable, scaled
from noiseaware.custodian.engine.scan import Progress, Scan
from noiseaware.custodian.engine.source import source
from noiseaware.custodian.missing import Cells
from noiseaware.query import AbstractMoments, AbstractQuery

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
        self,
        query: AbstractQuery,
        grid_exponent: int,
        *,
        least: int = 1,
        unit: Unit | None = None,
        cells: Cells = Cells(),
    ) -> tuple[list[int], int]:
        """Σ t(x) in steps of 2^−grid_exponent, and the number of records; refused if these are fewer than least.

        Where records with missing cells are left out, the number is that of the others, whatever it is.
        """
        with self._scan(unit) as scan:
            totals = _sized(scan.totals(*self._statistics(scan, query, grid_exponent, cells)), least)
            return _of_readable(totals) if cells.leaves_out else totals

    def group_sums(
        self,
        query: AbstractQuery,
        grid_exponent: int,
        groups: Groups,
        *,
        unit: Unit | None = None,
        cells: Cells = Cells(),
    ) -> list[tuple[list[int], int]]:
        """Σ t(x) in steps of 2^−grid_exponent and the number of records, of each group, in one pass."""
        with self._scan(unit, groups) as scan:
            statistics = self._statistics(scan, query, grid_exponent, cells)
            found = [_sized(totals, 0) for totals in scan.group_totals(*statistics, len(groups.keys))]
            return [_of_readable(totals) for totals in found] if cells.leaves_out else found

    def records(self, query: AbstractQuery, grid_exponent: int) -> list[int]:
        """Each record after its bounds in steps of 2^−grid_exponent, or its place among the levels."""
        with self._scan() as scan:
            return scan.values(*self._whole(scan, query, grid_exponent, Cells()))

    def counts(
        self,
        column: str,
        candidates: Sequence[float],
        *,
        least: int = 1,
        unit: Unit | None = None,
        missing: float | None = None,
    ) -> tuple[list[int], int]:
        """#{x ≤ c} for each candidate c, and the number of records; a missing one is below every candidate, or has
        the value that is given for it."""
        with self._scan(unit) as scan:
            x = scan.selected(scan.numbers([column]), placed(filled(nw.col("c0"), missing)).alias("c0"))
            below = [nw.when(nw.col("c0") <= c).then(nw.lit(1)).otherwise(nw.lit(0)) for c in candidates]
            return _sized(scan.totals(x, below), least)

    def _scan(self, unit: Unit | None = None, groups: Groups | None = None) -> Scan:
        return Scan(self._source, self._progress, unit=unit, groups=groups)

    def _statistics(
        self, scan: Scan, query: AbstractQuery, grid_exponent: int, cells: Cells
    ) -> tuple[Any, Sequence[nw.Expr]]:
        """Return a frame of whole numbers, and t(x) of them; last, where records may be left out, 1 for each readable
        one."""
        if isinstance(query, AbstractMoments):
            return self._moments(scan, query, grid_exponent, cells)
        frame, x = self._whole(scan, query, grid_exponent, cells)
        if not cells.leaves_out:
            return scan.selected(frame, x.alias("c0")), query.statistic(nw.col("c0"))
        if query.levels is not None:  # what is no level is at −1, and adds to no count
            is_level = nw.when(nw.col("c0") >= 0).then(nw.lit(1)).otherwise(nw.lit(0))
            return scan.selected(frame, x.alias("c0")), [*query.statistic(nw.col("c0")), is_level]
        kept = readable([nw.col("c0")])
        frame = scan.selected(frame, (x * kept).alias("c0"), kept.alias("r"))
        return frame, [*query.statistic(nw.col("c0")), nw.col("r")]

    def _whole(self, scan: Scan, query: AbstractQuery, grid_exponent: int, cells: Cells) -> tuple[Any, nw.Expr]:
        """Return one column, and the whole number that each of its records is."""
        (column,), (missing,) = query.columns, cells.values(query)
        if query.levels is not None:
            other = -1 if cells.leaves_out else 0 if missing is None else query.levels.index(missing)
            return scan.positions(column, query.levels, other), nw.col("c0")
        x = filled(nw.col("c0"), missing)  # type: ignore[arg-type]
        assert query.intervals is not None  # without bounds nothing is summed
        whole = fixed_point(x, query.intervals[0], query.outside, grid_exponent)
        return scan.numbers([column], query.yes_or_no, cells.true), whole

    def _moments(
        self, scan: Scan, query: AbstractMoments, grid_exponent: int, cells: Cells
    ) -> tuple[Any, list[nw.Expr]]:
        """Return U_j · 2^k and U_i U_j, all in steps of 2^−2k, for U = 2^k u and 2k = grid_exponent; all 0 of a record
        that is left out."""
        unit = 2 ** (grid_exponent // 2)
        names = [f"c{i}" for i in range(len(query.columns))]
        columns = [filled(nw.col(name), value) for name, value in zip(names, cells.values(query), strict=True)]  # type: ignore[arg-type]
        rows = zip(columns, query.intervals or (), query.centre, query.half, strict=True)
        whole = [scaled(column, interval, query.outside, c, h, unit) for column, interval, c, h in rows]
        kept = [readable([nw.col(name) for name in names])] if cells.leaves_out else []
        whole = [x * kept[0] for x in whole] if kept else whole
        wanted = [*(x.alias(name) for x, name in zip(whole, names, strict=True)), *(r.alias("r") for r in kept)]
        frame = scan.selected(scan.numbers(query.columns, query.yes_or_no, cells.true), *wanted)
        moments = zip(query.monomials([nw.col(name) for name in names]), query.degrees, strict=True)
        found = [moment * unit if degree == 1 else moment for moment, degree in moments]
        return frame, [*found, *(nw.col("r") for _ in kept)]


def _of_readable(totals: tuple[list[int], int]) -> tuple[list[int], int]:
    """The sums, and the number of readable records, which is the last of the totals."""
    *sums, readable_n = totals[0]
    return sums, readable_n


def _sized(totals: tuple[list[int], int], least: int) -> tuple[list[int], int]:
    """The totals of a table that is neither too small nor too large; where n is private, it is not told."""
    n = totals[1]
    if not least <= n <= MOST_RECORDS:
        told = "" if least == 0 else f", got {n}"
        raise ValueError(f"table must hold {least} to {MOST_RECORDS} records{told}.")
    return totals
