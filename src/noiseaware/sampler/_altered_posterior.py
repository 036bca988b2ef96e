"""Clamped or dropped records: the posterior of one parameter as a law on a line.

The saddlepoint approximation of the likelihood shows where the mass is; there the likelihood itself is evaluated
(see _altered_sum), its logarithm interpolated by cubics, and θ drawn by the inverse CDF. Records that are dropped
make E t(x) rise and fall with θ, so the line is searched in pieces on which it is monotone.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from jaxtyping import ArrayLike as Numeric

from noiseaware.family import AbstractUnboundedFamily
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import AbstractScalarPrior
from noiseaware.sampler import _altered_sum, _line

_FOCUS_NODES, _FOCUS_STAGES = 48, 7
_NODES = 128  # for the exact likelihood; about 0.16 posterior standard deviations apart
_FINER = 16  # interpolated points from one node to the next
_SEARCH = 400  # points for the turning points of E t(x)


def theta_nodes(
    family: AbstractUnboundedFamily,
    prior: AbstractScalarPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
) -> tuple[Float[Array, "pieces m"], Float[Array, "pieces m"]]:
    """Nodes in the prior's real coordinate and the log posterior density there, up to a constant."""

    def posterior(likelihood, v: Float[Array, " m"]) -> Float[Array, " m"]:
        theta = prior.from_real(v)
        return prior.log_density_real(v) + jax.vmap(lambda t: likelihood(family, mechanism, y, n, t))(theta)

    def piece(edges: Float[Array, "2"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        def shrink(_, window):
            nodes = jnp.linspace(*window, _FOCUS_NODES)
            return _line.held_window(nodes, posterior(_altered_sum.approximate, nodes))

        window = jax.lax.fori_loop(0, _FOCUS_STAGES, shrink, (edges[0], edges[1]))
        nodes = jnp.linspace(*window, _NODES)
        return nodes, posterior(_altered_sum.log_likelihood, nodes)

    return jax.lax.map(piece, _pieces(family, prior))


def _pieces(family: AbstractUnboundedFamily, prior: AbstractScalarPrior) -> Float[Array, "pieces 2"]:
    """Where the coordinate may lie, cut where E t(x) turns."""
    low, high = _range(family, prior)
    if family.outside == "clamp":
        return jnp.stack([low, high])[None]
    v = jnp.linspace(low, high, _SEARCH)
    mean = jax.vmap(lambda t: _altered_sum.record(family, t).tilted(jnp.zeros(()))[1])(prior.from_real(v))
    turns = jnp.sort(jnp.stack([v[jnp.nanargmin(mean)], v[jnp.nanargmax(mean)]]))
    edges = jnp.stack([low, *turns, high])
    return jnp.stack([edges[:-1], edges[1:]], axis=1)


def _range(
    family: AbstractUnboundedFamily, prior: AbstractScalarPrior
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """All that a float can hold of (0, ∞) or (0, 1); for a mean, the prior's reach and the bounds' together."""
    if family.support[0] == 0:
        positive = prior.from_real(jnp.asarray(800.0)) > 1
        return jnp.asarray(-690.0), jnp.where(positive, 690.0, 36.0)
    assert family.bounds is not None
    low, high = family.bounds
    reach = 40 * jnp.sqrt(prior.variance)  # type: ignore[attr-defined]
    centre = jnp.asarray(prior.mean)  # type: ignore[attr-defined]
    return jnp.minimum(centre - reach, low - (high - low)), jnp.maximum(centre + reach, high + (high - low))


def _refine(v: Float[Array, " m"], log_density: Float[Array, " m"]) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
    """Cubic Hermite interpolation between even nodes, with fourth-order slopes inside and second-order at the ends."""
    inner = (8 * (log_density[3:-1] - log_density[1:-3]) - (log_density[4:] - log_density[:-4])) / 12
    ends = jnp.gradient(log_density)
    slope = jnp.concatenate([ends[:2], inner, ends[-2:]])
    u = jnp.arange(0.0, _FINER) / _FINER
    left, right = log_density[:-1, None], log_density[1:, None]
    cubic = left + u * (
        slope[:-1, None]
        + u * (3 * (right - left) - 2 * slope[:-1, None] - slope[1:, None])
        + u**2 * (2 * (left - right) + slope[:-1, None] + slope[1:, None])
    )
    finer = v[:-1, None] + u * (v[1] - v[0])
    return jnp.append(finer.ravel(), v[-1]), jnp.append(cubic.ravel(), log_density[-1])


@functools.partial(jax.jit, static_argnames=("num_draws",))
def draws(
    key: Key[Array, ""],
    family: AbstractUnboundedFamily,
    prior: AbstractScalarPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    *,
    num_draws: int,
) -> Float[Array, " num_draws"]:
    """θ by the inverse CDF of p(θ | y)."""
    v, log_density = jax.vmap(_refine)(*theta_nodes(family, prior, mechanism, y, n))
    return prior.from_real(_line.draw(key, v.ravel(), log_density.ravel(), num_draws, whole=False))


@jax.jit
def log_likelihood(
    family: AbstractUnboundedFamily,
    prior: AbstractScalarPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    theta: Float[Array, " m"],
) -> Float[Array, " m"]:
    """log p(y | θ)."""
    return jax.vmap(lambda t: _altered_sum.log_likelihood(family, mechanism, y, n, t))(theta)
