"""Families whose records are summed as they are: draws against SciPy's law of the sum, for every noise law."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.sampler.conftest import log_noise

import noiseaware as na
from noiseaware.likelihood import plain_sum

# releases that no table has and priors that a release refutes, on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (released|prior):RuntimeWarning")

DRAWS = 20_000
MECHANISMS = {
    "laplace": na.mechanism.Laplace,
    "discrete_laplace": na.mechanism.DiscreteLaplace,
    "gaussian": na.mechanism.Gaussian,
    "discrete_gaussian": na.mechanism.DiscreteGaussian,
}
# name: (family, prior, the same prior in SciPy, law of the sum of n records at θ)
FAMILIES = {
    "bernoulli": (na.family.Bernoulli(), na.prior.Beta(2, 3), stats.beta(2, 3), lambda n, t: stats.binom(n, t)),
    "rare": (na.family.Bernoulli(), na.prior.Beta(0.5, 100), stats.beta(0.5, 100), lambda n, t: stats.binom(n, t)),
    "binomial": (
        na.family.Binomial(trials=4),
        na.prior.Beta(1, 1),
        stats.beta(1, 1),
        lambda n, t: stats.binom(4 * n, t),
    ),
    "poisson": (
        na.family.Poisson(),
        na.prior.Gamma(0.5, 5),
        stats.gamma(0.5, scale=0.2),
        lambda n, t: stats.poisson(n * t),
    ),
    "geometric": (na.family.Geometric(), na.prior.Beta(2, 3), stats.beta(2, 3), lambda n, t: stats.nbinom(n, t)),
    "exponential": (
        na.family.Exponential(),
        na.prior.Gamma(8, 2),
        stats.gamma(8, scale=0.5),
        lambda n, t: stats.gamma(n, scale=1 / t),
    ),
    "gamma": (
        na.family.Gamma(shape=0.5),
        na.prior.Gamma(3, 2),
        stats.gamma(3, scale=0.5),
        lambda n, t: stats.gamma(0.5 * n, scale=1 / t),
    ),
    "normal": (
        na.family.Normal(variance=2.0),
        na.prior.Normal(1, 4),
        stats.norm(1, 2),
        lambda n, t: stats.norm(n * t, (2 * n) ** 0.5),
    ),
}


def likelihood(oracle, law: str, scale: float, y: float, total, whole: bool) -> float:
    """p(y | θ) up to a constant: a sum over counts, or an average over quantiles of whichever is the wider law."""
    if whole:
        k = np.arange(max(0, np.floor(y - 60 * scale)), max(0, y) + 60 * scale + 60)
        return total.pmf(k) @ oracle.noise(law, scale, y - k)
    u = (np.arange(4000) + 0.5) / 4000
    if scale < total.std():
        return total.pdf(y - oracle.noise_quantiles(law, scale, u)).mean()
    constant = 2 * scale if "laplace" in law else (2 * np.pi) ** 0.5 * scale
    return oracle.noise(law, scale, y - total.ppf(u)).mean() / constant


def posterior(oracle, name: str, law: str, scale: float, y: float, n: int):
    family, _, prior, total = FAMILIES[name]

    def at(theta: float) -> float:
        return likelihood(oracle, law, scale, y, total(n, theta), family.query.is_whole)

    return oracle.posterior(prior, at, wide=100, close=150)


def typical(name: str, n: int, law: str):
    """A middling θ and the spread of the sum there, so that noise can be set above, near and below it."""
    _, _, prior, total = FAMILIES[name]
    at = total(n, prior.median())
    return at.mean(), max(at.std(), 0.3)


@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.slow), 10, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", [pytest.param(m, marks=pytest.mark.slow) if "gaussian" in m else m for m in MECHANISMS])
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_match_the_oracle(name, law, n, oracle, matches, seed):
    family, prior, _, _ = FAMILIES[name]
    mean, spread = typical(name, n, law)
    for ratio in (0.1, 1.0, 10.0):
        scale = ratio * spread
        y = mean + 0.7 * (spread + scale)
        if not family.query.is_whole and "discrete" in law:
            # a continuous statistic is released on a grid: here of 1/1024, far below the noise
            release = na.Release(
                family=family, values=[round(y * 1024)], n=n, mechanism=MECHANISMS[law](scale * 1024), grid=2.0**-10
            )
            y = float(release.values[0])
        else:
            y = round(y) if "discrete" in law else y
            release = na.Release(family=family, values=[y], n=n, mechanism=MECHANISMS[law](scale))
        draws = na.infer(release, prior, num_draws=DRAWS, seed=seed).draws[family.parameters[0]]
        matches(draws, posterior(oracle, name, law, scale, y, n).cdf, slack=2e-3)  # of the oracle's own grid


@pytest.mark.parametrize("y", [-300, 1500])
@pytest.mark.parametrize("law", MECHANISMS)
def test_counts_far_outside_what_is_possible(law, y, matches, seed):
    """n = 1000 with y far below 0 and far above n."""
    release = na.Release(family=na.family.Bernoulli(), values=[y], n=1000, mechanism=MECHANISMS[law](40.0))
    draws = na.infer(release, na.prior.Beta(2, 3), num_draws=DRAWS, seed=seed).draws["theta"]
    k = np.arange(1001)
    noise = log_noise(law, 40.0, y - k)
    weight = np.exp(stats.betabinom.logpmf(k, 1000, 2, 3) + noise - noise.max())
    weight /= weight.sum()
    matches(draws, lambda t: np.array([weight @ stats.beta.cdf(q, 2 + k, 1003 - k) for q in t]))


@pytest.mark.parametrize("y", [500_000, 1_000_000])
def test_a_prior_with_mass_at_the_ends(y, seed):
    """Beta(0.01, 0.02) and next to no information: most draws cannot be told from 0 or 1, in the right shares."""
    release = na.Release(family=na.family.Bernoulli(), values=[y], n=10**6, mechanism=na.mechanism.Gaussian(1e8))
    draws = na.infer(release, na.prior.Beta(0.01, 0.02), num_draws=DRAWS, seed=seed).draws["theta"]
    at = np.array([1e-250, 1e-100, 1e-12, 0.5, 1 - 1e-12])
    wanted = stats.beta.cdf(at, 0.01, 0.02)
    np.testing.assert_allclose([(draws <= t).mean() for t in at], wanted, atol=4.5 * 0.5 / DRAWS**0.5)
    assert (draws.min(), draws.max()) == (0, 1)


def test_all_events_of_many_under_a_prior_without_failures(seed):
    """n = y = 10⁶ and a Beta(3, 0.02): then 1 − θ is Beta(0.02, 10⁶ + 3), mostly below a float's reach."""
    release = na.Release(family=na.family.Bernoulli(), values=[10**6], n=10**6, mechanism=na.mechanism.Gaussian(0.05))
    draws = na.infer(release, na.prior.Beta(3, 0.02), num_draws=DRAWS, seed=seed).draws["theta"]
    assert abs((draws < 1 - 1e-12).mean() - stats.beta.sf(1e-12, 0.02, 10**6 + 3)) < 4.5 * 0.5 / DRAWS**0.5


@pytest.mark.parametrize("y", [0.00037, 5.0002])
def test_a_rare_event_under_next_to_no_noise(y, matches, seed):
    """n = 10⁶, where a sum hardly varies untilted and the noise is far below a count."""
    release = na.Release(family=na.family.Bernoulli(), values=[y], n=10**6, mechanism=na.mechanism.Laplace(1e-3))
    draws = na.infer(release, na.prior.Beta(0.5, 100), num_draws=DRAWS, seed=seed).draws["theta"]
    matches(draws, stats.beta(0.5 + int(y), 100 + 10**6 - int(y)).cdf)


@pytest.mark.parametrize(("y", "scale"), [(10, 1.0), (0, 30.0), (-2, 0.3)])
def test_a_rate_that_nothing_is_believed_of(y, scale, seed):
    """Gamma(0.01, 0.01): rates up to e^600 are looked at, where a sum is spread more widely than floats have digits."""
    release = na.Release(family=na.family.Poisson(), values=[y], n=10, mechanism=na.mechanism.DiscreteLaplace(scale))
    draws = na.infer(release, na.prior.Gamma(0.01, 0.01), num_draws=DRAWS, seed=seed).draws["theta"]
    k = np.arange(0, 2000)
    log_weight = stats.nbinom.logpmf(k, 0.01, 0.01 / 10.01) - np.abs(y - k) / scale
    weight = np.exp(log_weight - log_weight.max()) / np.exp(log_weight - log_weight.max()).sum()
    at = np.array([1e-200, 1e-20, 1e-3, 0.5, 1.0])  # levels would not do: some draws are 0 to a float
    wanted = [weight @ stats.gamma.cdf(t, 0.01 + k, scale=1 / 10.01) for t in at]
    np.testing.assert_allclose([(draws <= t).mean() for t in at], wanted, atol=4.5 * 0.5 / DRAWS**0.5)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1, 50])
@pytest.mark.parametrize("n", [10**4, 10**6, 10**9])
def test_a_large_count_agrees_with_its_normal_limit(n, epsilon, matches, seed):
    """At these n the sum is normal given θ, and so is the posterior when noise or data dominate."""
    theta = 0.3
    release = na.Release(
        family=na.family.Bernoulli(),
        values=[round(theta * n)],
        n=n,
        mechanism=na.mechanism.DiscreteGaussian(1 / epsilon),
    )
    draws = na.infer(release, na.prior.Beta(1, 1), num_draws=DRAWS, seed=seed).draws["theta"]
    sd = (theta * (1 - theta) / n + 1 / (n * epsilon) ** 2) ** 0.5
    if sd > 0.05:
        bounded = stats.truncnorm(-theta / sd, (1 - theta) / sd, theta, sd)
        matches(draws, bounded.cdf, slack=0.01)
    else:
        matches(draws, stats.norm(theta, sd).cdf, slack=0.3 / np.sqrt(n) + 0.3 * sd)


def test_a_pile_of_rare_events(seed, matches):
    """n = 10⁹ and ε = 10⁻⁴ with hardly any events: an oracle over Poisson counts and gamma posteriors."""
    n, scale, y = 10**9, 1e4, 25_000
    release = na.Release(family=na.family.Poisson(), values=[y], n=n, mechanism=na.mechanism.DiscreteLaplace(scale))
    prior = na.prior.Gamma(0.5, 1e4)
    draws = na.infer(release, prior, num_draws=DRAWS, seed=seed).draws["theta"]
    k = np.arange(0, 900_000)
    log_weight = stats.nbinom.logpmf(k, 0.5, 1e4 / (1e4 + n)) - np.abs(y - k) / scale
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    kept = weight > 1e-12
    weight, k = weight[kept], k[kept]
    matches(draws, lambda t: np.array([weight @ stats.gamma.cdf(q, 0.5 + k, scale=1 / (1e4 + n)) for q in t]))


@pytest.mark.parametrize("law", MECHANISMS)
@pytest.mark.parametrize("name", ["bernoulli", "binomial"])
def test_a_listed_sum_and_a_contour_agree(name, law, x64):
    """The likelihood with every sum listed, and as it is where they are too many; y possible and far from it."""
    family, _, prior, _ = FAMILIES[name]
    theta = jnp.asarray(prior.ppf([0.001, 0.2, 0.7, 0.999]))
    for n, scale, y in ((1.0, 0.3, 1.0), (10.0, 4.0, 3.0), (120.0, 1.5, 40.0), (120.0, 8.0, -600.0), (120.0, 8.0, 900)):
        noise, at = MECHANISMS[law](scale), jnp.asarray(float(y))
        listed = plain_sum.num_listed(family, n)
        assert listed
        found = plain_sum.likelihood(family, noise, at, n, listed)(theta)
        np.testing.assert_allclose(found, plain_sum.likelihood(family, noise, at, n)(theta), rtol=1e-7, atol=1e-6)


def test_only_few_sums_are_listed():
    assert plain_sum.num_listed(na.family.Bernoulli(), 100.0) == 128
    assert plain_sum.num_listed(na.family.Binomial(trials=4), 255.0) == 1024
    assert plain_sum.num_listed(na.family.Binomial(trials=4), 256.0) == 0
    assert plain_sum.num_listed(na.family.Poisson(), 10.0) == 0
    assert plain_sum.num_listed(na.family.Exponential(), 10.0) == 0
