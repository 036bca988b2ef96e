"""The grid of whole steps that a release is summed on, with the noise that keeps its promise there.

From public facts only: the bounds, the promise, the cap on n, and how many records of one person are summed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from noiseaware.custodian.noise import calibrated, draw
from noiseaware.custodian.table import MOST_RECORDS
from noiseaware.evidence.release import MOST_OF_N
from noiseaware.family import AbstractFamily
from noiseaware.mechanism import AbstractMechanism
from noiseaware.privacy import Guarantee, Neighbours

_ROOM = 2**62
"""What a sum and its noise stay under, so that 64-bit integers neither wrap nor saturate."""
_NOISE_REACH = 64
"""Noise scales to leave room for: beyond them the chance is below e^−64."""
_STEPS_PER_SCALE = 1000
"""The least number of grid steps in one noise scale, for a statistic that is not a whole number."""
_FINEST = 1000
"""The finest grid is 2^−1000: a float still holds it."""
_FINEST_RECORD = 15
"""Second moments are of records u in ±1 with steps 2^−k; with more than 15 bits the room is spent on MOST_RECORDS."""


@dataclass(frozen=True)
class Grid:
    """A grid of steps 2^−exponent, and in its steps: how far neighbours move the sums, and the noise for it."""

    exponent: int
    sensitivity: int
    sensitivity_squared: int
    mechanism: AbstractMechanism
    guarantee: Guarantee
    entries: tuple[int, ...] = (1,)

    def noisy(self, totals: Sequence[int]) -> list[int]:
        """The totals with fresh noise."""
        return draw(
            self.mechanism,
            totals,
            sensitivity=self.sensitivity,
            sensitivity_squared=self.sensitivity_squared,
            guarantee=self.guarantee,
            entries=self.entries,
        )


def whole_grid(guarantee: Guarantee, moved: int) -> Grid:
    """The grid of a count that neighbours move by so much at most; refused if it leaves no room for the noise."""
    grid = Grid(0, moved, moved**2, _noise(guarantee, moved, moved**2), guarantee)
    if MOST_RECORDS + _NOISE_REACH * grid.mechanism.spread >= MOST_OF_N:
        told = f"n with noise of {guarantee} must stay below {MOST_OF_N:.0e}"
        raise ValueError(f"n_share, or epsilon or rho, must be larger: {told}.")
    return grid


def finest_grid(
    family: AbstractFamily,
    guarantee: Guarantee,
    neighbours: Neighbours,
    max_records: int = 1,
    *,
    leaves_out: bool = False,
) -> Grid:
    """The finest grid that leaves room for the sums, from public facts only: bounds, promise, cap on n.

    Neighbours differ in up to max_records records: sums of these move by as many times as far, and their squares by
    the square of it. Where records may be left out (missing.py), replacing one may add or remove it too.
    """
    may_do_either = leaves_out and neighbours == "replace"
    relations: tuple[Neighbours, ...] = ("replace", "add_remove") if may_do_either else (neighbours,)
    if hasattr(family, "degrees"):
        return _finest_moments(family, guarantee, relations, max_records)
    low, high = getattr(family, "bounds", (0, 1))  # a family of levels sums indicators
    largest = max(abs(low), abs(high))
    finest = 0 if family.is_integer else min(_FINEST, math.ceil(math.log2(_ROOM // MOST_RECORDS) - math.log2(largest)))
    coarsest = 0 if family.is_integer else -_FINEST
    for exponent in range(finest, coarsest - 1, -1):
        step = Fraction(2) ** -exponent
        whole = tuple(math.floor(Fraction(bound) / step) for bound in (low, high))
        grid = _calibrated(family, guarantee, relations, whole, exponent, max_records)
        if grid is None:
            break
        reach = MOST_RECORDS * math.ceil(largest * Fraction(2) ** exponent) + _NOISE_REACH * grid.mechanism.spread
        if reach < _ROOM:
            if family.is_integer or grid.mechanism.spread >= _STEPS_PER_SCALE:
                return grid
            break
    if family.is_integer:
        raise ValueError(f"bounds ({low}, {high}) must be narrower for {guarantee}: sums must fit 64-bit integers.")
    raise ValueError(
        f"bounds ({low}, {high}) must be wider, or nearer to 0, for {guarantee}: "
        "64-bit sums would be coarser than a thousandth of the noise."
    )


def _finest_moments(family: Any, guarantee: Guarantee, relations: Sequence[Neighbours], max_records: int) -> Grid:
    """The finest grid 2^−2k of second moments of whole records within ±2^k, which need the same for any bounds."""
    for k in range(_FINEST_RECORD, -1, -1):
        grid = _calibrated(family, guarantee, relations, (-(2**k), 2**k), 2 * k, max_records)
        assert grid is not None
        if MOST_RECORDS * 4**k + _NOISE_REACH * np.max(grid.mechanism.spread) < _ROOM:
            if np.min(grid.mechanism.spread) >= _STEPS_PER_SCALE:
                return grid
            break
    raise ValueError(f"epsilon or rho must be nearer to 1: 64-bit sums and the noise of {guarantee} share no grid.")


def _calibrated(
    family: AbstractFamily,
    guarantee: Guarantee,
    relations: Sequence[Neighbours],
    whole: tuple[int, ...],
    exponent: int,
    max_records: int,
) -> Grid | None:
    """A grid with its noise, for records within whole bounds; None where these do not differ, or by more than fits."""
    moved = max(family.sensitivity(relation, bounds=whole) for relation in relations)
    moved_squared = max(family.sensitivity_squared(relation, bounds=whole) for relation in relations)
    sensitivity: int = max_records * moved  # type: ignore[assignment]
    squared: int = max_records**2 * moved_squared  # type: ignore[assignment]
    entries = getattr(family, "entries", (1,))
    if not 0 < sensitivity < _ROOM:
        return None
    mechanism = _noise(guarantee, sensitivity, squared, entries)
    return Grid(exponent, sensitivity, squared, mechanism, guarantee, entries)


def _noise(guarantee: Guarantee, sensitivity: int, squared: int, entries: Sequence[int] = (1,)) -> AbstractMechanism:
    """The least noise that keeps a promise; refused if it has no scale."""
    try:
        return calibrated(guarantee, sensitivity, squared, entries)
    except OverflowError:
        raise ValueError("epsilon or rho must be nearer to 1: no float can hold its noise scale.") from None
