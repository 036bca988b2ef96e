"""Every command's help has a worked example, and every example runs."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

import noiseaware as na
from noiseaware.cli import app

PROGRAMS = Path(__file__).parents[2] / "examples" / "programs"
ELSEWHERE = ("postgresql://", "noiseaware explore")  # tests/cli/test_engines.py and tests/test_explorer.py run these
LONG = ("demo", "infer", "calibrate", "plan", "audit", "reproduce")  # minutes together
PLAN = """
table = "clinic.csv"
ledger = "clinic.ledger"

[[release]]
family = "exponential"
column = "wait_hours"
bounds = [0, 48]
epsilon = 0.5
output = "planned.json"
"""
COUNTS = "place,value,family,scale\nnorth,31,discrete_laplace,4\nsouth,12,discrete_laplace,4\n"
EDITORS = "ocwiki\toc.wikipedia\tFrance\tFR\t1 to 4\t1.1\t1.1\t9\t41\t99\t2024-01\n"


def _helps(command, path: tuple[str, ...] = ()) -> dict[str, str]:
    """The help of each command that does something, by its name."""
    if hasattr(command, "commands"):
        return {k: v for name, inner in command.commands.items() for k, v in _helps(inner, (*path, name)).items()}
    return {" ".join(path): command.help or ""}


def _examples(text: str) -> list[str]:
    """Lines that begin with a dollar, each with the lines that go on from it."""
    return [re.sub(r"\s*\n\s*", " ", found) for found in re.findall(r"(?m)^\s*\$ (.+(?:\n[ \t]*[^\s$].*)*)", text)]


HELPS = _helps(typer.main.get_command(app))


@pytest.mark.parametrize("name", HELPS)
def test_every_help_has_an_example_of_its_own(name):
    assert any(example.startswith(f"noiseaware {name}") for example in _examples(HELPS[name]))


def test_every_command_is_on_a_page():
    root = PROGRAMS.parents[1]
    pages = "".join(path.read_text(encoding="utf-8") for path in (root / "README.md", *(root / "docs").glob("*.md")))
    assert [name for name in HELPS if f"noiseaware {name}" not in pages] == []


@pytest.mark.filterwarnings("default:private bounds were chosen")  # the clinic of these tests has 300 records
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in HELPS])
def test_every_example_runs(name, run, tmp_path):
    rows = "".join(f"{i % 17 + 0.5},{i % 7 == 0:d},{20 + i % 60},{18 + i % 20},{100 + i % 60}\n" for i in range(400))
    (tmp_path / "clinic.csv").write_text("wait_hours,ill,age,bmi,pressure\n" + rows)
    visits = "".join(f"{i % 5 == 0:d},{'north' if i % 2 else 'south'},{i % 90}\n" for i in range(300))
    (tmp_path / "visits.csv").write_text("ill,region,patient_id\n" + visits)
    for file, text in {"counts.csv": COUNTS, "2024-01.tsv": EDITORS, "clinic.toml": PLAN}.items():
        (tmp_path / file).write_text(text)
    na.Ledger.create(tmp_path / "visits.ledger", epsilon=2)
    shutil.copy(PROGRAMS / "coin_laplace.py", tmp_path / "coin.py")
    needed = _examples(HELPS["release"]) if name == "infer" else []
    for number, example in enumerate([*needed, *_examples(HELPS[name])]):
        if any(mark in example for mark in ELSEWHERE):
            continue
        words = shlex.split(example)[1:]
        if words[:2] == ["ledger", "create"]:
            (tmp_path / words[2]).unlink(missing_ok=True)  # those that every test here begins with
        for option in ("-o", "--report"):
            if option in words and number and (tmp_path / words[words.index(option) + 1]).exists():
                (tmp_path / words[words.index(option) + 1]).unlink()
        done = run(*words)
        assert done.exit_code == 0, (example, done.stderr)
