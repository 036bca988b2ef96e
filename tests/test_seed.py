"""One seed, several releases: independent draws of different ones, the same draws of the same one."""

import dataclasses
import hashlib
from fractions import Fraction

import numpy as np
import pytest

import noiseaware as na
from noiseaware.evidence.release import Origin, from_json
from noiseaware.posterior.seed import own_seed
from noiseaware.privacy import Pure

LAPLACE = na.mechanism.Laplace
WHOLE = na.mechanism.DiscreteLaplace
LINE = na.family.LinearRegression("age", "stay", bounds={"age": (0, 100), "stay": (0, 30)})
GIVEN = {
    "family": na.family.Exponential("wait", bounds=(0, 8)),
    "values": [4310],
    "n": 120,
    "mechanism": na.mechanism.DiscreteGaussian(300.0),
    "grid": 0.125,
    "origin": Origin(group=(("region", "north"), ("sex", 1))),
}


def release(**changes) -> na.Release:
    return na.Release(**GIVEN | changes)


def count(value: float, family=None, n: int = 100, scale: float = 3.0, **more) -> na.Release:
    family = family or na.family.Bernoulli("ill")
    return na.Release(family=family, values=[value], n=n, mechanism=WHOLE(scale), **more)


def moments(family, statistics: list[float], n: int) -> na.Release:
    return na.Release(family=family, values=statistics, n=n, mechanism=na.mechanism.Gaussian(1.0))


def theta(release, prior, seed: int, **options) -> np.ndarray:
    """Draws of the first number."""
    return next(iter(na.infer(release, prior, seed=seed, **options).marginals().values()))


def test_a_fingerprint_is_the_same_on_every_machine():
    """The hash of a text written by hand: of floats every bit, of names no order, and nothing of the machine."""
    text = (
        '{"family":["Exponential",{"bounds":[0,8],"column":"wait","outside":"clamp"}],'
        '"grid":"0x1.0000000000000p-3","group":{"region":"north","sex":1},"n":120,'
        '"noise":["DiscreteGaussian",{"stddev":300}],"noise of n":null,"values":[4310],"within":[null]}'
    )
    assert release().fingerprint == hashlib.sha256(text.encode()).hexdigest()
    assert release().fingerprint == "0a414b0b3eed184b71444c9271bd43cb58a0767246bec38f5e623319b3e0efcd"
    open_ended = release(within=[(4300, np.inf)], n_mechanism=WHOLE(0.1), mechanism=WHOLE([0.3]))
    assert open_ended.fingerprint == "cb1da347e78b9f3a18fc75a97127a4961b2d3353823ad8332eee8a3a635cf6ab"
    assert own_seed(7, "b", "a") == own_seed(7, "a", "b") == 5057346803751273854


@pytest.mark.parametrize(
    "change",
    [
        {"origin": dataclasses.replace(GIVEN["origin"], created="2026-01-01T00:00:00Z")},
        {"origin": dataclasses.replace(GIVEN["origin"], ledger_entry="e-17", tool="another", version="9")},
        {"origin": dataclasses.replace(GIVEN["origin"], group=(("sex", 1), ("region", "north")))},
        {"guarantee": Pure(Fraction(1, 2))},
        {"neighbours": "add_remove"},
        {"values": [4310.0], "grid": 1 / 8, "n": np.int64(120)},
    ],
)
def test_what_does_not_tell_of_the_records_leaves_the_draws_alone(change):
    assert release(**change).fingerprint == release().fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"family": na.family.Exponential("stay", bounds=(0, 8))},
        {"family": na.family.Exponential("wait", bounds=(0, 9))},
        {"family": na.family.Exponential("wait", bounds=(0, 8), outside="drop")},
        {"family": na.family.Gamma("wait", bounds=(0, 8), shape=1)},
        {"values": [4311]},
        {"n": 121},
        {"n_mechanism": na.mechanism.DiscreteGaussian(2.0)},
        {"mechanism": na.mechanism.DiscreteGaussian(301.0)},
        {"mechanism": na.mechanism.DiscreteLaplace(300.0)},
        {"grid": 0.25},
        {"within": [(4300, 4320)]},
        {"origin": Origin(group=(("region", "south"), ("sex", 1)))},
        {"origin": Origin(group=(("region", "north"), ("sex", "1")))},
        {"origin": Origin()},
    ],
)
def test_what_tells_of_the_records_changes_the_draws(change):
    assert release(**change).fingerprint != release().fingerprint


@pytest.mark.parametrize(
    "family",
    [
        na.family.Categorical("ward", levels=["north", "süd"]),
        na.family.Categorical("ward", levels=[1, 2]),
        na.family.Normal("x", (-0.1, 0.7), variance=0.3),
        na.family.Normal("x", (-0.1, 0.7), outside="drop"),
        na.family.MultivariateNormal(["a", "b"], bounds={"a": (0, 0.1), "b": (0, 2)}),
        LINE,
    ],
)
def test_a_release_from_its_file_has_the_fingerprint_of_the_one_in_memory(family):
    size = len(family.query.names)
    made = na.Release(
        family=family,
        values=0.1 + np.arange(size),
        n=9,
        mechanism=na.mechanism.Gaussian(0.1 + np.arange(size)),
        n_mechanism=WHOLE(0.2),
        within=[(-np.inf, 1.5)] + [None] * (size - 1),
        origin=GIVEN["origin"],
    )
    assert from_json(made.to_json()).fingerprint == made.fingerprint


PAIRS = {
    "bernoulli": (count(23), count(18), na.prior.Beta(1, 1), {}),
    "poisson": (count(230, na.family.Poisson()), count(180, na.family.Poisson()), na.prior.Gamma(1, 1), {}),
    "private n": (count(23, n_mechanism=WHOLE(3.0)), count(18, n_mechanism=WHOLE(3.0)), na.prior.Beta(1, 1), {}),
    "categorical": (
        *(
            na.Release(family=na.family.Categorical("w", levels=[1, 2]), values=v, n=100, mechanism=WHOLE(3.0))
            for v in ([23, 70], [18, 88])
        ),
        na.prior.Dirichlet([1.0, 1.0]),
        {},
    ),
    "gibbs": (count(23), count(18), na.prior.Beta(1, 1), {"method": "gibbs"}),
    "naive": (count(23), count(18), na.prior.Beta(1, 1), {"method": "naive"}),
    "normal": (
        *(moments(na.family.Normal("x", (0, 10)), s, 100) for s in ([1.0, 12.0], [-3.0, 14.0])),
        na.prior.NormalInverseGamma(5, 0.1, 2, 4),
        {},
    ),
    "regression": (
        *(moments(LINE, s, 100) for s in ([0, -40, 12, 8, 25], [3, -44, 13, 9, 27])),
        na.prior.NormalInverseGamma([0.0, 5.0], [1.0, 0.1], 3, 50),
        {},
    ),
}
CHAINS = ("gibbs", "normal", "regression")
QUICK = ("bernoulli", "poisson", "categorical")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PAIRS])
def test_one_seed_gives_two_releases_independent_draws_and_one_release_the_same(name, seed):
    first, second, prior, options = PAIRS[name]
    draws, others, again = (theta(r, prior, seed, **options) for r in (first, second, from_json(first.to_json())))
    np.testing.assert_array_equal(draws, again)
    assert theta(first, prior, seed + 1, **options)[0] != draws[0]
    # of independent draws a correlation has an sd of 1/√4000 = 0.016; those of a chain are worth some 1000
    assert abs(np.corrcoef(draws, others)[0, 1]) < (0.15 if name in CHAINS else 0.08)


def test_equal_numbers_of_two_groups_are_drawn_apart(seed):
    first, second = (count(23, origin=Origin(group=(("region", level),))) for level in ("north", "south"))
    draws, others = (theta(r, na.prior.Beta(1, 1), seed) for r in (first, second))
    assert abs(np.corrcoef(draws, others)[0, 1]) < 0.08


def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says():
    """90 % intervals of θ₁ − θ₂ over 300 pairs of simulated groups, all with one seed."""
    rng = np.random.default_rng(7)
    trials, n, scale = 300, 50, 3.0
    truths = rng.beta(2, 3, (trials, 2))
    noise = rng.geometric(1 - np.exp(-1 / scale), (2, trials, 2))
    values = rng.binomial(n, truths) + noise[0] - noise[1]
    groups = [Origin(group=(("region", level),)) for level in ("north", "south")]
    held = 0
    for truth, pair in zip(truths, values, strict=True):
        releases = [count(int(v), n=n, scale=scale, origin=o) for v, o in zip(pair, groups, strict=True)]
        first, second = (theta(r, na.prior.Beta(2, 3), 0, num_draws=500) for r in releases)
        low, high = np.quantile(first - second, [0.05, 0.95])
        held += low < truth[0] - truth[1] < high
    assert abs(held / trials - 0.9) < 4 * (0.9 * 0.1 / trials) ** 0.5


def test_in_a_list_a_release_has_the_same_draws_wherever_it_stands(seed):
    counts = [count(value, na.family.Poisson()) for value in (40, 30, 20, 40)]
    prior = na.prior.Gamma(2, 0.1)

    def draws(releases):
        return [p.draws["theta"] for p in na.infer_each(releases, prior, num_draws=400, seed=seed)]

    first, turned = draws(counts), draws([counts[2], counts[0], counts[1], counts[0]])
    np.testing.assert_array_equal(turned, [first[i] for i in (2, 0, 1, 3)])
    correlation = np.corrcoef(first) - np.eye(4)
    assert np.abs(correlation).max() < 5 / 400**0.5


@pytest.mark.parametrize("same_table", [False, True])
def test_several_releases_have_draws_of_their_own_in_any_order(same_table, seed):
    law = na.mechanism.DiscreteGaussian(3.0)
    first, second, third = (
        na.Release(family=na.family.Bernoulli("ill"), values=[v], n=100, mechanism=law) for v in (20, 24, 31)
    )

    def draws(*releases):
        return theta(list(releases), na.prior.Beta(1, 1), seed, same_table=same_table)

    np.testing.assert_allclose(draws(first, second), draws(second, first), atol=1e-6)
    assert abs(np.corrcoef(draws(first, second), draws(first, third))[0, 1]) < 0.08
    np.testing.assert_array_equal(draws(first), theta(first, na.prior.Beta(1, 1), seed))


def test_predictions_of_two_releases_share_no_noise(seed):
    first, second, prior, _ = PAIRS["regression"]
    one, other = (na.infer(r, prior, method="naive", seed=seed) for r in (first, second))
    noise = [p.predict(x).draws[:, 0] for p in (one, other) for x in (40, 60)]
    assert np.abs(np.corrcoef(noise) - np.eye(4)).max() < 0.08
    np.testing.assert_array_equal(noise[0], one.predict([[40.0]]).draws[:, 0])
