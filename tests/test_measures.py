"""How the source hangs together: sizes are where to look, and ties between rooms are counted (measures.py)."""

from tests import measures


def test_files_and_functions_have_sizes_that_can_be_read():
    assert measures.long_files() == []
    assert measures.long_functions() == []


def test_few_modules_lie_in_no_room():
    assert len(measures.root_modules()) <= 3


def test_private_names_stay_in_their_room():
    assert measures.private_imports() == []
