"""The normal law of noisy sums: a covariance, and on its diagonal the variance of the noise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware import triangular

_JITTER = 1e-10  # of a variance: some covariances have no inverse


def inverse_root(covariance: Float[Array, "k k"], variance: Float[Array, " k"]) -> Float[Array, "k k"]:
    """The inverse of the Cholesky factor of covariance + diag(variance)."""
    return triangular.inverse_root(_whole(covariance, variance))


def root(covariance: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The Cholesky factor."""
    whole = _whole(covariance, jnp.zeros(len(covariance)))
    return whole @ triangular.inverse_root(whole).T


def _whole(covariance: Float[Array, "k k"], variance: Float[Array, " k"]) -> Float[Array, "k k"]:
    return covariance + jnp.diag(variance + _JITTER * jnp.diag(covariance))


@jax.custom_jvp
def log_density(
    away: Float[Array, " k"], covariance: Float[Array, "k k"], variance: Float[Array, " k"]
) -> Float[Array, ""]:
    """log Normal(away; 0, covariance + diag(variance)), but for −½k log 2π."""
    return log_density_of(away, inverse_root(covariance, variance))


@log_density.defjvp
def _log_density_jvp(primals, tangents):
    """With V the whole covariance and a = V⁻¹ away the slopes are −a, and ½(aaᵀ − V⁻¹) in V. To differentiate the steps
    of a factorisation would take longer."""
    away, covariance, variance = primals
    inverse = inverse_root(covariance, variance)
    pulled = inverse.T @ (inverse @ away)
    slope = 0.5 * (jnp.outer(pulled, pulled) - inverse.T @ inverse)
    of_away, of_covariance, of_variance = tangents
    wider = (slope * _whole(of_covariance, of_variance)).sum()
    return log_density_of(away, inverse), wider - pulled @ of_away


def log_density_of(away: Float[Array, " k"], inverse: Float[Array, "k k"]) -> Float[Array, ""]:
    """The same from the inverse of the Cholesky factor."""
    return -0.5 * ((inverse @ away) ** 2).sum() + jnp.log(jnp.diag(inverse)).sum()
