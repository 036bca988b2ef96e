"""What is known of one number: an estimate from draws, or from a conjugate distribution in closed form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noiseaware.family import AbstractFamily
from noiseaware.prior import AbstractScalarPrior

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
        """How wide the interval is."""
        return self.high - self.low


def of_draws(name: str, draws: np.ndarray, probability: float = PROBABILITY) -> Estimate:
    low, high = np.quantile(draws, _tails(probability))
    sd = float(draws.std(ddof=1)) if len(draws) > 1 else math.nan
    return Estimate(name, float(draws.mean()), sd, float(low), float(high))


def of_conjugate(name: str, marginal: AbstractScalarPrior, probability: float = PROBABILITY) -> Estimate:
    return Estimate(name, *marginal.moments(), *map(marginal.quantile, _tails(probability)))


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


def _tails(probability: float) -> tuple[float, float]:
    if not 0 < probability < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability}.")
    return (1 - probability) / 2, (1 + probability) / 2
