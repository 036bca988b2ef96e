"""What a release promises: guarantees, who counts as a neighbour, and how promises add up.

    pure ε          P(M(D) ∈ E) ≤ e^ε P(M(D') ∈ E)
    zCDP ρ          D_α(M(D) ‖ M(D')) ≤ ρα for every α > 1        (Bun & Steinke 2016)
    (ε, δ)          P(M(D) ∈ E) ≤ e^ε P(M(D') ∈ E) + δ

Every cost is an exact fraction, so that a thousand charges of 1/1000 make exactly 1.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, get_args

Neighbours = Literal["replace", "add_remove"]
Number = int | float | str | Fraction | Decimal


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


def exact(name: str, value: Number) -> Fraction:
    """The positive fraction that a person means by value: 0.1 is one tenth."""
    try:
        fraction = Fraction(str(value).strip())
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} must be a positive number, got {value}.") from None
    if fraction <= 0:
        raise ValueError(f"{name} must be positive, got {value}.")
    return fraction


def promised(*, epsilon: Number | None = None, rho: Number | None = None) -> Guarantee:
    """The guarantee that exactly one of epsilon and rho stands for."""
    if (epsilon is None) == (rho is None):
        raise ValueError("give exactly one of epsilon (Laplace noise) and rho (Gaussian noise).")
    if epsilon is not None:
        return Pure(exact("epsilon", epsilon))
    return ZeroConcentrated(exact("rho", rho))  # type: ignore[arg-type]


def approximate(*, epsilon: Number, delta: Number) -> Promise:
    """(ε, δ), which is pure ε where δ is 0."""
    if str(delta).strip() in ("0", "0.0"):
        return Pure(exact("epsilon", epsilon))
    slack = exact("delta", delta)
    if slack >= 1:
        raise ValueError(f"delta must be below 1, got {delta}.")
    return Approximate(exact("epsilon", epsilon), slack)


def as_zcdp(guarantee: Guarantee) -> ZeroConcentrated:
    """Pure ε implies ε²/2-zCDP (Bun & Steinke 2016, proposition 1.4)."""
    if isinstance(guarantee, Pure):
        return ZeroConcentrated(guarantee.epsilon**2 / 2)
    return guarantee


def check_neighbours(neighbours: str) -> None:
    if neighbours not in get_args(Neighbours):
        raise ValueError(f"neighbours must be 'replace' or 'add_remove', got {neighbours!r}.")


def plain(value: Fraction) -> str:
    """A fraction as a person writes it: 0.5, 3, 1/3."""
    try:
        decimal = repr(float(value))
    except OverflowError:
        return str(value)
    return decimal.removesuffix(".0") if Fraction(decimal) == value else str(value)


def above(value: Fraction) -> float:
    """The least float that is not below value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
