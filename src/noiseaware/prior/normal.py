"""The normal prior of a real number.

p(θ) = e^{−(θ−m)²/2v} / √(2πv)
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractScalarPrior, Numeric, check_number


class Normal(AbstractScalarPrior):
    """Normal(mean, variance)."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    mean: Numeric
    variance: Numeric

    def __check_init__(self) -> None:
        check_number("mean", self.mean, positive=False)
        check_number("variance", self.variance, positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        return self.mean + jnp.sqrt(self.variance) * jax.random.normal(key, shape)

    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return -0.5 * (theta - self.mean) ** 2 / self.variance - 0.5 * jnp.log(2 * jnp.pi * self.variance)

    def log_normalizer(self) -> Float[Array, "..."]:
        """With respect to exp(θ·mean/variance − θ²/2·variance)."""
        return 0.5 * self.mean**2 / self.variance + 0.5 * jnp.log(2 * jnp.pi * self.variance)

    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return theta

    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return v

    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.log_density(v)

    def moments(self) -> tuple[float, float]:
        return float(self.mean), math.sqrt(self.variance)

    def quantile(self, q: float) -> float:
        from scipy.special import ndtri

        return float(self.mean + math.sqrt(self.variance) * ndtri(q))
