"""Student's t distribution, shifted and scaled: what is known of a mean when the variance is not known either.

p(θ) ∝ (1 + (θ − location)² / (dof · scale²))^{−(dof + 1)/2}
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractScalarPrior, Numeric, check_number


class StudentT(AbstractScalarPrior):
    """StudentT(dof, location, scale)."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    dof: Numeric
    location: Numeric
    scale: Numeric

    def __check_init__(self) -> None:
        check_number("dof", self.dof, positive=True)
        check_number("location", self.location, positive=False)
        check_number("scale", self.scale, positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        return self.location + self.scale * jax.random.t(key, self.dof, shape)

    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        z = (theta - self.location) / self.scale
        return -0.5 * (self.dof + 1) * jnp.log1p(z**2 / self.dof) - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, "..."]:
        ratio = gammaln(0.5 * self.dof) - gammaln(0.5 * (self.dof + 1))
        return ratio + 0.5 * jnp.log(jnp.pi * self.dof) + jnp.log(self.scale)

    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return theta

    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return v

    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.log_density(v)

    def moments(self) -> tuple[float, float]:
        ratio = float(self.dof / (self.dof - 2)) if self.dof > 2 else math.nan
        return float(self.location), float(self.scale) * math.sqrt(ratio)

    def quantile(self, q: float) -> float:
        from scipy.special import stdtrit

        return float(self.location + self.scale * stdtrit(self.dof, q))
