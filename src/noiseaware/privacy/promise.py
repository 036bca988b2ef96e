"""Promises of a release: guarantees, who counts as a neighbour, and how promises add up.

    pure ε          P(M(D) ∈ E) ≤ e^ε P(M(D') ∈ E)
    zCDP ρ          D_α(M(D) ‖ M(D')) ≤ ρα for every α > 1        (Bun & Steinke 2016)
    (ε, δ)          P(M(D) ∈ E) ≤ e^ε P(M(D') ∈ E) + δ

Every cost is an exact fraction, so that a thousand charges of 1/1000 make exactly 1.

Promises add up where they are about the same neighbours. One about other neighbours counts as a promise about these
where k of its steps always lead from a table to its neighbour (group privacy): ε → kε, ρ → k²ρ.
"""

import abc
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, final, get_args

if TYPE_CHECKING:
    import numpy as np

Neighbours = Literal["replace", "add_remove"]
N_SHARE = Fraction(1, 4)
"""The share of a promise that a private n takes unless stated. For a mean θ of records in ±Δ the error is least at
θ^⅔/(θ^⅔ + Δ^⅔) of ε: 0.18 for θ = Δ/10, 0.39 for θ = Δ/2."""
Number = int | float | str | Fraction | Decimal
_MOST = Fraction(10) ** 300
_MOST_DIGITS = 1000


class Promise(abc.ABC):
    """A promise of privacy: its amount, what it implies, and its words."""

    kind: ClassVar[str]
    """Its name in ledgers and release files."""
    title: ClassVar[str]
    letter: ClassVar[str]
    argument: ClassVar[str]
    """The keyword by which a person asks for it."""
    is_worst_case: ClassVar[bool]
    """True if it bounds the greatest privacy loss, False if an average of the losses."""
    currency: ClassVar[str]
    """The letters of what a ledger of such promises adds up."""
    remedy: ClassVar[str]
    """The advice to one whose ledger cannot be charged for it."""

    @classmethod
    @abc.abstractmethod
    def of(cls, amount: Fraction, delta: Fraction) -> "Promise":
        """The promise of this amount; δ is 0 where there is none."""

    @property
    @abc.abstractmethod
    def amount(self) -> Fraction:
        """ε or ρ."""

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """The amount, and δ: both add up."""
        return self.amount, Fraction(0)

    @abc.abstractmethod
    def part(self, share: Fraction) -> "Promise":
        """The promise that this share of the cost pays for."""

    @abc.abstractmethod
    def grouped(self, steps: int) -> "Promise | None":
        """The promise about two tables that are so many steps apart; None where it is no fraction.

        *Proof.* Pure: P₀ ≤ e^ε P₁ ≤ … ≤ e^{kε} P_k. zCDP: ρ → k²ρ (Bun & Steinke 2016, proposition 1.9). (ε, δ) would
        become (kε, δ(1 + e^ε + … + e^{(k−1)ε})), whose δ is no fraction.
        """

    @abc.abstractmethod
    def kept_by(self) -> "Guarantee":
        """The guarantee that noise must give to keep the promise: for (ε, δ), the greatest ρ that implies it."""

    @abc.abstractmethod
    def implied(self, kind: str) -> "Promise | None":
        """The promise of another kind that follows from this one; None where no theorem gives it without a choice."""

    def price_of(self, promise: "Promise") -> "Promise":
        """The promise to charge to a ledger with this total for a release that makes another."""
        return promise


@final
@dataclass(frozen=True)
class Pure(Promise):
    """ε-differential privacy."""

    kind: ClassVar[str] = "pure"
    title: ClassVar[str] = "pure differential privacy"
    letter: ClassVar[str] = "ε"
    argument: ClassVar[str] = "epsilon"
    is_worst_case: ClassVar[bool] = True
    currency: ClassVar[str] = "ε"
    remedy: ClassVar[str] = "ask with rho"
    epsilon: Fraction

    def __str__(self) -> str:
        return f"ε = {plain(self.epsilon)}"

    @classmethod
    def of(cls, amount: Fraction, delta: Fraction) -> "Pure":
        return cls(amount)

    @property
    def amount(self) -> Fraction:
        return self.epsilon

    def part(self, share: Fraction) -> "Pure":
        return Pure(self.epsilon * share)

    def grouped(self, steps: int) -> "Pure":
        return Pure(self.epsilon * steps)

    def kept_by(self) -> "Pure":
        return self

    def implied(self, kind: str) -> "Promise":
        """Itself, also where δ may be more than 0; ρ = ε²/2 (Bun & Steinke 2016, proposition 1.4)."""
        return ZeroConcentrated(self.epsilon**2 / 2) if kind == ZeroConcentrated.kind else self

    def scale(self, sensitivity: float | Fraction, sensitivity_squared: float | Fraction) -> float:
        """The scale Δ₁/ε of Laplace noise that keeps the promise, to the nearest float."""
        return float(sensitivity / self.epsilon)

    def loss(self, moved: "np.ndarray") -> "np.ndarray":
        """The privacy loss at most where statistics are moved by this part of what neighbours move them by."""
        return float(self.epsilon) * moved

    @property
    def range_squared(self) -> Fraction:
        """The square of the length of an interval that holds all privacy losses, if a choice is to keep the promise."""
        return self.epsilon**2

    def choice_scale(self, sensitivity: int) -> float:
        """The least scale b of the exponential mechanism with 2Δ/b ≤ ε."""
        return above(2 * sensitivity / self.epsilon)


@final
@dataclass(frozen=True)
class ZeroConcentrated(Promise):
    """ρ-zero-concentrated differential privacy."""

    kind: ClassVar[str] = "zcdp"
    title: ClassVar[str] = "zero-concentrated differential privacy"
    letter: ClassVar[str] = "ρ"
    argument: ClassVar[str] = "rho"
    is_worst_case: ClassVar[bool] = False
    currency: ClassVar[str] = "ρ"
    remedy: ClassVar[str] = "ask with epsilon"
    rho: Fraction

    def __str__(self) -> str:
        return f"ρ = {plain(self.rho)} (zCDP)"

    @classmethod
    def of(cls, amount: Fraction, delta: Fraction) -> "ZeroConcentrated":
        return cls(amount)

    @property
    def amount(self) -> Fraction:
        return self.rho

    def part(self, share: Fraction) -> "ZeroConcentrated":
        return ZeroConcentrated(self.rho * share)

    def grouped(self, steps: int) -> "ZeroConcentrated":
        return ZeroConcentrated(self.rho * steps**2)

    def kept_by(self) -> "ZeroConcentrated":
        return self

    def implied(self, kind: str) -> "ZeroConcentrated | None":
        """Itself alone: no pure ε follows, and of the pairs (ε, δ) that do, none is the one."""
        return self if kind == self.kind else None

    def price_of(self, promise: Promise) -> Promise:
        """The ρ that the noise keeps."""
        return promise.kept_by()

    def scale(self, sensitivity: float | Fraction, sensitivity_squared: float | Fraction) -> float:
        """The standard deviation √(Δ₂²/2ρ) of Gaussian noise that keeps the promise, to the nearest float."""
        return math.sqrt(sensitivity_squared / (2 * self.rho))

    def loss(self, moved: "np.ndarray") -> "np.ndarray":
        """The expected privacy loss where statistics are moved by this part of what neighbours move them by."""
        return float(self.rho) * moved**2

    @property
    def range_squared(self) -> Fraction:
        """The square of the length η of an interval that holds all privacy losses of a choice: ρ = η²/8."""
        return 8 * self.rho

    def choice_scale(self, sensitivity: int) -> float:
        """The least scale b of the exponential mechanism with (2Δ/b)²/8 ≤ ρ."""
        return root_above(Fraction(sensitivity**2) / (2 * self.rho))


@final
@dataclass(frozen=True)
class Approximate(Promise):
    """(ε, δ)-differential privacy."""

    kind: ClassVar[str] = "approximate"
    title: ClassVar[str] = "approximate differential privacy"
    letter: ClassVar[str] = "ε"
    argument: ClassVar[str] = "delta"
    is_worst_case: ClassVar[bool] = True
    currency: ClassVar[str] = "ε and δ"
    remedy: ClassVar[str] = "make one with epsilon and delta"
    epsilon: Fraction
    delta: Fraction

    def __str__(self) -> str:
        return f"ε = {plain(self.epsilon)}, δ = {plain(self.delta)}"

    @classmethod
    def of(cls, amount: Fraction, delta: Fraction) -> "Approximate":
        return cls(amount, delta)

    @property
    def amount(self) -> Fraction:
        return self.epsilon

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        return self.epsilon, self.delta

    def part(self, share: Fraction) -> "Approximate":
        return Approximate(self.epsilon * share, self.delta * share)

    def grouped(self, steps: int) -> "Approximate | None":
        return self if steps == 1 else None

    def kept_by(self) -> ZeroConcentrated:
        return _zcdp_within(self)

    def implied(self, kind: str) -> "Approximate | None":
        """Itself alone: where δ > 0, neither a pure ε nor a ρ follows."""
        return self if kind == self.kind else None


Guarantee = Pure | ZeroConcentrated
"""A promise that the noise of a release keeps by itself."""
PROMISES: Mapping[str, type[Pure | ZeroConcentrated | Approximate]] = {
    cls.kind: cls for cls in (Pure, ZeroConcentrated, Approximate)
}
"""Every kind of promise by its name in ledgers and release files."""


@dataclass(frozen=True)
class Relation:
    """Who counts as a neighbour: one record, or all records of a unit (a person), replaced, added or removed."""

    neighbours: str
    unit: str | None = None
    """The column that tells whose a record is; None where a record stands for itself."""

    def __str__(self) -> str:
        if self.unit is None:
            return "replacing one record" if self.neighbours == "replace" else "adding or removing one record"
        return f"adding or removing all records of one {self.unit}"

    def steps_to(self, other: "Relation") -> int | None:
        """The most steps of this relation from a table to a neighbour by another; None where no number is enough.

        *Proof.* To replace a record is to remove it and to add another: two steps of adding or removing one. The other
        way no number of steps is enough: no replacing changes n, and a release under replace gives n out as it is. Nor
        do steps by records make one by persons: a person has any number of them (max_records bounds what is summed, not
        what there is). Two steps by persons do make one by records (remove the person, add the person again without the
        record), but to charge a ledger of records for persons is a mistake: its total would protect none of them.
        """
        if self == other:
            return 1
        is_split = self.neighbours == "add_remove" and other.neighbours == "replace"
        return 2 if is_split and self.unit == other.unit else None


def relation_of(neighbours: str | None = None, unit: str | None = None) -> Relation | None:
    """The relation that a person asks for, or a refusal; None where nothing was said. A unit's n is always private."""
    if unit is not None and (not isinstance(unit, str) or not unit or "\0" in unit):
        raise ValueError(f"unit must name a column, got {unit!r}.")
    if neighbours is None:
        return None if unit is None else Relation("add_remove", unit)
    check_neighbours(neighbours)
    if neighbours == "replace" and unit is not None:
        raise ValueError("neighbours must be 'add_remove' with unit, which makes n private, got 'replace'.")
    return Relation(neighbours, unit)


def frozen(promise: Promise) -> Promise:
    """Return the promise in plain fractions, read once: a number's own methods belong to whoever wrote its type."""
    for cls in PROMISES.values():
        if isinstance(promise, cls):
            return cls(*(_fraction(promise, getattr(promise, field.name)) for field in fields(cls)))
    raise ValueError(f"guarantee must be one of noiseaware.privacy, got {type(promise).__name__}.")


def _fraction(promise: Promise, value: object) -> Fraction:
    """A plain fraction that is not negative, of the two whole numbers that a fraction says it is."""
    up, down = (value.numerator, value.denominator) if isinstance(value, int | Fraction) else (None, None)
    if type(up) is not int or type(down) is not int or up < 0 or down < 1:
        raise ValueError(f"guarantee must be of fractions that are not negative, got {promise!r}.")
    return Fraction(up, down)


def exact(name: str, value: Number) -> Fraction:
    """The positive fraction that a person means by value: 0.1 is one tenth."""
    try:
        text = str(value).strip()
        fraction = None if _is_long(text) else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} must be a positive number, got {value}.") from None
    if fraction is not None and fraction <= 0:
        raise ValueError(f"{name} must be positive, got {value}.")
    if fraction is None or not 1 / _MOST <= fraction <= _MOST:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise ValueError(f"{name} must be from 1e-300 to 1e300, and of at most 1000 digits, got {shown}.")
    return fraction


def _is_long(text: str) -> bool:
    """True if a number has so many digits, or is so large or small, that only to read it would take long."""
    exponent = re.search(r"[eE][-+]?0*(\d+)\s*$", text)
    return len(text) > _MOST_DIGITS or (exponent is not None and len(exponent[1]) > 4)


def proper(name: str, value: Number) -> Fraction:
    """Return the share that a person means by value: a positive fraction below 1."""
    fraction = exact(name, value)
    if fraction >= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}.")
    return fraction


def promised(*, epsilon: Number | None = None, rho: Number | None = None, delta: Number | None = None) -> Promise:
    """Return the promise that exactly one of epsilon and rho stands for, or epsilon with delta."""
    if (epsilon is None) == (rho is None):
        raise ValueError("give exactly one of epsilon (Laplace noise) and rho (Gaussian noise).")
    if delta is not None and (epsilon is None or exact("delta", delta) >= 1):
        raise ValueError(f"delta must be below 1 and be given with epsilon, got {delta}.")
    if rho is not None:
        return ZeroConcentrated(exact("rho", rho))
    assert epsilon is not None
    if delta is not None:
        return Approximate(exact("epsilon", epsilon), exact("delta", delta))
    return Pure(exact("epsilon", epsilon))


def delta_of(rho: float, epsilon: float) -> float:
    """The least δ found for which ρ-zCDP implies (ε, δ) (Canonne, Kamath & Steinke 2020, proposition 12).

    δ = min over α > 1 of e^{(α−1)(αρ−ε)} (1 − 1/α)^α / (α − 1)        and every α gives one that holds
    """

    def log_delta(gap: float) -> float:  # α − 1
        return gap * ((1 + gap) * rho - epsilon) + (1 + gap) * math.log(gap / (1 + gap)) - math.log(gap)

    low, high = -50.0, 50.0  # of log(α − 1); ternary search, since log δ falls and then rises
    for _ in range(200):
        third = (high - low) / 3
        if log_delta(math.exp(low + third)) < log_delta(math.exp(high - third)):
            high -= third
        else:
            low += third
    return min(1.0, math.exp(min(0.0, log_delta(math.exp((low + high) / 2)))))


_BELOW = 1 - 1e-9  # more than the rounding of delta_of can be


def _zcdp_within(promise: Approximate) -> ZeroConcentrated:
    """The greatest ρ found that implies (ε, δ), by bisection on a log scale."""
    epsilon, delta = float(promise.epsilon), float(promise.delta) * _BELOW
    size = math.log(epsilon)
    low, high = min(size, 2 * size) - 100, math.log(epsilon + 1) + 1  # ρ < ε always
    for _ in range(200):
        middle = (low + high) / 2
        if delta_of(math.exp(middle), epsilon) <= delta:
            low = middle
        else:
            high = middle
    if delta_of(math.exp(low), epsilon) > delta:  # nothing so small was tried
        raise ValueError(f"epsilon and delta must be nearer to 1: no ρ was found that implies {promise}.")
    unit = Fraction(10) ** (math.floor(low / math.log(10)) - 9)  # ten digits, rounded down
    return ZeroConcentrated(math.floor(Fraction(math.exp(low)) / unit) * unit)


def check_neighbours(neighbours: str, name: str = "neighbours") -> None:
    if neighbours not in get_args(Neighbours):
        raise ValueError(f"{name} must be 'replace' or 'add_remove', got {neighbours!r}.")


def plain(value: Fraction) -> str:
    """A fraction as a person writes it: 0.5, 3, 1/3."""
    try:
        decimal = repr(float(value))
    except OverflowError:
        return _whole(value)
    return decimal.removesuffix(".0") if Fraction(decimal) == value else _whole(value)


def _whole(value: Fraction) -> str:
    """All digits, or ten where Python spells no more: a total of many costs can have thousands."""
    try:
        return str(value)
    except ValueError:
        return f"about {Decimal(value.numerator) / value.denominator:.10g}"


def above(value: Fraction) -> float:
    """The least float that is not below value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def root_above(square: Fraction) -> float:
    """The least float found that is not below the root of square."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
