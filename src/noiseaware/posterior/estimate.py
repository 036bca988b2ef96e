"""What is known of one number: an estimate from draws, or from a conjugate distribution in closed form.

A Dirichlet vector is looked at one entry at a time, θ_j ~ Beta(α_j, Σα − α_j), and so are means, variances and
coefficients.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from noiseaware.family import AbstractFamily
from noiseaware.prior import (
    AbstractPrior,
    AbstractScalarPrior,
    Beta,
    Dirichlet,
    Gamma,
    Independent,
    InverseGamma,
    MultivariateNormal,
    Normal,
    NormalInverseGamma,
    NormalInverseWishart,
    StudentT,
)

PROBABILITY = 0.95
_DRAWS = 20_000
_LARGEST = 1e150  # of a draw: the square of a larger one is no number


@dataclass(frozen=True)
class Estimate:
    """Mean, standard deviation and the interval with equal tails outside it."""

    name: str
    mean: float
    sd: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.high - self.low


def of_draws(name: str, draws: np.ndarray, probability: float = PROBABILITY) -> Estimate:
    low, high = np.quantile(draws, _tails(probability))
    sd = float(draws.std(ddof=1)) if len(draws) > 1 else math.nan
    return Estimate(name, float(draws.mean()), sd, float(low), float(high))


def of_conjugate(name: str, marginal: AbstractScalarPrior, probability: float = PROBABILITY) -> Estimate:
    mean, sd = _moments(marginal)
    low, high = (quantile(marginal, q) for q in _tails(probability))
    return Estimate(name, mean, sd, low, high)


def split(distribution: AbstractPrior) -> list[AbstractScalarPrior]:
    """The marginal of each entry, its parameters as plain numbers."""
    match distribution:
        case Dirichlet():
            concentration = np.asarray(distribution.concentration, dtype=float)
            return [Beta(float(a), float(concentration.sum() - a)) for a in concentration]
        case Beta():
            return [Beta(float(distribution.a), float(distribution.b))]
        case Gamma():
            return [Gamma(float(distribution.shape), float(distribution.rate))]
        case Normal():
            return [Normal(float(distribution.mean), float(distribution.variance))]
        case NormalInverseGamma():
            return list(distribution.marginals())
        case NormalInverseWishart():
            return _of_wishart(distribution)
        case MultivariateNormal():
            return list(distribution.marginals())
        case Independent() if {"regression", "coefficients"} & set(distribution.parts):
            return split(next(part for name, part in distribution.parts.items() if name != "covariates"))
        case Independent():
            return [marginal for part in distribution.priors for marginal in split(part)]
    raise TypeError(f"distribution must be one of noiseaware.prior, got {type(distribution).__name__}.")


def entries(family: AbstractFamily, parameter: str) -> list[tuple[str, tuple[int, ...]]]:
    """The name and the place of each number of a parameter."""
    labels = [labels for _, labels in family.axes.get(parameter, ())]
    if not labels:
        return [(parameter, ())]
    places = [p for p in np.ndindex(*map(len, labels)) if len(p) == 1 or p[0] <= p[1]]
    return [(f"{parameter}[{', '.join(str(a[i]) for a, i in zip(labels, p, strict=True))}]", p) for p in places]


def numbers(family: AbstractFamily, theta: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Each number of parameters by its name, theta or theta[level]; of a symmetric matrix, one half.

    The axes of a parameter are the last ones; those before them, such as draws, stay.
    """
    return {
        name: np.asarray(values[..., *place])
        for parameter, values in theta.items()
        for name, place in entries(family, parameter)
    }


def drawn(draws: np.ndarray) -> "Drawn":
    """What draws tell of a distribution: those that are too large for a number are left out, as vague priors have."""
    return Drawn(draws[np.abs(draws) < _LARGEST])


class Drawn(AbstractScalarPrior):
    """A distribution that is known by draws alone, all of them finite."""

    draws: np.ndarray

    def sample(self, key, shape: tuple[int, ...] = ()):
        return jax.random.choice(key, self.draws, shape)

    def log_density(self, theta):
        from scipy.stats import gaussian_kde

        if len(self.draws) == 0 or np.ptp(self.draws) == 0:
            return jax.numpy.full(np.shape(theta), -np.inf)  # all at one point: no curve
        return jax.numpy.log(np.maximum(gaussian_kde(self.draws)(np.asarray(theta)), np.finfo(float).tiny))

    def log_normalizer(self):
        return jax.numpy.zeros(())

    def from_real(self, v):
        return v

    def to_real(self, theta):
        return theta

    def log_density_real(self, v):
        return self.log_density(v)


def _of_wishart(distribution: NormalInverseWishart) -> list[AbstractScalarPrior]:
    """Means and variances in closed form; a covariance, which has none, by its draws."""
    d = len(distribution.mean)
    known = distribution.marginals()
    with jax.enable_x64(True):
        covariance = np.asarray(distribution.sample(jax.random.key(0), (_DRAWS,)))[:, d:].reshape(-1, d, d)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    return [*known[:d], *(known[d + i] if i == j else drawn(covariance[:, i, j]) for i, j in pairs)]


def quantile(marginal: AbstractScalarPrior, q: float) -> float:
    from scipy.special import betaincinv, gammainccinv, gammaincinv, ndtri, stdtrit

    match marginal:
        case Beta(a=a, b=b):
            return float(betaincinv(a, b, q))
        case Gamma(shape=shape, rate=rate):
            return float(gammaincinv(shape, q) / rate)
        case Normal(mean=mean, variance=variance):
            return float(mean + math.sqrt(variance) * ndtri(q))
        case InverseGamma(shape=shape, scale=scale):
            return float(scale / gammainccinv(shape, q))
        case StudentT(dof=dof, location=location, scale=scale):
            return float(location + scale * stdtrit(dof, q))
        case Drawn(draws=draws):
            return float(np.quantile(draws, q))
    raise TypeError(f"marginal must be one of noiseaware.prior on one number, got {type(marginal).__name__}.")


def _moments(marginal: AbstractScalarPrior) -> tuple[float, float]:
    match marginal:
        case Beta(a=a, b=b):
            a, b = float(a), float(b)
            return a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
        case Gamma(shape=shape, rate=rate):
            return float(shape / rate), math.sqrt(shape) / float(rate)
        case Normal(mean=mean, variance=variance):
            return float(mean), math.sqrt(variance)
        case InverseGamma(shape=shape, scale=scale):
            mean = float(scale / (shape - 1)) if shape > 1 else math.inf
            return mean, mean / math.sqrt(float(shape) - 2) if shape > 2 else math.nan
        case StudentT(dof=dof, location=location, scale=scale):
            return float(location), float(scale) * math.sqrt(float(dof / (dof - 2))) if dof > 2 else math.nan
        case Drawn(draws=draws):
            return float(draws.mean()), float(draws.std(ddof=1))
    raise TypeError(f"marginal must be one of noiseaware.prior on one number, got {type(marginal).__name__}.")


def _tails(probability: float) -> tuple[float, float]:
    if not 0 < probability < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability}.")
    return (1 - probability) / 2, (1 + probability) / 2
