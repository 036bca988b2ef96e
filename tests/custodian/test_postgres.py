"""The ledger in PostgreSQL: names, roles that may not, and passwords that stay unsaid.

What it shares with the ledger in a file is tested with that one: test_ledger.py, test_chain.py, test_ledger_fire.py.
"""

import logging
import os
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from fractions import Fraction
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

import noiseaware as na
from noiseaware.cli import app
from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.privacy import Pure

PRICE = Pure(Fraction(1, 7))
WHAT = {"table": "clinic.csv"}


@pytest.fixture
def ledger(schemas):
    return Ledger.create(schemas.place(), epsilon=9)


# ---- many ledgers, one database --------------------------------------------------------------------------------------


def test_ledgers_of_one_database_are_apart(schemas):
    one, other = (Ledger.create(schemas.place(name), epsilon=total) for name, total in (("one", 1), ("other", 2)))
    one.charge(Pure(Fraction(1)), WHAT)
    assert (one.remaining, other.remaining) == (0, 2)
    with pytest.raises(ValueError, match="exists already; give another name"):
        Ledger.create(schemas.place("one"), epsilon=5)


def test_without_a_name_it_is_called_noiseaware(postgres):
    with pytest.raises(ValueError, match=f"ledger must exist, got {postgres}; make one"):
        Ledger(postgres)
    made = Ledger.create(postgres, epsilon=1)
    assert Ledger(f"{postgres}?ledger=noiseaware").path == made.path == postgres
    assert repr(made) == f"Ledger('{postgres}')"


def test_another_schema_is_no_ledger(schemas):
    schemas.edit(schemas.place(), f"create schema {schemas.schema()}")
    with pytest.raises(ValueError, match="ledger must be a schema made by `noiseaware ledger create`"):
        Ledger(schemas.place())
    with pytest.raises(ValueError, match="exists already"):
        Ledger.create(schemas.place(), epsilon=1)


def test_one_of_those_who_create_at_once_succeeds(schemas):
    made, refused = [], []

    def create():
        try:
            made.append(Ledger.create(schemas.place(), epsilon=1))
        except ValueError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 5)
    assert all("exists already" in sentence for sentence in refused)


@pytest.mark.parametrize("name", ["select", "user", "table"])
def test_a_name_that_is_a_word_of_sql_is_a_name(postgres, name):
    place = f"{postgres}?ledger={name}"
    made = Ledger.create(place, epsilon=1)
    made.charge(PRICE, WHAT)
    assert Ledger(place).verify() == 1


# ---- who may ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def role(schemas, ledger):
    """The place of the ledger for another role, which is granted so much."""

    def place(*grants):
        name = f"r{os.urandom(4).hex()}"
        words = [f"create role {name} login", f"grant usage on schema {schemas.schema()} to {name}"]
        schemas.edit(schemas.place(), "; ".join([*words, *(f"{grant} to {name}" for grant in grants)]))
        return schemas.place().replace("tester@", f"{name}@")

    return place


READ = ["grant select on entry", "grant select on total"]
CHARGE = [*READ, "grant insert on entry", "grant update (entries) on total"]


def test_who_may_only_read_cannot_charge(role, ledger):
    reader = Ledger(role(*READ))
    assert reader.verify() == 0
    reader.afford(PRICE)
    with pytest.raises(ValueError, match="must be one that its user may charge; its owner can grant that"):
        reader.charge(PRICE, WHAT)
    assert ledger.verify() == 0


def test_who_may_charge_need_not_be_able_to_erase(role, ledger, schemas):
    place = role(*CHARGE)
    Ledger(place).charge(PRICE, WHAT)
    assert ledger.verify() == 1
    for edit in ("delete from entry", "update entry set cost = '0'", "update total set cost = '9'", "drop table entry"):
        with pytest.raises(Exception, match=r"permission denied|must be owner"):
            schemas.edit(place, edit)


def test_strangers_are_told_so(role, schemas):
    place = role()
    with pytest.raises(ValueError, match="must be one that its user may read; its owner can grant that"):
        Ledger(place)
    with pytest.raises(ValueError, match="must be in a database where its user may create a schema"):
        Ledger.create(f"{place}x", epsilon=1)
    with pytest.raises(ValueError, match='got: role "nobody" does not exist'):
        Ledger(schemas.place().replace("tester@", "nobody@"))


def test_rows_that_a_policy_hides_are_not_forgotten(role, ledger, schemas):
    ledger.charge(Pure(Fraction(9)), WHAT)
    clerk = role(*CHARGE)
    schemas.edit(schemas.place(), "alter table entry enable row level security")
    with pytest.raises(ValueError, match="must be one that its user may read"):
        Ledger(clerk)


@pytest.mark.parametrize("setting", ["default_transaction_read_only = on", "synchronous_commit = off"])
def test_settings_of_a_role_are_heeded_or_overruled(role, schemas, setting, monkeypatch):
    place = role(*CHARGE)
    name = urlsplit(place).username
    schemas.edit(schemas.place(), f"alter role {name} set {setting}; alter role {name} set search_path = nowhere")
    clerk, seen = Ledger(place), []
    honest = type(clerk._store).append

    def append(store, database, link):
        seen.extend(database.execute("select current_setting('synchronous_commit')").fetchall())
        return honest(store, database, link)

    monkeypatch.setattr(type(clerk._store), "append", append)
    if "read_only" in setting:
        with pytest.raises(ValueError, match="must be on a server, and of a user, that may write"):
            clerk.charge(PRICE, WHAT)
    else:
        clerk.charge(PRICE, WHAT)
        assert seen == [("on",)]


def test_a_locked_ledger_is_a_sentence(ledger, schemas, monkeypatch):
    monkeypatch.setattr("noiseaware.custodian.ledger.postgres._BUSY_SECONDS", 0.05)
    with schemas.connected(schemas.place()) as other:
        other.execute("begin")
        other.execute("select * from total for update")
        ledger.afford(PRICE)  # who reads does not wait
        with pytest.raises(ValueError, match=r"must not be locked; ask again when whoever holds it is done\.$"):
            ledger.charge(PRICE, WHAT)
        other.execute("rollback")
    assert ledger.verify() == 0


# ---- URLs and passwords ----------------------------------------------------------------------------------------------

PASSWORDS = [f"hun{between}ter2" for between in ("", *"@/?#:% ", "%40", "%2f", "\\", "'")]
FORMS = ["{0}://u:{1}@{2}", "{0}://{2}?password={1}", "{0}://u@{2}?sslpassword={1}&nonsense=1", "{0}:/u:{1}@{2}"]


def _told(act):
    """All that an action says of itself: its outcome, or its error and all that the error leads to."""
    try:
        made = act()
        return f"{made!r} {made.path} {vars(made)}"
    except ValueError as refused:
        error = refused
    assert str(error).endswith(".")
    assert "\n" not in str(error)
    lines = [line for line in traceback.format_exception(error) if "Error" in line]  # others quote this file
    while error is not None:
        lines.append(f"{error} {error!r} {error.args}")
        error = error.__cause__ or error.__context__
    return "\n".join(lines)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL", "postgresql+psycopg", "mysql"])
def test_no_password_is_ever_said(scheme, postgres, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    for place in (postgres.partition("@")[2], "127.0.0.1:1/x"):
        for url in (form.format(scheme, password, place) for form in FORMS for password in PASSWORDS):
            told = _told(lambda url=url: Ledger(url)) + _told(lambda url=url: Ledger.create(url, epsilon=1))
            assert not [part for part in ("hun", "ter2") if part in told], (url, told)
    captured = capfd.readouterr()
    assert "ter2" not in caplog.text + captured.out + captured.err


def test_no_password_goes_in_the_clear_to_another_machine(monkeypatch):
    """A server that has no TLS and asks for the password as it is, as whoever stands in between can."""
    heard = []

    def serve(door):
        client, _ = door.accept()
        with client:
            client.settimeout(10)
            client.recv(8)  # whether there is TLS
            client.sendall(b"N")
            client.recv(10_000)
            client.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))  # asks for a clear password
            with suppress(OSError):
                heard.append(client.recv(10_000))

    monkeypatch.setattr("noiseaware.custodian.engine.server._is_local", lambda taken: False)
    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"postgresql://u:hunter2@127.0.0.1:{door.getsockname()[1]}/d"
        server = threading.Thread(target=serve, args=[door])
        server.start()
        with pytest.raises(ValueError, match="must be on a server that answers"):
            Ledger(url)
        server.join()
    assert b"hunter2" not in b"".join(heard)


def test_a_good_password_works_and_is_not_said(schemas, ledger, tmp_path):
    url = schemas.place().replace("tester@", "tester:hunter2%40@")
    far = Ledger(url)
    assert str(far.path) == schemas.place()
    (tmp_path / "t.csv").write_text("x\n1\n0\n")
    words = ["release", tmp_path / "t.csv", "--family", "bernoulli", "--column", "x", "--epsilon", "1", "--ledger", url]
    for command in (
        [*words, "-o", tmp_path / "r.json"],
        ["ledger", "show", url],
        ["ledger", "show", url, "--json"],
        ["ledger", "create", url, "--epsilon", "1"],
        ["ledger", "show", url + "x"],
        ["ledger", "show", "a", url],
        ["release", *words[1:-1], "-o", tmp_path / "s.json", f"--leger={url}"],
        [*words[:-2], "--epsilon", "100", "--ledger", url, "-o", tmp_path / "s.json"],
    ):
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert "hunter2" not in done.output
        assert "Traceback" not in done.output
    assert "hunter2" not in (tmp_path / "r.json").read_text() + str(far.entries())
    assert far.spent == 1
    assert na.load(tmp_path / "r.json").origin.ledger_entry == far.entries()[0].id


def test_a_plan_pays_by_url(schemas, ledger, tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n0\n")
    release = '[[release]]\nfamily = "bernoulli"\ncolumn = "x"\nepsilon = 1\noutput = "r.json"\n'
    (tmp_path / "p.toml").write_text(f'table = "t.csv"\nledger = "{schemas.place()}"\n{release}')
    done = CliRunner().invoke(app, ["release", "--plan", str(tmp_path / "p.toml")])
    assert done.exit_code == 0, done.stderr
    assert f"{schemas.place()}: 8 left of ε = 9" in done.stdout
    with pytest.raises(LedgerRefusal):
        na.release(tmp_path / "t.csv", na.family.Bernoulli("x"), epsilon=9, ledger=schemas.place())


@pytest.mark.parametrize("name", ["", "Clinic", "a-b", "pg_x", "1", "a" * 64, "a&ledger=b", 'a"b', "a%20b"])
def test_a_name_that_is_none_is_a_sentence(postgres, name):
    with pytest.raises(ValueError, match="ledger must be one name of up to 63 lower-case letters, digits and _"):
        Ledger(f"{postgres}?ledger={name}")


def test_a_missing_package_is_one_sentence():
    code = "import sys; sys.modules['psycopg'] = None; import noiseaware; noiseaware.Ledger('postgresql://h/d')"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert failed.stderr.splitlines()[-1] == (
        "ImportError: a ledger in PostgreSQL needs psycopg; install noiseaware[postgres]."
    )
