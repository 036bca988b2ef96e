"""Files of confidential records as DuckDB relations: CSV, Parquet and JSON.

The names of the columns are public, but for JSON's, which the records hold themselves; and all else is read so that no
record can make an error; an engine's own message, which may quote a record, is never passed on.
"""

import contextlib
import functools
import glob
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from noiseaware.custodian.engine import element, row
from noiseaware.custodian.engine.pipe import piped
from noiseaware.custodian.engine.quiet import quietly
from noiseaware.custodian.parser import literal, quoted

OFFLINE: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
_LEAST_MEMORY, _MEMORY_A_THREAD = 1000, 250  # MB
_LIFTING, _LIFTED = threading.Lock(), []  # who lifted the limit on memory and has not set it back


def connection(*, counts_progress: bool = False) -> duckdb.DuckDBPyConnection:
    """A silent connection of its own to the embedded DuckDB of this process; `query_progress` is asked for apart."""
    own = _embedded(os.getpid()).cursor()
    if counts_progress:
        own.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true").fetchall()
    elif own.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        # Where it is off already, as in a notebook without ipywidgets, even switching it off is an error.
        own.execute("SET enable_progress_bar = false").fetchall()
    return own


@functools.cache  # starting one takes as long as a million rows; a forked process must not share it
def _embedded(process: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB that fetches no extension and keeps nothing that it read, not even in a file for want of memory.

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
    """As long as any thread is in here, the embedded DuckDB has no memory limit of ours; it has one for all of them."""
    with _embedded(os.getpid()).cursor() as own:
        with _LIFTING:
            _LIFTED.append(own)
            own.execute("RESET memory_limit")
        try:
            yield
        finally:
            with _LIFTING, contextlib.suppress(duckdb.Error):  # where more is still in use, the next one sets it back
                _LIFTED.remove(own)
                if not _LIFTED:
                    own.execute(f"SET memory_limit = '{_memory()}'")


def _read_parquet(
    own: duckdb.DuckDBPyConnection, path: Path, columns: Sequence[str], complaint: str, _: contextlib.ExitStack
) -> duckdb.DuckDBPyRelation:
    """Parquet: the types in the file are the schema."""
    return quietly(lambda: own.sql(f"SELECT * FROM read_parquet({_address(path)})"), complaint)


def header(path: Path, complaint: str) -> row.Header:
    """Return the header row of a CSV file; refused if its rows end in carriage returns alone."""
    first = quietly(lambda: row.header(path), complaint)
    if first.has_return:
        raise ValueError(
            f"table file must end its rows with line feeds, got a carriage return alone in the header row of "
            f"{path.name}; save it with line feeds."
        )
    return first


def _read_csv(
    own: duckdb.DuckDBPyConnection,
    path: Path,
    columns: Sequence[str],
    complaint: str,
    closing: contextlib.ExitStack,
) -> duckdb.DuckDBPyRelation:
    """CSV: the header row is the schema and tells the delimiter; all else is text, and nothing of it is sniffed.

    Short rows are padded with NULL, long ones cut, quotes within a cell kept, and bytes that are no UTF-8 replaced: so
    a record cannot make an error, nor change how another one is read. Where DuckDB would be misled, the file comes to
    it through a pipe.
    """
    first = header(path, complaint)
    check_columns(columns, first.names, path.name)
    is_plain = quietly(lambda: row.is_plain(path, first), complaint)
    if not is_plain:
        path = quietly(lambda: piped(row.safe(path, first), path.suffix, closing), complaint)
    kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(first.names)))
    options = (
        f"auto_detect = false, header = true, delim = {literal(first.delimiter)}, quote = '\"', escape = '\"', "
        "strict_mode = false, null_padding = true, parallel = false, "
        f"max_line_size = {row.LONGEST_RECORD}, buffer_size = {2 * row.LONGEST_RECORD}"
    )
    records = f"read_csv({_address(path)}, {options}, columns = {{{kinds}}})"
    wanted = ", ".join(f"c{first.names.index(column)} AS {quoted(column)}" for column in columns)
    return quietly(lambda: own.sql(f"SELECT {wanted} FROM {records}"), complaint)


def _read_array_or_lines(
    own: duckdb.DuckDBPyConnection, path: Path, columns: Sequence[str], complaint: str, closing: contextlib.ExitStack
) -> duckdb.DuckDBPyRelation:
    """JSON of either kind: an array if all of the file is one, whose elements then come to DuckDB as lines; else lines.

    So a first record that is an array does not decide for the others. A broken array is refused.
    """
    if quietly(lambda: element.is_array(path), complaint):
        return _read_json(own, piped(element.array_lines(path), path.suffix, closing), columns, complaint)
    if not quietly(lambda: element.is_lines(path), complaint):
        raise ValueError(
            f"table file {path.name} must hold one JSON array that is whole, or one record a line; "
            "name a file of lines .jsonl or .ndjson."
        )
    return _read_lines(own, path, columns, complaint, closing)


def _read_lines(
    own: duckdb.DuckDBPyConnection, path: Path, columns: Sequence[str], complaint: str, closing: contextlib.ExitStack
) -> duckdb.DuckDBPyRelation:
    """JSON, one record a line, whatever the first one holds; a line that is no JSON is a record of NULL."""
    if not quietly(lambda: element.is_plain(path), complaint):
        path = quietly(lambda: piped(element.lines(path), path.suffix, closing), complaint)
    return _read_json(own, path, columns, complaint)


def _read_json(
    own: duckdb.DuckDBPyConnection, path: Path, columns: Sequence[str], complaint: str
) -> duckdb.DuckDBPyRelation:
    """Lines of JSON: a value is taken as text, and a key that a record lacks is NULL.

    There is no schema beside the records, so a column cannot be missing: to refuse it would tell that no record has it.
    """
    records = f"read_json_objects({_address(path)}, format = 'newline_delimited', ignore_errors = true)"
    pointers = {column: literal("/" + column.replace("~", "~0").replace("/", "~1")) for column in columns}
    wanted = ", ".join(f"json ->> {pointer} AS {quoted(column)}" for column, pointer in pointers.items())
    return quietly(lambda: own.sql(f"SELECT {wanted} FROM {records}"), complaint)


READERS: dict[str, Callable[..., duckdb.DuckDBPyRelation]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".json": _read_array_or_lines,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
}


def rows(own: duckdb.DuckDBPyConnection, path: Path) -> int | None:
    """How many rows a Parquet file says it has; None of other files."""
    if path.suffix.lower() != ".parquet":
        return None
    ((found,),) = own.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({_address(path)})").fetchall()
    return int(found)


def _address(path: Path) -> str:
    """A path as DuckDB takes it, where *, ? and [ would be patterns."""
    return literal(glob.escape(str(path)))


def check_columns(columns: Sequence[str], names: list[str], table: str) -> None:
    """Refuse a table that does not have each column once."""
    for column in columns:
        if names.count(column) != 1:
            raise ValueError(f"table {table} must have one column {column!r}, got {names.count(column)}.")
