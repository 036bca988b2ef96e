"""Words that families bring: every built-in one names its records and its parameters."""

import pytest

import noiseaware as na
from noiseaware.family import BUILT_IN, built_in
from noiseaware.family.glossary import Meaning
from noiseaware.posterior.estimate import entries
from noiseaware.report.posterior_words import gloss, parameter

REGRESSION = {"x": ["age", "bmi"], "y": "pressure"}
OPTIONS = {
    "binomial": [{"trials": 3}],
    "categorical": [{"levels": ["a", "b"]}],
    "gamma": [{}, {"shape": 2.0}],
    "normal": [{}, {"variance": 1.0}],
    "multivariate_normal": [{"columns": ["a", "b"]}],
    "linear_regression": [REGRESSION],
    "logistic_regression": [REGRESSION],
    "poisson_regression": [REGRESSION],
}
FAMILIES = [built_in(name)(**options) for name in BUILT_IN for options in OPTIONS.get(name, [{}])]


def _released(family: na.family.AbstractFamily) -> na.Release:
    return na.Release(family=family, values=[1.0] * len(family.query.names), n=10, mechanism=na.mechanism.Laplace(2.0))


def test_the_registry_names_every_family_that_a_release_can_have():
    assert {family.name for family in FAMILIES} == set(BUILT_IN)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_a_family_has_words_for_its_records_and_parameters(family):
    assert family.name.replace("_", " ").casefold() in family.records.casefold()
    assert set(family.glossary) == set(family.parameters)
    release = _released(family)
    for name in family.parameters:
        assert gloss(release, name).startswith("the ")
        for entry in entries(family, name):
            words = parameter(release, entry.name)
            assert words.startswith("the ")
            assert "{" not in words
            assert all(label in words for label in entry.labels)


@pytest.mark.parametrize(
    ("labels", "is_last", "words"),
    [
        ((), False, "the covariances"),
        (("a", "b"), False, "the covariance of a and b"),
        (("a", "a"), False, "the variance of a"),
        (("a", "b"), True, "the last"),
    ],
)
def test_an_entry_has_words_of_its_own(labels, is_last, words):
    meaning = Meaning(
        "the covariances", entry="the covariance of {} and {}", twice="the variance of {}", last="the last"
    )
    assert meaning.of(labels, is_last=is_last) == words


def test_a_family_of_ones_own_needs_no_words():
    class Own(na.family.Poisson):
        name = "visits"
        records = ""
        glossary = {}

    release = _released(Own())
    assert (parameter(release, "theta"), gloss(release, "theta")) == ("theta", "theta")
