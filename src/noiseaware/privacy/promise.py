"""What a release promises: guarantees, who counts as a neighbour, and how promises add up.

    pure ε          P(M(D) ∈ E) ≤ e^ε P(M(D') ∈ E)
    zCDP ρ          D_α(M(D) ‖ M(D')) ≤ ρα for every α > 1        (Bun & Steinke 2016)
    (ε, δ)          P(M(D) ∈ E) ≤ e^ε P(M(D') ∈ E) + δ

Every cost is an exact fraction, so that a thousand charges of 1/1000 make exactly 1.

Promises add up where they are about the same neighbours. One about other neighbours counts as a promise about these
where k of its steps always lead from a table to its neighbour (group privacy): ε → kε, ρ → k²ρ.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, get_args

Neighbours = Literal["replace", "add_remove"]
N_SHARE = Fraction(1, 4)
"""The part of a promise that a private n takes unless said. For a mean θ of records in ±Δ the error is least at
θ^⅔/(θ^⅔ + Δ^⅔) of ε: 0.18 for θ = Δ/10, 0.39 for θ = Δ/2."""
Number = int | float | str | Fraction | Decimal
_MOST = Fraction(10) ** 300
_MOST_DIGITS = 1000


@dataclass(frozen=True)
class Pure:
    """ε-differential privacy."""

    epsilon: Fraction

    def __str__(self) -> str:
        return f"ε = {plain(self.epsilon)}"


@dataclass(frozen=True)
class ZeroConcentrated:
    """ρ-zero-concentrated differential privacy."""

    rho: Fraction

    def __str__(self) -> str:
        return f"ρ = {plain(self.rho)} (zCDP)"


@dataclass(frozen=True)
class Approximate:
    """(ε, δ)-differential privacy."""

    epsilon: Fraction
    delta: Fraction

    def __str__(self) -> str:
        return f"ε = {plain(self.epsilon)}, δ = {plain(self.delta)}"


Guarantee = Pure | ZeroConcentrated
"""What the noise of a release promises."""
Promise = Guarantee | Approximate
"""What may be promised at all."""


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


def grouped(promise: Promise, steps: int) -> Promise | None:
    """What a promise says of two tables that are so many steps apart; None where that is no fraction.

    *Proof.* Pure: P₀ ≤ e^ε P₁ ≤ … ≤ e^{kε} P_k. zCDP: ρ → k²ρ (Bun & Steinke 2016, proposition 1.9). (ε, δ) would
    become (kε, δ(1 + e^ε + … + e^{(k−1)ε})), whose δ is no fraction.
    """
    if steps == 1:
        return promise
    if isinstance(promise, Pure):
        return Pure(promise.epsilon * steps)
    if isinstance(promise, ZeroConcentrated):
        return ZeroConcentrated(promise.rho * steps**2)
    return None


def frozen(promise: Promise) -> Promise:
    """A promise of plain fractions, read once: a number's own methods belong to whoever wrote its type."""
    if isinstance(promise, Approximate):
        return Approximate(_fraction(promise, promise.epsilon), _fraction(promise, promise.delta))
    if isinstance(promise, Pure):
        return Pure(_fraction(promise, promise.epsilon))
    if isinstance(promise, ZeroConcentrated):
        return ZeroConcentrated(_fraction(promise, promise.rho))
    raise ValueError(f"guarantee must be one of noiseaware.privacy, got {type(promise).__name__}.")


def _fraction(promise: Promise, value: object) -> Fraction:
    """A plain fraction that is not negative, of the two whole numbers that a fraction says it is."""
    up, down = (value.numerator, value.denominator) if isinstance(value, int | Fraction) else (None, None)
    if type(up) is not int or type(down) is not int or up < 0 or down < 1:
        raise ValueError(f"guarantee must be of fractions that are not negative, got {promise!r}.")
    return Fraction(up, down)


def part_of(guarantee: Guarantee, part: Fraction) -> Guarantee:
    """A part of what a release promises: costs add up."""
    if isinstance(guarantee, Pure):
        return Pure(guarantee.epsilon * part)
    return ZeroConcentrated(guarantee.rho * part)


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
    """Whether a number has so many digits, or is so large or small, that only to read it would take long."""
    exponent = re.search(r"[eE][-+]?0*(\d+)\s*$", text)
    return len(text) > _MOST_DIGITS or (exponent is not None and len(exponent[1]) > 4)


def proper(name: str, value: Number) -> Fraction:
    """The same, of a share: less than 1."""
    fraction = exact(name, value)
    if fraction >= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}.")
    return fraction


def promised(*, epsilon: Number | None = None, rho: Number | None = None, delta: Number | None = None) -> Promise:
    """What exactly one of epsilon and rho stands for, or epsilon with delta."""
    if (epsilon is None) == (rho is None):
        raise ValueError("give exactly one of epsilon (Laplace noise) and rho (Gaussian noise).")
    if delta is not None and (epsilon is None or exact("delta", delta) >= 1):
        raise ValueError(f"delta must be below 1 and be given with epsilon, got {delta}.")
    if epsilon is None:
        return ZeroConcentrated(exact("rho", rho))  # type: ignore[arg-type]
    if delta is not None:
        return Approximate(exact("epsilon", epsilon), exact("delta", delta))
    return Pure(exact("epsilon", epsilon))


def kept_by(promise: Promise) -> Guarantee:
    """What noise must keep for a promise: for (ε, δ), the greatest ρ that implies it."""
    return _zcdp_within(promise) if isinstance(promise, Approximate) else promise


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


def as_zcdp(guarantee: Guarantee) -> ZeroConcentrated:
    """Pure ε implies ε²/2-zCDP (Bun & Steinke 2016, proposition 1.4)."""
    if isinstance(guarantee, Pure):
        return ZeroConcentrated(guarantee.epsilon**2 / 2)
    return guarantee


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
