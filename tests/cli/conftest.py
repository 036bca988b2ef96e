"""A clinic to release from, and the command as a function."""

import datetime

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import noiseaware as na
from noiseaware.cli import app


def replaced(words: tuple, **changes) -> list[str]:
    """A command with the values of some options changed."""
    words = list(words)
    for name, value in changes.items():
        at = words.index(f"--{name}")
        words[at + 1 : at + 2] = [value]
    return words


@pytest.fixture(autouse=True)
def clinic(tmp_path, monkeypatch):
    """A folder with a table, a ledger of ε = 2 and a release; the command runs in it."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 7 == 0:d},{i % 13},{'abc'[i % 3]},text\n" for i in range(300))
    (tmp_path / "clinic.csv").write_text("ill,hours,ward,note\n" + rows)
    (tmp_path / "empty.csv").write_text("ill,hours,ward,note\n")
    pyarrow.parquet.write_table(pyarrow.table({"day": [datetime.date(2024, 1, 1)]}), tmp_path / "days.parquet")
    na.Ledger.create("clinic.ledger", epsilon="2")
    release = na.Release(
        family=na.family.Bernoulli("ill"), values=[43], n=300, mechanism=na.mechanism.DiscreteLaplace(2.0)
    )
    release.save("ill.json")
    return tmp_path


@pytest.fixture
def run():
    """The command, in this process."""
    return lambda *words, **options: CliRunner().invoke(app, [str(word) for word in words], **options)


@pytest.fixture
def refused(run):
    """The one sentence that a refused command says."""

    def sentence(*words: str, status: int = 2) -> str:
        done = run(*words)
        assert done.exit_code == status, (done.stdout, done.stderr, done.exception)
        assert done.stdout == ""
        assert done.stderr.startswith("noiseaware: ")
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr
        return done.stderr.strip()

    return sentence
