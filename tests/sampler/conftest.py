"""Independent oracles: posteriors by SciPy on a grid, without any code of the library's samplers."""

import numpy as np
import pytest
from scipy import stats
from tests.sampler.weighted import LEVELS

# Standard errors that a share may be off at one level: 4.5 is passed by chance once in 150 000 times.
MOST_SIGMAS = 4.5


def log_noise(law: str, scale: float, x: np.ndarray) -> np.ndarray:
    """log p(x) up to a constant, which is all that a posterior needs; continuous and discrete laws agree there."""
    return -np.abs(x) / scale if "laplace" in law else -0.5 * (x / scale) ** 2


def noise_density(law: str, scale: float, x: np.ndarray) -> np.ndarray:
    return np.exp(log_noise(law, scale, x))


def noise_quantiles(law: str, scale: float, u: np.ndarray) -> np.ndarray:
    return (stats.laplace if "laplace" in law else stats.norm).ppf(u, scale=scale)


class GridPosterior:
    """p(θ | y) on a grid of a coordinate v (logit, log or the identity), laid twice: wide, then where the mass is."""

    def __init__(self, prior, likelihood, *, wide: int, close: int) -> None:
        low, high = prior.ppf(1e-7), prior.isf(1e-7)
        self.prior, self.kind = prior, prior.dist.name
        edges = {
            "beta": lambda: (np.log(max(low, 1e-15)), np.log(high / (1 - high)) if high < 1 else 34.0),
            "gamma": lambda: (np.log(max(low, 1e-15)), np.log(high)),
            "norm": lambda: (low, high),
        }[self.kind]()
        v = np.linspace(*edges, wide)
        held = np.flatnonzero(self._density(v, likelihood) > 1e-9)
        v = np.linspace(v[max(held[0] - 1, 0)], v[min(held[-1] + 1, wide - 1)], close)
        density = self._density(v, likelihood)
        mass = 0.5 * (density[1:] + density[:-1]) * np.diff(v)
        self.theta = self._theta(v)
        self.cumulative = np.append(0.0, np.cumsum(mass)) / mass.sum()

    def _theta(self, v: np.ndarray) -> np.ndarray:
        return {"beta": lambda: 1 / (1 + np.exp(-v)), "gamma": lambda: np.exp(v), "norm": lambda: v}[self.kind]()

    def _density(self, v: np.ndarray, likelihood) -> np.ndarray:
        theta = self._theta(v)
        jacobian = {"beta": lambda: np.log(theta) - np.log1p(np.exp(v)), "gamma": lambda: v, "norm": lambda: 0.0}
        log_prior = self.prior.logpdf(theta) + jacobian[self.kind]()
        density = np.exp(log_prior - log_prior.max()) * np.array([likelihood(t) for t in theta])
        return density / density.max()

    def cdf(self, theta: np.ndarray) -> np.ndarray:
        return np.interp(theta, self.theta, self.cumulative)


@pytest.fixture
def matches():
    """That the oracle's CDF at the draws' quantiles is the levels, to within sampling error."""

    def check(draws: np.ndarray, cdf, *, slack: float = 0.0) -> None:
        assert np.isfinite(draws).all()
        share = cdf(np.quantile(np.asarray(draws), LEVELS))
        error = np.abs(share - LEVELS)
        assert (error <= MOST_SIGMAS * np.sqrt(LEVELS * (1 - LEVELS) / len(draws)) + slack).all(), (share, LEVELS)

    return check


@pytest.fixture
def oracle():
    """The pieces above, for tests that make their own likelihood."""

    class Oracle:
        noise = staticmethod(noise_density)
        noise_quantiles = staticmethod(noise_quantiles)
        posterior = GridPosterior

    return Oracle
