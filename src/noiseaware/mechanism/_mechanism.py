"""The contract of a mechanism: the law of its noise, as data.

A mechanism says nothing of who draws the noise. The custodian draws it with exact integers
(custodian/noise.py); `sample` here is floating point and serves simulations only.
"""

import abc

import equinox as eqx
from jax.core import Tracer
from jaxtyping import Array, Float, Key, Num

from noiseaware.privacy import Guarantee


class AbstractMechanism(eqx.Module):
    """Additive noise with a known law, independent for each statistic."""

    is_discrete: eqx.AbstractClassVar[bool]
    """Whether the noise takes whole numbers (of the release's grid) only."""

    @property
    @abc.abstractmethod
    def spread(self) -> float:
        """The scale (Laplace) or standard deviation (Gaussian)."""

    @abc.abstractmethod
    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        """log p(x) of the noise; for a discrete law, of its mass at whole x."""

    @abc.abstractmethod
    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """E e^{itx}, which is real because the noise is symmetric."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Draws for simulations. Never add these to a private value."""

    @abc.abstractmethod
    def guarantee(self, sensitivity: float) -> Guarantee | None:
        """What noise of this scale promises for statistics of this sensitivity."""


def check_positive(name: str, value: object) -> None:
    """Refuse a scale that is not a positive finite number; traced values pass."""
    if isinstance(value, Tracer) or not isinstance(value, int | float):
        return
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be positive and finite, got {value}.")
