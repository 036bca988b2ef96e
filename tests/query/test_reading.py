"""Reading one query under several models: what fits, and what is refused."""

import pandas as pd
import pytest

import noiseaware as na
from noiseaware.evidence.json import readers

F, Q = na.family, na.query
FITS = {
    "exponential": (F.Exponential(), Q.Sum("x", (0, 9))),
    "normal": (F.Normal(variance=4.0), Q.Sum("x", (0, 9), "drop")),
    "gamma": (F.Gamma(shape=2.0), Q.Sum("x", (0, 9))),
    "poisson": (F.Poisson(), Q.Sum("x", (0, 9), is_whole=True)),
    "geometric": (F.Geometric("x", (0, 9)), Q.Sum("x", (0, 9), is_whole=True)),
    "binomial": (F.Binomial(trials=9), Q.Sum("x", (0, 9), is_whole=True)),
    "bernoulli": (F.Bernoulli(), Q.Sum("x", is_yes_or_no=True)),
    "categorical": (F.Categorical(levels=["a", "b"]), Q.Counts("x", levels=["a", "b"])),
    "mean and variance": (F.Normal(), Q.PowerSums("x", (0, 9))),
    "shape and rate": (F.Gamma(), Q.PowerSums("x", (0, 9))),
    "several": (F.MultivariateNormal(dimension=2), Q.Moments(["x", "y"], (0, 9))),
    "line": (F.LinearRegression(["x"], "y"), Q.Moments(["x", "y"], (0, 9))),
    "logistic": (
        F.LogisticRegression(["x"], "y"),
        Q.Moments(["x", "y"], {"x": (0, 9), "y": (0, 1)}, pairs=[(0, 0), (0, 1)], yes_or_no=["y"]),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_a_family_reads_the_query_that_it_explains(name):
    family, query = FITS[name]
    read = family.reading(query)
    assert type(read) is type(family)
    assert read.query.names == query.names
    assert (read.query.columns, read.query.intervals, read.query.outside) == (
        query.columns,
        query.intervals,
        query.outside,
    )
    assert family.name.title().replace("_", "") in readers(query)


REFUSED = {
    "kind": (F.Exponential(), Q.Counts("x", levels=["a", "b"])),
    "squares": (F.Normal(), Q.Sum("x", (0, 9))),
    "whole": (F.Poisson(), Q.Sum("x", (0, 9))),
    "not whole": (F.Exponential(), Q.Sum("x", (0, 9), is_whole=True)),
    "support": (F.Normal(variance=1), Q.Sum("x", (0, 9), support=(0.0, 9.0))),
    "yes or no": (F.Poisson(), Q.Sum("x", is_yes_or_no=True)),
    "trials": (F.Binomial(trials=8), Q.Sum("x", (0, 9), is_whole=True)),
    "bounds": (F.Exponential(bounds=(0, 8)), Q.Sum("x", (0, 9))),
    "outside": (F.Exponential(bounds=(0, 9)), Q.Sum("x", (0, 9), "drop")),
    "dropped": (F.Exponential(outside="drop"), Q.Sum("x", (0, 9))),
    "column": (F.Exponential("y"), Q.Sum("x", (0, 9))),
    "levels": (F.Categorical(levels=["a", "c"]), Q.Counts("x", levels=["a", "b"])),
    "columns": (F.LinearRegression(["y"], "x"), Q.Moments(["x", "y"], (0, 9))),
    "products": (F.LogisticRegression(["x"], "y"), Q.Moments(["x", "y"], (0, 1))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_refuses_a_query_that_it_does_not_explain(name):
    family, query = REFUSED[name]
    with pytest.raises(ValueError, match="family must ask what the release was asked") as told:
        family.reading(query)
    assert "\n" not in str(told.value)


def test_private_bounds_of_a_query_are_chosen():
    table = pd.DataFrame({"x": [float(i % 40) for i in range(2000)]})
    release = na.release(table, Q.Sum("x", support=(0.0, float("inf"))), epsilon=5, bounds="private")
    assert release.origin.bounds == "private"
    assert release.query.bounds[0] == 0
    assert 16 <= release.query.bounds[1] <= 96
    with pytest.raises(ValueError, match="must not be given for a query of counts"):
        na.release(table, Q.Counts("x", levels=["a", "b"]), epsilon=5, bounds="private")


def test_an_audit_of_a_query_keeps_its_promise():
    found = na.audit(Q.Sum("x", (0, 1)), epsilon=1, num_releases=2000)
    assert found.is_within is not False


def test_a_release_of_a_query_is_inferred_under_a_family():
    """As if it had been released as that family, but for its random numbers."""
    table = pd.DataFrame({"x": [float(i % 9) for i in range(500)]})
    release = na.release(table, Q.Sum("x", (0, 90)), epsilon=5)
    with pytest.raises(ValueError, match=r"must name a family, one of Bernoulli, .*, Exponential, .*; say family="):
        na.infer(release, na.prior.Gamma(2, 1))
    with pytest.raises(ValueError, match="release must name a family"):
        na.infer([release, release], na.prior.Gamma(2, 1))
    posterior = na.infer(release, na.prior.Gamma(2, 1), family=F.Exponential(), seed=1, num_draws=500)
    assert posterior.release.family == F.Exponential("x", (0, 90))
    assert 0.1 < posterior.draws["theta"].mean() < 0.5
    both = na.infer([release, release], na.prior.Gamma(2, 1), family=F.Exponential(), seed=1, num_draws=500)
    assert both.method == "exact"


def test_a_refused_family_is_told_what_tells_it_apart():
    with pytest.raises(
        ValueError, match=r"Sum\(column='x', bounds=.*, which asks Sum\(.*, is_whole=True\); give the same"
    ):
        F.Poisson().reading(Q.Sum("x", (0, 9)))
    assert repr(Q.Sum("x", is_yes_or_no=True)).endswith("is_yes_or_no=True)")


BARE = na.Release(query=Q.Sum("x", (0, 90)), values=[400.0], n=50, mechanism=na.mechanism.Gaussian(9.0))
VERBS = {
    "infer_each": lambda: na.infer_each([BARE], na.prior.Gamma(2, 1)),
    "same table": lambda: na.infer([BARE, BARE], na.prior.Gamma(2, 1), same_table=True),
    "likelihood": lambda: na.model.log_likelihood(BARE, 0.1),
    "is exact": lambda: na.model.is_exact(BARE),
    "site": lambda: na.model.noisy_statistics("y", BARE, 0.1),
}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_refuses_a_query_alone_in_a_sentence(name):
    if name == "site":
        pytest.importorskip("numpyro")
    with pytest.raises(ValueError, match=r"release must name a family, one of .* say family="):
        VERBS[name]()


@pytest.mark.parametrize("given", [BARE, BARE.query, "exponential", F.Exponential])
def test_a_study_refuses_what_is_no_family(given):
    with pytest.raises(ValueError, match=r"family must be one of noiseaware\.family, such as"):
        na.calibrate(given, na.prior.Gamma(2, 1), n=10, epsilon=1)
    with pytest.raises(ValueError, match=r"family must be one of noiseaware\.family, such as"):
        na.plan(given, na.prior.Gamma(2, 1), n=10, epsilon=1)
