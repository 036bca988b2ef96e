"""What a chain walks on where clamped records have so many statistics that their covariance cannot be worked out anew.

    s = y − noise(z)                       z ~ Normal(0, I), and noise(z) as far out in its law as z is in its own
    e = H⁻¹ T(θ) (s − n µ(θ)) / √n         e ~ Normal(0, I)

    log p(θ, z | y) = log p(θ) − ½|z|² − ½|e|² + log |T(θ)| − ½k log n + constant

µ(θ), in closed form, is the mean of (c, ccᵀ) of a clamped record c, and tells its mean m and covariance W = BBᵀ. T(θ)
turns sums of (c, ccᵀ) into those of (w, wwᵀ), w = B⁻¹(c − m). Their covariance HHᵀ, third and fourth moments of what is
standardised, hardly goes with θ and is held as it is at one likely θ. No step factorises more than W then. With z as
coordinates beside those of θ Laplace noise needs no scale for each sum, and its density has no kink: with s or e in
place of z, steps had to be a tenth as long.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.family import LinearRegression, MultivariateNormal
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import AbstractRealPrior
from noiseaware.sampler import _normal, _target
from noiseaware.triangular import cholesky, solve

HOLDS = MultivariateNormal | LinearRegression  # of all second moments W can be told


def standardised(
    away: Float[Array, " k"], mean: Float[Array, " k"], d: int
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    """T away, and log |T|: with Σ(c − m)(c − m)ᵀ − nW = a₂ − m a₁ᵀ − a₁ mᵀ of the two parts of away."""
    m = mean[:d]
    root = cholesky(_symmetric(mean[d:], d) - jnp.outer(m, m))
    cross = jnp.outer(m, away[:d])
    both = jnp.column_stack([away[:d], _symmetric(away[d:], d) - cross - cross.T])
    half = solve(root, both)
    products = solve(root, half[:, 1:].T)
    log_size = -(d + 2) * jnp.log(jnp.diag(root)).sum()
    return jnp.concatenate([half[:, 0], products[np.triu_indices(d)]]), log_size


def _symmetric(upper: Float[Array, " p"], d: int) -> Float[Array, "d d"]:
    above = jnp.zeros((d, d), upper.dtype).at[np.triu_indices(d)].set(upper)
    return above + jnp.triu(above, 1).T


def inverse_root(family: HOLDS, theta: Float[Array, " m"]) -> Float[Array, "k k"]:
    """H⁻¹ at one θ."""
    moments = family.released_moments(theta)
    assert moments is not None
    mean, covariance = moments
    root = _normal.root(covariance, jnp.zeros_like(mean))
    columns = jax.vmap(lambda column: standardised(column, mean, family.dimension)[0])(root.T)
    return jnp.linalg.inv(columns.T)


def of(
    family: HOLDS,
    prior: AbstractRealPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, " k"],
    size: _target.Size,
    inverse: Float[Array, "k k"],
) -> _target.Target:
    """The target of a release with H⁻¹ held; of v the coordinates of θ come first, and then z."""
    own, k = prior.num_coordinates, y.size

    def hidden(v):
        """e, and log |de/ds| but for that of H."""
        n, mean = size.of(v)[1], family.released_mean(prior.from_real(v[:own]))
        s = y - _target.noise_at(mechanism, v[own : own + k])
        away, log_size = standardised(s - n * mean, mean, family.dimension)
        return inverse @ away / jnp.sqrt(n), log_size - 0.5 * k * jnp.log(n)

    def believed(v, noise):
        """log of the prior of all that is walked on."""
        return prior.log_density_real(v[:own]) - 0.5 * (v[own : own + k] ** 2).sum() + size.log_density(v, noise)

    def log_density(v, noise=_target.log_noise):
        e, log_size = hidden(v)
        return believed(v, noise) + log_size - 0.5 * (e**2).sum()

    def curvature(v):
        """That of e by its slopes alone (Gauss and Newton's), and the prior's."""
        slope = jax.jacfwd(lambda v: hidden(v)[0])(v)
        return slope.T @ slope - jax.hessian(believed)(v, _target.smooth_noise)

    starts = _target.starts_of(family, prior, y, size, jnp.zeros(k))
    smooth = functools.partial(log_density, noise=_target.smooth_noise)
    return _target.Target(log_density, smooth, curvature, starts, lambda key, v: prior.from_real(v[:own]))
