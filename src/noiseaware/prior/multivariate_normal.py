"""The normal prior of several real numbers, such as regression coefficients.

p(θ) ∝ exp(−(θ − mean)ᵀ covariance⁻¹ (θ − mean)/2)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractRealPrior, mean_vector, precision_matrix
from noiseaware.prior.normal import Normal
from noiseaware.triangular import cholesky, solve


class MultivariateNormal(AbstractRealPrior):
    """MultivariateNormal(mean, covariance); a number for the covariance stands for so many times the identity, and a
    list for a diagonal."""

    mean: np.ndarray | Float[Array, " d"]
    covariance: np.ndarray | Float[Array, "d d"]

    def __init__(self, mean, covariance) -> None:
        self.mean = mean_vector(mean)
        self.covariance = precision_matrix(covariance, len(self.mean), name="covariance")

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape d"]:
        z = jax.random.normal(key, (*shape, len(self.mean)))
        return jnp.asarray(self.mean) + z @ self._root.T

    def log_density(self, theta: Float[Array, "*shape d"]) -> Float[Array, "*shape"]:
        away = theta - self.mean
        flat = solve(self._root, away.reshape(-1, len(self.mean)).T)
        return -0.5 * (flat**2).sum(0).reshape(away.shape[:-1]) - self._log_volume()

    def log_normalizer(self) -> Float[Array, ""]:
        """With respect to exp(θᵀP·mean − θᵀPθ/2), P the inverse of the covariance."""
        square = (solve(self._root, jnp.asarray(self.mean)[:, None]) ** 2).sum()
        return 0.5 * square + self._log_volume()

    @property
    def _root(self) -> Float[Array, "d d"]:
        return cholesky(jnp.asarray(self.covariance))

    def _log_volume(self) -> Float[Array, ""]:
        return jnp.log(jnp.diag(self._root)).sum() + 0.5 * len(self.mean) * jnp.log(2 * jnp.pi)

    @property
    def num_coordinates(self) -> int:
        return len(self.mean)

    def to_real(self, theta: Float[Array, "*shape d"]) -> Float[Array, "*shape d"]:
        return theta

    def from_real(self, v: Float[Array, "*shape d"]) -> Float[Array, "*shape d"]:
        return v

    def log_density_real(self, v: Float[Array, "*shape d"]) -> Float[Array, "*shape"]:
        return self.log_density(v)

    def marginals(self) -> tuple[Normal, ...]:
        means, variances = np.asarray(self.mean, dtype=float), np.diag(np.asarray(self.covariance, dtype=float))
        return tuple(Normal(float(m), float(v)) for m, v in zip(means, variances, strict=True))
