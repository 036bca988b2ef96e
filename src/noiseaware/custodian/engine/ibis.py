"""Tables in PostgreSQL: numbers are summed on the server, text is streamed to the one parser.

A scan is one transaction, and nothing in it is left to the role or to who else may create things in the database:
the table is found by the role's search_path, and after that every operator, function and type is PostgreSQL's own.
Rows that a policy would hide are an error, and floats have all their digits.

Text travels as bytes of the database's own encoding, by a server-side cursor and a batch at a time: a server refuses
text that the client's encoding lacks, and a client text that is none. Decimals travel as their digits.
"""

import codecs
import contextlib
import functools
import secrets
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.engine.quiet import quietly
from noiseaware.custodian.engine.server import settings
from noiseaware.custodian.parser import quoted

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMES = ("postgresql", "postgres")
_BATCH = 2_000  # rows: of the longest cells, a batch is 64 MB a column
_CODECS = {"SQL_ASCII": "utf-8", "KOI8R": "koi8-r", "KOI8U": "koi8-u", "SHIFT_JIS_2004": "shift_jis_2004"}
_SETTINGS = """
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL transaction_read_only = on;
SET LOCAL row_security = off;
SET LOCAL extra_float_digits = 3;
"""
_HEARD = "SET LOCAL client_connection_check_interval = '1s'"
_FOUND = """
SELECT n.nspname, c.oid, has_any_column_privilege(c.oid, 'select'), row_security_active(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %s AND n.nspname = ANY(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_COLUMNS = """
WITH RECURSIVE based(number, name, kind) AS (
    SELECT attnum, attname, atttypid FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT b.number, b.name, t.typbasetype FROM based b JOIN pg_type t ON t.oid = b.kind WHERE t.typtype = 'd'
)
SELECT b.name, CASE WHEN t.typcategory = 'E' THEN 'enum' WHEN t.typcategory = 'S' THEN 'text' ELSE t.typname END
FROM based b JOIN pg_type t ON t.oid = b.kind WHERE t.typtype <> 'd' ORDER BY b.number
"""
_KINDS = {  # PostgreSQL's type: what it is cast to, and what that is to Ibis
    "bool": ("boolean", "boolean"),
    "int2": ("smallint", "int16"),
    "int4": ("integer", "int32"),
    "int8": ("bigint", "int64"),
    "float4": ("real", "float32"),
    "float8": ("double precision", "float64"),
    "numeric": ("numeric", "decimal"),
    "money": ("numeric", "decimal"),
    "text": ("text", "string"),
    "uuid": ("text", "string"),
    "enum": ("", "string"),
    "date": ("date", "date"),
    "timestamp": ("timestamp", "timestamp"),
}


def check_url(url: str, table_name: str | None) -> None:
    """Refuse a URL that is none of PostgreSQL's, saying no more of it than its scheme: it may hold a password."""
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        scheme = scheme if scheme.isidentifier() else "another"
        raise ValueError(f"table must be a file, a frame or a postgresql:// URL, got a URL of scheme {scheme}.")
    if not table_name:
        raise ValueError('table_name (--table) must name the table in the database, such as "clinic.visits".')


def opened(url: str, table_name: str, columns: Sequence[str], closing: contextlib.ExitStack) -> Any:
    """Those of the columns that the table has, as Ibis sees them, by a connection that can write nothing."""
    try:
        import ibis  # pyright: ignore[reportMissingImports]
        import psycopg  # pyright: ignore[reportMissingImports]
        from ibis.expr.datatypes import unknown  # pyright: ignore[reportMissingImports]
        from psycopg.conninfo import conninfo_to_dict  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise ImportError(f"a table in PostgreSQL needs {missing.name}; install noiseaware[postgres].") from None
    unreachable = f"PostgreSQL could not be reached with the URL of table {table_name}"  # whose errors quote the URL
    silent = "its server must answer, and ask for no password in clear text unless the URL has sslmode=require"

    def connect() -> Any:
        given = settings(conninfo_to_dict(url))
        return psycopg.connect(prepare_threshold=None, **{**given, "client_encoding": "UTF8"})

    own = quietly(connect, f"{unreachable}: {silent}.")
    closing.callback(own.close)
    own.read_only, own.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ
    schema, _, name = table_name.rpartition(".")
    unread = f"table {table_name} could not be looked up in PostgreSQL."
    path = quietly(lambda: _settled(own), unread)
    schema, number = _found(own, [schema] if schema else path, name, table_name)
    kinds = quietly(lambda: dict(own.execute(_COLUMNS, (number,)).fetchall()), unread)
    wanted = {column: kinds[column] for column in dict.fromkeys(columns) if column in kinds}

    def queried() -> Any:
        cells = [f"{_cell(column, kind)} AS {quoted(column)}" for column, kind in wanted.items()]
        query = f"SELECT {', '.join(cells) or '1 AS none'} FROM {quoted(schema)}.{quoted(name)}"
        types = {column: _KINDS[kind][1] if kind in _KINDS else unknown for column, kind in wanted.items()}
        return ibis.postgres.from_connection(own).sql(query, schema=types or {"none": "int32"})

    return quietly(queried, unread)


def _cell(column: str, kind: str) -> str:
    """SQL for a column as one of few types; of another type it is refused, or says whose a record is."""
    if kind == "enum":  # whose owner may have made a cast to text, which a cast would take
        return f"CASE WHEN {quoted(column)} IS NOT NULL THEN format('%s', {quoted(column)}) END"
    return f"CAST({quoted(column)} AS {_KINDS[kind][0]})" if kind in _KINDS else quoted(column)


def guarded(table: Any, complaint: str, closing: contextlib.ExitStack) -> Any:
    """An Ibis table in a transaction of its connection where every name that it leaves unqualified is PostgreSQL's.

    Names of tables are looked up before that, as they would have been.
    """
    import ibis.expr.operations as operations  # pyright: ignore[reportMissingImports]

    connection = table.get_backend().con
    quietly(lambda: closing.enter_context(connection.transaction(force_rollback=True)), complaint)
    path = quietly(lambda: _settled(connection), complaint)
    places = {}
    for node in table.op().find(operations.DatabaseTable):
        schema, _ = _found(connection, [node.namespace.database] if node.namespace.database else path, node.name)
        places[node] = node.copy(namespace=operations.Namespace(catalog=node.namespace.catalog, database=schema))
    placed = quietly(lambda: table.op().replace(places).to_expr(), complaint)
    if table.op().find((operations.SQLQueryResult, operations.SQLStringView)):
        unplaced = "table must name the schemas of tables and functions in SQL of its own, such as clinic.visits."
        quietly(lambda: connection.execute(f"EXPLAIN {table.get_backend().compile(placed)}"), unplaced)
    return placed


def _settled(connection: Any) -> list[str]:
    """The schemas that were searched so far, after a transaction is set up in which no other than pg_catalog is."""
    import psycopg  # pyright: ignore[reportMissingImports]

    ((path,),) = connection.execute("SELECT pg_catalog.current_schemas(true)").fetchall()
    connection.execute(_SETTINGS)
    with contextlib.suppress(psycopg.Error), connection.transaction():  # a server before 14, or on Windows, lacks it
        connection.execute(_HEARD)
    return path


def _found(connection: Any, path: Sequence[str], name: str, shown: str = "") -> tuple[str, int]:
    """The schema and number of a table that its user may read as a whole; or a sentence on why there is none."""
    shown = shown or name
    unread = f"table {shown} could not be looked up in PostgreSQL."
    found = quietly(lambda: connection.execute(_FOUND, (name, list(path))).fetchall(), unread)
    if not found:
        raise ValueError(
            f"table {shown} could not be found in PostgreSQL; it may need its schema, as clinic.visits has."
        )
    if len(found) > 1:
        raise ValueError(f"table {shown} must be named with its schema, as more than one schema has such a table.")
    ((schema, number, is_readable, is_cut),) = found
    if not is_readable:
        raise ValueError(f"table {shown} must be one that its user may read; its owner can grant that.")
    if is_cut:
        raise ValueError(f"table {shown} must be read whole, but a policy hides rows of it from its user.")
    return schema, number


def limits(table: Any) -> str:
    """What a role's settings may do to a scan, in words that are added to a complaint; else nothing."""
    ((timeout,),) = table.get_backend().con.execute("SELECT current_setting('statement_timeout')").fetchall()
    return "" if timeout == "0" else f", or not within its role's statement_timeout of {timeout}"


def streamed(table: Any, columns: Sequence[str], is_plain: Sequence[bool]) -> "pa.RecordBatchReader":
    """Columns of an Ibis table in batches: doubles as they are, all else as bytes of UTF-8."""
    import pyarrow as pa

    pairs = list(zip(columns, is_plain, strict=True))
    encoding = _encoding(table)
    codec = codecs.lookup(_CODECS.get(encoding, encoding.replace("WIN", "cp"))).name
    wanted = {name: _double(table[name]) if plain else _bytes(table[name], encoding) for name, plain in pairs}
    schema = pa.schema([(name, pa.float64() if plain else pa.binary()) for name, plain in pairs])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in _fetched(table.select(**wanted)):
            columns = zip(*batch, strict=True)
            arrays = (_array(column, field, codec) for column, field in zip(columns, schema, strict=True))
            yield pa.record_batch(list(arrays), schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def rows(table: Any) -> list[tuple]:
    """All rows of an Ibis table that has few."""
    return [row for batch in _fetched(table) for row in batch]


def _fetched(table: Any) -> Iterator[list[tuple]]:
    """The rows of an Ibis table, a batch at a time and in PostgreSQL's binary format.

    Ibis would do it in a savepoint, without which there is no cursor to close after an error.
    """
    from psycopg.rows import tuple_row  # pyright: ignore[reportMissingImports]

    backend = table.get_backend()
    with backend.con.cursor("noiseaware", binary=True, row_factory=tuple_row) as cursor:
        cursor.execute(backend.compile(table))
        while batch := cursor.fetchmany(_BATCH):
            yield batch


def capped(table: Any, max_records: int) -> Any:
    """At most so many rows of each u, drawn at random as scan.py does; NULL and NaN are left out."""
    import ibis  # pyright: ignore[reportMissingImports]

    encoding, salt = _encoding(table), secrets.token_hex(16)
    content: Any = ibis.literal(salt)
    for name in table.columns:
        text = _short(table[name])
        content = content + ibis.coalesce(text.length().cast("string") + ":" + text, ibis.literal("-"))
    rows = table.filter(_is_there(table.u)).mutate(h=_hash(content, encoding))
    rows = rows.mutate(u=_functions().convert_to(rows.u, encoding)) if rows.u.type().is_string() else rows
    rows = rows.mutate(alike=ibis.row_number().over(group_by=["u", "h"]).cast("string"))
    place = ibis.row_number().over(group_by="u", order_by=_hash(rows.h + rows.alike, encoding))
    return rows.mutate(place=place).filter(lambda t: t.place < max_records).drop("u", "h", "alike", "place")


def _is_there(unit: Any) -> Any:
    """True where a record says whose it is."""
    kind = unit.type()
    if kind.is_floating():
        return unit.notnull() & ~unit.isnan()
    return unit.notnull() & (_digits(unit) != "NaN") if kind.is_decimal() else unit.notnull()


def _double(column: Any) -> Any:
    """A plain column as doubles; PostgreSQL casts a boolean to a whole number only."""
    return (column.cast("int32") if column.type().is_boolean() else column).cast("float64")


def _digits(column: Any) -> Any:
    """A column as text; money is made a number first, as its own text has a currency."""
    return (column.cast("decimal") if column.type().is_decimal() else column).cast("string")


def _short(column: Any) -> Any:
    """A column as text; what is too long to be a number or a level is NULL."""
    import ibis  # pyright: ignore[reportMissingImports]

    text = _digits(column)
    return ibis.ifelse(_functions().octet_length(text) <= LONGEST_CELL, text, ibis.null("string"))


def _bytes(column: Any, encoding: str) -> Any:
    return _functions().convert_to(_short(column), encoding)


def _hash(text: Any, encoding: str) -> Any:
    functions = _functions()
    return functions.encode(functions.sha256(functions.convert_to(text, encoding)), "hex")


@functools.cache
def _functions() -> SimpleNamespace:
    """PostgreSQL's functions that Ibis has no name for."""
    import ibis  # pyright: ignore[reportMissingImports]

    signatures: dict[str, Any] = {
        "convert_to": (lambda text, encoding: ..., ("string", "string"), "binary"),
        "octet_length": (lambda text: ..., ("string",), "int32"),
        "sha256": (lambda data: ..., ("binary",), "binary"),
        "encode": (lambda data, form: ..., ("binary", "string"), "string"),
    }
    builtin: Any = ibis.udf.scalar.builtin
    return SimpleNamespace(
        **{name: builtin(f, name=name, signature=(takes, gives)) for name, (f, takes, gives) in signatures.items()}
    )


def _encoding(table: Any) -> str:
    """The server's encoding, in which text is on its disk."""
    return table.get_backend().con.info.parameter_status("server_encoding") or "UTF8"


def _array(cells: Sequence, field: "pa.Field", codec: str) -> "pa.Array":
    """A column of a batch, text as UTF-8."""
    import pyarrow as pa

    if not pa.types.is_floating(field.type) and codec != "utf-8":
        cells = [None if cell is None else cell.decode(codec, "replace").encode() for cell in cells]
    return pa.array(cells, field.type)


def cancel(table: Any) -> None:
    """End what the table's own server is doing for us."""
    table.get_backend().con.cancel_safe()
