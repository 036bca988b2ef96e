"""Secrets planted in cells: whatever is asked, and however it fails, they are nowhere in what is said or left behind.

Said: results, errors and all that they lead to, logs at DEBUG, warnings, both streams. Left behind: the release, the
ledger, and every other file that was not there before.
"""

import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback
import warnings

import duckdb
import pandas as pd
import polars as pl
import pyarrow
import pytest

import noiseaware as na
from noiseaware.custodian.ledger.ledger import LedgerRefusal

F = na.family


class Planted:
    """A table with two secrets in it, in every form that a table has."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        self.word = "zq" + "".join(rng.choices("bcdfghjkmnpqrstvwxyz", k=12))
        self.digits = str(rng.randrange(10**10, 10**11))
        self.number = float(f"{self.digits[:2]}.{self.digits[2:]}")

    def found(self, *texts):
        """Which secrets stand in what was said; of the number ten digits, with or without a point."""
        said = "\n".join(map(str, texts)).lower()
        return [s for s in (self.word, self.digits[:10]) if s in said or s in re.sub("[.,_]", "", said)]

    def frame(self, n=12):
        words = [self.word if i == 3 else "ab"[i % 2] for i in range(n)]
        numbers = [self.number if i == 5 else float(i % 7) for i in range(n)]
        mixed = [self.word if i == 2 else self.number if i == 7 else i for i in range(n)]
        dates = pd.to_datetime([f"20{self.digits[:2]}-01-01"] * n, errors="coerce")
        return pd.DataFrame({"word": words, "number": numbers, "mixed": pd.Series(mixed, dtype=object), "day": dates})

    def tables(self):
        """Files and frames, whole and broken."""
        frame, folder = self.frame(), self.folder
        text = frame.astype({"mixed": str})
        frame.to_csv(folder / "t.csv", index=False)
        text.to_parquet(folder / "t.parquet")
        rows = json.loads(frame.to_json(orient="records", date_format="iso"))
        (folder / "t.json").write_text(json.dumps(rows))
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
        for name in ("t.csv", "t.parquet", "t.json", "t.jsonl"):
            content = (folder / name).read_bytes()
            yield folder / name
            yield self._broken(f"cut_{name}", content[: self.rng.randrange(1, len(content))])
            place = self.rng.randrange(len(content))
            yield self._broken(f"odd_{name}", content[:place] + self.rng.randbytes(9) + content[place:])
        yield self._broken("text.parquet", self.word.encode() * 50)
        yield self._broken("t.xlsx", self.word.encode())
        yield from (frame, pl.from_pandas(text), pyarrow.Table.from_pandas(text))
        yield duckdb.connect().sql(f"SELECT CAST(t AS DOUBLE) AS number, t AS word FROM (VALUES ('{self.word}')) v(t)")
        yield pl.LazyFrame({"number": ["1", self.word]}).with_columns(pl.col("number").cast(pl.Float64, strict=True))
        yield [self.word]

    def _broken(self, name, content):
        (self.folder / name).write_bytes(content)
        return self.folder / name


REQUESTS = [
    {"family": F.Exponential("number", bounds=(0, 48))},
    {"family": F.Exponential("mixed", bounds=(0, 48), outside="drop"), "rho": 0.1},
    {"family": F.Categorical("word", levels=["a", "b"])},
    {"family": F.Categorical("mixed", levels=[1, 2]), "epsilon": 1, "delta": 1e-6},
    {"family": F.Normal("mixed", bounds=(-3, 5))},
    {"family": F.LinearRegression(["number"], "mixed", bounds=(0, 9))},
    {"family": F.Bernoulli("word")},
    {"family": F.Exponential("number"), "bounds": "private"},
    {"family": F.Poisson("number", bounds=(0, 2**40))},
    {"family": F.Exponential("nothing", bounds=(0, 1))},
    {"family": F.Exponential("day", bounds=(0, 1))},
    {"family": F.Categorical("number", levels=["a", "b"])},
    {"family": F.Categorical("word", levels=[1, 2**60])},
    {"family": F.Exponential("number")},
    {"family": F.Bernoulli("word"), "epsilon": -1},
    {"family": F.Bernoulli("word"), "epsilon": 1e9},
    {"family": F.Bernoulli("word"), "epsilon": 1, "neighbours": "swap"},
    {"family": "bernoulli"},
]


def _said(table, request, ledger):
    """What a release says, or its error and everything that leads from it."""
    promise = {} if request.keys() & {"epsilon", "rho"} else {"epsilon": 1}
    given = {key: value for key, value in request.items() if key != "family"}
    try:
        made = na.release(table, request["family"], ledger=ledger, **promise, **given)
        return [made.to_json(), repr(made)]
    except (ValueError, RuntimeError, LedgerRefusal, ImportError, KeyboardInterrupt) as error:
        said, followed = ["".join(traceback.format_exception(error))], error
    while followed is not None:
        said += [str(followed), repr(followed), *map(repr, followed.args), *getattr(followed, "__notes__", [])]
        followed = followed.__cause__ or followed.__context__
    return said


def _left(planted, before):
    """The content of every file that was not there before."""
    files = [path for path in planted.folder.rglob("*") if path.is_file() and path not in before]
    return [path.read_bytes().decode("latin-1") for path in files] + [str(path) for path in files]


def _storm(folder, seed, share, caplog, capfd, monkeypatch):
    planted = Planted(folder, random.Random(seed))
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    tables = list(planted.tables())
    before = {path for path in folder.rglob("*") if path.is_file()}
    ledgers = [None, na.Ledger.create(folder / "rich", epsilon=10**12), na.Ledger.create(folder / "poor", epsilon=1e-9)]
    pairs = [(table, request) for table in tables for request in REQUESTS]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for table, request in planted.rng.sample(pairs, round(share * len(pairs))):
            said = _said(table, request, planted.rng.choice(ledgers))
            assert not planted.found(*said), (type(table), request, said)
    captured = capfd.readouterr()
    assert not planted.found(captured.out, captured.err, caplog.text, *(str(w.message) for w in warned))
    assert not planted.found(*_left(planted, before))


def test_no_secret_is_said_or_left(tmp_path, seed, caplog, capfd, monkeypatch):
    _storm(tmp_path, seed, 0.3, caplog, capfd, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_twenty_storms_say_no_secret(number, tmp_path, seed, caplog, capfd, monkeypatch):
    _storm(tmp_path, seed, 1, caplog, capfd, monkeypatch)


@pytest.mark.parametrize("where", ["grid.draw", "ledger.ledger.Ledger.charge", "table.Table.sums"])
def test_an_interrupt_says_no_secret(where, tmp_path, seed, monkeypatch):
    planted = Planted(tmp_path, random.Random(seed))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"noiseaware.custodian.{where}", interrupted)
    ledger = na.Ledger.create(tmp_path / "l", epsilon=9)
    said = _said(planted.frame(), REQUESTS[0], ledger)
    assert "KeyboardInterrupt" in said[0]
    assert not planted.found(*said, *_left(planted, set()))


# ---- the command, as a process ---------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-W", "always", "-c"]
COMMAND += ["import logging; logging.basicConfig(level=10); from noiseaware.cli import main; main()", "release"]
WORDS = [
    "{t} --family exponential --column number --bounds 0 48 --epsilon 1 --ledger rich -o {o}",
    "{t} --family categorical --column word --levels a,b --epsilon 1 --no-ledger -o - --json",
    "{t} --family normal --column mixed --bounds -3 5 --rho 0.1 --no-ledger -o {o}",
    "{t} --family exponential --column number --bounds private --epsilon 1 --no-ledger -o {o}",
    "{t} --family exponential --column day --bounds 0 48 --epsilon 1 --no-ledger -o {o}",
    "{t} --family exponential --column nothing --bounds 0 48 --epsilon 1 --no-ledger -o {o}",
    "{t} --family exponential --column number --bounds 48 0 --epsilon 1 --no-ledger -o {o}",
    "{t} --family poisson --column number --bounds a b --epsilon 1 --no-ledger -o {o}",
    "{t} --family exponential --column number --bounds 0 48 --epsilon 1 --ledger poor -o {o}",
    "{t} --family bernoulli --column mixed --epsilon 1 --no-ledger -o no/such/folder.json",
]


@pytest.fixture
def planted(tmp_path, seed):
    na.Ledger.create(tmp_path / "rich", epsilon=99)
    na.Ledger.create(tmp_path / "poor", epsilon=1e-9)
    return Planted(tmp_path, random.Random(seed))


def _run(planted, words):
    environment = os.environ | {"TMPDIR": str(planted.folder)}
    options = {"cwd": planted.folder, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([*COMMAND, *words.split()], **options)
    return done.stdout, done.stderr


SLOW = pytest.mark.slow


@pytest.mark.parametrize("place", [0, *(pytest.param(i, marks=SLOW) for i in range(1, len(WORDS)))])
def test_the_command_says_no_secret(planted, place):
    tables = [table for table in planted.tables() if isinstance(table, os.PathLike)]
    before = {path for path in planted.folder.rglob("*") if path.is_file()}
    chosen = planted.rng.sample(tables, 2) if place else tables[:1]
    for i, table in enumerate(chosen):
        said = _run(planted, WORDS[place].format(t=table, o=f"{i}.json"))
        assert not planted.found(*said)
    assert not planted.found(*_left(planted, before))


@pytest.mark.parametrize("wait", [1.5, *(pytest.param(0.3 * i, marks=SLOW) for i in range(1, 12))])
def test_an_interrupted_command_says_no_secret(planted, wait):
    planted.frame(300_000).to_csv(planted.folder / "t.csv", index=False)
    before = {path for path in planted.folder.rglob("*") if path.is_file()}
    words = WORDS[2].format(t="t.csv", o="o.json").split()
    environment = os.environ | {"TMPDIR": str(planted.folder)}
    options = {"cwd": planted.folder, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *words], text=True, **options) as process:
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)
    assert not planted.found(*said, *_left(planted, before))
