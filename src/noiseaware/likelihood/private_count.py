"""A number of records that is itself noisy: log p(y, ñ | θ), with n summed out.

    p(y, ñ | θ) = Σ_n p(ñ | n) p(y | θ, n)        n = 0, 1, 2, …, all equally probable before ñ was seen

p(y | θ, n) is a smooth function of n on the scale on which the noise of y hides one record, and is evaluated at a few
whole numbers, the nodes of the count (evidence/count.py). Between these its logarithm is interpolated by cubics, and
the noise of n, which may have a kink at ñ, is taken as it is.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware.evidence.count import AbstractCount
from noiseaware.likelihood import line

_DEPTH = 700.0  # log likelihood this far below the greatest is as good as none, and cubics through it stay finite

Likelihood = Callable[[Float[Array, " m"]], Float[Array, " m"]]


def marginal(
    likelihood: Callable[[Float[Array, ""]], Likelihood], empty: Float[Array, ""], count: AbstractCount
) -> Likelihood:
    """Return log p(y, ñ | θ) for a vector of θ, from log p(y | θ, n) for each n and log p(y) of no records."""

    nodes, points = jnp.asarray(count.nodes), jnp.asarray(count.points)

    def summed(log_likelihood: Float[Array, " k"]) -> Float[Array, ""]:
        smooth = line.interpolate(nodes, jnp.maximum(log_likelihood, log_likelihood.max() - _DEPTH), points)
        *_, log_terms = line.cells(points, smooth + count.log_density(points), whole=True)
        nobody = empty + count.log_density(jnp.zeros_like(empty))
        return jnp.logaddexp(jax.nn.logsumexp(log_terms), nobody)

    def of(theta: Float[Array, " m"]) -> Float[Array, " m"]:
        each = jax.lax.map(lambda n: likelihood(n)(theta), nodes)
        return jax.vmap(summed, in_axes=1)(each)

    return of
