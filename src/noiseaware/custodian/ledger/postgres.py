"""A ledger's rows in PostgreSQL: postgresql://user@host/database?ledger=clinic, one schema a ledger.

Whoever charges first locks the total's row, so that charges come one after another, and reads the entries after that.
A commit is on the server's disk before it is believed; one whose answer was lost is an error, whether it stands or not.
Nothing is taken from the role's settings: names are qualified, and rows that a policy would hide are an error.
A URL may hold a password: nothing but user, host, port, database and ledger is ever said of it.
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from noiseaware.custodian.engine.server import settings
from noiseaware.custodian.ledger.hash_chain import REMEDY, UNBOUND, Link, Total

try:
    import psycopg  # pyright: ignore[reportMissingImports]
    from psycopg.conninfo import conninfo_to_dict  # pyright: ignore[reportMissingImports]
except ImportError:  # psycopg, or the client library that it needs
    raise ImportError("a ledger in PostgreSQL needs psycopg; install noiseaware[postgres].") from None

_MARK = "noiseaware ledger 2"  # the schema's comment: how a ledger is told from other schemas
_FIRST_MARK = "noiseaware ledger 1"  # of those that did not say for which neighbours they were made
_NAME = "noiseaware"
_BUSY_SECONDS = 30.0
# user:password@ | hosts and database | options: a character that belongs to a password stands nowhere else.
_URL = re.compile(r"(postgres(?:ql)?://(?:[^@/?#\s]*@)?[^@?#\s]*)(?:\?([^@?#\s]*))?")
_SETTINGS = """
set local search_path = pg_catalog;
set local row_security = off;
set local synchronous_commit = on;
set local idle_in_transaction_session_timeout = '60s';
set local lock_timeout = '{}ms';
"""
_SCHEMA = """
create schema {0};
comment on schema {0} is '{1}';
create table {0}.total (
    identity text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    cost text not null check (cost !~ '-'),
    bound text not null,
    hash text not null,
    entries bigint not null
);
create table {0}.entry (
    number bigint primary key,
    id text not null unique,
    time text not null,
    cost text not null check (cost !~ '-'),
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    promised text not null,
    what text not null,
    hash text not null
);
"""
_COLUMNS = ", ".join(Link._fields)
_TYPED = ", ".join(f"{name}::{'bigint' if name == 'number' else 'text'}" for name in Link._fields)


class PostgreSQL:
    """The schema of one ledger."""

    def __init__(self, url: str) -> None:
        self._given, self._schema = _parsed(url)
        self._quoted = f'"{self._schema}"'  # a name such as select is none without
        self.path = _shown(self._given, self._schema)

    def create(self, total: Total) -> None:
        """Make the schema, whole or not at all."""
        with self._connected("must be in a database where its user may create a schema") as database:
            database.execute("begin; " + _SETTINGS.format(round(1000 * _BUSY_SECONDS)))
            try:
                database.execute(_SCHEMA.format(self._quoted, _MARK))
            except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):  # the latter at the same moment
                raise ValueError(f"ledger {self.path} exists already; give another name.") from None
            database.execute(f"insert into {self._quoted}.total values (%s, %s, %s, %s, %s, 0)", total)
            self._commit(database)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Any]:
        """One transaction on the schema: committed if the block ends, rolled back if it does not."""
        right = "charge" if writes else "read"
        with self._connected(f"must be one that its user may {right}; its owner can grant that") as database:
            level = "read committed" if writes else "repeatable read read only"
            database.execute(f"begin isolation level {level}; " + _SETTINGS.format(round(1000 * _BUSY_SECONDS)))
            self._check(database, writes=writes)
            if writes:
                database.execute(f"select 1 from {self._quoted}.total for update")  # others wait here
            yield database
            self._commit(database)

    def rows(self, database: Any) -> tuple[list[Total], list[Link], int]:
        """The totals, the entries in order, and how many there were ever."""
        bound = f"'{UNBOUND}'::text" if self._mark(database) == _FIRST_MARK else "bound::text"
        fields = f"identity::text, kind::text, cost::text, {bound}, hash::text, entries::bigint"
        found = database.execute(f"select {fields} from {self._quoted}.total").fetchall()
        links = database.execute(f"select {_TYPED} from {self._quoted}.entry order by 1").fetchall()
        return [Total(*row[:-1]) for row in found], [Link(*row) for row in links], sum(row[-1] for row in found)

    def append(self, database: Any, link: Link) -> bool:
        """Write an entry; whether it stands there as it was written, after triggers that wait for the commit."""
        database.execute(f"insert into {self._quoted}.entry ({_COLUMNS}) values ({', '.join(['%s'] * 8)})", link)
        database.execute(f"update {self._quoted}.total set entries = %s", (link.number,))
        database.execute("set constraints all immediate")
        find = f"select {_TYPED} from {self._quoted}.entry where number = %s"
        kept = database.execute(find, (link.number,)).fetchall()
        count = database.execute(f"select entries from {self._quoted}.total").fetchall()
        return kept == [link] and count == [(link.number,)]

    def _check(self, database: Any, *, writes: bool) -> None:
        if self._mark(database) not in (_FIRST_MARK, _MARK):
            raise ValueError(f"ledger must be a schema made by `noiseaware ledger create`, got {self.path}.")
        if writes and database.execute("select current_setting('fsync')").fetchall() != [("on",)]:
            raise ValueError(f"ledger {self.path} must be on a server with fsync = on, which keeps what it was told.")

    def _mark(self, database: Any) -> str | None:
        """The schema's comment."""
        find = "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s"
        found = database.execute(find, (self._schema,)).fetchall()
        if not found:
            raise FileNotFoundError
        return found[0][0]

    def _commit(self, database: Any) -> None:
        try:
            done = database.execute("commit").statusmessage
        except psycopg.Error as error:
            if error.sqlstate is not None and not database.broken:
                raise  # the server says that it did not
            lost = "lost its server while it was written, so that the entry may or may not stand"
            raise ValueError(f"ledger {self.path} {lost}; nothing was released.") from None
        if done != "COMMIT":  # what the server answers where it has rolled back
            raise ValueError(f"ledger {self.path} must keep what is written, and did not; nothing was charged.")

    @contextmanager
    def _connected(self, right: str) -> Iterator[Any]:
        """A connection of its own; whatever fails on it is a sentence."""
        try:
            given = {**settings(self._given), "client_encoding": "utf8"}
            with closing(psycopg.connect(autocommit=True, prepare_threshold=None, **given)) as database:
                yield database
        except psycopg.errors.InsufficientPrivilege:
            raise ValueError(f"ledger {self.path} {right}.") from None
        except (psycopg.Error, UnicodeDecodeError) as error:
            raise ValueError(f"ledger {self.path} {self._sentence(error)}.") from None

    def _sentence(self, error: Exception) -> str:
        """Translate an error of PostgreSQL into the rule that the ledger breaks."""
        state = getattr(error, "sqlstate", None)
        if state is None and isinstance(error, psycopg.OperationalError):
            return f"must be on a server that answers, got: {self._reason(error)}"
        for kind, rule in _FAILURES.items():
            if state is not None and state.startswith(kind):
                return rule
        return f"must hold what was charged, but is damaged ({type(error).__name__}); {REMEDY}"

    def _reason(self, error: Exception) -> str:
        """The client library's words, if the password is not among them."""
        reason = str(error).strip().split("\n")[0].rpartition("failed: ")[2].removeprefix("FATAL:").strip(" .")
        secrets = [self._given[name] for name in ("password", "sslpassword", "passfile") if name in self._given]
        return "no connection" if any(secret in reason for secret in secrets) else reason


_FAILURES = {
    "55P03": "must not be locked; ask again when whoever holds it is done",
    "25006": "must be on a server, and of a user, that may write",
    "53": "must have room on its server's disk, and in its memory",
    "58": "must be on a disk that works",
    "57": "must be on a server that is not stopped meanwhile; ask again",
    "08": "must be on a server that answers; ask again",
    "28": "must be open to its user",
}


def _parsed(url: str) -> tuple[dict[str, Any], str]:
    """Arguments of the client library, and the ledger's name; a refusal quotes nothing of the URL."""
    match = _URL.fullmatch(url)
    if match is None:
        escaped = "with %40 for @, %2F for / and %3F for ? in a password"
        raise ValueError(f"ledger must be a file or a URL postgresql://user@host/database, {escaped}.")
    options = [option for option in (match[2] or "").split("&") if option]
    names = [option.removeprefix("ledger=") for option in options if option.startswith("ledger=")] or [_NAME]
    if len(names) > 1 or not re.fullmatch(r"(?!pg_)[a-z][a-z0-9_]{0,62}", names[0]):
        rule = "one name of up to 63 lower-case letters, digits and _"
        raise ValueError(f"ledger must be {rule} in a URL, ?ledger=clinic, got {' and '.join(names)!r}.")
    rest = "&".join(option for option in options if not option.startswith("ledger="))
    try:
        given = conninfo_to_dict(match[1] + (f"?{rest}" if rest else ""))
    except psycopg.Error:
        given = {}
    if not given or not re.fullmatch(r"[\d,]*", str(given.get("port", ""))):
        raise ValueError("ledger must be a URL that PostgreSQL's libraries can read: postgresql://user@host/database.")
    return given, names[0]


def _shown(given: dict[str, Any], schema: str) -> str:
    """The URL without a secret."""
    user, host, port, database = (quote(str(given.get(x, "")), ",:[]") for x in ("user", "host", "port", "dbname"))
    host = f"[{host}]" if ":" in host and "," not in host else host
    place = f"{user and user + '@'}{host}{port and ':' + port}/{database}"
    return f"postgresql://{place}{'' if schema == _NAME else f'?ledger={schema}'}"
