"""What is known of one number: an estimate from draws, or from a conjugate distribution in closed form.

A Dirichlet vector is looked at one entry at a time: θ_j ~ Beta(α_j, Σα − α_j).
"""

import math
from dataclasses import dataclass

import numpy as np

from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Beta, Dirichlet, Gamma, Normal

PROBABILITY = 0.95


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
    raise TypeError(f"distribution must be Beta, Dirichlet, Gamma or Normal, got {type(distribution).__name__}.")


def quantile(marginal: AbstractScalarPrior, q: float) -> float:
    from scipy.special import betaincinv, gammaincinv, ndtri

    match marginal:
        case Beta(a=a, b=b):
            return float(betaincinv(a, b, q))
        case Gamma(shape=shape, rate=rate):
            return float(gammaincinv(shape, q) / rate)
        case Normal(mean=mean, variance=variance):
            return float(mean + math.sqrt(variance) * ndtri(q))
    raise TypeError(f"marginal must be Beta, Gamma or Normal, got {type(marginal).__name__}.")


def _moments(marginal: AbstractScalarPrior) -> tuple[float, float]:
    match marginal:
        case Beta(a=a, b=b):
            a, b = float(a), float(b)
            return a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
        case Gamma(shape=shape, rate=rate):
            return float(shape / rate), math.sqrt(shape) / float(rate)
        case Normal(mean=mean, variance=variance):
            return float(mean), math.sqrt(variance)
    raise TypeError(f"marginal must be Beta, Gamma or Normal, got {type(marginal).__name__}.")


def _tails(probability: float) -> tuple[float, float]:
    if not 0 < probability < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability}.")
    return (1 - probability) / 2, (1 + probability) / 2
