"""The counts of one column's public levels: t_j(x) = 1{x = j}."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Bool, Num

from noiseaware.check import check_levels
from noiseaware.privacy import Neighbours, check_neighbours
from noiseaware.query._query import AbstractQuery, Bounds, Level, Norm, Outside, Whole

MOST_LEVELS = 100_000
"""More are neither released nor read."""


class Counts(AbstractQuery):
    """The number of records at each public level of a column.

    In a table, whatever is not a level is missing, and counts as the first one unless `missing` of the release says
    otherwise.
    """

    column: str | None = eqx.field(static=True)
    levels: tuple[Level, ...] = eqx.field(static=True)
    name: ClassVar[str] = "counts"
    is_whole: ClassVar[bool] = True
    outside: ClassVar[Outside] = "clamp"
    intervals: ClassVar[tuple[Bounds, ...] | None] = None
    yes_or_no: ClassVar[tuple[str, ...]] = ()

    def __init__(self, column: str | None = None, *, levels: Sequence[str] | Sequence[int]) -> None:
        self.column = column
        self.levels = tuple(levels)

    def __check_init__(self) -> None:
        if len(self.levels) > MOST_LEVELS:
            raise ValueError(f"levels must name at most {MOST_LEVELS:,} levels, got {len(self.levels):,}.")
        if len(self.levels) < 2:
            raise ValueError(f"levels must name two or more levels, got {len(self.levels)}.")
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("levels must be distinct, got a level twice.")
        kinds = {type(v) for v in self.levels}
        if kinds not in ({str}, {int}):
            raise ValueError(f"levels must be all text or all whole numbers, got {list(self.levels)}.")
        check_levels(self.levels)

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"count[{level}]" for level in self.levels)

    @property
    def counted(self) -> tuple[float | Level, ...]:
        return (self.levels[0],)

    @property
    def ranges(self) -> list[Bounds]:
        return [(0.0, 1.0)] * len(self.levels)

    def settings(self) -> dict[str, Any]:
        return {"column": self.column, "levels": self.levels}

    def statistic(self, x) -> tuple:
        """Return indicators of x, which holds the position of each record's level."""
        return tuple(x == position for position in range(len(self.levels)))

    def alter(self, x: Num[Array, "..."]) -> tuple[Bool[Array, "..."], ...]:
        return self.statistic(x)

    def sensitivity(self, neighbours: Neighbours = "replace", norm: Norm = 1) -> Fraction:
        """Return 2, or 1 where a record is added or removed, of either norm.

        *Proof.* A record is at one level at most. Replacing it moves at most two counts, each by 1; adding or removing
        it moves at most one. So ‖t − t'‖₁ is 2 or 1 at most, and so is ‖t − t'‖₂², as 1² = 1. Both are attained.
        """
        check_neighbours(neighbours)
        return Fraction(2 if neighbours == "replace" else 1)

    def exponents(self, most: int) -> Iterable[int]:
        return range(1)

    def whole(self, exponent: int, neighbours: Neighbours = "replace") -> Whole:
        moved = int(self.sensitivity(neighbours))
        return Whole(1, moved, moved)

    def no_grid(self, promise: object) -> str:
        return f"epsilon or rho must be larger: counts with the noise of {promise} must fit 64-bit integers."

    def check(self) -> None:
        if self.column is None:
            raise ValueError("family must name one column of the table, got 0.")
