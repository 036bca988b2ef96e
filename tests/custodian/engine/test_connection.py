"""A text that was meant as a connection is no path: no file is called as the password is, and no error quotes it."""

import pytest
from typer.testing import CliRunner

import noiseaware as na
from noiseaware.cli import app
from noiseaware.custodian.engine.connection import is_meant
from noiseaware.custodian.ledger.ledger import Ledger
from noiseaware.custodian.table import Table

MEANT = [
    "host=127.0.0.1 user=custodian password=hush dbname=postgres",
    "dbname=x password = hush",
    "user=a sslpassword=hush",
    "postgresql:custodian:hush@127.0.0.1/db",
    "postgresql:/custodian:hush@127.0.0.1/db",
    "postgresql//custodian:hush@127.0.0.1/db",
    "postgresql;//custodian:hush@127.0.0.1/db",
    "POSTGRES:custodian:hush@127.0.0.1",
    " postgresql://custodian:hush@127.0.0.1/db",
    "'postgresql://custodian:hush@127.0.0.1/db'",
    "jdbc:postgresql://custodian:hush@127.0.0.1/db",
    "mysql://custodian:hush@127.0.0.1/db",
    "custodian:hush@127.0.0.1/db",
]
PATHS = ["clinic.ledger", "a:b.ledger", "a@b.ledger", "day=1/a.ledger", "postgres/a.ledger", "C:\\me@home\\a.ledger"]


@pytest.mark.parametrize("text", MEANT)
def test_what_was_meant_as_a_connection_is_no_ledger_and_not_quoted(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for act in (lambda: Ledger.create(text, epsilon=1), lambda: Ledger(text)):
        with pytest.raises(
            ValueError, match=r"^ledger must be a file or a URL postgresql://user@host/database, "
        ) as told:
            act()
        assert "hush" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", MEANT)
def test_what_was_meant_as_a_connection_is_no_table_and_not_quoted(text):
    for options in ({}, {"spark": True}, {"table_name": "visits"}):
        with pytest.raises(ValueError, match="table") as told:
            Table(text, **options)
        assert "hush" not in str(told.value)


def test_spark_reads_no_postgresql_and_quotes_nothing_of_its_url():
    for url in ("postgresql://custodian:hush@127.0.0.1", "Postgres://custodian:hush@127.0.0.1/clinic.csv"):
        with pytest.raises(
            ValueError, match="table must be a file where Spark reads it, got a URL of PostgreSQL; leave"
        ):
            Table(url, spark=True)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_a_path(path):
    assert not is_meant(path)


@pytest.mark.parametrize("text", MEANT)
def test_the_command_and_a_plan_say_no_password(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--family", "bernoulli", "--column", "x", "--epsilon", "1", "-o", "r.json"]
    release = '[[release]]\nfamily = "bernoulli"\ncolumn = "x"\nepsilon = 1\noutput = "r.json"\n'
    (tmp_path / "a.toml").write_text(f'table = "t.csv"\nledger = "{text}"\n{release}')
    (tmp_path / "b.toml").write_text(f'table = "{text}"\nledger = false\n{release}')
    (tmp_path / "t.csv").write_text("x\n1\n")
    before = set(tmp_path.iterdir())
    for command in (
        ["ledger", "create", text, "--epsilon", "1"],
        ["ledger", "show", text],
        ["ledger", "show", "a", text],
        ["release", text, *words, "--no-ledger"],
        ["release", text, *words, "--no-ledger", "--spark"],
        ["release", "t.csv", *words, "--ledger", text],
        ["release", "--plan", "a.toml"],
        ["release", "--plan", "b.toml"],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2, (command, done.output)
        assert "hush" not in done.output, (command, done.output)
    assert set(tmp_path.iterdir()) == before
    assert na.Ledger.create("t.ledger", epsilon=1).path.exists()
