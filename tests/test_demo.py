"""The demo tells the whole story, leaves its files, and never overwrites them."""

import csv
import importlib.util
from pathlib import Path

import pytest
from tests.sampler.stand_in import stand_in
from typer.testing import CliRunner

import noiseaware as na
from noiseaware.cli import app
from noiseaware.cli.demo import _bars, _verdict
from noiseaware.posterior.estimate import Estimate


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("noiseaware.sampler.method.METHODS", _quick())
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    folder = tmp_path / "noiseaware-demo"
    names = {"clinic.csv", "clinic.ledger", "infected.json", "infected.html", "wait_hours.json", "wait_hours.html"}
    assert {p.name for p in folder.iterdir()} == names
    for text in ("what the naive analyst believes", "what the release supports", "the truth", "the ledger refuses"):
        assert text in done.stdout
    assert done.stdout.rstrip().endswith("noiseaware-demo/wait_hours.html")
    assert na.Ledger(folder / "clinic.ledger").remaining == 0
    again = CliRunner().invoke(app, ["demo"])
    assert again.exit_code == 0
    assert (tmp_path / "noiseaware-demo-2" / "infected.html").exists()
    with (folder / "clinic.csv").open() as one, (tmp_path / "noiseaware-demo-2" / "clinic.csv").open() as other:
        rows = list(csv.reader(one))
        assert rows == list(csv.reader(other))
    assert len(rows) == 1001


def _quick() -> dict:
    """The naive draws under the name of the exact ones: the story without the sampler's compilation."""
    from noiseaware.sampler.method import METHODS

    return METHODS | {"exact": stand_in(METHODS["naive"], preference=0)}


@pytest.mark.slow
def test_demo_with_the_exact_sampler(tmp_path):
    done = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path / "story")])
    assert done.exit_code == 0, done.stderr
    assert "exact posterior" in (tmp_path / "story" / "infected.html").read_text()


@pytest.mark.parametrize(
    ("own", "naive", "said"),
    [
        ((0.0, 2.0), (0.5, 0.6), "the naive interval misses the truth, and the posterior's holds it"),
        (
            (0.0, 2.0),
            (0.5, 1.5),
            "both intervals hold the truth, the naive one by luck: it should be 2.0 times as wide",
        ),
        ((2.0, 3.0), (2.4, 2.5), "the posterior's interval misses the truth, as one in twenty of them does. So does"),
        ((2.0, 3.0), (0.5, 1.5), "as one in twenty of them does. The naive one does not."),
    ],
)
def test_verdict_says_what_happened(own, naive, said):
    own, naive = (Estimate("theta", sum(ends) / 2, 1.0, *ends) for ends in (own, naive))
    assert said in _verdict(own, naive, 1.0).plain
    lines = _bars(own, naive, 1.0).plain.splitlines()
    assert len(lines) == 3
    assert max(len(line) for line in lines) <= 61


def test_an_analyst_is_told_at_once_what_is_missing(tmp_path, monkeypatch):
    """The folder was made, half the story told, and the folder left."""
    monkeypatch.chdir(tmp_path)
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "opendp" else found(name))
    done = CliRunner().invoke(app, ["demo"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        done.stderr == 'noiseaware: this needs opendp, which is not installed: pip install "noiseaware[custodian]".\n'
    )
    assert list(tmp_path.iterdir()) == []
    readme = Path(__file__).parents[1] / "README.md"
    assert 'pip install "noiseaware[custodian]"' in readme.read_text(encoding="utf-8")


def test_demo_folder_must_have_a_home(tmp_path):
    done = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path / "none" / "story")])
    assert done.exit_code == 2
    assert done.stderr.startswith("noiseaware: folder must be inside one that exists")
