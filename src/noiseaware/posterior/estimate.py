"""Estimates of one number, from draws or from a conjugate distribution in closed form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

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
        """The width of the interval."""
        return self.high - self.low


def of_draws(name: str, draws: np.ndarray, probability: float = PROBABILITY) -> Estimate:
    low, high = np.quantile(draws, _tails(probability))
    sd = float(draws.std(ddof=1)) if len(draws) > 1 else math.nan
    return Estimate(name, float(draws.mean()), sd, float(low), float(high))


def of_conjugate(name: str, marginal: AbstractScalarPrior, probability: float = PROBABILITY) -> Estimate:
    return Estimate(name, *marginal.moments(), *map(marginal.quantile, _tails(probability)))


class Entry(NamedTuple):
    """One number of a parameter: theta, or theta[level]."""

    name: str
    labels: tuple[str, ...] = ()
    place: tuple[int, ...] = ()


def entries(family: AbstractFamily, parameter: str) -> list[Entry]:
    """List the numbers of a parameter; of a symmetric matrix, one half."""
    axes = [labels for _, labels in family.axes.get(parameter, ())]
    if not axes:
        return [Entry(parameter)]
    places = [place for place in np.ndindex(*map(len, axes)) if len(place) == 1 or place[0] <= place[1]]
    labels = [tuple(str(axis[i]) for axis, i in zip(axes, place, strict=True)) for place in places]
    return [Entry(f"{parameter}[{', '.join(own)}]", own, at) for own, at in zip(labels, places, strict=True)]


def numbers(family: AbstractFamily, theta: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Each number of parameters by its name, theta or theta[level]; of a symmetric matrix, one half.

    The axes of a parameter are the last ones; those before them, such as draws, stay.
    """
    return {
        entry.name: np.asarray(values[..., *entry.place])
        for parameter, values in theta.items()
        for entry in entries(family, parameter)
    }


def _tails(probability: float) -> tuple[float, float]:
    if not 0 < probability < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability}.")
    return (1 - probability) / 2, (1 + probability) / 2
