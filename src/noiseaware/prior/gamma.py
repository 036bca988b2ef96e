"""The gamma prior of a positive number.

p(θ) = rate^shape θ^{shape−1} e^{−rate·θ} / Γ(shape)        v = log θ
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractScalarPrior, Numeric, check_number, log_positive


class Gamma(AbstractScalarPrior):
    """Gamma(shape, rate), with mean shape/rate."""

    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    shape: Numeric
    rate: Numeric

    def __check_init__(self) -> None:
        check_number("shape", self.shape, positive=True)
        check_number("rate", self.rate, positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        draws = jax.random.loggamma(key, jnp.broadcast_to(self.shape, shape))
        return jnp.exp(draws - jnp.log(self.rate))

    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return xlogy(self.shape - 1, theta) - self.rate * theta - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, "..."]:
        return gammaln(self.shape) - self.shape * jnp.log(self.rate)

    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return log_positive(theta)

    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(v)

    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.shape * v - self.rate * jnp.exp(v) - self.log_normalizer()

    def moments(self) -> tuple[float, float]:
        return float(self.shape / self.rate), math.sqrt(self.shape) / float(self.rate)

    def quantile(self, q: float) -> float:
        from scipy.special import gammaincinv

        return float(gammaincinv(self.shape, q) / self.rate)
