"""Ties between rooms are counted (measures.py): no more of them than here, and sizes are where to look."""

from tests import measures


def test_files_and_functions_have_sizes_that_can_be_read():
    assert measures.long_files(540) == []
    assert measures.long_functions() == []


def test_few_modules_lie_in_no_room():
    assert len(measures.root_modules()) <= 3


def test_private_names_stay_in_their_room():
    assert measures.private_imports() == []


def test_a_family_is_asked_by_its_contract():
    assert len(measures.isinstance_on_families()) <= 28
    assert measures.getattr_on_families() == []


def test_evidence_and_count_travel_whole():
    assert len(measures.functions_with_the_bundle()) <= 2
    assert measures.isinstance_on_counts() == []


def test_docstrings_open_with_a_verb_or_a_noun():
    assert len(measures.weak_openings()) <= 139


def test_the_type_checker_is_seldom_silenced():
    assert measures.type_ignores() <= 113
