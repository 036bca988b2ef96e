"""Tumult Analytics: counts and sums of a query, and what the session says of their noise.

    GEOMETRIC            discrete Laplace, of scale noise_parameter
    DISCRETE_GAUSSIAN    discrete Gaussian, of variance noise_parameter
    LAPLACE, GAUSSIAN    the continuous laws, likewise

Nothing is done to the numbers after the noise.
"""

import math
from collections.abc import Mapping
from typing import Any

from noiseaware.check import shown
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, release
from noiseaware.interop._rows import group_of, number, positive, rows_of, whole
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

_LAWS = {
    "GEOMETRIC": DiscreteLaplace,
    "LAPLACE": Laplace,
    "DISCRETE_GAUSSIAN": DiscreteGaussian,
    "GAUSSIAN": Gaussian,
}


def tumult(
    rows: object,
    noise: Mapping[str, Any],
    *,
    column: str = "count",
    family: AbstractFamily = CELL,
    n: int = 1,
    version: str | None = None,
) -> list[Release]:
    """A release for each row of an answer, with an entry of the session's noise information.

    `noise` has `noise_mechanism`, one of the names above or Tumult's own constant of it, and `noise_parameter`.
    """
    mechanism = _law(noise)
    found = []
    for place, row in enumerate(rows_of(rows, (column,)), 1):
        value = whole(row, column, place) if mechanism.is_discrete else number(row, column, place)
        about = {"family": family, "n": n, "tool": "Tumult", "version": version}
        found.append(release(value, None, mechanism, group=group_of(row, (column,)), **about))
    return found


def _law(noise: Mapping[str, Any]) -> AbstractMechanism:
    named = noise.get("noise_mechanism") if isinstance(noise, Mapping) else None
    name = str(getattr(named, "name", named)).upper()
    if name not in _LAWS:
        raise ValueError(f"noise_mechanism must be one of {', '.join(_LAWS)}, got {shown(named)}.")
    parameter = positive(noise, "noise_parameter")
    return _LAWS[name](math.sqrt(parameter) if "GAUSSIAN" in name else parameter)
