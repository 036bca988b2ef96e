"""The inverse gamma prior of a variance.

p(θ) = scale^shape θ^{−shape−1} e^{−scale/θ} / Γ(shape)        v = log θ
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractScalarPrior, Numeric, check_number, log_positive


class InverseGamma(AbstractScalarPrior):
    """InverseGamma(shape, scale), with mean scale/(shape − 1)."""

    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    shape: Numeric
    scale: Numeric

    def __check_init__(self) -> None:
        check_number("shape", self.shape, positive=True)
        check_number("scale", self.scale, positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        draws = jax.random.loggamma(key, jnp.broadcast_to(self.shape, shape))
        return jnp.exp(jnp.log(self.scale) - draws)

    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return -(self.shape + 1) * jnp.log(theta) - self.scale / theta - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, "..."]:
        return gammaln(self.shape) - self.shape * jnp.log(self.scale)

    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return log_positive(theta)

    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(v)

    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return -self.shape * v - self.scale * jnp.exp(-v) - self.log_normalizer()

    def moments(self) -> tuple[float, float]:
        mean = float(self.scale / (self.shape - 1)) if self.shape > 1 else math.inf
        return mean, mean / math.sqrt(float(self.shape) - 2) if self.shape > 2 else math.nan

    def quantile(self, q: float) -> float:
        from scipy.special import gammainccinv

        return float(self.scale / gammainccinv(self.shape, q))
