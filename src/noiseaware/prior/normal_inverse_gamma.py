"""The normal–inverse-gamma prior of a mean and a variance.

    variance ~ InverseGamma(shape, scale)        mean | variance ~ Normal(mean, variance / precision)
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractPrior, Numeric, check_number
from noiseaware.prior.inverse_gamma import InverseGamma
from noiseaware.prior.student_t import StudentT


class NormalInverseGamma(AbstractPrior):
    """NormalInverseGamma(mean, precision, shape, scale); `precision` counts prior records for the mean."""

    mean: Numeric
    precision: Numeric
    shape: Numeric
    scale: Numeric

    def __check_init__(self) -> None:
        check_number("mean", self.mean, positive=False)
        for name in ("precision", "shape", "scale"):
            check_number(name, getattr(self, name), positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape 2"]:
        """Mean and variance on the last axis."""
        key_variance, key_mean = jax.random.split(key)
        variance = InverseGamma(self.shape, self.scale).sample(key_variance, shape)
        mean = self.mean + jnp.sqrt(variance / self.precision) * jax.random.normal(key_mean, shape)
        return jnp.stack([mean, variance], axis=-1)

    def log_density(self, theta: Float[Array, "*shape 2"]) -> Float[Array, "*shape"]:
        mean, variance = theta[..., 0], theta[..., 1]
        spread = 0.5 * self.precision * (mean - self.mean) ** 2 + self.scale
        return -(self.shape + 1.5) * jnp.log(variance) - spread / variance - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, "..."]:
        normal = 0.5 * jnp.log(2 * jnp.pi / self.precision)
        return gammaln(self.shape) - self.shape * jnp.log(self.scale) + normal

    def marginals(self) -> tuple[StudentT, InverseGamma]:
        """Of the mean and of the variance by itself."""
        scale = (self.scale / (self.shape * self.precision)) ** 0.5
        return StudentT(2 * self.shape, self.mean, scale), InverseGamma(self.shape, self.scale)
