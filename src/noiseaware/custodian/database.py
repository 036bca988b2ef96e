"""Tables in PostgreSQL, and whatever else Ibis reads: numbers are summed there, text is streamed to the one parser.

Text travels as bytes of the database's own encoding, by a server-side cursor and a batch at a time: a server refuses
text that the client's encoding lacks, and a client text that is none. Decimals travel as their digits.
"""

import codecs
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noiseaware.custodian.quiet import quietly

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMES = ("postgresql", "postgres")
_BATCH = 20_000  # rows
_CODECS = {"SQL_ASCII": "utf-8", "KOI8R": "koi8-r", "KOI8U": "koi8-u", "SHIFT_JIS_2004": "shift_jis_2004"}


def check_url(url: str, table_name: str | None) -> None:
    """Refuse a URL that is none of PostgreSQL's, saying no more of it than its scheme: it may hold a password."""
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        scheme = scheme if scheme.isidentifier() else "another"
        raise ValueError(f"table must be a file, a frame or a postgresql:// URL, got a URL of scheme {scheme}.")
    if not table_name:
        raise ValueError('table_name (--table) must name the table in the database, such as "clinic.visits".')


def opened(url: str, table_name: str, closing: contextlib.ExitStack) -> Any:
    """The table as Ibis sees it, by a connection that can write nothing."""
    try:
        import ibis  # pyright: ignore[reportMissingImports]
        import psycopg  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise ImportError(f"a table in PostgreSQL needs {missing.name}; install noiseaware[postgres].") from None
    unreachable = f"PostgreSQL could not be reached with the URL of table {table_name}."  # whose errors quote the URL
    own = quietly(lambda: psycopg.connect(url, client_encoding="UTF8", application_name="noiseaware"), unreachable)
    closing.callback(own.close)
    own.read_only = True
    schema, _, name = table_name.rpartition(".")
    missing = f"table {table_name} could not be found in PostgreSQL, or not be read."
    return quietly(lambda: ibis.postgres.from_connection(own).table(name, database=schema or None), missing)


def streamed(table: Any, columns: Sequence[str], is_plain: Sequence[bool]) -> "pa.RecordBatchReader":
    """Columns of an Ibis table in batches: doubles as they are, all else as bytes of UTF-8."""
    import pyarrow as pa

    pairs = list(zip(columns, is_plain, strict=True))
    codec, spelled = _encoding(table)
    wanted = {name: _double(table[name]) if plain else spelled(_digits(table[name])) for name, plain in pairs}
    batches = table.select(**wanted).to_pyarrow_batches(chunk_size=_BATCH)
    schema = pa.schema([(name, pa.float64() if plain else pa.binary()) for name, plain in pairs])
    arrays = ([_utf8(batch.column(name), codec) for name in columns] for batch in batches)
    return pa.RecordBatchReader.from_batches(schema, (pa.record_batch(one, schema=schema) for one in arrays))


def _double(column: Any) -> Any:
    """A plain column as doubles; PostgreSQL casts a boolean to a whole number only."""
    return (column.cast("int32") if column.type().is_boolean() else column).cast("float64")


def capped(table: Any, max_records: int) -> Any:
    """At most so many rows of each u, drawn at random by the server; those without one are left out."""
    import ibis  # pyright: ignore[reportMissingImports]

    is_there = table.u.notnull() & ~table.u.isnan() if table.u.type().is_floating() else table.u.notnull()
    place = ibis.row_number().over(group_by="u", order_by=ibis.random())
    return table.filter(is_there).mutate(place=place).filter(lambda t: t.place < max_records).drop("u", "place")


def _digits(column: Any) -> Any:
    """A column as text; money is made a number first, as its own text has a currency."""
    return (column.cast("decimal") if column.type().is_decimal() else column).cast("string")


def _encoding(table: Any) -> tuple[str, Any]:
    """How the bytes of text are to be read, and the expression that gives them."""
    backend = table.get_backend()
    if backend.name != "postgres":
        return "utf-8", lambda text: text
    import ibis  # pyright: ignore[reportMissingImports]

    @ibis.udf.scalar.builtin(signature=(("string", "string"), "binary"))
    def convert_to(text, encoding): ...

    name = backend.con.info.parameter_status("server_encoding") or "UTF8"
    codec = codecs.lookup(_CODECS.get(name, name.replace("WIN", "cp"))).name
    return codec, lambda text: convert_to(text, name)


def _utf8(column: "pa.Array", codec: str) -> "pa.Array":
    import pyarrow as pa

    if not pa.types.is_floating(column.type):
        column = column.cast(pa.binary())
        if codec != "utf-8":
            texts = (None if cell is None else cell.decode(codec, "replace").encode() for cell in column.to_pylist())
            column = pa.array(texts, pa.binary())
    return column


def cancel(table: Any) -> None:
    """End what the table's own server is doing for us."""
    backend = table.get_backend()
    if backend.name == "postgres":
        backend.con.cancel_safe()
