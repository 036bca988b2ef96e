"""The normal law of noisy sums: a covariance, and on its diagonal the variance of the noise."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware.triangular import cholesky, solve

_JITTER = 1e-10  # of a variance: some covariances have no inverse


def root(covariance: Float[Array, "k k"], variance: Float[Array, " k"]) -> Float[Array, "k k"]:
    """The Cholesky factor of covariance + diag(variance)."""
    return cholesky(covariance + jnp.diag(variance + _JITTER * jnp.diag(covariance)))


def log_density(
    away: Float[Array, " k"], covariance: Float[Array, "k k"], variance: Float[Array, " k"]
) -> Float[Array, ""]:
    """log Normal(away; 0, covariance + diag(variance)), but for −½k log 2π."""
    return log_density_of(away, root(covariance, variance))


def log_density_of(away: Float[Array, " k"], root: Float[Array, "k k"]) -> Float[Array, ""]:
    """The same from the Cholesky factor."""
    white = solve(root, away[:, None])
    return -0.5 * (white**2).sum() - jnp.log(jnp.diag(root)).sum()
