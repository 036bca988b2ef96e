"""Files of confidential records as DuckDB relations: CSV, Parquet and JSON.

The names of the columns are public, but for JSON's, which the records hold themselves; and all else is read so that no
record can make an error; an engine's own message, which may quote a record, is never passed on.
"""

import codecs
import contextlib
import csv
import functools
import glob
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from noiseaware.custodian.parser import literal, quoted
from noiseaware.custodian.quiet import quietly

OFFLINE: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
_LONGEST_LINE = 2**20
_LONGEST_RECORD = 2**24  # of a CSV file, as DuckDB has it of JSON; what a lost quote swallows counts too
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
    return duckdb.connect(config=OFFLINE | forgetful)


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


def _read_csv(
    own: duckdb.DuckDBPyConnection,
    path: Path,
    columns: Sequence[str],
    complaint: str,
    closing: contextlib.ExitStack,
) -> duckdb.DuckDBPyRelation:
    """CSV: the header row is the schema and tells the delimiter; all else is text, and nothing of it is sniffed.

    Short rows are padded with NULL, long ones cut, quotes within a cell kept, and bytes that are no UTF-8 replaced: so
    a record cannot make an error, nor change how another one is read; but for a quote that opens a cell and is never
    closed, which joins lines up to the next one. What writes CSV does not write that.
    """
    names, delimiter = quietly(lambda: header(path), complaint)
    check_columns(columns, names, path.name)
    path = quietly(lambda: _as_utf8(path, closing), complaint)
    kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    options = (
        f"auto_detect = false, header = true, delim = {literal(delimiter)}, quote = '\"', escape = '\"', "
        "strict_mode = false, null_padding = true, parallel = false, "
        f"max_line_size = {_LONGEST_RECORD}, buffer_size = {2 * _LONGEST_RECORD}"
    )
    records = f"read_csv({_address(path)}, {options}, columns = {{{kinds}}})"
    wanted = ", ".join(f"c{names.index(column)} AS {quoted(column)}" for column in columns)
    return quietly(lambda: own.sql(f"SELECT {wanted} FROM {records}"), complaint)


def _as_utf8(path: Path, closing: contextlib.ExitStack) -> Path:
    """The file, or a pipe that gives it once with what is no UTF-8 replaced; nothing is written to a disk."""
    try:
        for _ in _decoded(path, "strict"):
            pass
        return path
    except UnicodeDecodeError:
        pipe = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="noiseaware-"))) / "records.csv"
        os.mkfifo(pipe, 0o600)

    def feed() -> None:
        with contextlib.suppress(OSError), pipe.open("wb") as records:  # the reader may go away
            for text in _decoded(path, "replace"):
                records.write(text.encode())

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()

    def end() -> None:
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))  # so that it no longer waits for one
        feeder.join()

    closing.callback(end)
    return pipe


def _decoded(path: Path, errors: str) -> Iterator[str]:
    """The text of a file in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    with path.open("rb") as file:
        while block := file.read(_LONGEST_LINE):
            yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def header(path: Path) -> tuple[list[str], str]:
    """The names in the first row, and the delimiter that splits it most."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(_LONGEST_LINE)
        delimiter = max(",;\t|", key=line.count)
        file.seek(0)
        return next(csv.reader(file, delimiter=delimiter)), delimiter


def _read_json(
    own: duckdb.DuckDBPyConnection, path: Path, columns: Sequence[str], complaint: str, _: contextlib.ExitStack
) -> duckdb.DuckDBPyRelation:
    """JSON, one object a line or one array: a value is taken as text, and a key that a record lacks is NULL.

    In a file of lines, a broken line is a record of NULL; in a broken array the records cannot be told apart. There is
    no schema beside the records, so a column cannot be missing: to refuse it would tell that no record has it.
    """
    layout = quietly(lambda: _layout(path), complaint)
    records = f"read_json_objects({_address(path)}, {layout})"
    pointers = {column: literal("/" + column.replace("~", "~0").replace("/", "~1")) for column in columns}
    wanted = ", ".join(f"json ->> {pointer} AS {quoted(column)}" for column, pointer in pointers.items())
    return quietly(lambda: own.sql(f"SELECT {wanted} FROM {records}"), complaint)


def _layout(path: Path) -> str:
    """DuckDB's options for an array, or for lines: the first character tells."""
    with path.open("rb") as file:
        is_array = file.read(_LONGEST_LINE).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    return "format = 'array'" if is_array else "format = 'newline_delimited', ignore_errors = true"


READERS: dict[str, Callable[..., duckdb.DuckDBPyRelation]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
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
