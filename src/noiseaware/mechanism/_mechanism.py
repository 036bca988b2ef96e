"""The contract of a mechanism: the law of its noise, as data.

A mechanism says nothing of who draws the noise. The custodian draws it with exact integers
(custodian/noise.py); `sample` here is floating point and serves simulations only.
"""

import abc
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num

from noiseaware.privacy import Guarantee

Spread = float | Float[Array, "..."]
"""One number for all statistics, or one for each of them, along the last axis."""


class AbstractLaw(eqx.Module):
    """What a published value y says of the statistic s: a likelihood that is a function of y − s alone."""

    def __repr__(self) -> str:
        return eqx.tree_pformat(self, short_arrays=False)

    is_laplace: eqx.AbstractClassVar[bool]
    """Whether it is Laplace noise, continuous or discrete: normal noise of random variance, with a kink at 0."""

    @property
    @abc.abstractmethod
    def spread(self) -> Spread:
        """The scale (Laplace) or standard deviation (Gaussian)."""

    @abc.abstractmethod
    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        """log p(y | s) at x = y − s."""


class AbstractMechanism(AbstractLaw):
    """Additive noise with a known law, independent for each statistic."""

    is_discrete: eqx.AbstractClassVar[bool]
    """Whether the noise takes whole numbers (of the release's grid) only."""

    @property
    @abc.abstractmethod
    def variance(self) -> Spread:
        """Of the noise of each statistic."""

    @abc.abstractmethod
    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        """log p(x) of the noise; for a discrete law, of its mass at whole x."""

    @abc.abstractmethod
    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """log P(low ≤ x ≤ high) for low ≤ high, either of which may be infinite; accurate far in the tails."""

    @abc.abstractmethod
    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """E e^{itx}, which is real because the noise is symmetric."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Draws for simulations. Never add these to a private value."""

    @abc.abstractmethod
    def guarantee(self, sensitivity: float) -> Guarantee | None:
        """What noise of this scale promises for statistics of this sensitivity.

        Of several scales the least counts: Σ|s_j − s'_j|/b_j ≤ ‖s − s'‖₁ / min b_j, and likewise for squares.
        """


def mirrored(low: Num[Array, "..."], high: Num[Array, "..."]) -> tuple[Num[Array, "..."], Num[Array, "..."]]:
    """The interval, or its mirror image if it lies above 0: then only one tail needs a formula."""
    is_above = low > 0
    return jnp.where(is_above, -high, low), jnp.where(is_above, -low, high)


def log_less(log_a: Float[Array, "..."], log_b: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(a − b) from log a ≥ log b; −∞ where they are the same."""
    gap = jnp.where(log_a > log_b, log_b - log_a, -1.0)
    return jnp.where(log_a > log_b, log_a + jnp.log(-jnp.expm1(gap)), -jnp.inf)


def as_spread(value: Any) -> Any:
    """A list of scales as an array; a number, and an array of JAX, as it is."""
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    try:
        if any(isinstance(entry, str | bytes | bool) for entry in value):
            raise TypeError
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"a scale must be a number, or a list of numbers, got {value!r}.") from None
    return float(numbers) if numbers.ndim == 0 else numbers


def least(spread: Spread) -> Fraction:
    """The least of the scales, exactly."""
    return Fraction(spread if isinstance(spread, int | float) else float(np.min(spread)))


def check_positive(name: str, value: object) -> None:
    """Refuse a scale that is not a positive finite number, or a list of them; what JAX holds passes."""
    if isinstance(value, jax.Array):
        return
    if isinstance(value, str | bytes | bool):
        raise ValueError(f"{name} must be a number, or a list of numbers, got {value!r}.")
    try:
        given = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.") from None
    if not given.size or not ((given > 0) & (given < float("inf"))).all():
        raise ValueError(f"{name} must be positive and finite, got {given.tolist() if given.ndim else value}.")
