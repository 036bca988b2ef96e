"""What custodian and analyst agree on before a table is read: a promise, to whom, and how its cost is shared out.

    cost = bounds + statistics + n        n takes its share of what the choice of bounds leaves

Costs add up (ε, and ρ), so that the parts together keep the promise.
"""

import functools
from dataclasses import dataclass
from fractions import Fraction

from noiseaware.privacy.promise import (
    N_SHARE,
    Guarantee,
    Neighbours,
    Number,
    Promise,
    Relation,
    check_neighbours,
    promised,
)


@dataclass(frozen=True)
class Agreement:
    """A promise, who counts as a neighbour, and the shares of n and of the choice of private bounds."""

    promise: Promise
    neighbours: Neighbours = "replace"
    n_share: Fraction | None = None
    """The share of a private n; None where n is public."""
    bounds_share: Fraction = Fraction(0)
    """The share of the choice of bounds; 0 where they are public."""
    unit: str | None = None
    """The column that tells whose a record is; None where a record stands for itself."""
    max_records: int = 1
    """The most records of one person that are summed."""

    @property
    def relation(self) -> Relation:
        """Who counts as a neighbour, however many records of one person are summed."""
        return Relation(self.neighbours, self.unit)

    @property
    def is_size_public(self) -> bool:
        """True if everybody may know how many records the table has, of which n may be a part."""
        return self.neighbours == "replace"

    @property
    def least(self) -> int:
        """The fewest records a table may hold; to refuse fewer would disclose a private number."""
        return 1 if self.is_size_public else 0

    @property
    def of_bounds(self) -> Guarantee:
        """The part of the promise that the choice of bounds costs."""
        return self.kept.part(self.bounds_share)

    @property
    def of_statistics(self) -> Guarantee:
        """The part of the promise that the statistics cost."""
        return self._rest if self.n_share is None else self._rest.part(1 - self.n_share)

    @property
    def of_n(self) -> Guarantee | None:
        """The part of the promise that a private n costs; None where n is public."""
        return None if self.n_share is None else self._rest.part(self.n_share)

    @functools.cached_property
    def kept(self) -> Guarantee:
        """What noise must keep for the promise."""
        return self.promise.kept_by()

    @property
    def _rest(self) -> Guarantee:
        return self.kept.part(1 - self.bounds_share)


def agreed(
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    neighbours: Neighbours = "replace",
    n_share: Fraction = N_SHARE,
) -> Agreement:
    """Return the agreement under these numbers, with a private n where a record may be added or removed."""
    check_neighbours(neighbours)
    promise = promised(epsilon=epsilon, rho=rho, delta=delta)
    return Agreement(promise, neighbours, None if neighbours == "replace" else n_share)
