"""Confidential records wherever they live, and exact integer sums of their statistics.

    record → number (anything else is outside the bounds) → clamped or dropped → ⌊· 2^k⌋ → t(x) → Σ

or, for second moments, → u = (x − centre)/half, which lies in ±1 → ⌊u · 2^k + ½⌋ → t(u), all of the second degree → Σ,
in the engine that holds the table, in one scan and as integers, so that the sums are the same to the bit on every
engine. A scan ends in the sums or in one sentence that holds nothing of the records: no value can cause an error,
and an engine's own message, which may quote a record, is never passed on.

What is a number is the same everywhere: text is read by one parser, DuckDB's cast to DOUBLE, with `true` for 1 and
`false` for 0 in any case. NULL, NaN and other text are outside the bounds: dropped, or clamped to the lower bound; and
where bounds are still to be chosen, they lie below every candidate.
Columns that need that parser, or the position of a level, pass through an embedded DuckDB; PyArrow tables always do,
because Arrow's own casts refuse a value by quoting it.
"""

import importlib.util
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from noiseaware.custodian.reader import READERS, check_columns, connection, literal, quietly, quoted
from noiseaware.family import AbstractFamily

MOST_RECORDS = 2**31
"""The public cap on the number of records: the grid is chosen so that sums of this many cannot overflow."""

_PLAIN = (nw.Boolean, nw.Float32, nw.Float64)
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_BY_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Decimal, nw.Int128, nw.UInt128)
_CASTABLE = ("boolean", "float", "double", "tinyint", "smallint", "integer", "bigint")
_CASTABLE += ("utinyint", "usmallint", "uinteger", "ubigint")
_LARGEST_LEVEL = 2**53  # whole levels are compared as doubles, exact up to here


class Table:
    """A file (CSV, Parquet, JSON) or a frame (pandas, Polars, PyArrow, DuckDB) of confidential records."""

    def __init__(self, source: Any) -> None:
        self.source: Any = Path(source) if isinstance(source, str | os.PathLike) else source
        if isinstance(self.source, Path):
            if self.source.suffix.lower() not in READERS:
                raise ValueError(f"table file must end in one of {', '.join(READERS)}, got {self.source.name}.")
            if not self.source.is_file():
                raise ValueError(f"table file must exist, got {self.source}.")
            self.name = self.source.name
        else:
            complaint = f"table must be a path or a data frame, got {type(source).__name__}."
            self.name = f"{quietly(lambda: nw.from_native(self.source), complaint).implementation.value} frame"

    def sums(self, family: AbstractFamily, grid_exponent: int, *, least: int = 1) -> tuple[list[int], int]:
        """Σ t(x) in steps of 2^−grid_exponent, and the number of records; refused if these are fewer than least."""
        if hasattr(family, "degrees"):
            return self._moments(family, grid_exponent, least)
        (column,) = family.columns
        levels = getattr(family, "levels", None)
        if levels is None:
            frame = self._numbers([column])
            steps = _fixed_point(nw.col(column), family.bounds, family.outside, grid_exponent)  # type: ignore[attr-defined]
            frame = frame.select(steps.alias(column))
        else:
            frame = self._positions(column, levels)
        return self._totals(frame, family.statistic(nw.col(column)), least)

    def records(self, family: AbstractFamily, grid_exponent: int) -> list[int]:
        """Each record after its bounds in steps of 2^−grid_exponent, or its place among the levels."""
        (column,) = family.columns
        levels = getattr(family, "levels", None)
        if levels is None:
            steps = _fixed_point(nw.col(column), family.bounds, family.outside, grid_exponent)  # type: ignore[attr-defined]
            frame = self._numbers([column]).select(steps.alias(column))
        else:
            frame = self._positions(column, levels).select(nw.col(column).cast(nw.Int64))
        complaint = f"table {self.name} could not be read as a table of records."
        values = quietly(lambda: frame.lazy().collect("pandas").get_column(column).to_list(), complaint)
        return [int(value) for value in values]

    def _moments(self, family: Any, grid_exponent: int, least: int) -> tuple[list[int], int]:
        """Σ U_j · 2^k and Σ U_i U_j, all in steps of 2^−2k, for U = 2^k u and 2k = grid_exponent."""
        unit = 2 ** (grid_exponent // 2)
        outside = getattr(family, "outside", "clamp")
        rows = zip(family.columns, family.intervals, family.centre, family.half, strict=True)
        frame = self._numbers(family.columns).select(
            *(_scaled(nw.col(name), interval, outside, c, h, unit).alias(name) for name, interval, c, h in rows)
        )
        moments = zip(family.monomials([nw.col(name) for name in family.columns]), family.degrees, strict=True)
        return self._totals(frame, [moment * unit if degree == 1 else moment for moment, degree in moments], least)

    def counts(self, column: str, candidates: Sequence[float]) -> tuple[list[int], int]:
        """#{x ≤ c} for each candidate c, and the number of records; what is no number is below every candidate."""
        x = self._numbers([column]).select(_placed(nw.col(column)).alias(column))
        return self._totals(x, [nw.col(column) <= candidate for candidate in candidates])

    def _totals(self, frame, columns: Sequence[nw.Expr], least: int = 1) -> tuple[list[int], int]:
        """The sum of each column of integers and the number of records, in one scan."""
        totals = [column.cast(nw.Int64).sum().alias(f"{i}") for i, column in enumerate(columns)]
        scan = frame.select(*totals, nw.len().alias("n"))
        *sums, n = quietly(lambda: _only_row(scan), f"table {self.name} could not be read as a table of records.")
        if not least <= n <= MOST_RECORDS:
            raise ValueError(f"table must hold {least} to {MOST_RECORDS} records, got {n}.")
        return sums, n

    def _numbers(self, columns: Sequence[str]):
        """The table with the columns as numbers that its engine can cast to float64."""
        frame, dtypes = self._opened(columns)
        if all(_is_plain(frame, column, dtype) for column, dtype in zip(columns, dtypes, strict=True)):
            return frame
        relation = self._relation(frame, columns)
        return nw.from_native(_project(relation, {column: _number(relation, column) for column in columns}))

    def _positions(self, column: str, levels: Sequence):
        """The table with the column as positions of levels; what is not a level is at the first."""
        frame, (dtype,) = self._opened([column])
        is_text = isinstance(levels[0], str)
        if is_text and dtype in (*_PLAIN, *_WHOLE, nw.Decimal, nw.Int128, nw.UInt128):
            raise ValueError(f"column {column!r} must hold text, as the levels are, got type {dtype}.")
        if not is_text and max(abs(level) for level in levels) > _LARGEST_LEVEL:
            raise ValueError(f"levels must be between -2**53 and 2**53, got {max(levels, key=abs)}.")
        relation = self._relation(frame, [column])
        if is_text:
            listed = ", ".join(literal(self._spelled(level)) for level in levels)
            position = f"list_position([{listed}], {_text(relation, column)})"
        else:
            listed = ", ".join(f"{level:d}::DOUBLE" for level in levels)
            position = f"list_position([{listed}], {_number(relation, column)})"
        return nw.from_native(_project(relation, {column: f"COALESCE({position} - 1, 0)"}))

    def _opened(self, columns: Sequence[str]):
        """The table as a narwhals frame, and the types of the columns; both are public."""
        complaint = f"table {self.name} could not be opened as a table of records."
        if len({column.lower() for column in columns}) < len(columns):  # to DuckDB they would be one
            raise ValueError(f"columns must differ by more than upper and lower case, got {list(columns)}.")
        source = self.source
        if isinstance(source, Path):
            source = READERS[source.suffix.lower()](source, columns, complaint)
        frame = quietly(lambda: nw.from_native(source), complaint)
        schema = quietly(frame.collect_schema, complaint)
        check_columns(columns, list(schema.names()), self.name)
        dtypes = [schema[column] for column in columns]
        for column, dtype in zip(columns, dtypes, strict=True):
            if dtype not in (*_PLAIN, *_WHOLE, *_BY_TEXT) and not _is_null(frame, column):
                raise ValueError(f"column {column!r} must hold numbers or text, got type {dtype}.")
        return frame, dtypes

    def _relation(self, frame, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Columns of a frame as a DuckDB relation."""
        native = frame.to_native()
        if isinstance(native, duckdb.DuckDBPyRelation):
            return native
        named = " and ".join(repr(column) for column in columns)
        complaint = f"column {named} of table {self.name} could not be read as numbers or text."
        if frame.implementation.is_pandas():
            texts = quietly(lambda: native[[*columns]].assign(**{c: _textual(native[c]) for c in columns}), complaint)
            return quietly(lambda: connection().from_df(texts), complaint)
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError(f"reading text from a {self.name} needs pyarrow; install pyarrow.")
        arrow = quietly(lambda: frame.lazy().select(*columns).collect("pyarrow").to_native(), complaint)
        return quietly(lambda: connection().from_arrow(arrow), complaint)

    def _spelled(self, level: str) -> str:
        """A level as it is read: the bytes of a CSV file are taken one by one, so that none of them is an error."""
        is_csv = isinstance(self.source, Path) and self.source.suffix.lower() == ".csv"
        return level.encode().decode("latin-1") if is_csv else level


# ---- the column, in narwhals and in SQL ----------------------------------------------------------------------


def _fixed_point(x: nw.Expr, bounds: tuple[float, float], outside: str, grid_exponent: int) -> nw.Expr:
    """⌊x · 2^k⌋ of each record after its bounds; multiplying by a power of two is exact."""
    return (_bounded(x, bounds, outside, 0.0) * 2.0**grid_exponent).floor().cast(nw.Int64)


def _scaled(
    x: nw.Expr, bounds: tuple[float, float], outside: str, centre: float, half: float, unit: int
) -> nw.Expr:
    """⌊u · 2^k + ½⌋ of each record after its bounds, for u = (x − centre)/half and 2^k = unit; 0 where dropped.

    Nearest, since the bias of a floor would add up over the records where k is small. The clip is what the
    sensitivity rests on, however the steps before it round. A product, since Polars divides by a number by multiplying
    with its inverse and the others do not.
    """
    u = (_bounded(x, bounds, outside, float(centre)) - float(centre)) * (unit / float(half))
    return (u + 0.5).floor().clip(-float(unit), float(unit)).cast(nw.Int64)


def _bounded(x: nw.Expr, bounds: tuple[float, float], outside: str, dropped: float) -> nw.Expr:
    """Each record between its bounds, or where a dropped one is put.

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


def _placed(x: nw.Expr) -> nw.Expr:
    """Each record where it lies on the line: NULL and NaN at −∞, since clamping takes them to the lower bound.

    The clip changes nothing, and is there for the reason that `_bounded` tells.
    """
    x = x.cast(nw.Float64).fill_null(-math.inf).clip(-math.inf)
    return nw.when(x.is_nan()).then(nw.lit(-math.inf)).otherwise(x)


def _number(relation: duckdb.DuckDBPyRelation, column: str) -> str:
    """SQL for the column as DOUBLE, NULL where it is no number."""
    if _type(relation, column).id in _CASTABLE:
        return f"CAST({quoted(column)} AS DOUBLE)"
    text = _text(relation, column)
    word = f"CASE lower(trim({text})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
    return f"COALESCE(TRY_CAST({text} AS DOUBLE), {word})"


def _text(relation: duckdb.DuckDBPyRelation, column: str) -> str:
    """SQL for the column as VARCHAR; a JSON string without its quotes."""
    if str(_type(relation, column)) == "JSON":
        return f"({quoted(column)} ->> '$')"
    return f"CAST({quoted(column)} AS VARCHAR)"


def _project(relation: duckdb.DuckDBPyRelation, expressions: dict[str, str]) -> duckdb.DuckDBPyRelation:
    """The relation with SQL for each column."""
    complaint = f"column {' and '.join(map(repr, expressions))} could not be read as numbers or text."
    wanted = ", ".join(f"{sql} AS {quoted(column)}" for column, sql in expressions.items())
    return quietly(lambda: relation.project(wanted), complaint)


def _textual(series: Any) -> Any:
    """A pandas column that DuckDB can take: objects and categories as text."""
    if str(series.dtype) not in ("object", "category"):
        return series
    try:
        return series.astype("str").where(series.notna(), None)
    except UnicodeEncodeError:  # half of a pair of surrogates, which is no text
        return series.map(lambda x: str(x).encode(errors="replace").decode()).astype("str").where(series.notna(), None)


def _type(relation: duckdb.DuckDBPyRelation, column: str):
    return relation.types[relation.columns.index(column)]


def _is_plain(frame, column: str, dtype) -> bool:
    """Whether the frame's own engine casts the column to float64, rounding to nearest and refusing nothing."""
    if dtype not in (*_PLAIN, *_WHOLE):
        return False
    if frame.implementation.is_pandas():
        return "pyarrow" not in str(frame.to_native()[column].dtype)
    return not frame.implementation.is_pyarrow()


def _is_null(frame, column: str) -> bool:
    """Whether the column has the type of nothing but NULL, which an engine gives a column without a value."""
    native = frame.to_native()
    if isinstance(native, duckdb.DuckDBPyRelation):
        return _type(native, column).id == "null"
    if frame.implementation.is_pandas():
        return str(native[column].dtype) == "null[pyarrow]"
    if frame.implementation.is_polars():
        return str(native.collect_schema()[column]) == "Null"
    return frame.implementation.is_pyarrow() and str(native.schema.field(column).type) == "null"


def _only_row(scan) -> list[int]:
    native = scan.to_native()
    if isinstance(native, duckdb.DuckDBPyRelation):  # sums are HUGEINT there, which Arrow would make a decimal
        (row,) = native.fetchall()
    else:
        row = scan.lazy().collect().row(0)
    return [int(value or 0) for value in row]  # a sum of no records is NULL on some engines
