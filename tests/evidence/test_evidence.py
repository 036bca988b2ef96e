"""What a release says in the units of the data, and how one release is read under another family."""

import numpy as np
import pytest

import noiseaware as na
from noiseaware.mechanism import DiscreteLaplace, Interval, Laplace

F, P = na.family, na.prior


def waits(family=None, **options) -> na.Release:
    family = family or F.Exponential("wait", bounds=(0, 5))
    setting = {"values": [4000], "n": 30, "grid": 0.01, "mechanism": DiscreteLaplace(1600.0)} | options
    return na.Release(family=family, **setting)


def test_values_and_noise_are_in_the_units_of_the_data():
    evidence = waits().evidence()
    assert evidence.y.tolist() == [40.0]
    assert evidence.law == Laplace(16.0)
    assert (evidence.n, evidence.count.is_public, evidence.neglected) == (30, True, None)


def test_it_is_made_once():
    release = waits()
    assert release.evidence() is release.evidence()


def test_what_is_neglected_is_said_where_it_is_made():
    assert "coarse" in str(waits(mechanism=DiscreteLaplace(3.0)).evidence().neglected)
    counts = na.Release(family=F.Bernoulli(), values=[3], n=9, mechanism=DiscreteLaplace(3.0))
    assert counts.evidence().law == DiscreteLaplace(3.0)
    assert counts.evidence().neglected is None


def test_an_interval_has_a_law_of_its_own_and_the_noise_beside_it():
    noise = DiscreteLaplace(3.0)
    evidence = na.Release(family=F.Bernoulli(), values=[3], n=9, mechanism=noise, within=[(1, 4)]).evidence()
    assert evidence.law == Interval(noise, 2.0, 1.0)
    assert (evidence.is_interval, evidence.mechanism) == (True, noise)


def test_a_release_is_read_under_another_family_of_the_same_sum():
    """As if it had been released as that family: the question to the table is the same."""
    release, prior = waits(), P.Normal(1.0, 4.0)
    read = na.infer(release, prior, family=F.Normal("wait", bounds=(0, 5), variance=1.0), num_draws=200, seed=1)
    made = na.infer(waits(F.Normal("wait", (0, 5), 1.0)), prior, num_draws=200, seed=1)
    np.testing.assert_array_equal(read.draws["mean"], made.draws["mean"])
    assert read.release.family.name == "normal"


def test_a_family_that_leaves_columns_and_bounds_open_has_those_of_the_release():
    assert waits().under(F.Normal(variance=1.0)).family == F.Normal("wait", (0.0, 5.0), 1.0)
    dropped = waits(F.Exponential("wait", bounds=(0, 5), outside="drop"))
    assert dropped.under(F.Exponential()).family == dropped.family


@pytest.mark.parametrize(
    "other",
    [
        F.Exponential("wait", bounds=(0, 6)),
        F.Exponential("stay", bounds=(0, 5)),
        F.Exponential("wait", bounds=(0, 5), outside="drop"),
        F.Normal("wait", bounds=(0, 5)),
        F.Categorical("wait", levels=["a", "b"]),
    ],
    ids=["bounds", "column", "outside", "statistics", "levels"],
)
def test_a_family_that_asks_something_else_is_refused(other):
    with pytest.raises(ValueError, match="family must ask what the release was asked"):
        na.infer(waits(), P.Gamma(2, 1), family=other)


def test_what_is_no_family_is_refused():
    with pytest.raises(ValueError, match=r"family must be one of noiseaware\.family"):
        na.infer(waits(), P.Gamma(2, 1), family="exponential")  # type: ignore[arg-type]
