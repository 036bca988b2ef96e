"""Independent oracles: posteriors by SciPy on a grid, without any code of the library's samplers."""

import numpy as np
import pytest
from scipy import stats

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
# Standard errors that a share may be off at one level: 4.5 is passed by chance once in 150 000 times.
MOST_SIGMAS = 4.5


def noise_density(law: str, scale: float, x: np.ndarray) -> np.ndarray:
    """p(x) up to a constant, which is all that a posterior needs; continuous and discrete laws agree there."""
    return np.exp(-np.abs(x) / scale) if "laplace" in law else np.exp(-0.5 * (x / scale) ** 2)


def noise_quantiles(law: str, scale: float, u: np.ndarray) -> np.ndarray:
    return (stats.laplace if "laplace" in law else stats.norm).ppf(u, scale=scale)


class GridPosterior:
    """p(θ | y) on a grid of a coordinate v, and its CDF at any θ."""

    def __init__(self, theta: np.ndarray, log_prior_dv: np.ndarray, v: np.ndarray, likelihood: np.ndarray) -> None:
        density = np.exp(log_prior_dv - log_prior_dv.max()) * likelihood
        mass = 0.5 * (density[1:] + density[:-1]) * np.diff(v)
        self.theta = theta
        self.cumulative = np.append(0.0, np.cumsum(mass)) / mass.sum()

    def cdf(self, theta: np.ndarray) -> np.ndarray:
        return np.interp(theta, self.theta, self.cumulative)


def prior_grid(prior, size: int):
    """θ, log prior density of v, and v: logit, log or the identity, as the support asks."""
    law = getattr(prior, "dist", prior).name
    low, high = prior.ppf(1e-7), prior.isf(1e-7)
    if law == "beta":
        v = np.linspace(np.log(max(low, 1e-15)), np.log(high / (1 - high)) if high < 1 else 34.0, size)
        theta = 1 / (1 + np.exp(-v))
        return theta, prior.logpdf(theta) + np.log(theta) - np.log1p(np.exp(v)), v
    if law == "gamma":
        v = np.linspace(np.log(max(low, 1e-15)), np.log(high), size)
        return np.exp(v), prior.logpdf(np.exp(v)) + v, v
    v = np.linspace(low, high, size)
    return v, prior.logpdf(v), v


@pytest.fixture
def matches():
    """That the shares of draws below the oracle's quantiles are the levels, to within sampling error."""

    def check(draws: np.ndarray, cdf, *, slack: float = 0.0) -> None:
        assert np.isfinite(draws).all()
        u = np.sort(cdf(np.asarray(draws)))
        share = np.searchsorted(u, LEVELS) / u.size
        error = np.abs(share - LEVELS)
        assert (error <= MOST_SIGMAS * np.sqrt(LEVELS * (1 - LEVELS) / u.size) + slack).all(), (share, LEVELS)

    return check


@pytest.fixture
def oracle():
    """The pieces above, for tests that make their own likelihood."""

    class Oracle:
        grid = staticmethod(prior_grid)
        noise = staticmethod(noise_density)
        noise_quantiles = staticmethod(noise_quantiles)
        posterior = GridPosterior

    return Oracle
