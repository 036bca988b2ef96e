"""The path that the README tells a newcomer: install, a ledger, a release of her own table, a report. Timed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST = 300  # seconds, installation included
COMMANDS = [
    "ledger create my.ledger --epsilon 2",
    "release clinic.csv --family exponential --column wait_hours --bounds 0 9 --epsilon 1 --ledger my.ledger -o w.json",
    "infer w.json --prior gamma(8,2) --seed 0 --report wait.html",
]


@pytest.mark.slow
def test_from_nothing_to_a_report_within_five_minutes(tmp_path):
    (tmp_path / "clinic.csv").write_text("wait_hours\n" + "".join(f"{i % 17 + 0.5}\n" for i in range(400)))
    place = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "own"], check=True)
    pip = [tmp_path / "own" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", f"{ROOT}[custodian]"], check=True, env=place, cwd=tmp_path)
    for command in COMMANDS:
        words = [tmp_path / "own" / "bin" / "noiseaware", *command.split()]
        subprocess.run(words, check=True, env=place, cwd=tmp_path, capture_output=True)
    assert time.monotonic() - started < MOST
    assert "What the release of wait_hours supports" in (tmp_path / "wait.html").read_text(encoding="utf-8")
