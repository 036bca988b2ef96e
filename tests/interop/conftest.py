"""Other tools, each in an environment of its own: what they publish of given counts."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(__file__).parent / "tools"


def published(environment: str, script: str, **asked) -> dict:
    """What a tool makes of the counts in one run of its script; the test is skipped where the tool is not installed."""
    python = ROOT / ".venv-interop" / environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{environment} is not installed in .venv-interop: run `make interop`")
    done = subprocess.run(
        [python, TOOLS / f"{script}_counts.py"], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture
def tool():
    return published
