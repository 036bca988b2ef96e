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
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw

from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.engine._engine import AbstractEngine, Given, Opening, Source
from noiseaware.custodian.engine.connection import SCHEMES
from noiseaware.custodian.engine.duckdb import DuckDB
from noiseaware.custodian.engine.quiet import quietly
from noiseaware.custodian.engine.server import settings
from noiseaware.custodian.parser import quoted

if TYPE_CHECKING:
    import pyarrow as pa

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


class Ibis(AbstractEngine):
    """Columns of an Ibis table of PostgreSQL, by a URL or by a connection of the custodian's."""

    served = "a postgresql:// URL, an Ibis table of PostgreSQL"
    implementations = (nw.Implementation.IBIS,)
    packages = ("pyarrow",)

    @classmethod
    def serves(cls, given: Given) -> bool:
        return (given.url is not None and not given.by_spark) or super().serves(given)

    @classmethod
    def source(cls, given: Given) -> Source:
        """Return the table, unless it is of another database than PostgreSQL."""
        if (url := given.url) is not None:
            name = _checked_name(url, given.table_name)
            return Source(name, lambda opening: cls._of(_opened(url, name, opening), opening))
        table = given.frame.to_native()
        backend = quietly(lambda: table.get_backend().name, "table must have a connection where Ibis holds it.")
        if backend != "postgres":
            raise ValueError(f"table must be of PostgreSQL where Ibis holds it, got one of {backend}.")
        return Source("ibis frame", lambda opening: cls._of(_guarded(table, opening), opening))

    @classmethod
    def _of(cls, table: Any, opening: Opening) -> Self:
        return cls(opening.own, nw.from_native(table), quietly(lambda: _limits(table), opening.complaint))

    def is_void(self, column: str) -> bool:
        """Never true: PostgreSQL has no column without a type."""
        return False

    def renamed(self, columns: Sequence[str], names: Sequence[str]) -> Self:
        """Return the columns under other names; PostgreSQL casts a boolean to a whole number and to no other."""
        schema, pairs = self.frame.collect_schema(), list(zip(columns, names, strict=True))
        flags = {name for column, name in pairs if schema[column] == nw.Boolean}
        wanted = (nw.col(column).cast(nw.Int32) if name in flags else nw.col(column) for column, name in pairs)
        return self.over(self.frame.select(*(x.alias(name) for x, name in zip(wanted, names, strict=True))))

    def capped(self, names: Sequence[str], max_records: int) -> Self:
        import ibis  # pyright: ignore[reportMissingImports]

        table = self.frame.to_native()
        encoding, salt = _encoding(table), secrets.token_hex(16)
        content: Any = ibis.literal(salt)
        for name in names:
            text = _short(table[name])
            content = content + ibis.coalesce(text.length().cast("string") + ":" + text, ibis.literal("-"))
        rows = table.filter(_is_there(table.u)).mutate(h=_hash(content, encoding))
        rows = rows.mutate(u=_functions().convert_to(rows.u, encoding)) if rows.u.type().is_string() else rows
        rows = rows.mutate(alike=ibis.row_number().over(group_by=["u", "h"]).cast("string"))
        place = ibis.row_number().over(group_by="u", order_by=_hash(rows.h + rows.alike, encoding))
        rows = rows.mutate(place=place).filter(lambda t: t.place < max_records).drop("u", "h", "alike", "place")
        return self.over(nw.from_native(rows))

    def parsed(self, sql: Mapping[str, Callable[[str], str]], plain: Sequence[bool], kind: str) -> DuckDB:
        """Return each column as DuckDB parses it, to which the rows are streamed."""
        relation = self.own.from_arrow(_streamed(self.frame.to_native(), list(sql), plain))
        return DuckDB(self.own, nw.from_native(relation), self.needs).parsed(sql, plain, kind)

    def rows(self, *, are_many: bool = False) -> Iterator[tuple]:
        for batch in _fetched(self.frame.to_native()):
            yield from batch

    def cancel(self) -> None:
        """End the query on the server too."""
        super().cancel()
        self.frame.to_native().get_backend().con.cancel_safe()


def _checked_name(url: str, table_name: str | None) -> str:
    """Return the table's name; refuse another URL than PostgreSQL's by its scheme alone: it may hold a password."""
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        scheme = scheme if scheme.isidentifier() else "another"
        raise ValueError(f"table must be a file, a frame or a postgresql:// URL, got a URL of scheme {scheme}.")
    if not table_name:
        raise ValueError('table_name (--table) must name the table in the database, such as "clinic.visits".')
    return table_name


def _opened(url: str, table_name: str, opening: Opening) -> Any:
    """Return those of the columns that the table has, as Ibis sees them, by a connection that can write nothing."""
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
    opening.closing.callback(own.close)
    own.read_only, own.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ
    schema, _, name = table_name.rpartition(".")
    unread = f"table {table_name} could not be looked up in PostgreSQL."
    path = quietly(lambda: _settled(own), unread)
    schema, number = _found(own, [schema] if schema else path, name, table_name)
    kinds = quietly(lambda: dict(own.execute(_COLUMNS, (number,)).fetchall()), unread)
    wanted = {column: kinds[column] for column in dict.fromkeys(opening.columns) if column in kinds}

    def queried() -> Any:
        cells = [f"{_cell(column, kind)} AS {quoted(column)}" for column, kind in wanted.items()]
        query = f"SELECT {', '.join(cells) or '1 AS none'} FROM {quoted(schema)}.{quoted(name)}"
        types = {column: _KINDS[kind][1] if kind in _KINDS else unknown for column, kind in wanted.items()}
        return ibis.postgres.from_connection(own).sql(query, schema=types or {"none": "int32"})

    return quietly(queried, unread)


def _cell(column: str, kind: str) -> str:
    """Return SQL for a column as one of few types; of another type it is refused, or says whose a record is."""
    # The owner of an enumeration may have made a cast to text, which CAST would take.
    if kind == "enum":
        return f"CASE WHEN {quoted(column)} IS NOT NULL THEN format('%s', {quoted(column)}) END"
    return f"CAST({quoted(column)} AS {_KINDS[kind][0]})" if kind in _KINDS else quoted(column)


def _guarded(table: Any, opening: Opening) -> Any:
    """Return an Ibis table in a transaction of its connection in which every unqualified name is PostgreSQL's.

    Names of tables are looked up before that, as they would have been.
    """
    import ibis.expr.operations as operations  # pyright: ignore[reportMissingImports]

    connection = table.get_backend().con
    quietly(lambda: opening.closing.enter_context(connection.transaction(force_rollback=True)), opening.complaint)
    path = quietly(lambda: _settled(connection), opening.complaint)
    places = {}
    for node in table.op().find(operations.DatabaseTable):
        schema, _ = _found(connection, [node.namespace.database] if node.namespace.database else path, node.name)
        places[node] = node.copy(namespace=operations.Namespace(catalog=node.namespace.catalog, database=schema))
    placed = quietly(lambda: table.op().replace(places).to_expr(), opening.complaint)
    if table.op().find((operations.SQLQueryResult, operations.SQLStringView)):
        unplaced = "table must name the schemas of tables and functions in SQL of its own, such as clinic.visits."
        quietly(lambda: connection.execute(f"EXPLAIN {table.get_backend().compile(placed)}"), unplaced)
    return placed


def _settled(connection: Any) -> list[str]:
    """Return the schemas that were searched so far, and set up a transaction in which pg_catalog alone is."""
    import psycopg  # pyright: ignore[reportMissingImports]

    ((path,),) = connection.execute("SELECT pg_catalog.current_schemas(true)").fetchall()
    connection.execute(_SETTINGS)
    # A server before version 14, or on Windows, lacks the setting.
    with contextlib.suppress(psycopg.Error), connection.transaction():
        connection.execute(_HEARD)
    return path


def _found(connection: Any, path: Sequence[str], name: str, shown: str = "") -> tuple[str, int]:
    """Return the schema and number of a table; refuse one that its user may not read, or not as a whole."""
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


def _limits(table: Any) -> str:
    """Return advice on the role's settings that may end a scan, to be added to a complaint; else nothing."""
    ((timeout,),) = table.get_backend().con.execute("SELECT current_setting('statement_timeout')").fetchall()
    return "" if timeout == "0" else f", or not within its role's statement_timeout of {timeout}"


def _streamed(table: Any, columns: Sequence[str], is_plain: Sequence[bool]) -> "pa.RecordBatchReader":
    """Return columns of an Ibis table in batches: doubles as they are, all else as bytes of UTF-8."""
    import pyarrow as pa

    pairs = list(zip(columns, is_plain, strict=True))
    encoding = _encoding(table)
    codec = codecs.lookup(_CODECS.get(encoding, encoding.replace("WIN", "cp"))).name
    wanted = {name: table[name].cast("float64") if plain else _bytes(table[name], encoding) for name, plain in pairs}
    schema = pa.schema([(name, pa.float64() if plain else pa.binary()) for name, plain in pairs])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in _fetched(table.select(**wanted)):
            columns = zip(*batch, strict=True)
            arrays = (_array(column, field, codec) for column, field in zip(columns, schema, strict=True))
            yield pa.record_batch(list(arrays), schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _fetched(table: Any) -> Iterator[list[tuple]]:
    """Yield the rows of an Ibis table, a batch at a time and in PostgreSQL's binary format.

    Ibis would do it in a savepoint, without which there is no cursor to close after an error.
    """
    from psycopg.rows import tuple_row  # pyright: ignore[reportMissingImports]

    backend = table.get_backend()
    with backend.con.cursor("noiseaware", binary=True, row_factory=tuple_row) as cursor:
        cursor.execute(backend.compile(table))
        while batch := cursor.fetchmany(_BATCH):
            yield batch


def _is_there(unit: Any) -> Any:
    """True where a record says whose it is."""
    kind = unit.type()
    if kind.is_floating():
        return unit.notnull() & ~unit.isnan()
    return unit.notnull() & (_digits(unit) != "NaN") if kind.is_decimal() else unit.notnull()


def _digits(column: Any) -> Any:
    """Return a column as text; money is made a number first, as its own text has a currency."""
    return (column.cast("decimal") if column.type().is_decimal() else column).cast("string")


def _short(column: Any) -> Any:
    """Return a column as text; what is too long to be a number or a level is NULL."""
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
    """Return PostgreSQL's functions that Ibis has no name for."""
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
    """Return the server's encoding, in which text is on its disk."""
    return table.get_backend().con.info.parameter_status("server_encoding") or "UTF8"


def _array(cells: Sequence, field: "pa.Field", codec: str) -> "pa.Array":
    """Return a column of a batch, text as UTF-8."""
    import pyarrow as pa

    if not pa.types.is_floating(field.type) and codec != "utf-8":
        cells = [None if cell is None else cell.decode(codec, "replace").encode() for cell in cells]
    return pa.array(cells, field.type)
