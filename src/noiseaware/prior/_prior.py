"""The contract of a prior: a conjugate distribution with its normalising constant.

A prior is data, and so is the posterior that a family's `update` makes of it. A prior on one number also
carries the coordinate v = g(θ) that takes its support to the real line, in which posteriors are integrated.
"""

import abc
import math

import equinox as eqx
from jax.core import Tracer
from jaxtyping import Array, Float, Key

Numeric = Float[Array, "..."] | float
"""A number, or a batch of them."""


class AbstractPrior(eqx.Module):
    """A distribution of θ with density exp(… − log_normalizer())."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Independent draws; `shape` must broadcast with the prior's own parameters."""

    @abc.abstractmethod
    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(θ)."""

    @abc.abstractmethod
    def log_normalizer(self) -> Float[Array, "..."]:
        """log of the integral of the unnormalised density."""


class AbstractScalarPrior(AbstractPrior):
    """A prior on one number."""

    @abc.abstractmethod
    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        """θ at the unconstrained coordinate v."""

    @abc.abstractmethod
    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        """log density of v, written so that it stays finite where θ itself would round to a bound."""


def check_number(name: str, value: object, *, positive: bool) -> None:
    """Refuse a parameter that is not finite (or not positive); traced values and arrays pass."""
    if isinstance(value, Tracer) or not isinstance(value, int | float):
        return
    if not math.isfinite(value) or (positive and value <= 0):
        rule = "positive and finite" if positive else "finite"
        raise ValueError(f"{name} must be {rule}, got {value}.")
