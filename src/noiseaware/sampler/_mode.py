"""The mode of a smooth log density, and the coordinates in which it looks like a standard normal one there.

Newton's method on the eigenvectors of a curvature matrix, the Hessian or the Fisher information: every curvature is
taken as that of a hill, |λ|, and damped when a step does not climb (Dauphin et al. 2014).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

LogDensity = Callable[[Float[Array, " k"]], Float[Array, ""]]
Curvature = Callable[[Float[Array, " k"]], Float[Array, "k k"]]

_STEPS = 80
_CLOSE = 1e-4  # what a step may still promise to gain, in log density
_DAMPING = (1e-9, 1e9)
_FLATTEST = 1e-8  # of the sharpest curvature


class Peak(NamedTuple):
    """Where the log density is highest, and a matrix W such that v = mode + Wz is nearly standard normal in z."""

    mode: Float[Array, " k"]
    spread: Float[Array, "k k"]


def climb(log_density: LogDensity, curvature: Curvature, starts: Float[Array, "m k"]) -> Peak:
    """The mode that is reached from the highest of the starts."""
    heights = jax.vmap(log_density)(starts)
    mode = _newton(log_density, curvature, starts[jnp.argmax(jnp.where(jnp.isnan(heights), -jnp.inf, heights))])
    steepness, directions = _hill(curvature, mode)
    return Peak(mode, directions / jnp.sqrt(steepness))


def _hill(curvature: Curvature, v: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Curvatures, all made those of a hill, and their directions."""
    steepness, directions = jnp.linalg.eigh(jnp.nan_to_num(curvature(v)))
    steepness = jnp.abs(steepness)
    return jnp.maximum(steepness, _FLATTEST * steepness.max() + 1e-12), directions


def _newton(log_density: LogDensity, curvature: Curvature, start: Float[Array, " k"]) -> Float[Array, " k"]:
    def climbs(carry):
        _, _, damping, gain, steps = carry
        return (steps < _STEPS) & (gain > _CLOSE) & (damping < _DAMPING[1])

    def step(carry):
        v, height, damping, gain, steps = carry
        slope = jnp.nan_to_num(jax.grad(log_density)(v))
        steepness, directions = _hill(curvature, v)
        along = directions.T @ slope
        move = along / (steepness * (1 + damping))
        there = v + directions @ move
        reached = log_density(there)
        is_higher = reached > height
        damping = jnp.clip(jnp.where(is_higher, damping / 10, jnp.maximum(damping, 1e-3) * 8), *_DAMPING)
        gain = jnp.where(is_higher, 0.5 * (along * move).sum(), gain)
        return jnp.where(is_higher, there, v), jnp.where(is_higher, reached, height), damping, gain, steps + 1

    first = (start, log_density(start), jnp.asarray(1e-3, start.dtype), jnp.asarray(jnp.inf, start.dtype), 0)
    return jax.lax.while_loop(climbs, step, first)[0]
