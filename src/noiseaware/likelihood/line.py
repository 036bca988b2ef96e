"""Distributions on a line, known by their log density at nodes: find where the mass is, then draw exactly.

Between two nodes the log density is taken as linear, so a cell holds a piece of an exponential (on the reals) or
of a geometric law (on whole numbers) and both its mass and its inverse CDF are closed forms:

    mass = f_i (e^{rm} − 1) / r        x = x_i + log(1 + u (e^{rm} − 1)) / r        m = length, r = slope

On whole numbers with a node at each, this is plain enumeration; Laplace tails are exact at any spacing.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

# Log density this far below the maximum holds no mass that a draw could show: e^−50 · (number of cells) < 1e−17.
_DEPTH = 50.0
_SMALL = 1e-6  # of a rise of the log density in a cell: taken for 0 it moves a draw by half of that share of the cell
_FOCUS_NODES = 256
_FOCUS_STAGES = 7


def nodes_between(
    low: Float[Array, ""], high: Float[Array, ""], pivot: Float[Array, ""], count: int
) -> Float[Array, " count"]:
    """Sorted whole numbers from low to high: half evenly spread, half crowding geometrically to low, pivot and high.

    The crowded ones see power laws at an end of the support and the kink of Laplace noise at the pivot. Where
    there are at least as many even nodes as whole numbers, every whole number is a node (some of them twice).
    """
    even = low + (high - low) * jnp.linspace(0, 1, count // 2)
    nodes = jnp.concatenate([even, _crowd(low, pivot, count // 4), _crowd(pivot, high, count // 4)])
    return jnp.sort(jnp.clip(jnp.round(nodes), low, high))


def _crowd(low: Float[Array, ""], high: Float[Array, ""], count: int) -> Float[Array, " count"]:
    """Nodes whose spacing grows from about 1 at both ends to the middle, as sinh does."""
    half = 0.5 * (high - low)
    rate = jnp.maximum(jnp.arcsinh(half), 1e-3)
    offset = half * jnp.sinh(rate * jnp.linspace(0, 1, count // 2)) / jnp.sinh(rate)
    return jnp.concatenate([low + offset, high - offset])


def focus(
    log_density: Callable[[Float[Array, " m"]], Float[Array, " m"]],
    low: Float[Array, ""],
    high: Float[Array, ""],
    pivot: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Shrink whole numbers low … high to those where the log density is within reach of its maximum."""

    def shrink(_, window):
        low, high = window
        nodes = nodes_between(low, high, jnp.clip(pivot, low, high), _FOCUS_NODES)
        return held_window(nodes, log_density(nodes))

    return jax.lax.fori_loop(0, _FOCUS_STAGES, shrink, (low, high))


def held_window(
    nodes: Float[Array, " m"], log_density: Float[Array, " m"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """From the node before the first that is within reach of the maximum to the node after the last."""
    held: Bool[Array, " m"] = log_density >= jnp.nanmax(log_density) - _DEPTH
    index = jnp.arange(nodes.size)
    first = jnp.where(held, index, nodes.size).min()
    last = jnp.where(held, index, -1).max()
    return nodes[jnp.maximum(first - 1, 0)], nodes[jnp.minimum(last + 1, nodes.size - 1)]


def redistribute(nodes: Float[Array, " m"], log_density: Float[Array, " m"]) -> Float[Array, " m"]:
    """As many nodes again, denser where the log density bends and where there is mass, far into the tails.

    The monitor is f^{1/4} (half as it is, half times the root of the curvature of log f) plus a small even part; the
    new nodes are its quantiles.
    """
    log_density = jnp.nan_to_num(jnp.maximum(log_density, jnp.nanmax(log_density) - 4 * _DEPTH))
    length = jnp.maximum(jnp.diff(nodes), 1e-300)
    slope = jnp.diff(log_density) / length
    bend = jnp.abs(jnp.diff(slope)) / (0.5 * (length[1:] + length[:-1]))
    bend = jnp.concatenate([bend[:1], bend, bend[-1:]])
    root = jnp.sqrt(jnp.maximum(bend[1:], bend[:-1]))
    height = jnp.exp(0.25 * (jnp.maximum(log_density[1:], log_density[:-1]) - log_density.max()))
    plain, bent = height * length, height * root * length
    share = 0.45 * plain / jnp.maximum(plain.sum(), 1e-300)
    share = share + 0.45 * bent / jnp.maximum(bent.sum(), 1e-300) + 0.1 / length.size
    level = jnp.append(jnp.zeros(1), jnp.cumsum(share))
    return jnp.interp(jnp.linspace(0, 1, nodes.size) * level[-1], level, nodes)


def refine(
    nodes: Float[Array, " m"], log_density: Float[Array, " m"], finer: int
) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
    """Cubic interpolation of the log density at `finer` points a cell."""
    length = jnp.maximum(jnp.diff(nodes), 1e-300)
    u = jnp.arange(0.0, finer) / finer
    cubic = _cubic(length, log_density, u)
    points = nodes[:-1, None] + u * length[:, None]
    return jnp.append(points.ravel(), nodes[-1]), jnp.append(cubic.ravel(), log_density[-1])


def interpolate(
    nodes: Float[Array, " m"], log_density: Float[Array, " m"], points: Float[Array, " f"]
) -> Float[Array, " f"]:
    """The same cubics at any points between the first node and the last."""
    cell = jnp.clip(jnp.searchsorted(nodes, points, side="right") - 1, 0, nodes.size - 2)
    length = jnp.maximum(jnp.diff(nodes), 1e-300)
    return _cubic(length, log_density, ((points - nodes[cell]) / length[cell])[:, None], cell)[:, 0]


def _cubic(
    length: Float[Array, " c"],
    log_density: Float[Array, " m"],
    u: Float[Array, "..."],
    cell: Int[Array, " f"] | slice = slice(None),
) -> Float[Array, "..."]:
    """The cubics of the given cells at shares u of their length.

    Slopes are those of the parabola through three nodes, held within three times the smaller secant where the two
    secants agree in sign: no overshoot where the log density is monotone (Fritsch & Carlson 1980).
    """
    secant = jnp.diff(log_density) / length
    before, after = secant[:-1], secant[1:]
    parabola = (before * length[1:] + after * length[:-1]) / (length[1:] + length[:-1])
    most = 3 * jnp.minimum(jnp.abs(before), jnp.abs(after))
    limited = jnp.where(before * after > 0, jnp.clip(parabola, -most, most), parabola)
    slope = jnp.concatenate([secant[:1], limited, secant[-1:]])
    parts = secant * length, slope[:-1] * length, slope[1:] * length, log_density[:-1]
    rise, left, right, start = (part[cell][:, None] for part in parts)
    return start + u * (left + u * (3 * rise - 2 * left - right + u * (left + right - 2 * rise)))


def draw(
    key: Key[Array, ""], nodes: Float[Array, " m"], log_density: Float[Array, " m"], num_draws: int
) -> Float[Array, " num_draws"]:
    """Independent draws of a real number by the inverse CDF."""
    return _drawn(key, nodes, *cells(nodes, log_density, whole=False), num_draws)


def draw_whole(
    key: Key[Array, ""], nodes: Float[Array, " m"], log_density: Float[Array, " m"], num_draws: int
) -> Float[Array, " num_draws"]:
    """Independent draws of a whole number: a geometric law on m numbers is the floor of an exponential on [0, m)."""
    length, slope, log_mass = cells(nodes, log_density, whole=True)
    starts = jnp.append(nodes, nodes[-1] + 1)
    return jnp.clip(jnp.floor(_drawn(key, starts, length, slope, log_mass, num_draws)), nodes[0], nodes[-1])


def _drawn(
    key: Key[Array, ""],
    nodes: Float[Array, " m"],
    length: Float[Array, " c"],
    slope: Float[Array, " c"],
    log_mass: Float[Array, " c"],
    num_draws: int,
) -> Float[Array, " num_draws"]:
    mass = jnp.exp(log_mass - log_mass.max())
    cumulative = jnp.cumsum(mass)
    level = jax.random.uniform(key, (num_draws,)) * cumulative[-1]
    cell = jnp.clip(jnp.searchsorted(cumulative, level, side="right"), 0, log_mass.size - 1)
    # what a cell needs is worked out once for each cell, not for each draw; one that is nearly flat has a small rise
    rise = slope * length
    rise = jnp.where(jnp.abs(rise) < _SMALL, _SMALL, rise)
    growth, per_rise, below = jnp.expm1(rise), length / rise, cumulative - mass
    share = jnp.clip((level - below[cell]) / mass[cell], 0.0, 1.0)
    return nodes[cell] + per_rise[cell] * jnp.log1p(share * growth[cell])


def cells(
    nodes: Float[Array, " m"], log_density: Float[Array, " m"], *, whole: bool
) -> tuple[Float[Array, " c"], Float[Array, " c"], Float[Array, " c"]]:
    """Length, slope and log mass of each cell; on whole numbers, {x_i, …, x_{i+1} − 1}, and the last is {x_m}."""
    floor = log_density.max() - 14 * _DEPTH  # keeps slopes finite where the density is 0
    log_density = jnp.where(jnp.isnan(log_density), log_density, jnp.maximum(log_density, floor))
    if whole:
        nodes = jnp.append(nodes, nodes[-1] + 1)
        log_density = jnp.append(log_density, log_density[-1])
    length = jnp.diff(nodes)
    empty = length <= 0
    rise = jnp.where(empty, 0.0, jnp.diff(log_density))
    slope = rise / jnp.where(empty, 1.0, length)
    flat = jnp.abs(rise) < 1e-6
    total = jnp.expm1(jnp.where(flat, 1.0, rise))
    per_step = jnp.where(flat, 1.0, jnp.expm1(slope) if whole else slope)
    # to second order in the rise, (e^{rm} − 1)/(e^r − 1) = m (1 + r(m−1)/2) and (e^{rm} − 1)/r = m (1 + rm/2)
    nearly = length + 0.5 * rise * (length - 1 if whole else length)
    log_mass = log_density[:-1] + jnp.log(jnp.where(flat, nearly, total / jnp.where(per_step == 0, 1.0, per_step)))
    return length, slope, jnp.where(empty, -jnp.inf, log_mass)
