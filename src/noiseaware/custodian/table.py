"""Confidential records wherever they live, and exact integer sums of their statistics.

    record → number (anything else is outside the bounds) → clamped or dropped → ⌊· 2^k⌋ → t(x) → Σ

in the engine that holds the table, in one scan and as integers, so that the sums are the same to the bit on every
engine. A scan ends in the sums or in one sentence that holds nothing of the records: no value can cause an error,
and an engine's own message, which may quote a record, is never passed on.

What is a number is the same everywhere: text is read by one parser, DuckDB's cast to DOUBLE, with `true` for 1 and
`false` for 0 in any case. NULL, NaN and other text are outside the bounds: dropped, or clamped to the lower bound; and
where bounds are still to be chosen, they lie below every candidate.
Columns that need that parser, or the position of a level, pass through an embedded DuckDB; PyArrow tables always do,
because Arrow's own casts refuse a value by quoting it.
"""

import csv
import functools
import glob
import importlib.util
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import narwhals as nw

from noiseaware.family import AbstractFamily

MOST_RECORDS = 2**31
"""The public cap on the number of records: the grid is chosen so that sums of this many cannot overflow."""

_T = TypeVar("_T")
_PLAIN = (nw.Boolean, nw.Float32, nw.Float64)
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_BY_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Decimal, nw.Int128, nw.UInt128)
_CASTABLE = ("boolean", "float", "double", "tinyint", "smallint", "integer", "bigint")
_CASTABLE += ("utinyint", "usmallint", "uinteger", "ubigint")
_LONGEST_LINE = 2**20
_LARGEST_LEVEL = 2**53  # whole levels are compared as doubles, exact up to here


class Table:
    """A file (CSV, Parquet, JSON) or a frame (pandas, Polars, PyArrow, DuckDB) of confidential records."""

    def __init__(self, source: Any) -> None:
        self.source: Any = Path(source) if isinstance(source, str | os.PathLike) else source
        if isinstance(self.source, Path):
            if self.source.suffix.lower() not in _READERS:
                raise ValueError(f"table file must end in one of {', '.join(_READERS)}, got {self.source.name}.")
            if not self.source.is_file():
                raise ValueError(f"table file must exist, got {self.source}.")
            self.name = self.source.name
        else:
            complaint = f"table must be a path or a data frame, got {type(source).__name__}."
            self.name = f"{_quietly(lambda: nw.from_native(self.source), complaint).implementation.value} frame"

    def sums(self, family: AbstractFamily, grid_exponent: int) -> tuple[list[int], int]:
        """Σ t(x) in steps of 2^−grid_exponent, and the number of records."""
        (column,) = family.columns
        levels = getattr(family, "levels", None)
        if levels is None:
            frame = self._numbers(column)
            steps = _fixed_point(nw.col(column), family.bounds, family.outside, grid_exponent)  # type: ignore[attr-defined]
            frame = frame.select(steps.alias(column))
        else:
            frame = self._positions(column, levels)
        return self._totals(frame, family.statistic(nw.col(column)))

    def counts(self, column: str, candidates: Sequence[float]) -> tuple[list[int], int]:
        """#{x ≤ c} for each candidate c, and the number of records; what is no number is below every candidate."""
        x = self._numbers(column).select(_placed(nw.col(column)).alias(column))
        return self._totals(x, [nw.col(column) <= candidate for candidate in candidates])

    def _totals(self, frame, columns: Sequence[nw.Expr]) -> tuple[list[int], int]:
        """The sum of each column of integers and the number of records, in one scan."""
        totals = [column.cast(nw.Int64).sum().alias(f"{i}") for i, column in enumerate(columns)]
        scan = frame.select(*totals, nw.len().alias("n"))
        *sums, n = _quietly(lambda: _only_row(scan), f"table {self.name} could not be read as a table of records.")
        if not 1 <= n <= MOST_RECORDS:
            raise ValueError(f"table must hold 1 to {MOST_RECORDS} records, got {n}.")
        return sums, n

    def _numbers(self, column: str):
        """The table with the column as numbers that its engine can cast to float64."""
        frame, dtype = self._opened(column)
        if _is_plain(frame, column, dtype):
            return frame
        relation = self._relation(frame, column)
        return nw.from_native(_project(relation, _number(relation, column), column))

    def _positions(self, column: str, levels: Sequence):
        """The table with the column as positions of levels; what is not a level is at the first."""
        frame, dtype = self._opened(column)
        is_text = isinstance(levels[0], str)
        if is_text and dtype in (*_PLAIN, *_WHOLE, nw.Decimal, nw.Int128, nw.UInt128):
            raise ValueError(f"column {column!r} must hold text, as the levels are, got type {dtype}.")
        if not is_text and max(abs(level) for level in levels) > _LARGEST_LEVEL:
            raise ValueError(f"levels must be between -2**53 and 2**53, got {max(levels, key=abs)}.")
        relation = self._relation(frame, column)
        if is_text:
            listed = ", ".join(_literal(self._spelled(level)) for level in levels)
            position = f"list_position([{listed}], {_text(relation, column)})"
        else:
            listed = ", ".join(f"{level:d}::DOUBLE" for level in levels)
            position = f"list_position([{listed}], {_number(relation, column)})"
        return nw.from_native(_project(relation, f"COALESCE({position} - 1, 0)", column))

    def _opened(self, column: str):
        """The table as a narwhals frame, and the type of the column; both are public."""
        complaint = f"table {self.name} could not be opened as a table of records."
        source = self.source
        if isinstance(source, Path):
            source = _READERS[source.suffix.lower()](source, column, complaint)
        frame = _quietly(lambda: nw.from_native(source), complaint)
        schema = _quietly(frame.collect_schema, complaint)
        _check_column(column, list(schema.names()), self.name)
        dtype = schema[column]
        if dtype not in (*_PLAIN, *_WHOLE, *_BY_TEXT) and not _is_null(frame, column):
            raise ValueError(f"column {column!r} must hold numbers or text, got type {dtype}.")
        return frame, dtype

    def _relation(self, frame, column: str) -> duckdb.DuckDBPyRelation:
        """One column of a frame as a DuckDB relation."""
        native = frame.to_native()
        if isinstance(native, duckdb.DuckDBPyRelation):
            return native
        complaint = f"column {column!r} of table {self.name} could not be read as numbers or text."
        if frame.implementation.is_pandas():
            series = native[column]
            if str(series.dtype) in ("object", "category"):
                series = _quietly(lambda: series.astype("str").where(series.notna(), None), complaint)
            return _quietly(lambda: _connection().from_df(series.to_frame()), complaint)
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError(f"reading text from a {self.name} needs pyarrow; install pyarrow.")
        arrow = _quietly(lambda: frame.lazy().select(column).collect("pyarrow").to_native(), complaint)
        return _quietly(lambda: _connection().from_arrow(arrow), complaint)

    def _spelled(self, level: str) -> str:
        """A level as it is read: the bytes of a CSV file are taken one by one, so that none of them is an error."""
        is_csv = isinstance(self.source, Path) and _READERS[self.source.suffix.lower()] is _read_csv
        return level.encode().decode("latin-1") if is_csv else level


# ---- the column, in narwhals and in SQL ----------------------------------------------------------------------


def _fixed_point(x: nw.Expr, bounds: tuple[float, float], outside: str, grid_exponent: int) -> nw.Expr:
    """⌊x · 2^k⌋ of each record after its bounds; multiplying by a power of two is exact.

    `x <= high` is false of NaN on every engine, and NaN passes `clip` unchanged. The clip from below comes first
    even where it changes nothing: DuckDB answers a comparison, and even isnan, from the least and greatest value in
    a Parquet file's statistics where it can, though NaN is left out of these; it does not see through `greatest`.
    """
    low, high = bounds
    if outside == "clamp":
        x = x.cast(nw.Float64).fill_null(low).clip(low)
        beyond = nw.when(x.is_nan()).then(nw.lit(low)).otherwise(nw.lit(high))
        x = nw.when(x <= high).then(x).otherwise(beyond)
    else:
        x = x.cast(nw.Float64).fill_null(math.inf).clip(-math.inf)
        x = nw.when((x >= low) & (x <= high)).then(x).otherwise(nw.lit(0.0))
    return (x * 2.0**grid_exponent).floor().cast(nw.Int64)


def _placed(x: nw.Expr) -> nw.Expr:
    """Each record where it lies on the line: NULL and NaN at −∞, since clamping takes them to the lower bound.

    The clip changes nothing, and is there for the reason that `_fixed_point` tells.
    """
    x = x.cast(nw.Float64).fill_null(-math.inf).clip(-math.inf)
    return nw.when(x.is_nan()).then(nw.lit(-math.inf)).otherwise(x)


def _number(relation: duckdb.DuckDBPyRelation, column: str) -> str:
    """SQL for the column as DOUBLE, NULL where it is no number."""
    if _type(relation, column).id in _CASTABLE:
        return f"CAST({_quoted(column)} AS DOUBLE)"
    text = _text(relation, column)
    word = f"CASE lower(trim({text})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
    return f"COALESCE(TRY_CAST({text} AS DOUBLE), {word})"


def _text(relation: duckdb.DuckDBPyRelation, column: str) -> str:
    """SQL for the column as VARCHAR; a JSON string without its quotes."""
    if str(_type(relation, column)) == "JSON":
        return f"({_quoted(column)} ->> '$')"
    return f"CAST({_quoted(column)} AS VARCHAR)"


def _project(relation: duckdb.DuckDBPyRelation, sql: str, column: str) -> duckdb.DuckDBPyRelation:
    complaint = f"column {column!r} could not be read as numbers or text."
    return _quietly(lambda: relation.project(f"{sql} AS {_quoted(column)}"), complaint)


def _type(relation: duckdb.DuckDBPyRelation, column: str):
    return relation.types[relation.columns.index(column)]


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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
    return [int(value) for value in row]


# ---- files ---------------------------------------------------------------------------------------------------


def _connection() -> duckdb.DuckDBPyConnection:
    """A silent connection of its own to the embedded DuckDB of this process."""
    connection = _embedded(os.getpid()).cursor()
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        # Where it is off already, as in a notebook without ipywidgets, even switching it off is an error.
        connection.execute("SET enable_progress_bar = false").fetchall()
    return connection


@functools.cache  # starting one takes as long as a million rows; a forked process must not share it
def _embedded(process: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB that fetches no extension and keeps nothing that it read."""
    offline = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    return duckdb.connect(config={**offline, "enable_external_file_cache": False})


def _read_parquet(path: Path, column: str, complaint: str) -> duckdb.DuckDBPyRelation:
    """Parquet: the types in the file are the schema."""
    return _quietly(lambda: _connection().sql(f"SELECT * FROM read_parquet({_address(path)})"), complaint)


def _read_csv(path: Path, column: str, complaint: str) -> duckdb.DuckDBPyRelation:
    """CSV: the header row is the schema and tells the delimiter; all else is text, and nothing of it is sniffed.

    Short rows are padded with NULL, long ones cut, stray quotes kept, and bytes read as Latin-1, which has no
    invalid ones: so a record cannot make an error.
    """
    names, delimiter = _quietly(lambda: _header(path), complaint)
    _check_column(column, names, path.name)
    kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    options = (
        f"auto_detect = false, header = true, delim = {_literal(delimiter)}, quote = '\"', escape = '\"', "
        "encoding = 'latin-1', strict_mode = false, null_padding = true, parallel = false"
    )
    records = f"read_csv({_address(path)}, {options}, columns = {{{kinds}}})"
    sql = f"SELECT c{names.index(column)} AS {_quoted(column)} FROM {records}"
    return _quietly(lambda: _connection().sql(sql), complaint)


def _header(path: Path) -> tuple[list[str], str]:
    """The names in the first row, and the delimiter that splits it most."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(_LONGEST_LINE)
        delimiter = max(",;\t|", key=line.count)
        file.seek(0)
        return next(csv.reader(file, delimiter=delimiter)), delimiter


def _read_json(path: Path, column: str, complaint: str) -> duckdb.DuckDBPyRelation:
    """JSON, one object a line or one array: the keys are the schema, and a value is taken as text.

    In a file of lines, a broken line is a record of NULL; in a broken array the records cannot be told apart.
    """
    layout = _quietly(lambda: _layout(path), complaint)
    records = f"read_json_objects({_address(path)}, {layout})"
    pointer = _literal("/" + column.replace("~", "~0").replace("/", "~1"))
    connection = _quietly(_connection, complaint)
    having = f"SELECT 1 FROM {records} WHERE json_exists(json, {pointer}) LIMIT 1"
    names = [column] if _quietly(lambda: connection.sql(having).fetchall(), complaint) else []
    _check_column(column, names, path.name)
    return _quietly(lambda: connection.sql(f"SELECT json ->> {pointer} AS {_quoted(column)} FROM {records}"), complaint)


def _layout(path: Path) -> str:
    """DuckDB's options for an array, or for lines: the first character tells."""
    with path.open("rb") as file:
        is_array = file.read(_LONGEST_LINE).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    return "format = 'array'" if is_array else "format = 'newline_delimited', ignore_errors = true"


_READERS: dict[str, Callable[[Path, str, str], duckdb.DuckDBPyRelation]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
}


def _address(path: Path) -> str:
    """A path as DuckDB takes it, where *, ? and [ would be patterns."""
    return _literal(glob.escape(str(path)))


def _check_column(column: str, names: list[str], table: str) -> None:
    if names.count(column) != 1:
        raise ValueError(f"table {table} must have one column {column!r}, got {names.count(column)}.")


def _quietly(action: Callable[[], _T], complaint: str) -> _T:
    """The outcome of an action, or a complaint that holds nothing of its error: an engine's error quotes records.

    Raised after the error is forgotten, so that not even the exception's context leads back to it.
    """
    try:
        return action()
    except Exception:
        pass
    raise ValueError(complaint)
