"""Categorical releases: draws against enumeration of every vector of counts."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from tests.sampler.conftest import log_noise

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.likelihood import counts

pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")  # extreme on purpose
DRAWS = 20_000
LAWS = {
    "laplace": na.mechanism.Laplace,
    "discrete_laplace": na.mechanism.DiscreteLaplace,
    "gaussian": na.mechanism.Gaussian,
    "discrete_gaussian": na.mechanism.DiscreteGaussian,
}
CASES = {
    "one record": ([1, 1, 1], 1, [0, 2, -1]),
    "one category empty": ([0.5, 2, 5], 10, [4, 0, 6]),
    "far below 0 and far above n": ([0.5, 0.5, 10], 20, [-60, 70, 90]),
    "rare": ([0.1, 1, 30], 40, [1, 2, 35]),
    "four": ([1, 1, 1, 1], 12, [9, 1, 5, 4]),
}


def every_count(n: int, cells: int) -> np.ndarray:
    first = np.array([k for k in itertools.product(range(n + 1), repeat=cells - 1) if sum(k) <= n])
    return np.c_[first, n - first.sum(axis=1)]


# each case with one law, and each law with a case; the rest take longer
QUICK = {("laplace", "one record"), ("discrete_laplace", "one category empty"), ("gaussian", "rare")}
QUICK |= {("discrete_laplace", "far below 0 and far above n"), ("discrete_gaussian", "four")}


@pytest.mark.parametrize(
    ("law", "case"),
    [pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in itertools.product(LAWS, CASES)],
)
def test_draws_match_enumeration(law, case, matches, seed):
    concentration, n, y = CASES[case]
    levels = [f"level {j}" for j in range(len(y))]
    k, a = every_count(n, len(y)), np.array(concentration, float)
    for scale in (0.5, 3.0, 30.0):
        release = na.Release(family=na.family.Categorical(levels=levels), values=y, n=n, mechanism=LAWS[law](scale))
        draws = na.infer(release, na.prior.Dirichlet(concentration), num_draws=DRAWS, seed=seed).draws["theta"]
        np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-12)
        log_weight = (special.gammaln(a + k) - special.gammaln(k + 1.0) + log_noise(law, scale, np.array(y) - k)).sum(1)
        weight = special.softmax(log_weight)
        for j in range(len(y)):
            kept = np.unique(k[:, j])
            mass = np.array([weight[k[:, j] == m].sum() for m in kept])

            def cdf(t, j=j, kept=kept, mass=mass):
                return stats.beta.cdf(t[:, None], a[j] + kept, a.sum() - a[j] + n - kept) @ mass

            matches(draws[:, j], cdf)


def test_two_categories_are_a_bernoulli(matches, seed):
    """With the noise of one cell alone, the first cell of two is a Bernoulli count with the same noise."""
    n, y, scale = 300, [70, 230], 15.0
    release = na.Release(
        family=na.family.Categorical(levels=["a", "b"]), values=y, n=n, mechanism=na.mechanism.DiscreteGaussian(scale)
    )
    draws = na.infer(release, na.prior.Dirichlet([2, 3]), num_draws=DRAWS, seed=seed).draws["theta"][:, 0]
    # two independent looks at the same count, each with variance σ², are one with σ²/2
    k = np.arange(n + 1)
    weight = special.softmax(stats.betabinom.logpmf(k, n, 2, 3) - ((70 - k) / scale) ** 2)
    matches(draws, lambda t: stats.beta.cdf(t[:, None], 2 + k, 3 + n - k) @ weight)


MORE = [(10**6, 200.0), (10**9, 0.04), (10**9, 0.1)]


@pytest.mark.parametrize(
    ("n", "scale"), [(70_000, 5.0), (10**9, 2e4), *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)]
)
def test_many_records_agree_with_normal_theory(n, scale, matches, seed):
    """k_j | y is normal, with Σk = n shared out; θ_j | k adds its own spread."""
    theta = np.array([0.2, 0.3, 0.5])
    y = np.round(n * theta)
    release = na.Release(
        family=na.family.Categorical(levels=["a", "b", "c"]),
        values=y,
        n=n,
        mechanism=na.mechanism.DiscreteGaussian(scale),
    )
    draws = na.infer(release, na.prior.Dirichlet([1, 1, 1]), num_draws=4000, seed=seed).draws["theta"]
    for j in range(3):
        sd = (scale**2 * 2 / 3 / n**2 + theta[j] * (1 - theta[j]) / n) ** 0.5
        matches(draws[:, j], stats.norm(theta[j], sd).cdf, slack=0.01)


def test_likelihood_matches_enumeration(x64):
    theta, n, y, scale = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), 12, np.array([3.0, 4.0, 6.0]), 1.5
    mechanism = na.mechanism.DiscreteLaplace(scale)
    shape = counts.shape_for(na.prior.Dirichlet([1, 1, 1]), mechanism, jnp.asarray(y), Public(n))
    found = counts.log_likelihood(mechanism, jnp.asarray(y), Public(n), jnp.asarray(theta), shape=shape)
    k = every_count(n, 3)
    noise = np.prod(np.tanh(0.5 / scale) * np.exp(-np.abs(y - k) / scale), axis=1)
    np.testing.assert_allclose(found, [np.log(stats.multinomial.pmf(k, n, t) @ noise) for t in theta], rtol=1e-10)


@pytest.mark.slow
def test_draws_are_independent(x64, key):
    draws = np.asarray(
        counts.draws(
            key,
            na.prior.Dirichlet([1, 1, 1]),
            na.mechanism.DiscreteLaplace(5.0),
            jnp.asarray([20.0, 30.0, 50.0]),
            Public(100),
            num_draws=DRAWS,
            shape=counts.Shape(128, 1, True),
        )
    )
    lagged = [np.corrcoef(draws[:-lag, j], draws[lag:, j])[0, 1] for lag in (1, 2, 10) for j in range(3)]
    assert np.abs(lagged).max() < 4.5 / DRAWS**0.5


@pytest.mark.slow  # it compiles everything anew
def test_a_lost_draw_is_loud(monkeypatch, seed):
    """A rejection that never ends must not look like a draw."""
    monkeypatch.setattr(counts, "_TRIES", 0)
    jax.clear_caches()
    release = na.Release(
        family=na.family.Categorical(levels=["a", "b", "c"]), values=[1, 2, 3], n=7, mechanism=na.mechanism.Laplace(1.0)
    )
    with pytest.raises(RuntimeError, match="not finite"):
        na.infer(release, na.prior.Dirichlet([1, 1, 1]), num_draws=10, seed=seed)
    monkeypatch.undo()
    jax.clear_caches()
