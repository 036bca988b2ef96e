"""Whole numbers that a person gives, and how a refusal shows what was given."""

import numpy as np
import pytest

from noiseaware.check import shown, whole


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_a_whole_number_of_any_kind_is_one_of_pythons(value):
    assert type(whole("n", value)) is int


@pytest.mark.parametrize(
    ("value", "reach", "sentence"),
    [
        (2.0, {}, "n must be a whole number of at least 1, got 2.0."),
        (True, {}, "n must be a whole number of at least 1, got True."),
        (np.int64(0), {}, "n must be a whole number of at least 1, got 0."),
        ("7", {}, "n must be a whole number of at least 1, got '7'."),
        (10_001, {"most": 10_000}, "n must be a whole number from 1 to 10,000, got 10001."),
        (-1, {"least": 0}, "n must be a whole number of at least 0, got -1."),
    ],
)
def test_all_else_is_refused_in_a_sentence(value, reach, sentence):
    with pytest.raises(ValueError) as refusal:
        whole("n", value, **reach)
    assert str(refusal.value) == sentence


def test_what_is_long_is_cut_and_what_is_odd_is_escaped():
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown("x" * 1000)) == 60
