"""DuckDB: a connection of its own for each scan, and relations, which files and most frames come to.

What is read by the one parser is read here, and so is whose a record is.
"""

import abc
import contextlib
import functools
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import narwhals as nw

from noiseaware.custodian import parser
from noiseaware.custodian.engine import file
from noiseaware.custodian.engine._engine import AbstractEngine, Given, Source, check_plan
from noiseaware.custodian.parser import quoted

OFFLINE: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
_GUESSED = re.compile(r"\bFunction: READ_(CSV|JSON|NDJSON|XLSX)", re.IGNORECASE)
_LEAST_MEMORY, _MEMORY_A_THREAD = 1000, 250  # MB
_LIFTING, _LIFTED = threading.Lock(), []  # who lifted the limit on memory and has not set it back


def connection(*, counts_progress: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a new, silent connection to the embedded DuckDB of this process; `query_progress` must be asked for."""
    own = _embedded(os.getpid()).cursor()
    if counts_progress:
        own.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true").fetchall()
    elif own.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        # Where it is off already, as in a notebook without ipywidgets, even switching it off is an error.
        own.execute("SET enable_progress_bar = false").fetchall()
    return own


# Starting one takes as long as a million rows; a forked process must not share it.
@functools.cache
def _embedded(process: int) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB that fetches no extension and keeps nothing that it read, not even in a file for want of memory.

    Without a limit it would hold a CSV file in memory for as long as there is some.
    """
    forgetful = {"enable_external_file_cache": False, "temp_directory": "", "memory_limit": _memory()}
    # A file's statistics leave NaN out, and would decide what is read of it (see parser.py).
    unforeseeing = {"disabled_optimizers": "statistics_propagation"}
    return duckdb.connect(config=OFFLINE | forgetful | unforeseeing)


def _memory() -> str:
    return f"{max(_LEAST_MEMORY, (os.cpu_count() or 1) * _MEMORY_A_THREAD)}MB"


@contextlib.contextmanager
def unlimited() -> Iterator[None]:
    """Lift the memory limit of the embedded DuckDB, which all threads share, until the last of them leaves."""
    with _embedded(os.getpid()).cursor() as own:
        with _LIFTING:
            _LIFTED.append(own)
            own.execute("RESET memory_limit")
        try:
            yield
        finally:
            # Where more memory is still in use the limit cannot be set; the next thread to leave sets it.
            with _LIFTING, contextlib.suppress(duckdb.Error):
                _LIFTED.remove(own)
                if not _LIFTED:
                    own.execute(f"SET memory_limit = '{_memory()}'")


class DuckDB(AbstractEngine):
    """Columns of a relation of DuckDB."""

    served = "a path of a CSV, Parquet or JSON file, a DuckDB relation"
    implementations = (nw.Implementation.DUCKDB,)

    @classmethod
    def serves(cls, given: Given) -> bool:
        return (given.path is not None and not given.by_spark) or super().serves(given)

    @classmethod
    def source(cls, given: Given) -> Source:
        """Return the file, or the relation, unless it guesses types."""
        if given.path is None:
            check_plan(given.frame.to_native().explain, _GUESSED)
            return super().source(given)
        path = file.checked(given.path)
        read = file.READERS[path.suffix.lower()]
        return Source(
            path.name,
            lambda opening: cls(opening.own, nw.from_native(read(path, opening))),
            rows=lambda own: file.rows(own, path),
        )

    def is_void(self, column: str) -> bool:
        return self._kind(column) == "null"

    def capped(self, names: Sequence[str], max_records: int) -> "DuckDB":
        texts = [f"CAST({name} AS VARCHAR)" for name in names]
        content = " || ".join(f"coalesce(strlen({text}) || ':' || {text}, '-')" for text in texts)
        rows = f"SELECT *, sha256('{secrets.token_hex(16)}' || {content}) AS h FROM t"
        rows += f" WHERE {parser.is_person('u', self._kind('u'))}"
        query = (
            f"SELECT * EXCLUDE (u, h, r) "
            f"FROM (SELECT *, sha256(h || row_number() OVER (PARTITION BY u, h)) AS r FROM ({rows})) "
            f"QUALIFY row_number() OVER (PARTITION BY u ORDER BY r) <= {max_records:d}"
        )
        return self.over(nw.from_native(self.frame.to_native().query("t", query)))

    def parsed(self, sql: Mapping[str, Callable[[str], str]], plain: Sequence[bool], kind: str) -> "DuckDB":
        wanted = ", ".join(f"{of(self._kind(name))} AS {quoted(name)}" for name, of in sql.items())
        return self.over(nw.from_native(self.frame.to_native().project(wanted)))

    def rows(self, *, are_many: bool = False) -> Iterable[tuple]:
        """Return all rows; many of them by pandas, in which sums, which are HUGEINT, would be rounded."""
        native = self.frame.to_native()
        return native.df().itertuples(index=False, name=None) if are_many else native.fetchall()

    def share(self) -> float | None:
        share = self.own.query_progress() / 100
        return share if share >= 0 else None

    def _kind(self, column: str) -> str:
        native = self.frame.to_native()
        kind = native.types[native.columns.index(column)]
        return "json" if str(kind) == "JSON" else kind.id


class AbstractLocal(AbstractEngine):
    """Columns of a frame in this process: the engine sums numbers, and DuckDB does all else."""

    @abc.abstractmethod
    def relation(self, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return the columns of the frame, which have these names, in DuckDB: text as text or as bytes."""

    def capped(self, names: Sequence[str], max_records: int) -> DuckDB:
        return DuckDB(self.own, nw.from_native(self.relation(names))).capped(names, max_records)

    def parsed(self, sql: Mapping[str, Callable[[str], str]], plain: Sequence[bool], kind: str) -> DuckDB:
        return DuckDB(self.own, nw.from_native(self.relation(list(sql)))).parsed(sql, plain, kind)

    def rows(self, *, are_many: bool = False) -> list[tuple]:
        return self.frame.lazy().collect().rows()
