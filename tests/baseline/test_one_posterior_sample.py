"""One-posterior sampling draws from a flattened, truncated posterior, in every tail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from noiseaware.baseline import one_posterior_sample as ops
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import Bernoulli, Binomial, Poisson
from noiseaware.mechanism import DiscreteLaplace, Gaussian, Laplace
from noiseaware.prior import Beta, Gamma

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def quantiles(a: float, b: float) -> np.ndarray:
    """Of Beta(a, b) on [0.1, 0.9], by SciPy; where it keeps only a tail, by the tail's own logarithm."""
    law = scipy.stats.beta(a, b)
    if law.sf(0.1) > 1e-12 and law.cdf(0.9) > 1e-12:
        return law.ppf(law.cdf(0.1) + LEVELS * (law.cdf(0.9) - law.cdf(0.1)))
    x = np.linspace(0.1, 0.9, 2_000_001)
    log_density = law.logpdf(x)
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    return np.interp(LEVELS, cdf / cdf[-1], x)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (12.0, 7.0), (0.5, 400.0), (300.0, 0.2), (3e5, 2e5), (0.3, 0.6)])
def test_truncated_beta_has_the_right_quantiles(a, b, x64, key):
    count = 40_000
    draws = np.asarray(ops.truncated(key, Beta(jnp.asarray(a), jnp.asarray(b)), 0.1, count))
    shares = [(draws <= x).mean() for x in quantiles(a, b)]
    # 4.5 standard errors of a share among 40 000
    assert np.abs(shares - LEVELS).max() < 4.5 * (0.25 / count) ** 0.5
    assert draws.min() >= 0.1
    assert draws.max() <= 0.9
    assert np.unique(draws).size > 0.9 * count


def test_a_batch_flattens_prior_and_likelihood(x64, key):
    """The density of the draws is that of the posterior to the power ρ."""
    family, prior, mechanism = Binomial(trials=3), Beta(10.0, 4.0), Laplace(3 / 200)
    s = jnp.asarray([[90.0], [140.0]])
    evidence = Evidence(family, mechanism, s, Public(60))
    draws = np.asarray(ops.batch(jax.random.split(key, 2), evidence, prior, num_draws=20_000))
    power = 2 / (2 * 3 * np.log(9))  # ε of a draw is 200/100
    assert ops.tempering(evidence, prior) == pytest.approx(power)
    grid = np.linspace(0.1, 0.9, 8001)
    for successes, row in zip((90, 140), draws, strict=True):
        density = scipy.stats.beta(10 + successes, 4 + 180 - successes).pdf(grid) ** power
        cdf = np.cumsum(density) / density.sum()
        at = grid[np.searchsorted(cdf, LEVELS)]
        shares = [(row <= x).mean() for x in at]
        assert np.abs(shares - LEVELS).max() < 4.5 * (0.25 / 20_000) ** 0.5


def planned(family, mechanism) -> Evidence:
    return Evidence(family, mechanism, None, Public(60))


def test_tempering_is_the_papers():
    prior = Beta(10, 10)
    assert ops.tempering(planned(Bernoulli(), DiscreteLaplace(10.0)), prior) == pytest.approx(0.001 / (2 * np.log(9)))
    assert ops.tempering(planned(Bernoulli(), Laplace(1e-4)), prior) == 1.0
    # m trials move the log likelihood m times as far, and the noise of a count is m times as wide at the same ε
    of_three = ops.tempering(planned(Binomial(trials=3), Laplace(3 / 0.1)), prior)
    assert of_three == pytest.approx(ops.tempering(planned(Bernoulli(), Laplace(1 / 0.1)), prior) / 3)


def test_it_refuses_what_it_is_not_for():
    with pytest.raises(ValueError, match="successes and a beta prior"):
        ops.tempering(planned(Poisson(bounds=(0, 3)), Laplace(1.0)), Gamma(1, 1))
    with pytest.raises(ValueError, match="must be given epsilon"):
        ops.tempering(planned(Bernoulli(), Gaussian(1.0)), Beta(1, 1))
