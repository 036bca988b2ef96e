"""Moments of clamped records that have so many statistics that their covariance cannot be worked out at each step.

    Cov(c, ccᵀ) = GGᵀ        G = T(θ)⁻¹ H        HHᵀ = Cov(w, wwᵀ),  w = B⁻¹(c − m)

µ(θ), in closed form, is the mean of (c, ccᵀ) of a clamped record c, and tells its mean m and covariance W = BBᵀ. T(θ)
turns sums of (c, ccᵀ), less their means, into those of (w, wwᵀ). The covariance HHᵀ of these, third and fourth moments
of what is standardised, hardly goes with θ and is held as it is at one likely θ.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware.family import LinearRegression, MultivariateNormal
from noiseaware.likelihood import gaussian
from noiseaware.likelihood.moment import Moments
from noiseaware.triangular import cholesky, solve

HOLDS = MultivariateNormal | LinearRegression  # of all second moments W can be told
Law = tuple[Float[Array, " d"], Float[Array, "d d"]]
"""m and W."""


def hold(family: HOLDS, theta: Float[Array, " m"]) -> Float[Array, "k k"]:
    """H at one θ."""
    moments = family.released_moments(theta)
    assert moments is not None
    mean, covariance = moments
    return standardised(family, gaussian.root(covariance), mean)


def released(family: HOLDS, held: Float[Array, "k k"], theta: Float[Array, " m"]) -> Moments:
    """Of what is released of one record, with H held."""
    mean = family.released_mean(theta)
    root = restored(family, held, mean)
    return Moments(mean, root @ root.T)


def standardised(family: HOLDS, sums: Float[Array, "k m"], mean: Float[Array, " k"]) -> Float[Array, "k m"]:
    """T sums, of each column of sums less their means."""
    law = family.split(mean, 1.0)
    root = cholesky(law[1])
    return _turned(family, sums, law, solve(root, jnp.eye(len(root))), _standard(family))


def restored(family: HOLDS, sums: Float[Array, "k m"], mean: Float[Array, " k"]) -> Float[Array, "k m"]:
    """T⁻¹ sums, of each column."""
    law = family.split(mean, 1.0)
    return _turned(family, sums, _standard(family), cholesky(law[1]), law)


def _standard(family: HOLDS) -> Law:
    return jnp.zeros(family.dimension), jnp.eye(family.dimension)


def _turned(
    family: HOLDS, sums: Float[Array, "k m"], start: Law, matrix: Float[Array, "d d"], end: Law
) -> Float[Array, "k m"]:
    """Sums of records that are stretched by M and moved from the mean of one law to that of another.

    Of sums (a₁, a₂) the products of what is centred are a₂ − m a₁ᵀ − a₁ mᵀ, the slope of `split` along them.
    """

    def one(column: Float[Array, " k"]) -> Float[Array, " k"]:
        _, (first, second) = jax.jvp(lambda s: family.split(s, 1.0), (family.joined(*start, 1.0),), (column,))
        along = (matrix @ first, matrix @ second @ matrix.T)
        return jax.jvp(lambda mean, law: family.joined(mean, law, 1.0), end, along)[1]

    return jax.vmap(one, in_axes=1, out_axes=1)(sums)
