"""`noiseaware release` from PostgreSQL and by Spark, its progress, and Ctrl-C in the middle of a scan."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time

import duckdb
import pytest

import noiseaware as na

SECRET = "s3cr3t-9071"
WORDS = ["--family", "bernoulli", "--column", "ill", "--epsilon", "0.1", "--ledger", "clinic.ledger"]
SAID = (
    "noiseaware: spark.json: a cell that is neither yes (true, t, yes, y, 1, on) nor no (false, f, no, n, 0, off) "
    "counts as no; --missing (in a plan, missing) has it otherwise.\n"
)


@pytest.fixture
def visits(postgres):
    """A URL with a password, which this server does not ask for, and a table."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres) as own:
        own.execute("CREATE SCHEMA IF NOT EXISTS clinic; DROP TABLE IF EXISTS clinic.visits")
        own.execute(
            f"CREATE TABLE clinic.visits AS SELECT i % 7 = 0 AS ill, '{SECRET}' AS t FROM generate_series(1, 70) i"
        )
    return postgres.replace("tester@", f"tester:{SECRET}@")


def test_a_release_from_postgresql_says_nothing_of_the_password(visits, run, clinic):
    done = run("release", visits, "--table", "clinic.visits", *WORDS, "-o", "pg.json")
    assert done.exit_code == 0, done.stderr
    assert na.load("pg.json").n == 70
    shown = run("ledger", "show", "clinic.ledger", "--json").stdout
    assert json.loads(shown)["entries"][0]["what"]["table"] == "clinic.visits"
    assert SECRET not in done.stdout + done.stderr + shown + (clinic / "pg.json").read_text()
    assert SECRET.encode() not in (clinic / "clinic.ledger").read_bytes()


def test_a_plan_names_the_table(visits, run, refused, clinic):
    plan = f'table = "{visits}"\ntable_name = "clinic.visits"\nledger = "clinic.ledger"\n'
    plan += '[[release]]\nfamily = "bernoulli"\ncolumn = "ill"\nepsilon = "0.1"\noutput = "pg.json"\n'
    (clinic / "clinic.toml").write_text(plan)
    assert run("release", "--plan", "clinic.toml").exit_code == 0
    for old, new in (("clinic.visits", "none"), ('"ill"', '"z"'), ('"clinic.visits"', "3"), ("postgresql:", "mysql:")):
        (clinic / "clinic.toml").write_text(plan.replace(old, new).replace("pg.json", "other.json"))
        assert SECRET not in refused("release", "--plan", "clinic.toml")


def test_what_is_wrong_with_a_table_in_postgresql(visits, refused):
    words = [*WORDS, "-o", "pg.json"]
    assert "table_name (--table) must name the table" in refused("release", visits, *words)
    assert "could not be found" in refused("release", visits, "--table", "none", *words)
    bad = visits.replace("127.0.0.1", "127.0.0.2")
    for url in (bad, visits.replace("postgresql", "mysql"), f"postgresql://u:{SECRET}@[::1/db"):
        assert SECRET not in refused("release", url, "--table", "visits", *words)


def test_spark_reads_a_file(spark, run, refused, clinic):
    done = run("release", "clinic.csv", "--spark", *WORDS, "-o", "spark.json")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == SAID
    assert na.load("spark.json").n == 300
    assert "must end in one of .parquet, .csv for Spark" in refused(
        "release", "a.json", "--spark", *WORDS, "-o", "b.json"
    )


@pytest.mark.slow
def test_spark_started_by_the_command_is_silent(spark, clinic):
    """`spark` is there to skip where there is none; the command starts another."""
    command = [sys.executable, "-m", "noiseaware", "release", "clinic.csv", "--spark", *WORDS, "-o", "spark.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, SAID)


# ---- long scans ------------------------------------------------------------------------------------------------

LONG = ["--family", "exponential", "--column", "t", "--bounds", "0", "9", "--epsilon", "1", "--ledger", "clinic.ledger"]


@pytest.fixture
def long_table(clinic):
    """Rows of text to read for some seconds."""
    with duckdb.connect() as own:
        own.execute("COPY (SELECT 'no number ' || i AS t FROM range(24_000_000) r(i)) TO 'long.parquet'").fetchall()
    return clinic / "long.parquet"


def watched(command, interrupt_at: bytes | None = None) -> tuple[int, str, str]:
    """Status, stdout and the terminal of a command on one core; interrupted when the terminal shows something."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, start_new_session=True)
    os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
    os.close(terminal)
    seen = b""
    while True:
        try:
            seen += os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if interrupt_at is not None and interrupt_at in seen:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    out, _ = process.communicate(timeout=60)
    os.close(master)
    return process.returncode, out.decode(), seen.decode()


def test_a_long_scan_is_shown_and_can_be_interrupted(long_table, clinic):
    command = [sys.executable, "-m", "noiseaware", "release", "long.parquet", *LONG, "-o", "t.json"]
    status, out, seen = watched(command, b"reading 24,000,000 rows")
    assert (status, out) == (130, "")
    assert "left" in seen
    last = seen.strip().splitlines()[-1]
    assert last.endswith("noiseaware: interrupted: nothing was charged, and t.json was not written.")
    assert "Traceback" not in seen
    assert not list(clinic.glob("t.json*"))
    assert na.Ledger("clinic.ledger").entries() == []


@pytest.mark.slow
def test_quiet_shows_no_progress(long_table):
    command = [sys.executable, "-m", "noiseaware", "release", "long.parquet", *LONG, "-o", "t.json", "--quiet"]
    command += ["--missing", "0"]  # said, so that nothing is told of it
    assert watched(command)[::2] == (0, "")


def opened(process: int) -> set[str]:
    """The files that a process has open."""
    found, folder = set(), f"/proc/{process}/fd"
    for descriptor in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.add(os.readlink(os.path.join(folder, descriptor)))
    return found


def test_an_interrupt_without_a_terminal_ends_in_a_sentence(long_table, clinic):
    command = [sys.executable, "-m", "noiseaware", "release", "long.parquet", *LONG, "-o", "t.json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while str(long_table) not in opened(process.pid):
        assert process.poll() is None, process.communicate()  # until the file is being read
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.decode() == "noiseaware: interrupted: nothing was charged, and t.json was not written.\n"
    assert not list(clinic.glob("t.json*"))


@pytest.mark.slow
def test_a_query_of_postgresql_is_interrupted(visits, clinic):
    import psycopg

    with psycopg.connect(visits) as own:
        own.execute("CREATE OR REPLACE VIEW clinic.slow AS SELECT (pg_sleep(60) IS NULL)::int AS ill")
    command = [sys.executable, "-m", "noiseaware", "release", visits, "--table", "clinic.slow", *WORDS, "-o", "t.json"]
    start = time.monotonic()
    status, out, seen = watched(command, b"reading the table")
    assert (status, out) == (130, "")
    assert seen.strip().endswith("noiseaware: interrupted: nothing was charged, and t.json was not written.")
    assert time.monotonic() - start < 40


def test_a_private_size_is_shown_as_a_clock(monkeypatch, capsys):
    from noiseaware.cli.progress import watching
    from noiseaware.custodian.engine.scan import Progress

    for is_public in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        with watching(is_quiet=False, is_size_public=is_public) as tell:
            tell(Progress(0.425, 123_456, 2.0))
        shown = capsys.readouterr().err
        assert "so far" in shown
        assert ("123,456" in shown, "42%" in shown) == (is_public, is_public)
