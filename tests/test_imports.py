"""Modules import one another in one direction, lazy imports and those for type checking included."""

from tests.measures import cycles


def test_no_modules_import_one_another():
    assert cycles() == []
