"""Tables in PostgreSQL where the role, the database and others in it are set up as nobody would wish."""

import contextlib
import os
import socket
import threading
import time
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from noiseaware import family
from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine import server
from noiseaware.custodian.table import Table

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL tests need noiseaware[postgres]")
ibis = pytest.importorskip("ibis", reason="PostgreSQL tests need noiseaware[postgres]")

WAIT = family.Exponential("wait", bounds=(0, 48))
PLACE = family.Categorical("place", levels=["home", "ward"])
HONEST = ([28 * 2**20], 8), ([4, 4], 8)


def do(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as own:
        for statement in statements:
            own.execute(statement)


@pytest.fixture
def visits(postgres):
    """A database of its own with the schema clinic, and a role that may read it and finds it by its search_path."""
    name = f"d{os.urandom(4).hex()}"
    do(postgres, f"CREATE DATABASE {name}", f"CREATE ROLE {name} LOGIN", f"CREATE ROLE {name}_mallory LOGIN")
    url = postgres.rpartition("/")[0] + f"/{name}"
    do(url, "CREATE SCHEMA clinic", f"GRANT USAGE ON SCHEMA clinic TO {name}", f"CREATE SCHEMA {name}")
    do(
        url,
        "CREATE TABLE clinic.visits AS SELECT i::float8 AS wait, i % 2 AS ill, i::text AS t, 'home' AS place, i AS p "
        "FROM generate_series(0, 7) i",
        "UPDATE clinic.visits SET place = 'ward' WHERE ill = 1",
    )
    do(url, f"GRANT SELECT ON clinic.visits TO {name}", f'ALTER ROLE {name} SET search_path = "$user", public, clinic')
    yield url.replace("tester@", f"{name}@")
    do(postgres, f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}, {name}_mallory")


def owner(url: str) -> str:
    """The URL for the owner of a role's database."""
    return url.replace(f"{urlsplit(url).username}@", "tester@")


@contextlib.contextmanager
def ibis_of(url: str):
    connected = ibis.connect(url)
    yield connected
    connected.disconnect()


@pytest.fixture
def backend(visits):
    with ibis_of(visits) as connected:
        yield connected


# ---- whose operators, functions and tables ----------------------------------------------------------------------

TROJANS = """
CREATE FUNCTION {0}.m(a float8, b numeric) RETURNS float8 LANGUAGE sql AS 'SELECT 1e12::float8';
CREATE FUNCTION {0}.l(a float8, b numeric) RETURNS bool LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR {0}.* (LEFTARG = float8, RIGHTARG = numeric, FUNCTION = {0}.m);
CREATE OPERATOR {0}.<= (LEFTARG = float8, RIGHTARG = numeric, FUNCTION = {0}.l);
CREATE FUNCTION {0}.convert_to(a text, b text) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN RAISE ''%'', a; END';
CREATE FUNCTION {0}.sha256(a text) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN RAISE ''%'', a; END';
CREATE FUNCTION {0}.floor(a real) RETURNS float8 LANGUAGE sql AS 'SELECT 1e12::float8';
CREATE TABLE {0}.pg_class (oid int); CREATE TABLE {0}.pg_type (oid int);
CREATE DOMAIN {0}.text AS text CHECK (false); CREATE DOMAIN {0}.numeric AS numeric CHECK (false);
"""


def test_what_others_create_is_never_taken(visits, backend):
    """An operator of (float8, numeric), for which PostgreSQL has no exact match, moved a sum by 10^12."""
    role = urlsplit(visits).username
    mallory = visits.replace(f"{role}@", f"{role}_mallory@")
    for schema in ("public", role, "clinic"):
        do(owner(visits), f"GRANT ALL ON SCHEMA {schema} TO {role}_mallory")
        do(mallory, TROJANS.format(schema))
    for table in (
        Table(visits, "visits"),
        Table(visits, "clinic.visits"),
        Table(backend.table("visits", database="clinic")),
    ):
        assert (table.sums(WAIT.query, 20), table.sums(PLACE.query, 0)) == HONEST
        assert table.sums(family.Exponential("t", bounds=(0, 48)).query, 20) == HONEST[0]
        assert table.sums(WAIT.query, 20, unit=Unit("t", 1)) == HONEST[0]
        assert table.counts("wait", [3.5]) == ([4], 8)


def test_an_ibis_table_is_found_as_its_connection_finds_it(visits, backend):
    """Also what is made of several tables; and the connection is as it was when the scan is over."""
    role = urlsplit(visits).username
    do(owner(visits), "CREATE TABLE public.more AS SELECT 7 AS p", f"GRANT SELECT ON public.more TO {role}")
    by_path = backend.table("more").view()
    joined = backend.table("visits", database="clinic").semi_join(by_path, "p")
    schema = backend.table("visits", database="clinic").schema()
    unqualified = ibis.expr.operations.DatabaseTable(
        "visits", schema, backend, ibis.expr.operations.Namespace()
    ).to_expr()
    for expression, expected in (
        (joined, ([7 * 2**20], 1)),
        (unqualified.filter(unqualified.p > 5), ([13 * 2**20], 2)),
    ):
        assert Table(expression).sums(WAIT.query, 20) == expected
        assert Table(expression).sums(family.Poisson("t", bounds=(0, 9)).query, 0) == (
            [expected[0][0] >> 20],
            expected[1],
        )
    assert backend.con.execute("SHOW search_path").fetchall() == [('"$user", public, clinic',)]
    assert backend.con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    raised = backend.sql("SELECT 1 / (p - 3) AS p FROM clinic.visits", schema={"p": "int32"})
    with pytest.raises(ValueError, match="could not be read as a table of records"):
        Table(raised).sums(family.Poisson("p", bounds=(0, 9)).query, 0)
    assert backend.con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    with pytest.raises(ValueError, match="table must name the schemas of tables and functions in SQL of its own"):
        Table(backend.sql("SELECT p FROM visits", schema={"p": "int32"})).sums(family.Bernoulli("p").query, 0)
    with pytest.raises(ValueError, match="table must be of PostgreSQL where Ibis holds it, got one of duckdb"):
        Table(ibis.memtable(pa.table({"x": [1]})))


def test_a_transaction_of_the_connection_goes_on_as_before(visits):
    with psycopg.connect(owner(visits)) as own:
        own.execute("CREATE TABLE public.fresh AS SELECT 1 AS x")
        assert Table(ibis.postgres.from_connection(own).table("fresh")).sums(family.Bernoulli("x").query, 0) == ([1], 1)
        own.execute("INSERT INTO fresh VALUES (1)")
    assert Table(owner(visits), "fresh").sums(family.Bernoulli("x").query, 0) == ([2], 2)


def test_a_table_of_two_schemas_must_be_named_with_its_own(visits, backend):
    do(owner(visits), "CREATE VIEW public.visits AS SELECT 1::float8 AS wait")
    with pytest.raises(ValueError, match=r"^table visits must be named with its schema, as more than one schema has"):
        Table(visits, "visits").sums(WAIT.query, 20)
    assert Table(visits, "clinic.visits").sums(WAIT.query, 20) == HONEST[0]


def test_a_temporary_table_shadows_nothing(visits, backend):
    """It is searched first wherever a search_path does not name it."""
    for name in ("pg_class", "pg_attribute", "pg_type"):
        backend.con.execute(f"CREATE TEMP TABLE {name} AS SELECT 1 AS oid")
    backend.con.execute("CREATE TEMP TABLE here AS SELECT 3::float8 AS wait")
    assert Table(backend.table("visits", database="clinic")).sums(PLACE.query, 0) == HONEST[1]
    assert Table(backend.table("here")).sums(WAIT.query, 0) == ([3], 1)


# ---- what a role may, and how it is set up ----------------------------------------------------------------------


def test_who_may_not_read_a_table_or_not_all_of_it_is_told_so(visits, backend):
    role, frame = urlsplit(visits).username, backend.table("visits", database="clinic")
    do(
        owner(visits),
        "ALTER TABLE clinic.visits ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY half ON clinic.visits FOR SELECT TO {role} USING (ill = 1)",
    )
    for table in (Table(visits, "visits"), Table(frame)):
        with pytest.raises(
            ValueError, match=r"visits must be read whole, but a policy hides rows of it from its user\.$"
        ):
            table.sums(WAIT.query, 20)
    do(owner(visits), f"REVOKE SELECT ON clinic.visits FROM {role}")
    for table in (Table(visits, "visits"), Table(frame)):
        with pytest.raises(ValueError, match=r"visits must be one that its user may read; its owner can grant that\.$"):
            table.sums(WAIT.query, 20)


def test_digits_and_timeouts_of_a_role(visits):
    role = urlsplit(visits).username
    do(
        owner(visits),
        f"ALTER ROLE {role} SET extra_float_digits = -15",
        "UPDATE clinic.visits SET wait = wait / 3",
        f"ALTER ROLE {role} SET statement_timeout = '300ms'",
        "CREATE VIEW clinic.slow AS SELECT (pg_sleep(9) IS NULL)::int AS x",
        f"GRANT SELECT ON clinic.slow TO {role}",
    )
    both = family.LinearRegression(["t"], "wait", bounds={"t": (0, 8), "wait": (0, 8)})
    assert Table(visits, "visits").sums(both.query, 30) == Table(owner(visits), "clinic.visits").sums(both.query, 30)
    with pytest.raises(
        ValueError, match=r"not be read as a table of records, or not within its role's statement_timeout"
    ):
        Table(visits, "clinic.slow").sums(family.Poisson("x", bounds=(0, 9)).query, 0)


# ---- types --------------------------------------------------------------------------------------------------------


def test_a_person_is_told_by_the_letters_of_a_unit_and_is_no_nan(visits):
    do(
        owner(visits),
        "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE clinic.people (a text COLLATE folded, d numeric, x int)",
        "INSERT INTO clinic.people VALUES ('A1', 'NaN', 1), ('a1', 'NaN', 1), (NULL, 1, 1), ('a1', 1.00, 1)",
    )
    with ibis_of(owner(visits)) as backend:
        for table in (Table(owner(visits), "clinic.people"), Table(backend.table("people", database="clinic"))):
            assert table.sums(family.Bernoulli("x").query, 0, unit=Unit("a", 1)) == ([2], 2)
            assert table.sums(family.Bernoulli("x").query, 0, unit=Unit("d", 1)) == ([1], 1)
            assert table.sums(family.Bernoulli("d").query, 0, unit=Unit("a", 9)) == ([1], 3)


CAST = """
CREATE FUNCTION told(m mood) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
CREATE CAST (mood AS text) WITH FUNCTION told(mood);
"""


def test_types_that_are_numbers_or_text_by_another_name(visits):
    do(
        owner(visits),
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN share AS numeric CHECK (value >= 0)",
        "CREATE DOMAIN small AS share CHECK (value < 9)",
        "CREATE TABLE clinic.odd (e mood, d small, u uuid, h numeric(5, -2), "
        "c char(5), wide numeric(1000, 500), r regclass, j json, a int[])",
        "INSERT INTO clinic.odd VALUES ('sad', 2.5, gen_random_uuid(), 149, 'a', 1e400, 'pg_class', '{}', '{1}'), "
        "('ok', NULL, gen_random_uuid(), NULL, 'b    ', 0.25, NULL, NULL, NULL)",
        CAST,
    )
    table = Table(owner(visits), "clinic.odd")
    assert table.sums(family.Categorical("e", levels=["ok", "sad"]).query, 0) == ([1, 1], 2)
    assert table.sums(family.Exponential("d", bounds=(0, 8)).query, 1) == ([5], 2)
    assert table.sums(family.Exponential("h", bounds=(0, 800)).query, 0) == ([100], 2)
    assert table.sums(family.Exponential("wide", bounds=(0, 8)).query, 2) == ([33], 2)
    assert table.sums(family.Bernoulli("u").query, 0, unit=Unit("u", 1)) == ([0], 2)
    assert table.sums(family.Exponential("d", bounds=(0, 8)).query, 1, unit=Unit("a", 1)) == ([5], 1)
    groups = Groups(("c",), (("a", "b", "a    "),))
    assert [n for _, n in table.group_sums(family.Bernoulli("d").query, 0, groups)] == [1, 1, 0]
    for column in "rja":
        with pytest.raises(ValueError, match=f"column '{column}' must hold numbers or text, got type Unknown"):
            table.sums(family.Bernoulli(column).query, 0)


def test_long_cells_are_no_numbers_and_stay_on_the_server(visits, monkeypatch):
    from noiseaware.custodian.engine import ibis as database

    sizes, whole = [], database._array
    monkeypatch.setattr(database, "_array", lambda cells, *rest: sizes.append(len(str(cells))) or whole(cells, *rest))
    do(owner(visits), "CREATE TABLE clinic.long AS SELECT repeat('9', 20000000) AS x, 1 AS p UNION ALL SELECT '7', 2")
    table = Table(owner(visits), "clinic.long")
    assert table.sums(family.Poisson("x", bounds=(1, 9)).query, 0) == ([8], 2)
    assert table.sums(family.Poisson("x", bounds=(1, 9)).query, 0, unit=Unit("p", 1)) == ([8], 2)
    assert max(sizes) < 100
    edge = f"SELECT repeat(' ', {LONGEST_CELL - 1}) || '7' AS x UNION ALL SELECT repeat(' ', {LONGEST_CELL}) || '7'"
    do(owner(visits), f"CREATE TABLE clinic.edge AS {edge}")
    assert Table(owner(visits), "clinic.edge").sums(family.Poisson("x", bounds=(1, 9)).query, 0) == ([8], 2)


# ---- the server ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stranger():
    """A server that writes down what it hears, and answers as it is told; its port, what it heard, its answers."""
    heard, answers = [], []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                connection.settimeout(5)
                for answer in answers:
                    heard.append(connection.recv(4096))
                    connection.sendall(answer)
                try:
                    heard.append(connection.recv(4096))
                    time.sleep(0 if answers else 3)
                except OSError:
                    pass
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1], heard, answers
        listening.shutdown(socket.SHUT_RDWR)


def test_a_server_that_accepts_and_is_silent_ends_in_a_sentence(stranger, monkeypatch):
    monkeypatch.setitem(server.PATIENCE, "connect_timeout", "2")
    start = time.monotonic()
    with pytest.raises(ValueError, match="could not be reached with the URL of table t: its server must answer"):
        Table(f"postgresql://u@127.0.0.1:{stranger[0]}/db", "t").sums(WAIT.query, 0)
    assert time.monotonic() - start < 10


def test_a_password_is_not_sent_in_clear_text_to_another_machine(stranger):
    port, heard, answers = stranger
    answers += [b"N", b"R\x00\x00\x00\x08\x00\x00\x00\x03"]  # no TLS here; what is the password?
    for host, is_sent in (("db.example.org", False), ("localhost", True)):
        with pytest.raises(ValueError, match="ask for no password in clear text unless the URL has sslmode=require"):
            Table(f"postgresql://u:HUSHHUSH@{host}:{port}/db?hostaddr=127.0.0.1", "t").sums(WAIT.query, 0)
        assert (b"HUSHHUSH" in b"".join(heard)) == is_sent


@pytest.mark.parametrize(
    ("place", "is_local"),
    [
        ("127.0.0.1", True),
        ("[::1]", True),
        ("localhost", True),
        ("", True),
        ("%2Fvar%2Frun", True),
        ("127.example.org", False),
        ("10.0.0.1", False),
        ("localhost,10.0.0.1", False),
        ("localhost/x?hostaddr=10.0.0.1", False),
        ("/x?service=y", False),
    ],
)
def test_which_servers_are_on_this_machine(place, is_local):
    given = psycopg.conninfo.conninfo_to_dict(f"postgresql://{place}" + ("" if "?" in place else "/x"))
    assert ("require_auth" not in server.settings(given)) == is_local
    for option in ({"sslmode": "verify-full"}, {"require_auth": "password"}):
        assert server.settings({**given, **option}).items() >= option.items()
        assert server.settings({**given, **option}).get("require_auth") != "!password"


def test_a_query_ends_when_whoever_asked_is_gone(visits, monkeypatch):
    """As after a SIGTERM: the client's end of the connection is closed while the server works."""
    do(owner(visits), "CREATE VIEW public.slow AS SELECT (pg_sleep(60) IS NULL)::int AS x")
    made, connect = [], psycopg.connect
    monkeypatch.setattr(psycopg, "connect", lambda *a, **k: made.append(connect(*a, **k)) or made[-1])

    def ask() -> None:
        with contextlib.suppress(ValueError):
            Table(owner(visits), "slow").sums(family.Bernoulli("x").query, 0)

    asking = threading.Thread(target=ask)
    with connect(owner(visits), autocommit=True) as own:

        def wait_for(count: int) -> None:
            end = time.monotonic() + 30
            asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            while own.execute(asleep).fetchone() != (count,):
                assert time.monotonic() < end
                time.sleep(0.05)

        asking.start()
        wait_for(1)
        with socket.socket(fileno=os.dup(made[0].fileno())) as ours:
            ours.shutdown(socket.SHUT_RDWR)
        asking.join()
        wait_for(0)
