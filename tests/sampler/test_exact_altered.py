"""Clamped and dropped records: draws against an n-fold numerical convolution of the altered record."""

import functools
import itertools

import jax
import numpy as np
import pytest
from scipy import fft, stats

import noiseaware as na
from noiseaware.sampler import exact

pytestmark = pytest.mark.filterwarnings("ignore:The fit takes:RuntimeWarning")  # bounds that cut deep, on purpose

DRAWS = 20_000
MECHANISMS = {"laplace": na.mechanism.Laplace, "gaussian": na.mechanism.Gaussian}
WHOLE = {"laplace": na.mechanism.DiscreteLaplace, "gaussian": na.mechanism.DiscreteGaussian}

# name: (family as a function of `outside`, prior, the same in SciPy, law of a record)
FAMILIES = {
    "poisson": (
        functools.partial(na.family.Poisson, None, (1, 5)),
        na.prior.Gamma(8, 2),
        stats.gamma(8, scale=0.5),
        stats.poisson,
    ),
    "rare poisson": (
        functools.partial(na.family.Poisson, None, (0, 2)),
        na.prior.Gamma(0.5, 5),
        stats.gamma(0.5, scale=0.2),
        stats.poisson,
    ),
    "geometric": (
        functools.partial(na.family.Geometric, None, (0, 4)),
        na.prior.Beta(2, 3),
        stats.beta(2, 3),
        lambda t: stats.geom(t, loc=-1),
    ),
    "exponential": (
        functools.partial(na.family.Exponential, None, (0.25, 1)),
        na.prior.Gamma(8, 2),
        stats.gamma(8, scale=0.5),
        lambda t: stats.expon(scale=1 / t),
    ),
    "gamma": (
        functools.partial(na.family.Gamma, None, (0, 0.5), 0.5),
        na.prior.Gamma(8, 2),
        stats.gamma(8, scale=0.5),
        lambda t: stats.gamma(0.5, scale=1 / t),
    ),
    "normal": (
        functools.partial(na.family.Normal, None, (-1, 2), 1.0),
        na.prior.Normal(0, 1),
        stats.norm(0, 1),
        lambda t: stats.norm(t, 1),
    ),
}


def record(law, bounds: tuple[float, float], outside: str, cells: int, whole: bool) -> tuple[np.ndarray, float, float]:
    """Masses of one altered record on a lattice that holds 0 and both bounds, its start and its step."""
    low, high = bounds
    step = 1.0 if whole else (high - low) / cells
    start = min(low, 0.0)
    x = start + step * np.arange(round((max(high, 0.0) - start) / step) + 1)
    inside = (x > low - step / 4) & (x < high + step / 4)
    if whole:
        masses = np.where(inside, law.pmf(x), 0.0)
        lost = law.cdf(low - 1), law.sf(high)
    else:
        edges = np.clip(np.append(x - step / 2, x[-1] + step / 2), low, high)
        masses = np.diff(law.cdf(edges))
        lost = law.cdf(low), law.sf(high)
    places = (low, high) if outside == "clamp" else (0.0, 0.0)
    for place, mass in zip(places, lost, strict=True):
        masses[round((place - start) / step)] += mass
    return masses, start, step


def likelihood(
    oracle, law: str, scale: float, y: float, n: int, masses: np.ndarray, start: float, step: float
) -> float:
    """p(y | θ) up to a constant, by convolving the record n times."""
    size = n * (masses.size - 1) + 1
    total = fft.irfft(fft.rfft(masses, fft.next_fast_len(size)) ** n, fft.next_fast_len(size))[:size]
    return np.maximum(total, 0.0) @ oracle.noise(law, scale, y - (n * start + step * np.arange(size)))


def check(name, outside, law, n, cells, oracle, matches, seed):
    make, prior, scipy_prior, of_record = FAMILIES[name]
    family = make(outside=outside)

    def altered(theta: float):
        return record(of_record(theta), family.query.bounds, outside, cells, family.query.is_whole)

    masses, start, step = altered(scipy_prior.median())
    x = start + step * np.arange(masses.size)
    mean, spread = n * masses @ x, (n * (masses @ x**2 - (masses @ x) ** 2)) ** 0.5
    for ratio in (0.1, 1.0, 10.0):
        scale = ratio * max(spread, 0.3 * (family.query.bounds[1] - family.query.bounds[0]))
        y = mean + 0.6 * (spread + scale)
        y = round(y) if family.query.is_whole else y
        mechanism = (WHOLE if family.query.is_whole else MECHANISMS)[law](scale)
        release = na.Release(family=family, values=[y], n=n, mechanism=mechanism)
        posterior = na.infer(release, prior, num_draws=DRAWS, seed=seed)
        assert posterior.is_exact

        def at(theta: float, y=y, scale=scale) -> float:
            return likelihood(oracle, law, scale, y, n, *altered(theta))

        right = oracle.posterior(scipy_prior, at, wide=60, close=100)
        # the slack is the oracle's: 100 values of θ, and records rounded to a lattice
        matches(posterior.draws[family.parameters[0]], right.cdf, slack=3e-3)


QUICK = {("poisson", "drop"), ("geometric", "clamp"), ("exponential", "clamp"), ("gamma", "drop"), ("normal", "clamp")}


@pytest.mark.parametrize("n", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "outside"),
    [
        pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow)
        for pair in itertools.product(FAMILIES, ["clamp", "drop"])
    ],
)
def test_draws_match_the_oracle(name, outside, law, n, oracle, matches, seed):
    check(name, outside, law, n, 1200, oracle, matches, seed)


@pytest.mark.slow
@pytest.mark.parametrize("law", MECHANISMS)
@pytest.mark.parametrize("outside", ["clamp", "drop"])
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_match_the_oracle_at_a_thousand(name, outside, law, oracle, matches, seed):
    check(name, outside, law, 1000, 120, oracle, matches, seed)


@pytest.mark.parametrize("law", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_a_sum_out_of_reach_says_only_what_the_tail_says(law, oracle, matches, seed):
    """Ten waiting times of at most 5 hours cannot make −40: every θ must account for it by noise."""
    family = na.family.Exponential(bounds=(0, 5))
    release = na.Release(family=family, values=[-40.0], n=10, mechanism=MECHANISMS[law](10.0))
    draws = na.infer(release, na.prior.Gamma(8, 2), num_draws=DRAWS, seed=seed).draws["theta"]

    def altered(theta: float):
        return record(stats.expon(scale=1 / theta), (0, 5), "clamp", 1200, False)

    prior = stats.gamma(8, scale=0.5)
    right = oracle.posterior(prior, lambda t: likelihood(oracle, law, 10.0, -40.0, 10, *altered(t)), wide=60, close=100)
    matches(draws, right.cdf, slack=3e-3)


@pytest.mark.parametrize("law", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_parameters_that_drop_every_record(law, oracle, matches, seed):
    """One narrow record and a sum of about 0: θ may be far below the bounds or far above them, in two modes."""
    family = na.family.Normal(bounds=(2, 5), variance=0.01, outside="drop")
    release = na.Release(family=family, values=[-0.9], n=1, mechanism=MECHANISMS[law](0.9))
    draws = na.infer(release, na.prior.Normal(3, 1), num_draws=DRAWS, seed=seed).draws["mean"]
    theta, x = np.linspace(-3, 9, 2401), np.linspace(2, 5, 601)
    kept = stats.norm.pdf(x, theta[:, None], 0.1) @ oracle.noise(law, 0.9, -0.9 - x) * (x[1] - x[0])
    dropped = stats.norm.cdf(2, theta, 0.1) + stats.norm.sf(5, theta, 0.1)
    cumulative = np.cumsum(stats.norm.pdf(theta, 3, 1) * (kept + dropped * oracle.noise(law, 0.9, -0.9)))
    matches(draws, lambda t: np.interp(t, theta, cumulative / cumulative[-1]), slack=3e-3)


@pytest.mark.parametrize("outside", ["clamp", pytest.param("drop", marks=pytest.mark.slow)])
def test_far_bounds_change_nothing(outside, key, x64):
    """With bounds that no record passes, the altered and the unaltered engine agree."""
    release = {
        bounds: na.Release(
            family=na.family.Exponential(None, bounds, outside),
            values=[31.0],
            n=50,
            mechanism=na.mechanism.Laplace(3.0),
        )
        for bounds in (None, (0, 500))
    }
    draws = {b: exact.draws(key, r.evidence(), na.prior.Gamma(8, 2), DRAWS) for b, r in release.items()}
    # the same uniforms go through two inverse CDFs, so the draws agree one by one
    np.testing.assert_allclose(np.sort(draws[None]), np.sort(draws[0, 500]), rtol=2e-3)


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_many_clamped_records_agree_with_the_normal_limit(n, seed, matches):
    """Half of the records clamped, hardly any noise: the posterior is normal around the root of n·E t(θ) = y."""
    low, high, theta = -1.0, 1.0, 0.2
    x = np.linspace(low, high, 200_001)
    width = x[1] - x[0]

    def mean(t):
        inner = (x * stats.norm.pdf(x, t, 1)).sum() * width
        return inner + low * stats.norm.cdf(low, t, 1) + high * stats.norm.sf(high, t, 1)

    square = (
        (x**2 * stats.norm.pdf(x, theta, 1)).sum() * width
        + stats.norm.cdf(low, theta, 1)
        + stats.norm.sf(high, theta, 1)
    )
    slope = (mean(theta + 1e-4) - mean(theta - 1e-4)) / 2e-4
    family = na.family.Normal(bounds=(low, high), variance=1.0)
    release = na.Release(family=family, values=[n * mean(theta)], n=n, mechanism=na.mechanism.Laplace(4.0))
    draws = na.infer(release, na.prior.Normal(0, 1), num_draws=DRAWS, seed=seed).draws["mean"]
    sd = ((square - mean(theta) ** 2) / n) ** 0.5 / slope
    # the oracle's own quadrature is off by about 1e-10, up to 0.01 standard deviations at n = 10⁹
    matches(draws, stats.norm(theta, sd).cdf, slack=0.01)


def test_the_slope_is_a_number_where_every_record_is_dropped(x64):
    """All of three narrow records far below the bounds: the likelihood is flat there, and falls near the bounds."""
    family = na.family.Normal(bounds=(2, 5), variance=0.01, outside="drop")
    release = na.Release(family=family, values=[-0.9], n=3, mechanism=na.mechanism.Laplace(0.9))
    slope = jax.grad(lambda t: na.model.log_likelihood(release, t))
    assert abs(float(slope(0.5))) < 1e-9
    assert float(slope(1.95)) < -1


def test_the_slope_is_a_number_with_a_bound_at_0(x64):
    """One record, dropped outside (−100, 0), under Laplace noise of scale 2 and a sum of 0: e^{θ/2} far below it."""
    family = na.family.Normal(bounds=(-100, 0), variance=1, outside="drop")
    release = na.Release(family=family, values=[0.0], n=1, mechanism=na.mechanism.Laplace(2.0))
    slope = jax.grad(lambda t: na.model.log_likelihood(release, t))
    np.testing.assert_allclose([slope(theta) for theta in (-20.0, -12.0, 20.0, 1e5)], [0.5, 0.5, 0, 0], atol=1e-6)
