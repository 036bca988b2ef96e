"""How far the slopes of a generalized linear model move when its covariates are not normal.

With a = βᵀx + b = m + sz, z the covariates' part of a in units of its sd, the release tells E y and E zy. Where z
follows another law than the normal one, of the same mean and sd, another pair (m, s) has the same two averages:

    E_law h(m + sz) = E_normal h(m̂ + ŝz)        E_law z h(m + sz) = E_normal z h(m̂ + ŝz)        h(a) = E[y | a]

and every slope is s/ŝ times as large. The laws: uniform, exponential (rising or falling with a), and two-valued with
three records in ten at one of the two.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractGeneralizedLinear

Law = tuple[np.ndarray, np.ndarray]
"""Values of z and their probabilities."""
_STEPS, _LONGEST = 40, 0.5  # of the search for (m, s), and how far one may go
_MOST = 100.0  # posterior sds: farther is not told apart
_FLATTEST = 1e-9  # of s, and of a posterior sd


def _normal() -> Law:
    z = np.arange(-8, 8.0625, 0.125)
    weight = np.exp(-0.5 * z**2)
    return z, weight / weight.sum()


def _laws() -> dict[str, list[Law]]:
    at, weight = np.polynomial.legendre.leggauss(64)
    waits, share = np.polynomial.laguerre.laggauss(40)
    two = np.array([-np.sqrt(3 / 7), np.sqrt(7 / 3)])
    return {
        "uniform": [(np.sqrt(3) * at, weight / 2)],
        "exponential": [(waits - 1, share), (1 - waits, share)],
        "two-valued": [(two, np.array([0.7, 0.3])), (-two, np.array([0.7, 0.3]))],
    }


def sentence(evidence: Evidence, draws: dict[str, np.ndarray]) -> str | None:
    """How many posterior sds the slopes would move by with other laws; None where covariates have no such part."""
    if not isinstance(evidence.family, AbstractGeneralizedLinear):
        return None
    told = [f"{law} ones by {_written(away)}" for law, away in moves(evidence, draws).items()]
    return f"With covariates of another law slopes would move: with {', with '.join(told)} posterior sds at most."


def moves(evidence: Evidence, draws: dict[str, np.ndarray]) -> dict[str, float]:
    """By law, the largest move of a slope in posterior sds; of a law with two directions, the larger."""
    family: AbstractGeneralizedLinear = evidence.family  # type: ignore[assignment]
    coefficients = draws["coefficients"]
    centre, sd = coefficients.mean(0), coefficients.std(0)
    middle, size = _index(evidence, centre)
    with jax.enable_x64(True):
        response = jax.jit(lambda a: family.link(a)[0])

        def mean(a: np.ndarray) -> np.ndarray:
            return np.asarray(response(jnp.asarray(a)))

        seen = _averages(mean, _normal(), middle, size)
        found = {
            name: max(abs(_scale(mean, law, seen, middle, size) - 1) for law in laws) for name, laws in _laws().items()
        }
    most = float((np.abs(centre[:-1]) / np.maximum(sd[:-1], _FLATTEST)).max())
    return {name: float(np.nan_to_num(change * most, nan=np.inf)) for name, change in found.items()}


def _index(evidence: Evidence, coefficients: np.ndarray) -> tuple[float, float]:
    """Mean and sd of a, from the released moments of the covariates."""
    family: AbstractGeneralizedLinear = evidence.family  # type: ignore[assignment]
    p, n = len(family.x), evidence.n
    places = {pair: family.dimension + i for i, pair in enumerate(family.query.pairs)}
    whole = np.array([[places[min(i, j), max(i, j)] for j in range(p)] for i in range(p)])
    mean = np.asarray(evidence.y)[:p] / n
    slopes = coefficients[:-1] * family.query.half[:-1]
    variance = slopes @ (np.asarray(evidence.y)[whole] / n - np.outer(mean, mean)) @ slopes
    middle = coefficients[-1] + coefficients[:-1] @ family.query.centre[:-1] + slopes @ mean
    return float(middle), float(np.sqrt(max(variance, _FLATTEST)))


def _averages(mean: Callable, law: Law, middle: float, size: float) -> np.ndarray:
    """E h and E zh."""
    z, weight = law
    h = weight * mean(middle + size * z)
    return np.array([h.sum(), z @ h])


def _scale(mean: Callable, law: Law, seen: np.ndarray, middle: float, size: float) -> float:
    """s/ŝ by Newton's method, in short steps; not a number where there is no such pair."""
    at = np.array([middle, size])
    for _ in range(_STEPS):
        here = _averages(mean, law, *at)
        step = 1e-5
        slope = np.column_stack([(_averages(mean, law, *(at + e)) - here) / step for e in step * np.eye(2)])
        try:
            move = np.linalg.solve(slope, seen - here)
        except np.linalg.LinAlgError:
            return np.nan
        at = at + move / max(1.0, float(np.abs(move).max()) / _LONGEST)
    is_found = np.abs(_averages(mean, law, *at) - seen).max() < 1e-6 * max(1.0, np.abs(seen).max())
    return at[1] / size if is_found else np.nan


def _written(away: float) -> str:
    return f"{away:.2g}" if away < _MOST else "more than 100"
