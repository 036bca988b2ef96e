"""A number of records that is itself noisy: log p(y, ñ | θ), with n summed out.

    p(y, ñ | θ) = Σ_n p(ñ | n) p(y | θ, n)        n = 0, 1, 2, …, all as likely before ñ was seen

p(y | θ, n) is a smooth function of n on the scale on which the noise of y hides one record, and is evaluated at a few
whole numbers: each of them where there are few, else evenly spread about ñ and then ever further apart. Between these
its logarithm is interpolated by cubics, and the noise of n, which may have a kink at ñ, is taken as it is.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.evidence.release import NoisyCount
from noiseaware.family import AbstractFamily
from noiseaware.likelihood import line
from noiseaware.mechanism import AbstractMechanism

_FEW = 64  # whole numbers that are all listed
_BULK = 5.0  # scales of the noise of n in which nodes are evenly spread
_FINER = 8  # interpolated points from one node to the next; every whole number where these are nearer
_DEPTH = 700.0  # log likelihood this far below the greatest is as good as none, and cubics through it stay finite
_ROUGH = 5  # nodes that show where the mass is

Likelihood = Callable[[Float[Array, " m"]], Float[Array, " m"]]


class Sizes(eqx.Module):
    """Numbers of records to evaluate at, and those to sum over; what was released of it; and the law of its noise."""

    nodes: Float[Array, " k"]
    points: Float[Array, " p"]
    value: Float[Array, ""]
    mechanism: AbstractMechanism

    @property
    def likely(self) -> Float[Array, ""]:
        return jnp.maximum(self.value, 1.0)

    def fewer(self) -> "Sizes":
        """Nodes enough to see where the mass is."""
        every = np.unique(np.round(np.linspace(0, self.nodes.size - 1, _ROUGH)).astype(int))
        return Sizes(self.nodes[every], self.points, self.value, self.mechanism)


def sizes(count: int | NoisyCount, family: AbstractFamily, mechanism: AbstractMechanism) -> float | Sizes:
    """Where to evaluate: static in number, since all is known but y; a public n is itself."""
    if not isinstance(count, NoisyCount):
        return float(count)
    scale, value = float(count.mechanism.spread), float(count.value)  # type: ignore[arg-type]
    scales = count.mechanism.reach
    first = max(1.0, np.ceil(value - scales * scale))
    last = max(1.0, np.ceil(max(value, 1.0) + scales * scale))
    if last - first < _FEW:
        nodes = np.arange(first, last + 1)
    else:
        nodes = _spread(max(1.0, value), scale, scales, _spacing(count, family, mechanism))
        nodes = np.unique(np.append(first, np.clip(np.round(nodes), first, last)))
    between = np.linspace(nodes[:-1], nodes[1:], _FINER + 1).ravel()
    points = np.unique(np.append(np.round(between), nodes))
    return Sizes(jnp.asarray(nodes), jnp.asarray(points), jnp.asarray(value), count.mechanism)


def _spacing(count: NoisyCount, family: AbstractFamily, mechanism: AbstractMechanism) -> float:
    """Between nodes, in scales of the noise of n: 0.7 of how many records the noise of y hides, within limits."""
    try:
        most = family.sensitivity("add_remove")
    except ValueError:  # without bounds
        return 0.25
    hidden = float(np.max(np.asarray(mechanism.spread))) / most / float(count.mechanism.spread)  # type: ignore[arg-type]
    return float(np.clip(0.7 * hidden, 1 / 16, 1 / 2))


def _spread(centre: float, scale: float, reach: float, spacing: float) -> np.ndarray:
    """Nodes on both sides of the centre: evenly at first, then ever further apart."""
    steps = np.arange(0.0, min(_BULK, reach) + spacing, spacing)
    while steps[-1] < reach:
        steps = np.append(steps, steps[-1] + max(spacing, 0.25 * (steps[-1] - _BULK + 1)))
    return centre + scale * np.concatenate([-steps[::-1], steps[1:]])


def marginal(likelihood: Callable[[Float[Array, ""]], Likelihood], empty: Float[Array, ""], at: Sizes) -> Likelihood:
    """log p(y, ñ | θ) for a vector of θ, from log p(y | θ, n) for each n and log p(y) of no records."""

    def summed(log_likelihood: Float[Array, " k"]) -> Float[Array, ""]:
        smooth = line.interpolate(at.nodes, jnp.maximum(log_likelihood, log_likelihood.max() - _DEPTH), at.points)
        *_, log_terms = line.cells(at.points, smooth + at.mechanism.log_density(at.value - at.points), whole=True)
        nobody = empty + at.mechanism.log_density(at.value)
        return jnp.logaddexp(jax.nn.logsumexp(log_terms), nobody)

    def of(theta: Float[Array, " m"]) -> Float[Array, " m"]:
        each = jax.lax.map(lambda n: likelihood(n)(theta), at.nodes)
        return jax.vmap(summed, in_axes=1)(each)

    return of
