"""The contract of an engine: how it opens a table, and the few things that no two engines do alike.

    given ─source─▸ Source ─open─▸ engine ─renamed, capped, parsed─▸ engine ─rows─▸ sums

The scan does everything else, with narwhals expressions that all engines compute alike (scan.py, column.py). A new
engine is one file with one class, and its place in the list of source.py; docs/developer/skeletons/engine.py shows one.
An engine's own error may quote a record, so what can fail on one happens inside `quietly`: in the scan, or here.
"""

import abc
import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import duckdb
import narwhals as nw

NUMBERS = (nw.Boolean, nw.Float32, nw.Float64)
NUMBERS += (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
"""Types that an engine casts to float64 itself."""


@dataclass(frozen=True)
class Given:
    """A table as a custodian names it: a path, a URL with the name of a table, or a frame."""

    table: Any
    table_name: str | None = None
    by_spark: bool = False

    @property
    def url(self) -> str | None:
        """The URL of a database, or of a file for Spark; None if the table is anything else."""
        return self.table if isinstance(self.table, str) and "://" in self.table else None

    @property
    def path(self) -> str | None:
        """The path of a file, which for Spark may be a URL; None if the table is anything else."""
        is_path = isinstance(self.table, str | os.PathLike) and (self.url is None or self.by_spark)
        return str(os.fspath(self.table)) if is_path else None

    @functools.cached_property
    def frame(self) -> Any:
        """The table as a narwhals frame; None if narwhals knows no such frame."""
        try:
            return nw.from_native(self.table)
        except Exception:  # its text may quote a record
            return None

    @property
    def implementation(self) -> nw.Implementation | None:
        """The library that a frame belongs to; None for a path or a URL."""
        return None if self.frame is None else self.frame.implementation


@dataclass(frozen=True)
class Opening:
    """All that a scan gives to open a table with: its own DuckDB, the columns it wants, what to close when it ends."""

    own: duckdb.DuckDBPyConnection
    columns: Sequence[str]
    closing: contextlib.ExitStack
    complaint: str


@dataclass(frozen=True)
class Source:
    """A table's public name, and how it is opened for one scan."""

    name: str
    open: "Callable[[Opening], AbstractEngine]"
    rows: Callable[[duckdb.DuckDBPyConnection], int | None] = lambda own: None
    """The number of rows, where that is known without reading them."""


@dataclass(frozen=True, eq=False)
class AbstractEngine(abc.ABC):
    """Some columns of a table, in the engine that holds them. Each method returns a new engine and changes nothing."""

    own: duckdb.DuckDBPyConnection
    frame: Any
    """A narwhals frame, eager or lazy."""
    needs: str = ""
    """Advice to add to the sentence that refuses a table which cannot be read."""

    served: ClassVar[str]
    """Tables of this engine, as a refusal lists them."""
    implementations: ClassVar[tuple[nw.Implementation, ...]] = ()
    """Libraries whose frames this engine serves."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages without which the engine reads no text."""

    @classmethod
    def serves(cls, given: Given) -> bool:
        """True if the table is one of this engine's."""
        return given.implementation in cls.implementations

    @classmethod
    def source(cls, given: Given) -> Source:
        """Return how the table is opened; ValueError if it is one that the engine must refuse, before it is read."""
        return Source(f"{given.frame.implementation.value} frame", lambda opening: cls(opening.own, given.frame))

    def is_plain(self, column: str, dtype: Any) -> bool:
        """True if the engine casts the column to float64 itself, rounding to nearest and refusing no value."""
        return dtype in NUMBERS

    @abc.abstractmethod
    def is_void(self, column: str) -> bool:
        """True if the column has the type of NULL and nothing else, which an engine gives a column without a value."""

    def renamed(self, columns: Sequence[str], names: Sequence[str]) -> Self:
        """Return the columns under other names; a column may have several."""
        pairs = zip(columns, names, strict=True)
        return self.over(self.frame.select(*(nw.col(column).alias(name) for column, name in pairs)))

    @abc.abstractmethod
    def capped(self, names: Sequence[str], max_records: int) -> "AbstractEngine":
        """Return at most max_records records of each person, drawn at random; drop u, which says whose a record is.

        Which of them are drawn depends on a salt and on the person's own records, and on nobody else's: they are
        ordered by a salted hash of all that is read of a record, after a number where a person has several that are
        alike. An engine's random() goes on from row to row, so that one record moves the draws of all that come after
        it. Records of nobody, NULL and NaN, are dropped.
        """

    @abc.abstractmethod
    def parsed(self, sql: Mapping[str, Callable[[str], str]], plain: Sequence[bool], kind: str) -> "AbstractEngine":
        """Return each column by DuckDB's SQL for it, given its type there; all become of one kind of DuckDB's.

        A plain column may travel as float64; any other travels as text, or as the bytes of one.
        """

    @abc.abstractmethod
    def rows(self, *, are_many: bool = False) -> Iterable[tuple]:
        """Return all rows; this is where a lazy engine works."""

    def share(self) -> float | None:
        """Return the share of the scan that is done; None where the engine does not report it."""
        return None

    def cancel(self) -> None:
        """End what is being done for the scan, wherever that is."""
        self.own.interrupt()

    def over(self, frame: Any) -> Self:
        """Return this engine with another of its frames."""
        return type(self)(self.own, frame, self.needs)


def check_columns(columns: Sequence[str], names: list[str], table: str) -> None:
    """Refuse a table that does not have each column once."""
    for column in columns:
        if names.count(column) != 1:
            raise ValueError(f"table {table} must have one column {column!r}, got {names.count(column)}.")


def check_plan(plan: Callable[[], str], guessed: re.Pattern) -> None:
    """Refuse a lazy frame whose plan, which is public, reads a file with types guessed from the first records.

    Further down, a cell of another type would be its engine's error.
    """
    try:
        is_refused = guessed.search(plan()) is not None
    except Exception:  # it quotes what it stumbled on in the file
        is_refused = True
    if is_refused:
        raise ValueError(
            "table must not be a lazy frame that reads a CSV or JSON file, whose types are guessed from the records, "
            "nor one that cannot be planned; give the path of the file."
        )
