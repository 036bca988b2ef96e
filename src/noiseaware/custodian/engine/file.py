"""Files of confidential records as DuckDB relations: CSV, Parquet and JSON.

The names of the columns are public, but for JSON's, which the records hold themselves; and all else is read so that no
record can make an error; an engine's own message, which may quote a record, is never passed on.
"""

import glob
from collections.abc import Callable
from pathlib import Path

import duckdb

from noiseaware.custodian.engine import element, octets, row
from noiseaware.custodian.engine._engine import Opening, check_columns
from noiseaware.custodian.engine.connection import is_meant, named
from noiseaware.custodian.engine.pipe import piped
from noiseaware.custodian.engine.quiet import quietly
from noiseaware.custodian.parser import literal, quoted


def checked(path: str) -> Path:
    """Return the path of a file that there is a reader for, or refuse it."""
    file = Path(path)
    if file.suffix.lower() not in READERS:
        raise ValueError(f"table file must end in one of {', '.join(READERS)}, got {named(path)}.")
    if not file.is_file():
        raise ValueError(f"table file must exist, got {named(path) if is_meant(path) else file}.")
    return file


def _read_parquet(path: Path, opening: Opening) -> duckdb.DuckDBPyRelation:
    """Read Parquet: the types in the file are the schema."""
    return quietly(lambda: opening.own.sql(f"SELECT * FROM read_parquet({_address(path)})"), opening.complaint)


def header(path: Path, complaint: str) -> row.Header:
    """Return the header row of a CSV file; refused if its rows end in carriage returns alone."""
    first = quietly(lambda: row.header(path), complaint)
    if first.has_return:
        raise ValueError(
            f"table file must end its rows with line feeds, got a carriage return alone in the header row of "
            f"{path.name}; save it with line feeds."
        )
    return first


def _read_csv(path: Path, opening: Opening) -> duckdb.DuckDBPyRelation:
    """Read CSV: the header row is the schema and tells the delimiter; all else is text, and nothing of it is sniffed.

    Short rows are padded with NULL, long ones cut, quotes within a cell kept, and bytes that are no UTF-8 replaced: so
    a record cannot make an error, nor change how another one is read. Where DuckDB would be misled, the file comes to
    it through a pipe.
    """
    first = header(path, opening.complaint)
    check_columns(opening.columns, first.names, path.name)
    is_plain = quietly(lambda: row.is_plain(path, first), opening.complaint)
    if not is_plain:
        path = quietly(lambda: piped(row.safe(path, first), path.suffix, opening.closing), opening.complaint)
    kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(first.names)))
    options = (
        f"auto_detect = false, header = true, delim = {literal(first.delimiter)}, quote = '\"', escape = '\"', "
        "strict_mode = false, null_padding = true, parallel = false, "
        f"max_line_size = {octets.LONGEST_RECORD}, buffer_size = {2 * octets.LONGEST_RECORD}"
    )
    records = f"read_csv({_address(path)}, {options}, columns = {{{kinds}}})"
    wanted = ", ".join(f"c{first.names.index(column)} AS {quoted(column)}" for column in opening.columns)
    return quietly(lambda: opening.own.sql(f"SELECT {wanted} FROM {records}"), opening.complaint)


def _read_array_or_lines(path: Path, opening: Opening) -> duckdb.DuckDBPyRelation:
    """Read JSON: an array if all of the file is one, whose elements then come to DuckDB as lines; else lines.

    So a first record that is an array does not decide for the others. A broken array is refused.
    """
    if quietly(lambda: element.is_array(path), opening.complaint):
        return _read_json(piped(element.array_lines(path), path.suffix, opening.closing), opening)
    if not quietly(lambda: element.is_lines(path), opening.complaint):
        raise ValueError(
            f"table file {path.name} must hold one JSON array that is whole, or one record a line; "
            "name a file of lines .jsonl or .ndjson."
        )
    return _read_lines(path, opening)


def _read_lines(path: Path, opening: Opening) -> duckdb.DuckDBPyRelation:
    """Read JSON, one record a line, whatever the first one holds; a line that is no JSON is a record of NULL."""
    if not quietly(lambda: element.is_plain(path), opening.complaint):
        path = quietly(lambda: piped(element.lines(path), path.suffix, opening.closing), opening.complaint)
    return _read_json(path, opening)


def _read_json(path: Path, opening: Opening) -> duckdb.DuckDBPyRelation:
    """Read lines of JSON: a value is taken as text, and a key that a record lacks is NULL.

    There is no schema beside the records, so a column cannot be missing: to refuse it would tell that no record has it.
    """
    records = f"read_json_objects({_address(path)}, format = 'newline_delimited', ignore_errors = true)"
    pointers = {column: literal("/" + column.replace("~", "~0").replace("/", "~1")) for column in opening.columns}
    wanted = ", ".join(f"json ->> {pointer} AS {quoted(column)}" for column, pointer in pointers.items())
    return quietly(lambda: opening.own.sql(f"SELECT {wanted} FROM {records}"), opening.complaint)


READERS: dict[str, Callable[[Path, Opening], duckdb.DuckDBPyRelation]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".json": _read_array_or_lines,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
}


def rows(own: duckdb.DuckDBPyConnection, path: Path) -> int | None:
    """Return the number of rows that a Parquet file states; None for other files."""
    if path.suffix.lower() != ".parquet":
        return None
    ((found,),) = own.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({_address(path)})").fetchall()
    return int(found)


def _address(path: Path) -> str:
    """Return a path as SQL, in which *, ? and [ are no patterns."""
    return literal(glob.escape(str(path)))
