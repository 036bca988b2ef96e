"""One reading of a table: opened, turned into numbers or levels, and summed in one pass.

Columns are opened in one place and summed in another; between them they are c0, c1, … in the order that was asked for,
and beside them g, the number of a record's group.
Columns of numbers stay in the engine that holds the table. Columns that need the one parser, or the position of a
level, pass through a DuckDB: in batches from PostgreSQL, and in Spark's own workers; PyArrow tables always do, because
Arrow's own casts refuse a value by quoting it.
"""

import contextlib
import importlib.util
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import narwhals as nw

from noiseaware.custodian import parser
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine import cell, ibis, spark
from noiseaware.custodian.engine.duckdb import check_columns, connection, unlimited
from noiseaware.custodian.engine.quiet import interruptible, quietly
from noiseaware.custodian.engine.source import Opening, Source
from noiseaware.custodian.parser import LARGEST_LEVEL, level_flag, level_number, number, position, quoted, yes_or_no

_PLAIN = (nw.Boolean, nw.Float32, nw.Float64)
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_BY_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Decimal, nw.Int128, nw.UInt128)


@dataclass(frozen=True)
class Progress:
    """How far a scan is: the share that is done and its rows, where the engine tells, and the seconds it took."""

    share: float | None
    rows: int | None
    seconds: float


class Scan:
    """A table while it is read. An engine's message, which may quote a record, is never passed on."""

    def __init__(
        self,
        source: Source,
        told: Callable[[Progress], object] | None = None,
        *,
        unit: Unit | None = None,
        groups: Groups | None = None,
    ) -> None:
        self.source, self._told = source, told
        self._unit, self._groups = unit, groups
        self._closing, self._needs = contextlib.ExitStack(), ""
        self._stop: Callable[[], object] = lambda: None

    def __enter__(self) -> "Scan":
        self._own = quietly(lambda: connection(counts_progress=self._told is not None), self._unread)
        if self._unit is not None:  # a person's records are brought together, and nothing goes to a file
            self._closing.enter_context(unlimited())
        self._closing.callback(_closed, self._own)
        self._stop = self._own.interrupt
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def _unread(self) -> str:
        return f"table {self.source.name} could not be read as a table of records{self._needs}."

    def numbers(self, columns: Sequence[str], flags: Sequence[str] = (), true: Sequence[str] = ()) -> Any:
        """The columns as numbers that the engine can cast to float64; flags are those of yes and no."""
        frame, dtypes = self._opened(columns)
        places = [f"c{columns.index(flag)}" for flag in flags]
        # A number too may be one of the words that are yes.
        plain = [_is_plain(frame, name, dtype) and not (true and name in places) for name, dtype in dtypes.items()]
        if not all(plain) or self._groups is not None:

            def sql(name: str, kind: str) -> str:
                return yes_or_no(name, kind, true) if name in places else number(name, kind)

            return self._parsed(frame, plain, columns, sql, "double")
        if frame.implementation.is_ibis():  # PostgreSQL casts a boolean to a whole number only
            flags = [name for name, dtype in dtypes.items() if dtype == nw.Boolean]
            return frame.with_columns(nw.col(flag).cast(nw.Int32) for flag in flags) if flags else frame
        return frame

    def positions(self, column: str, levels: Sequence, other: int = 0) -> Any:
        """The column as positions of levels; `other`, the first, for what is not a level."""
        frame, dtypes = self._opened([column])
        levels = self._spelled(dtypes["c0"], levels)
        plain = [_is_plain(frame, name, dtype) for name, dtype in dtypes.items()]
        return self._parsed(frame, plain, [column], lambda name, kind: position(name, kind, levels, other), "bigint")

    def _spelled(self, dtype: Any, levels: Sequence) -> Sequence[tuple[int, str | float]]:
        """The levels' positions and what a column of some type has there: texts, numbers, or 1 and 0 for flags.

        An engine that guesses types makes numbers of "1" and "2" where no record holds a word: were such a column
        refused, it would tell that none does.
        """
        if not isinstance(levels[0], str):
            if max(abs(level) for level in levels) > LARGEST_LEVEL:
                raise ValueError(f"levels must be between -2**53 and 2**53, got {max(levels, key=abs)}.")
            return list(enumerate(levels))
        if dtype == nw.Boolean:
            values = [level_flag(level) for level in levels]
        elif dtype in (*_PLAIN, *_WHOLE, nw.Decimal, nw.Int128, nw.UInt128):
            values = [level_number(level) for level in levels]
        else:
            values = levels
        places = [(place, value) for place, value in enumerate(values) if value is not None]
        if dtype == nw.Object:  # in which pandas has True and False where a flag is missing
            flags = ((place, level_flag(level)) for place, level in enumerate(levels))
            places += [(place, str(flag == 1)) for place, flag in flags if flag is not None]
        return places

    @property
    def kept(self) -> list[str]:
        """What must stay beside the columns that are summed."""
        return [] if self._groups is None else ["g"]

    def selected(self, frame: Any, *columns: Any) -> Any:
        """The columns of a frame, which some engines compute at once; those that must stay are kept beside them."""
        return quietly(lambda: frame.select(*columns, *self.kept), self._unread)

    def totals(self, frame: Any, columns: Sequence[nw.Expr]) -> tuple[list[int], int]:
        """The sum of each column of integers and the number of records, in one pass."""
        totals = [column.cast(nw.Int64).sum().alias(f"c{i}") for i, column in enumerate(columns)]
        summed = quietly(lambda: frame.select(*totals, nw.len().alias("n")), self._unread)
        *sums, n = self._finished(summed, _only_row)
        return [int(value or 0) for value in sums], int(n)  # a sum of no records is NULL on some engines

    def group_totals(self, frame: Any, columns: Sequence[nw.Expr], count: int) -> list[tuple[list[int], int]]:
        """The same for each of so many groups, in one pass; a group without a record sums to nothing."""
        frame = frame.filter(nw.col("g") >= 0)
        named = frame.select("g", *(column.alias(f"t{i}") for i, column in enumerate(columns)))
        totals = [nw.col(f"t{i}").cast(nw.Int64).sum().alias(f"s{i}") for i in range(len(columns))]
        summed = quietly(lambda: named.group_by("g").agg(*totals, nw.len().alias("n")), self._unread)
        names = [f"s{i}" for i in range(len(columns))]
        rows = self._finished(summed.select("g", *names, "n"), _all_rows)
        found = {int(group): ([int(value or 0) for value in sums], int(n)) for group, *sums, n in rows}
        return [found.get(group, ([0] * len(columns), 0)) for group in range(count)]

    def values(self, frame: Any, column: nw.Expr) -> list[int]:
        """A column of integers, record by record."""
        frame = quietly(lambda: frame.select(column.cast(nw.Int64).alias("c0")), self._unread)
        return [int(value) for value in self._finished(frame, _only_column)]

    def _opened(self, columns: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """The columns as a narwhals frame of c0, c1, …, with those of groups after them, g0, …; and their types.

        Both are public. Where a person has several records, some of each are left.
        """
        complaint = f"table {self.source.name} could not be opened as a table of records."
        dividing = () if self._groups is None else self._groups.columns
        read = [*columns, *dividing, *([] if self._unit is None else [self._unit.column])]
        if len({column.lower() for column in read}) < len(set(read)):  # to DuckDB they would be one
            raise ValueError(f"columns must differ by more than upper and lower case, got {read}.")
        native = self.source.open(Opening(self._own, list(dict.fromkeys(read)), self._closing, complaint))
        frame = quietly(lambda: nw.from_native(native), complaint)
        if _is_spark(frame):
            self._closing.enter_context(spark.silent(native))
        if frame.implementation.is_ibis():
            self._stop = lambda: (self._own.interrupt(), ibis.cancel(native))
            self._needs = quietly(lambda: ibis.limits(native), complaint)
        schema = quietly(frame.collect_schema, complaint)
        check_columns(read, list(schema.names()), self.source.name)
        for column in (*columns, *dividing):
            if schema[column] not in (*_PLAIN, *_WHOLE, *_BY_TEXT) and not _is_null(frame, column):
                raise ValueError(f"column {column!r} must hold numbers or text, got type {schema[column]}.")
        names = [f"c{i}" for i in range(len(columns))] + [f"g{i}" for i in range(len(dividing))]
        read_as = [*names, *([] if self._unit is None else ["u"])]
        if _is_spark(frame):
            frame = quietly(lambda: nw.from_native(spark.renamed(native, read, read_as)), complaint)
        else:
            pairs = list(zip(read, read_as, strict=True))
            frame = quietly(lambda: frame.select(*(nw.col(column).alias(name) for column, name in pairs)), complaint)
        dtypes = {name: schema[column] for column, name in zip(read, read_as, strict=True)}
        if self._unit is not None:
            frame = quietly(lambda: self._capped(frame, dtypes), complaint)
        return frame, {name: dtypes[name] for name in names}

    def _capped(self, frame: Any, dtypes: dict[str, Any]) -> Any:
        """The frame with at most so many records of each unit, drawn at random; those without a unit are left out.

        Which of them are drawn depends on a salt and on the unit's own records, and on nobody else's: they are ordered
        by a salted hash of all that is read of a record, after a number where a unit has several that are alike. An
        engine's random() goes on from row to row, so that one record moves the draws of all that come after it.
        """
        assert self._unit is not None
        native, most = frame.to_native(), self._unit.max_records
        if _is_spark(frame):
            return nw.from_native(spark.capped(native, most))
        if frame.implementation.is_ibis():
            return nw.from_native(ibis.capped(native, most))
        plain = [_is_plain(frame, name, dtype) for name, dtype in dtypes.items()]
        relation = self._relation(frame, list(dtypes), plain)
        texts = [f"CAST({name} AS VARCHAR)" for name in dtypes]
        content = " || ".join(f"coalesce(strlen({text}) || ':' || {text}, '-')" for text in texts)
        rows = f"SELECT *, sha256('{secrets.token_hex(16)}' || {content}) AS h FROM t"
        rows += f" WHERE {parser.is_person('u', _kind(relation, 'u'))}"
        query = (
            f"SELECT * EXCLUDE (u, h, r) "
            f"FROM (SELECT *, sha256(h || row_number() OVER (PARTITION BY u, h)) AS r FROM ({rows})) "
            f"QUALIFY row_number() OVER (PARTITION BY u ORDER BY r) <= {most:d}"
        )
        return nw.from_native(relation.query("t", query))  # type: ignore[arg-type]

    def _parsed(
        self, frame: Any, plain: Sequence[bool], columns: Sequence[str], sql: Callable[[str, str], str], kind: str
    ) -> Any:
        """Each column by DuckDB's SQL for it, given its name and type; of groups, the number of each record's."""
        named, names = " and ".join(map(repr, columns)), [f"c{i}" for i in range(len(columns))]
        complaint = f"column {named} of table {self.source.name} could not be read as numbers or text."
        of_groups = self._group_positions(frame, kind)
        names += list(of_groups)

        def expression(name: str, was: str) -> str:
            return of_groups[name](was) if name in of_groups else sql(name, was)

        if _is_spark(frame):
            self._needs = " (to read text, Spark's Python workers need duckdb and pyarrow, and noiseaware for CSV)"
            kinds = ["double" if is_plain else "blob" for is_plain in plain]
            expressions = {name: expression(name, was) for name, was in zip(names, kinds, strict=True)}
            native = quietly(lambda: spark.parsed(frame.to_native(), expressions, plain, kind), complaint)
            return self._numbered(nw.from_native(native))
        if not (_is_duckdb(frame) or frame.implementation.is_pandas()) and importlib.util.find_spec("pyarrow") is None:
            raise ImportError(f"reading text from a {self.source.name} needs pyarrow; install pyarrow.")
        relation = quietly(lambda: self._relation(frame, names, plain), complaint)
        wanted = ", ".join(f"{expression(name, _kind(relation, name))} AS {quoted(name)}" for name in names)
        return self._numbered(quietly(lambda: nw.from_native(relation.project(wanted)), complaint))

    def _group_positions(self, frame: Any, kind: str) -> dict[str, Callable[[str], str]]:
        """SQL for the level's position of each column of groups, given the column's type; −1 for any other level."""
        if self._groups is None:
            return {}
        schema, found = frame.collect_schema(), {}
        for i, levels in enumerate(self._groups.levels):
            name, spelled = f"g{i}", self._spelled(schema[f"g{i}"], levels)
            found[name] = lambda was, name=name, spelled=spelled: f"CAST({position(name, was, spelled, -1)} AS {kind})"
        return found

    def _numbered(self, frame: Any) -> Any:
        """The frame with one number for the group of each record, −1 for none."""
        if self._groups is None:
            return frame
        group, is_in = nw.lit(0), nw.lit(True)
        for i, levels in enumerate(self._groups.levels):
            group, is_in = group * len(levels) + nw.col(f"g{i}").cast(nw.Int64), is_in & (nw.col(f"g{i}") >= 0)
        return frame.with_columns(nw.when(is_in).then(group).otherwise(nw.lit(-1)).alias("g"))

    def _relation(self, frame: Any, names: Sequence[str], plain: Sequence[bool]) -> duckdb.DuckDBPyRelation:
        """A frame as a DuckDB relation: text of Arrow and Ibis as bytes."""
        native = frame.to_native()
        if _is_duckdb(frame):
            return native
        if frame.implementation.is_pandas():
            spelled = {name: (cell.identities if name == "u" else cell.texts)(native[name]) for name in names}
            return self._own.from_df(native.assign(**spelled))
        if frame.implementation.is_ibis():
            return self._own.from_arrow(ibis.streamed(native, names, plain))
        import pyarrow as pa

        wide = [name for name in names if frame.collect_schema()[name] in (nw.Int128, nw.UInt128)]
        frame = frame.with_columns(nw.col(name).cast(nw.String) for name in wide)  # which Arrow does not know
        arrow = frame.lazy().collect("pyarrow").to_native()
        texts = [pa.types.is_string(t) or pa.types.is_large_string(t) for t in arrow.schema.types]
        kinds = [pa.large_binary() if text else kind for text, kind in zip(texts, arrow.schema.types, strict=True)]
        return self._own.from_arrow(arrow.cast(pa.schema(list(zip(names, kinds, strict=True)))))

    def _finished(self, frame: Any, outcome: Callable[[Any], Any]) -> Any:
        """What comes of a frame when its engine works; progress is told meanwhile, and an interrupt heard."""
        start, tell = time.monotonic(), self._told
        rows = None if tell is None else quietly(lambda: self.source.rows(self._own), self._unread)

        def tick() -> None:
            if tell is not None:
                share = self._own.query_progress() / 100 if _is_duckdb(frame) else -1.0
                tell(Progress(share if share >= 0 else None, rows, time.monotonic() - start))

        return quietly(lambda: interruptible(lambda: outcome(frame), self._stop, tick), self._unread)


def _closed(own: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # an interrupted scan may still be ending
        own.close()


def _only_row(frame: Any) -> Sequence:
    native = frame.to_native()
    if _is_duckdb(frame):  # sums are HUGEINT there, which Arrow would make a decimal
        (row,) = native.fetchall()
    elif _is_spark(frame):
        (row,) = native.collect()
    elif frame.implementation.is_ibis():
        (row,) = ibis.rows(native)
    else:
        row = frame.lazy().collect().row(0)
    return row


def _all_rows(frame: Any) -> Sequence:
    if _is_duckdb(frame):
        return frame.to_native().fetchall()
    return frame.to_native().collect()  # Spark's: groups of other engines pass through DuckDB


def _only_column(frame: Any) -> Sequence:
    if _is_spark(frame):
        return [value for (value,) in frame.to_native().toLocalIterator()]
    if frame.implementation.is_ibis():
        return [value for (value,) in ibis.rows(frame.to_native())]
    return frame.lazy().collect("pandas").get_column("c0").to_list()


def _kind(relation: duckdb.DuckDBPyRelation, column: str) -> str:
    kind = relation.types[relation.columns.index(column)]
    return "json" if str(kind) == "JSON" else kind.id


def _is_duckdb(frame: Any) -> bool:
    return isinstance(frame.to_native(), duckdb.DuckDBPyRelation)


def _is_spark(frame: Any) -> bool:
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def _is_plain(frame: Any, column: str, dtype: Any) -> bool:
    """Whether the frame's own engine casts the column to float64, rounding to nearest and refusing nothing."""
    if dtype not in (*_PLAIN, *_WHOLE):
        return False
    if frame.implementation.is_pandas():
        return "pyarrow" not in str(frame.to_native()[column].dtype)
    return not frame.implementation.is_pyarrow()


def _is_null(frame: Any, column: str) -> bool:
    """Whether the column has the type of nothing but NULL, which an engine gives a column without a value."""
    native = frame.to_native()
    if _is_duckdb(frame):
        return _kind(native, column) == "null"
    if frame.implementation.is_pandas():
        return str(native[column].dtype) == "null[pyarrow]"
    if frame.implementation.is_polars():
        return str(native.collect_schema()[column]) == "Null"
    if _is_spark(frame):
        return native.schema[column].dataType.typeName() == "void"
    return frame.implementation.is_pyarrow() and str(native.schema.field(column).type) == "null"
