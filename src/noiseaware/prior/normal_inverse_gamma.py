"""The normal–inverse-gamma prior of a mean and a variance, or of regression coefficients and a variance.

    variance ~ InverseGamma(shape, scale)        mean | variance ~ Normal(mean, variance · precision⁻¹)

With a vector for the mean, the precision is a matrix; a number stands for so many times the identity, and a vector for
a diagonal.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import (
    AbstractRealPrior,
    Numeric,
    check_number,
    log_positive,
    mean_vector,
    precision_matrix,
)
from noiseaware.prior.inverse_gamma import InverseGamma
from noiseaware.prior.student_t import StudentT
from noiseaware.triangular import cholesky, solve


class NormalInverseGamma(AbstractRealPrior):
    """NormalInverseGamma(mean, precision, shape, scale); `precision` counts prior records for the mean."""

    mean: Numeric | np.ndarray
    precision: Numeric | np.ndarray
    shape: Numeric
    scale: Numeric

    def __init__(self, mean, precision, shape: Numeric, scale: Numeric) -> None:
        self.mean = mean_vector(mean) if np.ndim(mean) else mean
        self.precision = precision if jnp.ndim(self.mean) == 0 else precision_matrix(precision, len(self.mean))
        self.shape, self.scale = shape, scale

    def __check_init__(self) -> None:
        check_number("mean", self.mean, positive=False)
        check_number("precision", self.precision, positive=True)
        for name in ("shape", "scale"):
            check_number(name, getattr(self, name), positive=True, is_single=self.is_vector)

    @property
    def is_vector(self) -> bool:
        return jnp.ndim(self.mean) == 1

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape k"]:
        """Mean and variance on the last axis, the variance last."""
        key_variance, key_mean = jax.random.split(key)
        variance = InverseGamma(self.shape, self.scale).sample(key_variance, shape)
        if not self.is_vector:
            mean = self.mean + jnp.sqrt(variance / self.precision) * jax.random.normal(key_mean, shape)
            return jnp.stack([mean, variance], axis=-1)
        d = jnp.size(self.mean)
        z = jax.random.normal(key_mean, (*shape, d)).reshape(-1, d).T
        spread = solve(cholesky(jnp.asarray(self.precision)), z, transposed=True)
        mean = self.mean + jnp.sqrt(variance)[..., None] * spread.T.reshape(*shape, d)
        return jnp.concatenate([mean, variance[..., None]], axis=-1)

    def log_density(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape"]:
        mean, variance = theta[..., :-1], theta[..., -1]
        d = mean.shape[-1]
        away = mean - self.mean
        square = jnp.einsum("...i,ij,...j->...", away, jnp.reshape(jnp.asarray(self.precision), (d, d)), away)
        spread = 0.5 * square + self.scale
        return -(self.shape + 1 + 0.5 * d) * jnp.log(variance) - spread / variance - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, ""]:
        if self.is_vector:
            d, log_determinant = jnp.size(self.mean), jnp.linalg.slogdet(jnp.asarray(self.precision))[1]
        else:
            d, log_determinant = 1, jnp.log(self.precision)
        normal = 0.5 * (d * jnp.log(2 * jnp.pi) - log_determinant)
        return gammaln(self.shape) - self.shape * jnp.log(self.scale) + normal

    @property
    def num_coordinates(self) -> int:
        return jnp.size(self.mean) + 1

    def to_real(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape k"]:
        return jnp.concatenate([theta[..., :-1], log_positive(theta[..., -1:])], axis=-1)

    def from_real(self, v: Float[Array, "*shape k"]) -> Float[Array, "*shape k"]:
        """The variance is e^v; the mean is itself."""
        return jnp.concatenate([v[..., :-1], jnp.exp(v[..., -1:])], axis=-1)

    def log_density_real(self, v: Float[Array, "*shape k"]) -> Float[Array, "*shape"]:
        return self.log_density(self.from_real(v)) + v[..., -1]

    def marginals(self) -> tuple[StudentT | InverseGamma, ...]:
        """Return the prior of each entry of the mean, and of the variance."""
        shape, scale = float(self.shape), float(self.scale)
        means = np.atleast_1d(np.asarray(self.mean, dtype=float))
        precision = np.reshape(np.asarray(self.precision, dtype=float), (len(means), len(means)))
        spreads = np.sqrt(scale / shape * np.diag(np.linalg.inv(precision)))
        located = (StudentT(2 * shape, float(m), float(s)) for m, s in zip(means, spreads, strict=True))
        return *located, InverseGamma(shape, scale)
