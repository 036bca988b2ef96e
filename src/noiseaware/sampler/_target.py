"""What a chain walks on: an unconstrained vector v, its log density, and the parameters that go with it.

    the statistic    p(s | y) ∝ p(s) p(y | s),  p(s) = h_n(s) Z(prior + s)/Z(prior);  then θ | s by conjugacy
    the parameter    y ~ Normal(n E r(θ), n Cov r(θ) + D),  r what the bounds leave of the statistic t

The first serves families of second moments: the parameters are integrated out, every v is a possible statistic, and
nothing is approximated. The second is the central limit theorem with the sum integrated out, for any family and any
bounds; Laplace noise of scale b is normal of variance 2b²w with w ~ Exp(1), and w = −log Φ(−u) with u standard normal.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Key

from noiseaware.family import AbstractFamily, AbstractQuadraticFamily
from noiseaware.mechanism import AbstractMechanism, DiscreteLaplace, Laplace
from noiseaware.prior import AbstractPrior, AbstractRealPrior, AbstractScalarPrior, Numeric
from noiseaware.sampler import _moment

_JITTER = 1e-10  # of a variance: some covariances have no inverse
_NAIVE = 200  # draws that tell where the naive posterior is


class Target(NamedTuple):
    """A log density of v; one with its kinks smoothed, and its curvature; where to start; and a draw of θ given v."""

    log_density: Callable[[Float[Array, " k"]], Float[Array, ""]]
    smooth: Callable[[Float[Array, " k"]], Float[Array, ""]]
    curvature: Callable[[Float[Array, " k"]], Float[Array, "k k"]]
    starts: Float[Array, "m k"]
    theta: Callable[[Key[Array, ""], Float[Array, " k"]], Float[Array, "..."]]


def of(
    family: AbstractFamily, prior: AbstractPrior, mechanism: AbstractMechanism, y: Float[Array, " k"], n: Numeric
) -> Target:
    """The target of a release."""
    quadratic = family.as_quadratic(prior)
    if quadratic is not None:
        return _of_statistic(*quadratic, mechanism, y, n)
    assert isinstance(prior, AbstractRealPrior)
    return _of_parameter(family, prior, mechanism, y, n)


def _of_statistic(
    family: AbstractQuadraticFamily,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, " k"],
    n: Numeric,
) -> Target:
    inner = family.scaled(prior)

    def log_marginal(v):
        mean, scatter, log_measure = family.from_real(v, n)
        return family.joined(mean, scatter, n), log_measure + family.log_evidence(inner, mean, scatter, n)

    def log_density(v):
        s, log_prior = log_marginal(v)
        return log_prior + mechanism.log_density(y - s).sum()

    def smooth(v):
        s, log_prior = log_marginal(v)
        return log_prior + _smooth_noise(mechanism, y - s).sum()

    def theta(key, v):
        mean, scatter, _ = family.from_real(v, n)
        return family.unscaled_theta(family.update_scaled(inner, mean, scatter, n).sample(key))

    expected = family.joined(*family.expected(inner, n), n)
    likely = [family.project(share * y + (1 - share) * expected, n) for share in (0.0, 0.1, 0.5, 1.0)]
    starts = jnp.stack([family.to_real(s, n) for s in likely])
    return Target(log_density, smooth, jax.hessian(smooth), starts, theta)


def _smooth_noise(mechanism: AbstractMechanism, noise: Float[Array, " k"]) -> Float[Array, " k"]:
    """log p(noise) up to a constant; of the Laplace law a smooth one with the same tails and the same variance's
    curvature at 0, −2√(1 + (noise/2b)²)."""
    if isinstance(mechanism, Laplace | DiscreteLaplace):
        return -2 * jnp.sqrt(1 + (0.5 * noise / mechanism.spread) ** 2)
    return -0.5 * (noise / mechanism.spread) ** 2


def _of_parameter(
    family: AbstractFamily, prior: AbstractRealPrior, mechanism: AbstractMechanism, y: Float[Array, " k"], n: Numeric
) -> Target:
    is_laplace = isinstance(mechanism, Laplace | DiscreteLaplace)
    size, k = prior.num_coordinates, y.size

    def coordinate(v):
        return v[0] if isinstance(prior, AbstractScalarPrior) else v[:size]

    def moments(v):
        """Mean of y, and the Cholesky factor of its covariance."""
        weights = -2 * log_ndtr(-v[size:]) if is_laplace else 1.0
        noise_variance = jnp.broadcast_to(mechanism.spread**2 * weights, (k,))
        mean, covariance = _moment.released(family, prior.from_real(coordinate(v)))
        covariance = n * covariance
        return n * mean, jnp.linalg.cholesky(covariance + jnp.diag(noise_variance + _JITTER * jnp.diag(covariance)))

    def log_density(v):
        mean, root = moments(v)
        away = jax.scipy.linalg.solve_triangular(root, y - mean, lower=True)
        spread = 0.5 * (away**2).sum() + jnp.log(jnp.diag(root)).sum()
        return prior.log_density_real(coordinate(v)) - 0.5 * (v[size:] ** 2).sum() - spread

    def information(v):
        """Fisher's, of the mean alone, and the prior's curvature: a Hessian of moments would be fourth derivatives."""
        slope, root = jax.jacfwd(moments, has_aux=True)(v)
        across = jax.scipy.linalg.solve_triangular(root, slope, lower=True)
        believed = jax.hessian(lambda v: prior.log_density_real(coordinate(v)) - 0.5 * (v[size:] ** 2).sum())(v)
        return across.T @ across - believed

    near = family.update(prior, family.project(y, n), n).sample(jax.random.key(0), (_NAIVE,))
    before = prior.sample(jax.random.key(1), (_NAIVE,))
    reals = [jnp.reshape(prior.to_real(draws), (_NAIVE, size)).mean(0) for draws in (near, before)]
    hidden = jnp.zeros(k if is_laplace else 0)
    starts = jnp.stack([jnp.concatenate([real, hidden]) for real in reals])
    return Target(log_density, log_density, information, starts, lambda key, v: prior.from_real(coordinate(v)))
