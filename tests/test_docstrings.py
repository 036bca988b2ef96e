"""Examples in docstrings are run, and every public verb and noun has one."""

import doctest
import inspect

import pytest

import noiseaware as na

NAMES = [name for name in na.__all__ if callable(getattr(na, name)) and name != "LedgerRefusal"]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = getattr(na, name)
    (example,) = doctest.DocTestFinder(recurse=False).find(value, name, globs={"na": na})
    assert example.examples, f"{inspect.getmodule(value)}: {name} has no example"
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0
