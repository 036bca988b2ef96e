"""The sum of one column: t(x) = x, within public bounds (low, high).

Clamped, a record adds a number in [low, high]; dropped, it adds 0 where it lies outside. The grid is as fine as 64-bit
sums allow, and 1 where records are whole numbers.
"""

import abc
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
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

_HALF_LINE: Bounds = (0.0, math.inf)
_YES_OR_NO: Bounds = (0.0, 1.0)
_FINEST = 1000
"""The finest grid is 2^−1000: a float still holds it."""
# Exponents of the least and the greatest bound that may be chosen privately: for real numbers any unit of measurement,
# for whole ones what 2^31 of them can be summed to.
_REAL, _WHOLE = (-16, 32), (0, 30)


class AbstractColumn(AbstractQuery):
    """Statistics of one column of numbers, each a function of the record whose range within bounds is known."""

    column: eqx.AbstractVar[str | None]
    bounds: eqx.AbstractVar[Bounds | None]
    support: eqx.AbstractVar[Bounds]
    """The least and the greatest value that a record can take."""
    levels: ClassVar[tuple[Level, ...] | None] = None

    @abc.abstractmethod
    def spans(self, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
        """Return the least and the greatest value of each statistic of records from low to high."""

    @property
    def yes_or_no(self) -> tuple[str, ...]:
        return ()

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def intervals(self) -> tuple[Bounds, ...] | None:
        return None if self.bounds is None else (self.bounds,)

    @property
    def is_altered(self) -> bool:
        if self.bounds is None:
            return False
        return self.bounds[0] > self.support[0] or self.bounds[1] < self.support[1]

    def alter(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        return altered(x, self.statistic, self.bounds, self.outside)

    def sensitivity(self, neighbours: Neighbours = "replace", norm: Norm = 1) -> Fraction:
        """Return Σ_j (high_j − low_j) for t_j in [low_j, high_j], or Σ_j max(|low_j|, |high_j|); of norm 2, its square.

        *Proof.* A record that is replaced moves t_j from one point of [low_j, high_j] to another, which are at most
        high_j − low_j apart. One that is added or removed moves it by itself, from 0. A dropped record adds 0, so that
        0 belongs to the range. For one statistic both are attained; and ‖·‖₂ ≤ ‖·‖₁ for several.
        """
        check_neighbours(neighbours)
        if self.bounds is None:
            raise missing_bounds()
        return self._moved(neighbours, *map(Fraction, self.bounds)) ** norm

    def _moved(self, neighbours: Neighbours, low: Fraction, high: Fraction) -> Fraction:
        spans = self.spans(low, high)
        if neighbours == "add_remove":
            return sum((max(abs(a), abs(b)) for a, b in spans), Fraction(0))
        if self.outside == "drop":
            spans = [(min(a, Fraction(0)), max(b, Fraction(0))) for a, b in spans]
        return sum((b - a for a, b in spans), Fraction(0))

    def settings(self) -> dict[str, Any]:
        return {"column": self.column, "bounds": self.bounds, "outside": self.outside}

    # ---- a statistic other than the sum is simulated, and not summed by an engine --------------------------------

    def exponents(self, most: int) -> Iterable[int]:
        return ()

    def whole(self, exponent: int, neighbours: Neighbours = "replace") -> Whole:
        raise NotImplementedError(f"no engine sums a {type(self).__name__}.")

    def no_grid(self, promise: object) -> str:
        return f"no engine sums a {type(self).__name__}."


class Sum(AbstractColumn):
    """The sum of a column within public bounds.

    A record outside is clamped to the nearer bound, or dropped. Of whole numbers (`is_whole`), and of a column of yes
    and no (`is_yes_or_no`), the sum is whole. `support` says which values a record can have at all, and `ladder` gives
    the powers of two between which bounds may be chosen privately.
    """

    column: str | None = eqx.field(static=True)
    bounds: Bounds | None = eqx.field(static=True)
    outside: Outside = eqx.field(static=True)
    is_whole: bool = eqx.field(static=True)
    is_yes_or_no: bool = eqx.field(static=True)
    support: Bounds = eqx.field(static=True)
    ladder: tuple[int, int] = eqx.field(static=True)
    name: ClassVar[str] = "sum"
    names: ClassVar[tuple[str, ...]] = ("sum",)

    def __init__(
        self,
        column: str | None = None,
        bounds: object = None,
        outside: str = "clamp",
        *,
        is_whole: bool = False,
        is_yes_or_no: bool = False,
        support: Bounds | None = None,
        ladder: tuple[int, int] | None = None,
    ) -> None:
        self.column = column
        self.is_whole = is_whole or is_yes_or_no
        self.is_yes_or_no = is_yes_or_no
        if is_yes_or_no:
            bounds, support = (_YES_OR_NO if bounds is None else bounds), _YES_OR_NO
        self.bounds = checked_whole_bounds(bounds) if self.is_whole else checked_bounds(bounds)
        if is_yes_or_no and self.bounds != _YES_OR_NO:
            raise ValueError(f"bounds must be (0, 1), or left out, for a column of yes and no, got {self.bounds}.")
        self.outside = checked_outside(outside)
        self.support = LINE if support is None else _checked_support(support)
        self.ladder = ladder or (_WHOLE if self.is_whole else _REAL)

    def __repr__(self) -> str:
        kind = ", is_yes_or_no=True" if self.is_yes_or_no else ", is_whole=True" if self.is_whole else ""
        return f"{super().__repr__().removesuffix(')')}{kind})"

    @property
    def yes_or_no(self) -> tuple[str, ...]:
        return self.columns if self.is_yes_or_no else ()

    def within(self, bounds: Bounds) -> "Sum":
        arguments: dict[str, Any] = vars(self) | {"bounds": bounds}
        return Sum(**arguments)

    def asks(self, other: AbstractQuery) -> bool:
        """Return True for a sum of the same column and bounds, of records that can have all values that these have."""
        if not isinstance(other, Sum):
            return False
        is_finite = math.isfinite(other.support[1] - other.support[0])
        if is_finite and not other.support[0] <= self.support[0] <= self.support[1] <= other.support[1]:
            return False
        return (*self.settings().values(), self.is_whole) == (*other.settings().values(), other.is_whole)

    def statistic(self, x) -> tuple:
        return (x,)

    def spans(self, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
        return [(low, high)]

    @property
    def ranges(self) -> list[Bounds]:
        if self.bounds is None:
            return [self.support]
        low, high = (min(max(bound, self.support[0]), self.support[1]) for bound in self.bounds)
        return [(min(low, 0.0), max(high, 0.0)) if self.outside == "drop" else (low, high)]

    # ---- the grid ------------------------------------------------------------------------------------------------

    def exponents(self, most: int) -> Iterable[int]:
        if self.is_whole or self.bounds is None:
            return range(1)
        finest = math.ceil(math.log2(most) - math.log2(max(map(abs, self.bounds))))
        return range(min(_FINEST, finest), -_FINEST - 1, -1)

    def whole(self, exponent: int, neighbours: Neighbours = "replace") -> Whole:
        """Return the sensitivity of records floored to whole steps: that of floored bounds, as ⌊·⌋ is monotone."""
        if self.bounds is None:
            raise missing_bounds()
        scale = Fraction(2) ** exponent
        low, high = (Fraction(math.floor(Fraction(bound) * scale)) for bound in self.bounds)
        moved = int(self._moved(neighbours, low, high))
        return Whole(math.ceil(max(map(abs, self.bounds)) * scale), moved, moved**2)

    def no_grid(self, promise: object) -> str:
        low, high = self.bounds or LINE
        if self.is_whole:
            return f"bounds ({low}, {high}) must be narrower for {promise}: sums must fit 64-bit integers."
        coarse = "64-bit sums would be coarser than a thousandth of the noise"
        return f"bounds ({low}, {high}) must be wider, or nearer to 0, for {promise}: {coarse}."

    # ---- what a custodian checks ---------------------------------------------------------------------------------

    def check(self) -> None:
        if self.column is None:
            raise ValueError("family must name one column of the table, got 0.")

    def check_private_bounds(self, title: str) -> None:
        if math.isfinite(self.support[1] - self.support[0]):
            super().check_private_bounds(title)
        if self.bounds is not None:
            raise ValueError(f"bounds must be None in a family whose bounds are chosen privately, got {self.bounds}.")
        if self.support not in (LINE, _HALF_LINE):
            raise ValueError(f"bounds must be given for {title}: its support is {self.support}.")

    @property
    def candidates(self) -> tuple[float, ...]:
        """The bounds 2^j and 3·2^j that can be chosen privately, whole for whole records; with 0 and both signs where
        records have both."""
        first, last = self.ladder
        steps = [m * 2.0**j for j in range(first, last) for m in (1.0, 1.5)] + [2.0**last]
        sizes = [c for c in steps if not self.is_whole or c == math.floor(c)]
        return (*(-c for c in reversed(sizes)), 0.0, *sizes) if self.support[0] < 0 else tuple(sizes)


def checked_bounds(bounds: object) -> Bounds | None:
    """Return bounds as two finite numbers in order, or None."""
    if bounds is None:
        return None
    try:
        low, high = (float(b) for b in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be two numbers (low, high), got {bounds}.") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"bounds must be finite, got ({low}, {high}).")
    if low >= high:
        raise ValueError(f"bounds must have low < high, got ({low}, {high}).")
    return low, high


def checked_whole_bounds(bounds: object) -> Bounds | None:
    """Return bounds of a count: whole numbers, in order."""
    checked = checked_bounds(bounds)
    if checked is not None and any(b != math.floor(b) for b in checked):
        raise ValueError(f"bounds must be whole numbers for a count, got {checked}.")
    return checked


def _checked_support(support: object) -> Bounds:
    """Return the least and the greatest value of a record, either of which may be infinite."""
    try:
        low, high = (float(end) for end in support)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ValueError(f"support must be two numbers (low, high), got {support}.") from None
    if not low < high:
        raise ValueError(f"support must have low < high, got ({low}, {high}).")
    return low, high
