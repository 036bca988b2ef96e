"""Where a table lives: a file, a frame, a table in PostgreSQL, or a file that Spark reads."""

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import duckdb
import narwhals as nw

from noiseaware.custodian.engine import ibis
from noiseaware.custodian.engine import spark as cluster
from noiseaware.custodian.engine.connection import is_meant, named
from noiseaware.custodian.engine.duckdb import READERS, rows
from noiseaware.custodian.engine.quiet import quietly

_GUESSED_BY_DUCKDB = re.compile(r"\bFunction: READ_(CSV|JSON|NDJSON|XLSX)", re.IGNORECASE)
_GUESSED_BY_POLARS = re.compile(r"^\s*(Csv|NDJson) SCAN", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """A table's public name, and how it is opened for one scan."""

    name: str
    open: "Callable[[Opening], Any]"
    rows: Callable[[duckdb.DuckDBPyConnection], int | None] = lambda own: None
    """How many rows it has, where that is known without reading them."""


@dataclass(frozen=True)
class Opening:
    """What a scan gives to open a table with: its own DuckDB, the columns it wants, what to close when it ends."""

    own: duckdb.DuckDBPyConnection
    columns: Sequence[str]
    closing: contextlib.ExitStack
    complaint: str


def source(table: Any, table_name: str | None, *, spark: bool) -> Source:
    """Where a table lives, or a sentence on why it is none; a URL is never quoted, as it may hold a password."""
    is_path = isinstance(table, str | os.PathLike)
    if spark and is_path:
        return _by_spark(str(table), table_name)
    if isinstance(table, str) and "://" in table:
        ibis.check_url(table, table_name)
        assert table_name is not None
        return Source(table_name, lambda opening: ibis.opened(table, table_name, opening.columns, opening.closing))
    if table_name is not None:
        raise ValueError("table_name must be left out unless the table is given by a postgresql:// URL.")
    if is_path:
        return _file(Path(table))
    complaint = f"table must be a path or a data frame, got {type(table).__name__}."
    frame = quietly(lambda: nw.from_native(table), complaint)
    if frame.implementation.is_ibis():
        backend = quietly(lambda: table.get_backend().name, complaint)
        if backend != "postgres":
            raise ValueError(f"table must be of PostgreSQL where Ibis holds it, got one of {backend}.")
        return Source("ibis frame", lambda opening: ibis.guarded(table, opening.complaint, opening.closing))
    if _guesses_types(frame):
        raise ValueError(
            "table must not be a lazy frame that reads a CSV or JSON file, whose types are guessed from the records, "
            "nor one that cannot be planned; give the path of the file."
        )
    return Source(f"{frame.implementation.value} frame", lambda opening: table)


def _guesses_types(frame: Any) -> bool:
    """True of a lazy frame whose plan, which is public, reads a file with types that are guessed from the first
    records: further down a cell of another type would be its engine's error."""
    native, implementation = frame.to_native(), frame.implementation
    try:
        if implementation.is_duckdb():
            return _GUESSED_BY_DUCKDB.search(native.explain()) is not None
        is_lazy = implementation.is_polars() and isinstance(frame, nw.LazyFrame)
        return is_lazy and _GUESSED_BY_POLARS.search(native.explain(optimized=False)) is not None
    except Exception:  # it quotes what it stumbled on in the file
        return True


def _file(path: Path) -> Source:
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(f"table file must end in one of {', '.join(READERS)}, got {named(str(path))}.")
    if not path.is_file():
        raise ValueError(f"table file must exist, got {named(str(path)) if is_meant(str(path)) else path}.")

    def read(opening: Opening) -> duckdb.DuckDBPyRelation:
        return READERS[suffix](opening.own, path, opening.columns, opening.complaint, opening.closing)

    return Source(path.name, read, rows=lambda own: rows(own, path))


def _by_spark(path: str, table_name: str | None) -> Source:
    if path.lower().startswith(tuple(f"{scheme}:" for scheme in ibis.SCHEMES)):
        raise ValueError("table must be a file where Spark reads it, got a URL of PostgreSQL; leave out --spark.")
    name, suffix = PurePath(path).name, PurePath(path).suffix.lower()
    if table_name is not None:
        raise ValueError("table_name must be left out where Spark reads the table.")
    if suffix not in cluster.SUFFIXES:
        raise ValueError(f"table file must end in one of {', '.join(cluster.SUFFIXES)} for Spark, got {named(path)}.")
    path = path if "://" in path else os.path.abspath(path)  # Spark's Java process may be in another folder
    return Source(name, lambda opening: cluster.opened(path, opening.columns, opening.complaint))
