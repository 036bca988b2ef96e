"""Utility: the measures against SciPy, loops and closed forms, and the verb on what is known."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import noiseaware as na
from noiseaware.study import utility as module
from noiseaware.study.utility import utility


@pytest.fixture
def samples(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(0.3, 1.2, (3, 40)), rng.gamma(2.0, 0.7, (3, 40))


def test_mmd_is_that_of_the_double_loop(samples, x64):
    p, q = samples

    def k(a, b):
        return math.exp(-((a - b) ** 2) / 2)

    for row, found in enumerate(module.mmd_squared(jnp.asarray(p), jnp.asarray(q))):
        a, b = p[row], q[row]
        total = sum(
            k(a[i], a[j]) + k(b[i], b[j]) - k(a[i], b[j]) - k(a[j], b[i])
            for i in range(40)
            for j in range(40)
            if i != j
        )
        assert float(found) == pytest.approx(total / (40 * 39), rel=1e-12)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (0.3, 1.0), (0.5, 2.0)])
def test_mmd_of_two_normals_has_its_closed_form(shift, scale, seed, x64):
    """E k(x, y) for x − y ~ N(d, v) is e^{−d²/2(1 + v)}/√(1 + v)."""

    def expected(d: float, v: float) -> float:
        return math.exp(-(d**2) / (2 * (1 + v))) / math.sqrt(1 + v)

    wanted = expected(0, 2) + expected(0, 2 * scale**2) - 2 * expected(shift, 1 + scale**2)
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(400, 50)), rng.normal(shift, scale, (400, 50))
    found = np.asarray(module.mmd_squared(jnp.asarray(p), jnp.asarray(q)))
    # unbiased: the mean over 400 pairs is within 4.5 of its standard errors
    assert found.mean() == pytest.approx(wanted, abs=4.5 * found.std() / 20)
    assert found.min() < found.mean() < found.max()


def test_wasserstein_and_width_are_those_of_scipy_and_numpy(samples, x64):
    p, q = samples
    distances = np.asarray(module.wasserstein(jnp.asarray(p), jnp.asarray(q)))
    assert distances == pytest.approx([scipy.stats.wasserstein_distance(*pair) for pair in zip(p, q, strict=True)])
    ratios = np.asarray(module.width_ratio(jnp.asarray(p), jnp.asarray(q)))
    widths = [np.diff(np.quantile(sample, [0.05, 0.95], axis=1), axis=0)[0] for sample in (p, q)]
    assert ratios == pytest.approx(widths[0] / widths[1])


def test_the_non_private_posterior_is_no_distance_from_itself(seed):
    levels, prior = na.family.Categorical(levels=["a", "b", "c"]), na.prior.Dirichlet([5, 5, 5])
    found = utility(levels, prior, n=100, epsilon=1, method="nonprivate", num_trials=40, num_draws=200, seed=seed)
    summary = found.summary()
    assert list(summary.index) == ["theta[a]", "theta[b]", "theta[c]"]
    assert (summary.mmd_squared.abs() < 4.5 * summary.mcse_mmd_squared).all()
    # W₁ of two samples of m from a law of deviation σ is about 1.13 σ √(1/m); σ of a share of 1/3 among 115 is 0.044
    assert (summary.wasserstein < 2 * 1.13 * 0.044 / 200**0.5).all()
    assert ((summary.width_ratio - 1).abs() < 0.05).all()


@pytest.mark.slow
def test_less_privacy_is_more_use(seed):
    setting = {"n": 200, "method": "naive", "num_trials": 40, "num_draws": 100, "seed": seed}
    near, far = (utility(na.family.Bernoulli(), na.prior.Beta(10, 10), epsilon=e, **setting) for e in (10, 0.02))
    for measure in ("mmd_squared", "wasserstein"):
        assert getattr(near, measure)["theta"].mean() < 0.1 * getattr(far, measure)["theta"].mean()
    assert near.mmd_squared["theta"].shape == (40,)


@pytest.mark.slow
def test_the_exact_posterior_of_strong_noise_is_as_wide_as_the_prior(seed):
    """Noise of ten times the table leaves the prior, whose width over the non-private one's is known."""
    found = utility(
        na.family.Bernoulli(), na.prior.Beta(10, 10), n=100, epsilon="0.001", num_trials=250, num_draws=63, seed=seed
    )
    prior = scipy.stats.beta(10, 10)
    wide = prior.ppf(0.95) - prior.ppf(0.05)
    narrow = [scipy.stats.beta(10 + k, 110 - k) for k in range(20, 81)]
    ratios = [wide / (law.ppf(0.95) - law.ppf(0.05)) for law in narrow]
    assert min(ratios) < found.width_ratio["theta"].mean() < max(ratios)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="num_draws must be at least 2"):
        utility(na.family.Bernoulli(), na.prior.Beta(1, 1), n=10, epsilon=1, num_draws=1)
    with pytest.raises(ValueError, match="method must be"):
        utility(na.family.Bernoulli(), na.prior.Beta(1, 1), n=10, epsilon=1, method="magic")
