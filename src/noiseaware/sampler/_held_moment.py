"""Moments of clamped records that have so many statistics that their covariance cannot be worked out at each step.

    Cov(c, ccᵀ) = GGᵀ        G = T(θ)⁻¹ H        HHᵀ = Cov(w, wwᵀ),  w = B⁻¹(c − m)

µ(θ), in closed form, is the mean of (c, ccᵀ) of a clamped record c, and tells its mean m and covariance W = BBᵀ. T(θ)
turns sums of (c, ccᵀ), less their means, into those of (w, wwᵀ). The covariance HHᵀ of these, third and fourth moments
of what is standardised, hardly goes with θ and is held as it is at one likely θ.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.family import LinearRegression, MultivariateNormal
from noiseaware.sampler import _normal
from noiseaware.sampler._moment import Moments
from noiseaware.triangular import cholesky, solve

HOLDS = MultivariateNormal | LinearRegression  # of all second moments W can be told


def hold(family: HOLDS, theta: Float[Array, " m"]) -> Float[Array, "k k"]:
    """H at one θ."""
    moments = family.released_moments(theta)
    assert moments is not None
    mean, covariance = moments
    return standardised(_normal.root(covariance), mean, family.dimension)


def released(family: HOLDS, held: Float[Array, "k k"], theta: Float[Array, " m"]) -> Moments:
    """Of what is released of one record, with H held."""
    mean = family.released_mean(theta)
    root = restored(held, mean, family.dimension)
    return Moments(mean, root @ root.T)


def standardised(sums: Float[Array, "k m"], mean: Float[Array, " k"], d: int) -> Float[Array, "k m"]:
    """T sums: Σ(c − m)(c − m)ᵀ − nW = a₂ − m a₁ᵀ − a₁ mᵀ of the two parts of sums less their means."""
    m, root = _law(mean, d)
    inverse, first = solve(root, jnp.eye(d)), sums[:d]
    return _stretched(inverse, first, sums[d:][_places(d)] - _with(m, first))


def restored(sums: Float[Array, "k m"], mean: Float[Array, " k"], d: int) -> Float[Array, "k m"]:
    """T⁻¹ sums."""
    m, root = _law(mean, d)
    found = _stretched(root, sums[:d], sums[d:][_places(d)])
    return found.at[d:].add(_with(m, found[:d])[np.triu_indices(d)])


def _law(mean: Float[Array, " k"], d: int) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """m and B."""
    m = mean[:d]
    return m, cholesky(mean[d:][_places(d)] - jnp.outer(m, m))


def _with(m: Float[Array, " d"], first: Float[Array, "d m"]) -> Float[Array, "d d m"]:
    """m a₁ᵀ + a₁ mᵀ."""
    cross = m[:, None, None] * first
    return cross + jnp.swapaxes(cross, 0, 1)


def _stretched(
    matrix: Float[Array, "d d"], first: Float[Array, "d m"], second: Float[Array, "d d m"]
) -> Float[Array, "k m"]:
    """Sums of (Mw, Mw(Mw)ᵀ) from those of (w, wwᵀ)."""
    products = jnp.einsum("ia,abm,jb->ijm", matrix, second, matrix)
    return jnp.concatenate([matrix @ first, products[np.triu_indices(len(matrix))]])


def _places(d: int) -> np.ndarray:
    """Where the product of i and j stands among those of i ≤ j."""
    places = np.zeros((d, d), int)
    places[np.triu_indices(d)] = np.arange(d * (d + 1) // 2)
    return np.maximum(places, places.T)
