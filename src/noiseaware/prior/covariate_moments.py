"""Covariates of any law, known by their moments up to the fourth, as those of a public sample.

    E zz'  and  Cov(z_i z_j, z_k z_l)        of z = (x, 1)

It has no unknown parameter: what is believed of covariates is taken as known.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractPrior, check_number, mean_vector


class CovariateMoments(AbstractPrior):
    """CovariateMoments(mean, covariance): of the numbers x_j and x_j x_k (j ≤ k) of one record, in this order.

    The covariance has a row for each of these numbers too.
    """

    mean: np.ndarray | Float[Array, " k"]
    covariance: np.ndarray | Float[Array, "k k"]

    def __init__(self, mean, covariance) -> None:
        self.mean = mean_vector(mean)
        check_number("covariance", covariance, positive=False)
        self.covariance = covariance if isinstance(covariance, jax.Array) else np.asarray(covariance, dtype=float)

    def __check_init__(self) -> None:
        size = len(self.mean)
        if self.covariance.shape != (size, size):
            raise ValueError(f"covariance must be {size} × {size}, got {self.covariance.shape}.")

    @classmethod
    def of(cls, x) -> "CovariateMoments":
        """Those of a public sample: an array with a row for each record and a column for each covariate."""
        x = np.asarray(x, dtype=float)
        x = x[:, None] if x.ndim == 1 else x
        p = x.shape[1]
        numbers = [*x.T, *(x[:, i] * x[:, j] for i in range(p) for j in range(i, p))]
        return cls(np.mean(numbers, axis=1), np.atleast_2d(np.cov(numbers)))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape 0"]:
        """Nothing is unknown."""
        return jnp.zeros((*shape, 0))

    def log_density(self, theta: Float[Array, "*shape 0"]) -> Float[Array, "*shape"]:
        return jnp.zeros(theta.shape[:-1])

    def log_normalizer(self) -> Float[Array, ""]:
        return jnp.zeros(())

    def marginals(self) -> tuple[()]:
        return ()

    def __str__(self) -> str:
        return f"CovariateMoments(of {len(self.mean)} numbers)"
