"""First and second moments: Σu_j, and Σu_i u_j of pairs i ≤ j of columns, of records u ∈ ℝ^d.

With public bounds, u = (x − centre)/half takes each column's bounds to ±1, so that the noise of a sum of squares is
that of a spread about the centre and does not grow with how far that is from 0; without bounds u = x.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Num

from noiseaware.privacy import Neighbours, check_neighbours
from noiseaware.query._query import (
    LINE,
    AbstractQuery,
    Bounds,
    Level,
    Norm,
    Outside,
    Whole,
    altered,
    checked_outside,
    missing_bounds,
)
from noiseaware.query.sum import checked_bounds

MOST_COLUMNS = 200
"""More columns are neither released nor read: of so many 20 100 products are summed, since d columns have d²/2."""
_FINEST_RECORD = 15
"""Records u in ±1 have steps 2^−k: with more than 15 bits the room of a sum is spent on 2^31 records."""
_NARROWEST = 1e-300
"""The least width of bounds: a float still holds its inverse."""


class AbstractMoments(AbstractQuery):
    """Sums of the columns of scaled records u and of products of two of them."""

    dimension: eqx.AbstractVar[int]
    """d, the numbers of one record."""
    pairs: eqx.AbstractVar[tuple[tuple[int, int], ...]]
    """The columns i ≤ j whose product is summed."""
    is_whole: ClassVar[bool] = False
    levels: ClassVar[tuple[Level, ...] | None] = None

    @property
    def is_altered(self) -> bool:
        return self.intervals is not None

    @property
    def is_scaled(self) -> bool:
        return True

    @property
    def degrees(self) -> tuple[int, ...]:
        """The number of entries of u that each statistic multiplies."""
        return (1,) * self.dimension + (2,) * len(self.pairs)

    @property
    def entries(self) -> tuple[int, ...]:
        """The number of entries of u or uuᵀ that each statistic stands for: two where it multiplies two columns."""
        return (1,) * self.dimension + tuple(2 if i < j else 1 for i, j in self.pairs)

    @property
    def centre(self) -> np.ndarray:
        """The centre of each column's bounds."""
        return np.zeros(self.dimension) if self.intervals is None else np.mean(self.intervals, axis=1)

    @property
    def half(self) -> np.ndarray:
        """Half of the width of each column's bounds."""
        if self.intervals is None:
            return np.ones(self.dimension)
        return np.array([0.5 * (high - low) for low, high in self.intervals])

    def monomials(self, u: Sequence) -> tuple:
        """Return the statistics of records that are scaled already, in plain operators."""
        return (*(u[j] for j in range(self.dimension)), *(u[i] * u[j] for i, j in self.pairs))

    @property
    def ranges(self) -> list[Bounds]:
        widest = math.inf if self.intervals is None else 1.0
        squares = [False] * self.dimension + [i == j for i, j in self.pairs]
        return [(0.0 if is_square else -widest, widest) for is_square in squares]

    def sensitivity(self, neighbours: Neighbours = "replace", norm: Norm = 1) -> Fraction:
        """Return d(d + 2)²/2(d + 1) under replace and d + d(d + 1)/2 else; of norm 2, 2d(d + 1) and d(d + 1).

        *Proof, norm 1.* Adding or removing is worst at a corner. Replacing: put u = a + δ and w = a − δ, so that
        |a_j| + |δ_j| ≤ 1. Then

            ‖t(u) − t(w)‖₁ = 2Σ|δ_j| + 4Σ|a_j δ_j| + 2Σ_{i<j}|a_i δ_j + a_j δ_i|,

        which can only grow when all signs are made positive and then every a_j raised to 1 − δ_j: with D = Σδ_j it
        is at most 2D + 2Σδ_j(1 − δ_j) + 2(d − D)D. For a given D this is greatest when all δ_j are D/d = τ, where it
        is 2d((d + 2)τ − (d + 1)τ²), greatest at τ = (d + 2)/2(d + 1). Summing ranges would give d² + 2d. Where not all
        pairs are summed, none of this grows. A dropped record, at 0, is no further from any other than a corner is.

        *Proof, norm 2.* Statistics of two entries count twice (`entries`), so that the squared distance is
        ‖u − w‖² + ‖uuᵀ − wwᵀ‖² = q + r − 2c + q² + r² − 2c² with q = ‖u‖², r = ‖w‖² and c = uᵀw. Where q or r is at
        most ½ it is at most d² + d + 1.25, since −2c − 2c² ≤ ½: less than 2d(d + 1). Elsewhere its second derivative
        in u_j, 2 + 4q + 8u_j² − 4w_j², is positive, and so is that in w_j: it is greatest at corners, where q = r = d
        and c is whole, and −2c(c + 1) is at most 0. A record alone has q + q² ≤ d + d².
        """
        check_neighbours(neighbours)
        if self.intervals is None:
            raise missing_bounds()
        d, is_replaced = self.dimension, neighbours == "replace"
        if norm == 2:
            return Fraction((2 if is_replaced else 1) * d * (d + 1))
        return Fraction(d * (d + 2) ** 2, 2 * (d + 1)) if is_replaced else Fraction(d * (d + 3), 2)

    # ---- the grid: records in steps 2^−k and statistics in steps 2^−2k, alike for any bounds ---------------------

    def exponents(self, most: int) -> Iterable[int]:
        return range(2 * _FINEST_RECORD, -1, -2)

    def whole(self, exponent: int, neighbours: Neighbours = "replace") -> Whole:
        """Return the sensitivity in steps, rounded up: whole records within ±2^k are records within ±1, times 2^k."""
        moved, squared = self.sensitivity(neighbours, 1), self.sensitivity(neighbours, 2)
        return Whole(2**exponent, math.ceil(moved * 2**exponent), math.ceil(squared * 4**exponent))

    def no_grid(self, promise: object) -> str:
        return f"epsilon or rho must be nearer to 1: 64-bit sums and the noise of {promise} share no grid."

    def check(self) -> None:
        if not self.columns:
            raise ValueError("family must name one column of the table, got 0.")
        for low, high in self.intervals or ():
            if not (math.isfinite(high - low) and math.isfinite(low + high) and high - low >= _NARROWEST):
                held = "at least 1e-300 wide, with a width and a sum that floats hold"
                raise ValueError(f"bounds must be {held}, got ({low}, {high}).")

    def check_private_bounds(self, title: str) -> None:
        raise ValueError(f"bounds must be given for {title}, of second moments, got private.")


class Moments(AbstractMoments):
    """Sums of several columns and of the products of each two, also of each with itself.

    Records are columns: x[j] is the j-th number of each. `pairs` are the columns whose products are summed, all unless
    given, and `yes_or_no` names the columns whose cells are yes or no.
    """

    columns: tuple[str, ...] = eqx.field(static=True)
    intervals: tuple[Bounds, ...] | None = eqx.field(static=True)
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    yes_or_no: tuple[str, ...] = eqx.field(static=True)
    name: ClassVar[str] = "moments"
    outside: ClassVar[Outside] = "clamp"

    def __init__(
        self,
        columns: str | Sequence[str],
        bounds: object = None,
        *,
        pairs: Sequence[tuple[int, int]] | None = None,
        yes_or_no: Sequence[str] = (),
    ) -> None:
        self.columns = checked_columns("columns", columns)
        self.intervals = checked_intervals(bounds, self.columns)
        every = all_pairs(len(self.columns))
        self.pairs = every if pairs is None else tuple((int(i), int(j)) for i, j in pairs)
        self.yes_or_no = tuple(yes_or_no)
        if not set(self.pairs) <= set(every) or len(set(self.pairs)) < len(self.pairs):
            raise ValueError(f"pairs must be of columns i ≤ j, each once, got {self.pairs}.")
        if not set(self.yes_or_no) <= set(self.columns):
            raise ValueError(f"yes_or_no must name columns among {list(self.columns)}, got {list(self.yes_or_no)}.")

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        each = self.columns
        return tuple(f"sum[{c}]" for c in each) + tuple(f"sum[{each[i]}·{each[j]}]" for i, j in self.pairs)

    def settings(self) -> dict[str, Any]:
        return {"columns": self.columns, "bounds": self.intervals}

    def statistic(self, x) -> tuple:
        return self.monomials([(x[j] - c) / h for j, (c, h) in enumerate(zip(self.centre, self.half, strict=True))])

    def alter(self, x: Num[Array, "d ..."]) -> tuple[Num[Array, "..."], ...]:
        if self.intervals is None:
            return self.statistic(x)
        return self.statistic([x[j].clip(*interval) for j, interval in enumerate(self.intervals)])


class PowerSums(AbstractMoments):
    """The two power sums of one column, Σu and Σu²."""

    column: str | None = eqx.field(static=True)
    bounds: Bounds | None = eqx.field(static=True)
    outside: Outside = eqx.field(static=True)
    name: ClassVar[str] = "power_sums"
    names: ClassVar[tuple[str, ...]] = ("sum", "sum_of_squares")
    support: ClassVar[Bounds] = LINE
    dimension: ClassVar[int] = 1
    pairs: ClassVar[tuple[tuple[int, int], ...]] = ((0, 0),)
    yes_or_no: ClassVar[tuple[str, ...]] = ()

    def __init__(self, column: str | None = None, bounds: object = None, outside: str = "clamp") -> None:
        self.column = column
        self.bounds = checked_bounds(bounds)
        self.outside = checked_outside(outside)

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def intervals(self) -> tuple[Bounds, ...] | None:
        return None if self.bounds is None else (self.bounds,)

    @property
    def middle(self) -> float:
        """The centre of the bounds."""
        return 0.0 if self.bounds is None else 0.5 * (self.bounds[0] + self.bounds[1])

    @property
    def unit(self) -> float:
        """Half of the width of the bounds."""
        return 1.0 if self.bounds is None else 0.5 * (self.bounds[1] - self.bounds[0])

    def settings(self) -> dict[str, Any]:
        return {"column": self.column, "bounds": self.bounds, "outside": self.outside}

    def statistic(self, x) -> tuple:
        return self.monomials([(x - self.middle) / self.unit])

    def alter(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        return altered(x, self.statistic, self.bounds, self.outside)


def all_pairs(dimension: int) -> tuple[tuple[int, int], ...]:
    """Return i ≤ j, row by row."""
    return tuple((i, j) for i in range(dimension) for j in range(i, dimension))


def checked_intervals(bounds: object, columns: Sequence[str]) -> tuple[Bounds, ...] | None:
    """Return bounds of each column, from {column: (low, high)}, from one pair a column or from one pair for all."""
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        if surplus := sorted(set(bounds) - set(columns)):
            raise ValueError(f"bounds must name columns among {list(columns)}, got {surplus[0]!r}.")
        if missing := [c for c in columns if c not in bounds]:
            raise ValueError(f"bounds must name every column, got none for {missing[0]!r}.")
        pairs = [bounds[c] for c in columns]
    elif isinstance(bounds, Sequence) and len(bounds) == 2 and all(isinstance(b, int | float) for b in bounds):
        pairs = [bounds] * len(columns)
    elif isinstance(bounds, Sequence) and len(bounds) == len(columns):
        pairs = list(bounds)
    else:
        raise ValueError(f"bounds must be {{column: (low, high)}} for {list(columns)}, got {bounds}.")
    return tuple(checked_bounds(pair) for pair in pairs)  # type: ignore[misc]


def checked_columns(name: str, columns: object) -> tuple[str, ...]:
    """Return names of columns, one or more, none of them twice."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)  # type: ignore[arg-type]
    if not names or not all(isinstance(c, str) and c for c in names):
        raise ValueError(f"{name} must name one or more columns, got {columns!r}.")
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"{name} must name at most {MOST_COLUMNS} columns, got {len(names)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{name} must name each column once, got {list(names)}.")
    return names
