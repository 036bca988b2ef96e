"""Families that release first and second moments: Σu_j, and Σu_i u_j of pairs i ≤ j of columns, of records u ∈ ℝ^d.

With public bounds, u = (x − centre)/half takes each column's bounds to ±1, so that the noise of a sum of squares is
that of a spread about the centre and does not grow with how far that is from 0; without bounds u = x.
"""

import abc
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Num

from noiseaware.family._family import AbstractFamily, Bounds, checked_bounds
from noiseaware.privacy import Neighbours, check_neighbours

MOST_COLUMNS = 200
"""Of so many, 20 100 products are summed: more are neither released nor read, since d columns have d²/2."""


class AbstractMomentFamily(AbstractFamily):
    """Records of d numbers, summarised by Σu and products. Records are columns: x[j] is the j-th number of each."""

    factorises: ClassVar[bool] = True
    intervals: eqx.AbstractVar[tuple[Bounds, ...] | None]
    """Public bounds of each column; None where nothing was clamped."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """d, the numbers of one record."""

    @property
    @abc.abstractmethod
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The columns i ≤ j whose product is summed."""

    @property
    def remedy(self) -> str:
        return "Wider bounds would help."

    @property
    def is_altered(self) -> bool:
        return self.intervals is not None

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of Σu_j and Σu_i u_j."""
        names = self.columns
        return tuple(f"sum[{c}]" for c in names) + tuple(f"sum[{names[i]}·{names[j]}]" for i, j in self.pairs)

    @property
    def degrees(self) -> tuple[int, ...]:
        """How many entries of u each statistic multiplies."""
        return (1,) * self.dimension + (2,) * len(self.pairs)

    @property
    def centre(self) -> np.ndarray:
        return np.zeros(self.dimension) if self.intervals is None else np.mean(self.intervals, axis=1)

    @property
    def half(self) -> np.ndarray:
        if self.intervals is None:
            return np.ones(self.dimension)
        return np.array([0.5 * (high - low) for low, high in self.intervals])

    def monomials(self, u: Sequence) -> tuple:
        """The statistics of records that are scaled already, in plain operators."""
        return (*(u[j] for j in range(self.dimension)), *(u[i] * u[j] for i, j in self.pairs))

    def statistic(self, x) -> tuple:
        return self.monomials([(x[j] - c) / h for j, (c, h) in enumerate(zip(self.centre, self.half, strict=True))])

    def alter(self, x: Num[Array, "d ..."]) -> tuple[Num[Array, "..."], ...]:
        if self.intervals is None:
            return self.statistic(x)
        return self.statistic([x[j].clip(*interval) for j, interval in enumerate(self.intervals)])

    def sensitivity(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """Replacing: d(d + 2)²/2(d + 1). Adding or removing: d + d(d + 1)/2, at a corner.

        Put u = a + δ and w = a − δ, so that |a_j| + |δ_j| ≤ 1. Then

            ‖t(u) − t(w)‖₁ = 2Σ|δ_j| + 4Σ|a_j δ_j| + 2Σ_{i<j}|a_i δ_j + a_j δ_i|,

        which can only grow when all signs are made positive and then every a_j raised to 1 − δ_j: with D = Σδ_j it
        is at most 2D + 2Σδ_j(1 − δ_j) + 2(d − D)D. For a given D this is greatest when all δ_j are D/d = τ, where it
        is 2d((d + 2)τ − (d + 1)τ²), greatest at τ = (d + 2)/2(d + 1). Summing ranges would give d² + 2d. Where not all
        pairs are summed, none of this grows.
        """
        self._check_bounded()
        return distance(self.dimension, neighbours, bounds)

    def sensitivity_squared(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """Of the statistics times `weights`, √2 where i < j. Replacing: 2d(d + 1). Adding or removing: d(d + 1).

        Their squared distance is ‖u − w‖² + ‖uuᵀ − wwᵀ‖² = q + r − 2c + q² + r² − 2c² with q = ‖u‖², r = ‖w‖² and
        c = uᵀw. Where q or r is at most ½ it is at most d² + d + 1.25, since −2c − 2c² ≤ ½: less than 2d(d + 1).
        Elsewhere its second derivative in u_j, 2 + 4q + 8u_j² − 4w_j², is positive, and so is that in w_j: it is
        greatest at corners, where q = r = d and c is whole, and −2c(c + 1) is at most 0.
        """
        self._check_bounded()
        return distance_squared(self.dimension, neighbours, bounds)

    @property
    def entries(self) -> tuple[int, ...]:
        """How many entries of u or uuᵀ each statistic stands for: two where it is the product of two columns."""
        return (1,) * self.dimension + tuple(2 if i < j else 1 for i, j in self.pairs)

    @property
    def weights(self) -> tuple[float, ...]:
        """What Gaussian noise is divided by for each statistic: √2 for those that stand for two entries of uuᵀ."""
        return tuple(math.sqrt(count) for count in self.entries)

    def _check_bounded(self) -> None:
        if self.intervals is None:
            raise ValueError(f"bounds must be given: without them one {self.name} record can move a sum by anything.")


def distance(dimension: int, neighbours: Neighbours, bounds: tuple | None = None) -> float:
    """The most that ‖t‖₁ moves; with bounds (−h, h) in whole steps of u, in steps of h⁻² and rounded up."""
    check_neighbours(neighbours)
    d = dimension
    moved = Fraction(d * (d + 2) ** 2, 2 * (d + 1)) if neighbours == "replace" else Fraction(d * (d + 3), 2)
    return float(moved) if bounds is None else math.ceil(moved * bounds[1] ** 2)


def distance_squared(dimension: int, neighbours: Neighbours, bounds: tuple | None = None) -> float:
    """The most that the square of ‖t‖₂ moves, with `weights`; with bounds (−h, h), in steps of h⁻⁴."""
    check_neighbours(neighbours)
    moved = (2 if neighbours == "replace" else 1) * dimension * (dimension + 1)
    return float(moved) if bounds is None else moved * bounds[1] ** 4


def all_pairs(dimension: int) -> tuple[tuple[int, int], ...]:
    """i ≤ j, row by row."""
    return tuple((i, j) for i in range(dimension) for j in range(i, dimension))


def checked_intervals(bounds: object, columns: Sequence[str]) -> tuple[Bounds, ...] | None:
    """Bounds of each column, from {column: (low, high)}, from one pair a column or from one pair for all."""
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
    """Names of columns, one or more, none of them twice."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)  # type: ignore[arg-type]
    if not names or not all(isinstance(c, str) and c for c in names):
        raise ValueError(f"{name} must name one or more columns, got {columns!r}.")
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"{name} must name at most {MOST_COLUMNS} columns, got {len(names)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{name} must name each column once, got {list(names)}.")
    return names
