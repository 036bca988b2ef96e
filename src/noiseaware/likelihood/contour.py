"""The density of a noisy sum by contour integration, for any law of one record.

With the record's log moment generating function k(z), noise of log mgf κ(z), and any c where both exist,

    p(y) = (1/2π) ∫ exp(n k(c + it) + κ(c + it) − (c + it) y) dt

Taken through the saddlepoint n k'(c) = y the integrand falls like a normal density in t√(n Var), so 65 points of the
trapezoid rule give full accuracy however far y is in the tail. The noise brings κ (`tilt`). Laplace noise has poles at
z = ±1/b; a contour that passes one of them adds its residue, e^{∓y/b + n k(±1/b)} / 2b, which is the exact answer when
y is out of reach.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware.mechanism import AbstractMechanism, AbstractTilt
from noiseaware.prior import Numeric

_STEP, _POINTS = 0.25, 65  # of the trapezoid rule, in standard deviations
_ALTERNATE, _STEPS = 30, 40
_SHOWS = 1e-9  # of 1/b: nearer to a pole, 1 − b²z² would be round-off


@runtime_checkable
class Law(Protocol):
    """One record, as far as sums of it are concerned."""

    def tilted(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """log mgf at c, and mean and variance of the law tilted by e^{cx}."""
        ...

    def turned(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """log modulus and angle of the characteristic function of the tilted law, centred at its mean."""
        ...

    def reach(self) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """The least and the greatest x, and the c below which the mgf exists; each may be infinite."""
        ...


class Point(NamedTuple):
    """log p(y), the tilt it was taken at, and mean and variance of the sum there."""

    log_density: Float[Array, ""]
    tilt: Float[Array, ""]
    mean: Float[Array, ""]
    variance: Float[Array, ""]


def _saddle(law: Law, scale: Numeric, y: Float[Array, ""], n: Numeric, low, high, slope) -> Float[Array, ""]:
    """The c in [low, high] nearest to n k'(c) + slope(c) = y.

    Newton steps inside a shrinking bracket, and at first every other step a halving of it, on a sinh scale because it
    may span many orders of magnitude: from the far side of e^c, Newton alone comes back by 1 a step. Its unit is that
    of the noise too, since a sum that hardly varies untilted would make it next to endless.
    """
    start = jnp.clip(jnp.zeros_like(y), low, high)
    unit = 1 / jnp.sqrt(n * law.tilted(start)[2] + scale**2)

    def step(i, state):
        c, low, high = state
        _, mean, variance = law.tilted(c)
        value, derivative = slope(c)
        gap = n * mean + value - y
        low, high = jnp.where(gap < 0, c, low), jnp.where(gap < 0, high, c)
        newton = c - gap / jnp.maximum(n * variance + derivative, 1e-300)
        halved = unit * jnp.sinh(0.5 * (jnp.arcsinh(low / unit) + jnp.arcsinh(high / unit)))
        is_newton = (newton >= low) & (newton <= high) & ((i % 2 == 0) | (i >= _ALTERNATE))
        return jnp.where(is_newton, newton, jnp.clip(halved, low, high)), low, high

    # no derivative: what is integrated along the line does not depend on where it crosses
    return jax.lax.stop_gradient(jax.lax.fori_loop(0, _STEPS, step, (start, low, high))[0])


def approximate(law: Law, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric) -> Float[Array, ""]:
    """Return the saddlepoint approximation of log p(y): finite everywhere, good enough to see where the mass is."""
    tilt = mechanism.tilt
    if tilt.pole is None:
        low, high = _bracket(law, tilt, y, n)
    else:
        edge = (1 - 1e-9) / tilt.scale + jnp.zeros_like(y)
        low, high = -edge, jnp.minimum(edge, (1 - 1e-12) * law.reach()[2])
    c = _saddle(law, tilt.scale, y, n, low, high, tilt.slope)
    k, _, variance = law.tilted(c)
    return n * k + tilt.log_mgf(c) - c * y - 0.5 * jnp.log(2 * jnp.pi * (n * variance + tilt.slope(c)[1]))


def _bracket(law: Law, tilt: AbstractTilt, y: Float[Array, ""], n: Numeric):
    """c = (y − n k'(c))/σ² lies between its values at the greatest and the least sum, and between 0 and that at 0."""
    scale = tilt.scale
    least, greatest, ceiling = law.reach()
    _, mean, _ = law.tilted(jnp.zeros_like(y))
    gap = (y - n * mean) / scale**2
    low = jnp.maximum((y - n * greatest) / scale**2, jnp.minimum(gap, 0.0))
    high = jnp.minimum((y - n * least) / scale**2, jnp.maximum(gap, 0.0))
    return low, jnp.minimum(high, (1 - 1e-12) * ceiling)


def evaluate(law: Law, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric) -> Point:
    """Return log p(y) by the contour integral; the tilt is limited to ±1/b under Laplace noise."""
    tilt = mechanism.tilt
    if tilt.pole is None:
        c = _saddle(law, tilt.scale, y, n, *_bracket(law, tilt, y, n), tilt.slope)
        _, mean, variance = law.tilted(c)
        return Point(_entire(law, tilt, y, n, c), c, n * mean, n * variance)
    _, _, ceiling = law.reach()
    _, _, variance = law.tilted(jnp.zeros_like(y))
    edge = tilt.pole + 8 / jnp.sqrt(n * variance + 1e-300)
    c = _saddle(law, tilt.scale, y, n, -edge, jnp.minimum(edge, (1 - 1e-12) * ceiling), lambda c: (0.0, 0.0))
    within = jnp.clip(c, -tilt.pole, tilt.pole)
    _, mean, variance = law.tilted(within)
    return Point(_past_poles(law, tilt, y, n, c), within, n * mean, n * variance)


def _integrand(law: Law, y: Float[Array, ""], n: Numeric, c: Float[Array, ""], t: Float[Array, " m"]):
    """log modulus and angle of exp(n k(z) − z y) at z = c + it; centring keeps large n from cancelling."""
    k, mean, _ = law.tilted(c)
    log_modulus, angle = law.turned(c, t)
    return n * (k + log_modulus) - c * y, n * angle - t * (y - n * mean)


def _trapezoid(log_modulus: Float[Array, " m"], angle: Float[Array, " m"], t: Float[Array, " m"], top):
    """e^{−top} (1/2π) ∫ f(t) dt of a function with f(−t) = conj f(t), from its values at t = 0, h, 2h, …"""
    values = jnp.exp(log_modulus - top) * jnp.cos(angle)
    return t[1] / jnp.pi * (values.sum() - 0.5 * values[0])


def _entire(law: Law, tilt: AbstractTilt, y: Float[Array, ""], n: Numeric, c: Float[Array, ""]) -> Float[Array, ""]:
    """Return log p(y) for noise without poles: normal noise multiplies the integrand by e^{σ²z²/2}."""
    _, _, variance = law.tilted(c)
    t = _STEP / jnp.sqrt(n * variance + tilt.scale**2) * jnp.arange(0.0, _POINTS)
    log_modulus, angle = _integrand(law, y, n, c, t)
    log_factor, turn = tilt.factor(c, t)
    log_modulus = log_modulus + log_factor
    top = log_modulus[0]
    return jnp.log(_trapezoid(log_modulus, angle + turn, t, top)) + top


def _past_poles(law: Law, tilt: AbstractTilt, y: Float[Array, ""], n: Numeric, c: Float[Array, ""]) -> Float[Array, ""]:
    """Return log p(y) for noise with poles ±1/b. The line is kept a standard deviation off them, or what shows."""
    scale = tilt.scale
    _, _, ceiling = law.reach()
    _, _, variance = law.tilted(c)
    width = 1 / jnp.sqrt(n * variance + 1e-300)
    side = jnp.where(c >= 0, 1.0, -1.0)
    off = jnp.maximum(width, _SHOWS / scale)
    beyond = jnp.maximum(jnp.abs(c), 1 / scale + off)
    near = jnp.abs(c) > 1 / scale - off
    passes = near & (side * beyond < ceiling)
    inside = jnp.where(near, side * jnp.maximum(1 / scale - off, 0.0), c)
    c = jnp.where(passes, side * beyond, inside)
    t = _STEP * width * jnp.arange(0.0, _POINTS)
    log_modulus, angle = _integrand(law, y, n, c, t)
    log_factor, turn = tilt.factor(c, t)
    log_modulus, angle = log_modulus + log_factor, angle + turn
    pole = jnp.where(passes, side / scale, 0.0)
    residue = n * law.tilted(pole)[0] - side * y / scale + tilt.log_residue
    top = jnp.where(passes, jnp.maximum(log_modulus[0], residue), log_modulus[0])
    passed = jnp.where(passes, jnp.exp(residue - top), 0.0)
    return jnp.log(_trapezoid(log_modulus, angle, t, top) + passed) + top
