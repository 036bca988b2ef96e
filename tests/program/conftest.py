"""The example programs by name, programs made of a function, and tables that are read once."""

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

import noiseaware.program as pp
from noiseaware.custodian.table import Table

FOLDER = Path(__file__).parents[2] / "examples" / "programs"


def programs_of(path: Path) -> dict[str, pp.Program]:
    """The programs that a file defines."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if isinstance(value, pp.Program)}


def checked(records: object, function: Callable, *, epsilon=10**18, delta=0) -> pp.Verdict:
    """The verdict on a function of p and db, within a budget that hardly anything exceeds."""
    function.__annotations__["db"] = records
    return pp.check(pp.program(epsilon=epsilon, delta=delta)(function))


def certified(records: object, function: Callable, *, epsilon=10**18, delta=0) -> pp.Certified:
    """The certificate of a function of p and db."""
    verdict = checked(records, function, epsilon=epsilon, delta=delta)
    assert isinstance(verdict, pp.Certified), verdict.reason
    return verdict


class ReadOnce(Table):
    """A table that is read once, for a program that is run many times."""

    sums, records = functools.cache(Table.sums), functools.cache(Table.records)


@pytest.fixture(scope="session")
def examples() -> dict[str, pp.Program]:
    return {name: program for path in sorted(FOLDER.glob("*.py")) for name, program in programs_of(path).items()}
