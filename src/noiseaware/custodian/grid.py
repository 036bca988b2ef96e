"""The grid of whole steps that a release is summed on, with the noise that keeps its promise there.

From public facts only: the bounds, the promise, the cap on n, and how many records of one person are summed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noiseaware.custodian.noise import calibrated, draw
from noiseaware.custodian.table import MOST_RECORDS
from noiseaware.evidence.release import MOST_OF_N
from noiseaware.mechanism import AbstractMechanism
from noiseaware.privacy import Agreement, Guarantee, Neighbours
from noiseaware.query import AbstractQuery

_ROOM = 2**62
"""What a sum and its noise stay under, so that 64-bit integers neither wrap nor saturate."""
_NOISE_REACH = 64
"""Noise scales to leave room for: beyond them the chance is below e^−64."""
_STEPS_PER_SCALE = 1000
"""The least number of grid steps in one noise scale, for a statistic that is not a whole number."""


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
    """Return the grid of a count that neighbours move by so much at most; refuse one without room for the noise."""
    grid = Grid(0, moved, moved**2, _noise(guarantee, moved, moved**2), guarantee)
    if MOST_RECORDS + _NOISE_REACH * grid.mechanism.spread >= MOST_OF_N:
        told = f"n with noise of {guarantee} must stay below {MOST_OF_N:.0e}"
        raise ValueError(f"n_share, or epsilon or rho, must be larger: {told}.")
    return grid


def finest_grid(query: AbstractQuery, agreement: Agreement, *, leaves_out: bool = False) -> Grid:
    """Return the finest grid that leaves room for the sums, from public facts only: bounds, promise, cap on n.

    Neighbours differ in up to max_records records: sums of these move by as many times as far, and their squares by
    the square of it. Where records may be left out (missing.py), replacing one may add or remove it too.
    """
    may_do_either = leaves_out and agreement.neighbours == "replace"
    relations: tuple[Neighbours, ...] = ("replace", "add_remove") if may_do_either else (agreement.neighbours,)
    for exponent in query.exponents(_ROOM // MOST_RECORDS):
        each = [query.whole(exponent, relation) for relation in relations]
        moved = agreement.max_records * max(whole.sensitivity for whole in each)
        squared = agreement.max_records**2 * max(whole.sensitivity_squared for whole in each)
        if not 0 < moved < _ROOM:
            break
        mechanism = _noise(agreement.of_statistics, moved, squared, query.entries)
        if MOST_RECORDS * each[0].largest + _NOISE_REACH * np.max(mechanism.spread) < _ROOM:
            if query.is_whole or np.min(mechanism.spread) >= _STEPS_PER_SCALE:
                return Grid(exponent, moved, squared, mechanism, agreement.of_statistics, query.entries)
            break
    raise ValueError(query.no_grid(agreement.of_statistics))


def _noise(guarantee: Guarantee, sensitivity: int, squared: int, entries: Sequence[int] = (1,)) -> AbstractMechanism:
    """Return the least noise that keeps a promise, or refuse one that has no scale."""
    try:
        return calibrated(guarantee, sensitivity, squared, entries)
    except OverflowError:
        raise ValueError("epsilon or rho must be nearer to 1: no float can hold its noise scale.") from None
