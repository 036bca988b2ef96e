"""One reading of a table: opened, turned into numbers or levels, and summed in one pass.

Columns are opened in one place and summed in another; between them they are c0, c1, … in the order that was asked for,
and beside them g, the number of a record's group; u says whose a record is until each person's records are capped.
Columns of numbers stay in the engine that holds the table. Columns that need the one parser, or the position of a
level, pass through a DuckDB. Nothing here depends on the engine (_engine.py).
"""

import contextlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import duckdb
import narwhals as nw

from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine._engine import NUMBERS, AbstractEngine, Opening, Source, check_columns
from noiseaware.custodian.engine.duckdb import connection, unlimited
from noiseaware.custodian.engine.quiet import interruptible, quietly
from noiseaware.custodian.parser import LARGEST_LEVEL, level_flag, level_number, number, position, yes_or_no

_OTHER_NUMBERS = (nw.Decimal, nw.Int128, nw.UInt128)
_TEXTS = (nw.String, nw.Categorical, nw.Enum, nw.Object)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Progress:
    """Progress of a scan: the share that is done and its rows, where these are known, and the seconds it took."""

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
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> "Scan":
        unread = f"table {self.source.name} could not be read as a table of records."
        self._own = quietly(lambda: connection(counts_progress=self._told is not None), unread)
        # A person's records are brought together in memory: nothing goes to a file.
        if self._unit is not None:
            self._closing.enter_context(unlimited())
        self._closing.callback(_closed, self._own)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def numbers(self, columns: Sequence[str], flags: Sequence[str] = (), true: Sequence[str] = ()) -> AbstractEngine:
        """Return the columns as numbers that the engine can cast to float64; flags are those of yes and no."""
        table, dtypes = self._opened(columns)
        words = [f"c{columns.index(flag)}" for flag in flags]
        # A number too may be one of the words that are yes.
        plain = [table.is_plain(name, dtype) and not (true and name in words) for name, dtype in dtypes.items()]
        if all(plain) and self._groups is None:
            return table
        names = [f"c{i}" for i in range(len(columns))]
        sql = {name: partial(yes_or_no, name, true=true) if name in words else partial(number, name) for name in names}
        return self._parsed(table, dtypes, plain, columns, sql, "double")

    def positions(self, column: str, levels: Sequence, other: int = 0) -> AbstractEngine:
        """Return the column as positions of levels; `other`, the first, for what is not a level."""
        table, dtypes = self._opened([column])
        sql = {"c0": partial(position, "c0", places=_spelled(dtypes["c0"], levels), other=other)}
        plain = [table.is_plain(name, dtype) for name, dtype in dtypes.items()]
        return self._parsed(table, dtypes, plain, [column], sql, "bigint")

    def selected(self, table: AbstractEngine, *columns: Any) -> AbstractEngine:
        """Return columns of a table, which some engines compute at once, with the groups beside them."""
        groups = [] if self._groups is None else ["g"]
        return self._quietly(table, lambda: table.over(table.frame.select(*columns, *groups)))

    def totals(self, table: AbstractEngine, columns: Sequence[nw.Expr]) -> tuple[list[int], int]:
        """Return the sum of each column of integers and the number of records, in one pass."""
        totals = [column.cast(nw.Int64).sum().alias(f"c{i}") for i, column in enumerate(columns)]
        summed = self._quietly(table, lambda: table.over(table.frame.select(*totals, nw.len().alias("n"))))
        ((*sums, n),) = self._finished(summed, lambda: list(summed.rows()))
        # A sum of no records is NULL on some engines.
        return [int(value or 0) for value in sums], int(n)

    def group_totals(
        self, table: AbstractEngine, columns: Sequence[nw.Expr], count: int
    ) -> list[tuple[list[int], int]]:
        """Return the sums and the number of records of each of so many groups; a group without records sums to 0."""
        frame = table.frame.filter(nw.col("g") >= 0)
        named = frame.select("g", *(column.alias(f"t{i}") for i, column in enumerate(columns)))
        names = [f"s{i}" for i in range(len(columns))]
        totals = [nw.col(f"t{i}").cast(nw.Int64).sum().alias(name) for i, name in enumerate(names)]
        counted = self._quietly(table, lambda: named.group_by("g").agg(*totals, nw.len().alias("n")))
        summed = table.over(counted.select("g", *names, "n"))
        rows = self._finished(summed, lambda: list(summed.rows()))
        found = {int(group): ([int(value or 0) for value in sums], int(n)) for group, *sums, n in rows}
        return [found.get(group, ([0] * len(columns), 0)) for group in range(count)]

    def values(self, table: AbstractEngine, column: nw.Expr) -> list[int]:
        """Return a column of integers, record by record."""
        whole = self._quietly(table, lambda: table.over(table.frame.select(column.cast(nw.Int64).alias("c0"))))
        return self._finished(whole, lambda: [int(value) for (value,) in whole.rows(are_many=True)])

    def _opened(self, columns: Sequence[str]) -> tuple[AbstractEngine, dict[str, Any]]:
        """Return the columns as c0, c1, …, with those of groups after them, g0, …; and their types.

        Both are public. Where a person has several records, some of each are left.
        """
        complaint = f"table {self.source.name} could not be opened as a table of records."
        dividing = () if self._groups is None else self._groups.columns
        read = [*columns, *dividing, *([] if self._unit is None else [self._unit.column])]
        # To DuckDB such columns would be one.
        if len({column.lower() for column in read}) < len(set(read)):
            raise ValueError(f"columns must differ by more than upper and lower case, got {read}.")
        table = self.source.open(Opening(self._own, list(dict.fromkeys(read)), self._closing, complaint))
        self._stop = table.cancel
        schema = quietly(table.frame.collect_schema, complaint)
        check_columns(read, list(schema.names()), self.source.name)
        for column in (*columns, *dividing):
            if schema[column] not in (*NUMBERS, *_OTHER_NUMBERS, *_TEXTS) and not table.is_void(column):
                raise ValueError(f"column {column!r} must hold numbers or text, got type {schema[column]}.")
        names = [f"c{i}" for i in range(len(columns))] + [f"g{i}" for i in range(len(dividing))]
        read_as = [*names, *([] if self._unit is None else ["u"])]
        renamed = quietly(lambda: table.renamed(read, read_as), complaint)
        dtypes = {name: schema[column] for column, name in zip(read, names, strict=False)}
        if self._unit is None:
            return renamed, dtypes
        most = self._unit.max_records
        return quietly(lambda: renamed.capped(read_as, most), complaint), dtypes

    def _parsed(
        self,
        table: AbstractEngine,
        dtypes: dict[str, Any],
        plain: Sequence[bool],
        columns: Sequence[str],
        sql: dict[str, Callable[[str], str]],
        kind: str,
    ) -> AbstractEngine:
        """Return each column by DuckDB's SQL for it, given its type there, and the number of each record's group."""
        for package in table.packages:
            if importlib.util.find_spec(package) is None:
                raise ImportError(f"reading text from a {self.source.name} needs {package}; install {package}.")
        for i, levels in enumerate(() if self._groups is None else self._groups.levels):
            sql[f"g{i}"] = partial(position, f"g{i}", places=_spelled(dtypes[f"g{i}"], levels), other=-1)
        named = " and ".join(map(repr, columns))
        complaint = f"column {named} of table {self.source.name} could not be read as numbers or text."
        parsed = quietly(lambda: table.parsed(sql, plain, kind), complaint)
        return parsed if self._groups is None else parsed.over(_numbered(parsed.frame, self._groups))

    def _quietly(self, table: AbstractEngine, action: Callable[[], _T]) -> _T:
        return quietly(action, f"table {self.source.name} could not be read as a table of records{table.needs}.")

    def _finished(self, table: AbstractEngine, action: Callable[[], _T]) -> _T:
        """Return what an engine works out; progress is reported meanwhile, and an interrupt heard."""
        start, tell = time.monotonic(), self._told
        rows = None if tell is None else self._quietly(table, lambda: self.source.rows(self._own))

        def tick() -> None:
            if tell is not None:
                tell(Progress(table.share(), rows, time.monotonic() - start))

        return self._quietly(table, lambda: interruptible(action, self._stop, tick))


def _spelled(dtype: Any, levels: Sequence) -> Sequence[tuple[int, str | float]]:
    """Return the levels' positions and what a column of some type has there: texts, numbers, or 1 and 0 for flags.

    An engine that guesses types makes numbers of "1" and "2" where no record holds a word: were such a column
    refused, it would tell that none does.
    """
    if not isinstance(levels[0], str):
        if max(abs(level) for level in levels) > LARGEST_LEVEL:
            raise ValueError(f"levels must be between -2**53 and 2**53, got {max(levels, key=abs)}.")
        return list(enumerate(levels))
    if dtype == nw.Boolean:
        values = [level_flag(level) for level in levels]
    elif dtype in (*NUMBERS, *_OTHER_NUMBERS):
        values = [level_number(level) for level in levels]
    else:
        values = levels
    places = [(place, value) for place, value in enumerate(values) if value is not None]
    # In such a column pandas has True and False where a flag is missing.
    if dtype == nw.Object:
        flags = ((place, level_flag(level)) for place, level in enumerate(levels))
        places += [(place, str(flag == 1)) for place, flag in flags if flag is not None]
    return places


def _numbered(frame: Any, groups: Groups) -> Any:
    """Return the frame with one number for the group of each record, −1 for none."""
    group, is_in = nw.lit(0), nw.lit(True)
    for i, levels in enumerate(groups.levels):
        group, is_in = group * len(levels) + nw.col(f"g{i}").cast(nw.Int64), is_in & (nw.col(f"g{i}") >= 0)
    return frame.with_columns(nw.when(is_in).then(group).otherwise(nw.lit(-1)).alias("g"))


def _closed(own: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # an interrupted scan may still be ending
        own.close()
