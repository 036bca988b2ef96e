"""The example programs, by name."""

import importlib.util
from pathlib import Path

import pytest

import noiseaware.program as pp

FOLDER = Path(__file__).parents[2] / "examples" / "programs"


def programs_of(path: Path) -> dict[str, pp.Program]:
    """The programs that a file defines."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if isinstance(value, pp.Program)}


@pytest.fixture(scope="session")
def examples() -> dict[str, pp.Program]:
    return {name: program for path in sorted(FOLDER.glob("*.py")) for name, program in programs_of(path).items()}
