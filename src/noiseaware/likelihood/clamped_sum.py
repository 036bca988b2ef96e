"""Clamped or dropped records: log p(y | θ) of their noisy sum, without the central limit theorem.

A record as it is summed is a law with an atom at each bound (clamp) or at 0 (drop) and the family's own density in
between, held as nodes and masses. Its noisy sum is integrated along a contour (see _contour). With few records between
the bounds that integrand does not die out: there the record is put on a lattice (each mass shared by its two
neighbours, which keeps the mean), tilted by e^{cx}, and convolved n times by the FFT.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float

from noiseaware.family import AbstractUnboundedFamily
from noiseaware.likelihood import contour
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import Numeric

_NODES = 96  # Gauss–Legendre nodes for the density of one record
_WHOLE_NODES = 4096  # at most, for a count; wider ranges are taken in strides
_LATTICE, _CELLS = 4096, 2048
_FINEST = 1e-15  # of what n records span: a finer lattice has places that a float cannot count
# Expected records strictly between the bounds above which the contour integral is used: |φ|^30 is below 1e−13 there.
_INNER = 30.0


class Record(NamedTuple):
    """A record as it is summed: a discrete law that stands for it to quadrature accuracy. The last two are atoms."""

    x: Float[Array, " k"]
    log_mass: Float[Array, " k"]

    def tilted(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """log mgf at c, and mean and variance of the law tilted by e^{cx}."""
        log_weight = self.log_mass + c * self.x
        k = jax.nn.logsumexp(log_weight)
        weight = jnp.exp(log_weight - k)
        mean = (weight * self.x).sum()
        return k, mean, (weight * (self.x - mean) ** 2).sum()

    def turned(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        k, mean, _ = self.tilted(c)
        weight = jnp.exp(self.log_mass + c * self.x - k)
        angle = t[:, None] * (self.x - mean)
        real, imaginary = (weight * jnp.cos(angle)).sum(-1), (weight * jnp.sin(angle)).sum(-1)
        return 0.5 * jnp.log(real**2 + imaginary**2), jnp.arctan2(imaginary, real)

    def reach(self) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        return self.x.min(), self.x.max(), jnp.full_like(self.x[0], jnp.inf)


def record(family: AbstractUnboundedFamily, theta: Float[Array, ""]) -> Record:
    """The law of one clamped or dropped record at θ."""
    inner_x, inner_mass = _inner(family, theta)
    atom_x, atom_mass = _atoms(family, theta)
    log_mass = _held(jnp.concatenate([inner_mass, atom_mass]))
    # exactly 1 in total, so that round-off is not raised to the n-th power
    return Record(jnp.concatenate([inner_x, atom_x]), log_mass - jax.nn.logsumexp(log_mass))


def _held(log_mass: Float[Array, " k"]) -> Float[Array, " k"]:
    """The same, but that nothing stays nothing: the slope of log 0 is not a number."""
    return jnp.where(log_mass == -jnp.inf, -jnp.inf, log_mass)


def _atoms(family: AbstractUnboundedFamily, theta: Float[Array, ""]) -> tuple[Float[Array, "2"], Float[Array, "2"]]:
    """Where clamped or dropped records land, and their log probabilities."""
    low, high = _bounds(family)
    if family.query.outside == "clamp":
        return jnp.asarray([low, high]), jnp.stack([family.log_below(low, theta), family.log_above(high, theta)])
    beyond = 1.0 if family.query.is_whole else 0.0
    below, above = family.log_below(low - beyond, theta), family.log_above(high + beyond, theta)
    return jnp.zeros(2), jnp.stack([below, above])


def _bounds(family: AbstractUnboundedFamily) -> tuple[float, float]:
    """The bounds, as far as they lie in the support; where both are below it, the upper one twice."""
    assert family.query.bounds is not None
    low, high = family.query.bounds
    return min(max(low, family.query.support[0]), high), high


def _open_interval(family: AbstractUnboundedFamily) -> tuple[float, float]:
    """The values that are summed as they are and are no atoms: for clamped counts the bounds themselves are atoms."""
    low, high = _bounds(family)
    if family.query.is_whole and family.query.outside == "clamp":
        return low + 1, high - 1
    return low, high


def _inner(family: AbstractUnboundedFamily, theta: Float[Array, ""]) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Nodes and log masses of the part between the atoms."""
    low, high = _open_interval(family)
    start, stop = (jnp.clip(edge, low, max(high, low)) for edge in family.window(theta))
    if family.query.is_whole:
        count = int(min(high - low + 1, _WHOLE_NODES))
        stride = jnp.maximum(jnp.ceil((stop - start + 1) / max(count, 1)), 1.0)
        x = start + stride * jnp.arange(0.0, count) + 0.5 * (stride - 1)
        is_inside = (x >= family.query.support[0]) & (x <= high)
        log_mass = jnp.where(is_inside, family.log_density(x, theta) + jnp.log(stride), -jnp.inf)
        # within a stride the mass leans to one side: its centroid is off the middle by slope · (stride² − 1)/12
        slope = family.log_density(x + 0.5, theta) - family.log_density(x - 0.5, theta)
        return jnp.where(stride > 1, x + slope * (stride**2 - 1) / 12, x), log_mass
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    u, du = jnp.asarray(0.5 * (nodes + 1)), jnp.asarray(0.5 * weights)
    power = max(1.0, 2.0 / family.head)  # x = start + width·u^power turns x^{head−1} dx into a smooth integrand
    width = stop - start
    is_empty = width <= 0  # no record that matters is between the bounds, and the density may be infinite at one
    x = start + jnp.where(is_empty, 0.0, width * u**power)
    log_dx = jnp.log(du * power) + (power - 1) * jnp.log(u) + jnp.log(jnp.where(is_empty, 1.0, width))
    return x, jnp.where(is_empty, -jnp.inf, family.log_density(jnp.where(is_empty, 1.0, x), theta) + log_dx)


def approximate(
    family: AbstractUnboundedFamily,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    theta: Float[Array, ""],
) -> Float[Array, ""]:
    """The saddlepoint approximation of log p(y | θ)."""
    return contour.approximate(record(family, theta), mechanism, y, n)


def log_likelihood(
    family: AbstractUnboundedFamily,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    theta: Float[Array, " m"],
) -> Float[Array, " m"]:
    """log p(y | θ) for a vector of θ; where the contour serves all of them, the lattice is left out."""
    laws = jax.vmap(lambda t: record(family, t))(theta)
    points = jax.vmap(lambda law: contour.evaluate(law, mechanism, y, n))(laws)
    by_lattice = jax.vmap(functools.partial(_needs_lattice, family, n))(theta, laws, points.tilt)

    def with_lattice(points: contour.Point) -> Float[Array, " m"]:
        lattice = jax.vmap(functools.partial(_lattice, family, mechanism, y, n))(theta, laws, points.tilt)
        return jnp.where(by_lattice, lattice, points.log_density)

    return jax.lax.cond(by_lattice.any(), with_lattice, lambda points: points.log_density, points)


def _needs_lattice(
    family: AbstractUnboundedFamily, n: Numeric, theta: Float[Array, ""], law: Record, tilt: Float[Array, ""]
) -> Bool[Array, ""]:
    """Whether few records are strictly between the bounds, or the lattice holds the sum without rounding any."""
    log_weight = law.log_mass + tilt * law.x
    inner = n * jnp.exp(jax.nn.logsumexp(log_weight[:-2]) - jax.nn.logsumexp(log_weight))
    low, high = _bounds(family)
    smooth = (inner > _INNER) | (family.query.is_whole and high - low <= 1)
    *_, covers = _grid(family, theta, law, tilt, n)
    return ~smooth | covers


# ---- few records between the bounds: the lattice -------------------------------------------------------------


def _lattice(
    family: AbstractUnboundedFamily,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    theta: Float[Array, ""],
    law: Record,
    tilt: Float[Array, ""],
) -> Float[Array, ""]:
    """log p(y | θ) by n-fold convolution."""
    # what is put on the lattice has a slope in θ, where the lattice lies has none
    start, step, _ = jax.lax.stop_gradient(_grid(family, theta, law, tilt, n))
    log_cell = _cell_masses(family, theta, law, start, step) + tilt * step * jnp.arange(0.0, _CELLS)
    atoms = law.x[-2:]
    log_atom = law.log_mass[-2:] + tilt * (atoms - start)
    top = jnp.maximum(log_cell.max(), log_atom.max())
    masses = jnp.zeros(_LATTICE).at[:_CELLS].set(jnp.exp(log_cell - top))
    for x, weight in zip(atoms, jnp.exp(log_atom - top), strict=True):
        place = (x - start) / step
        index = jnp.floor(place + 1e-9)
        share = jnp.clip(place - index, 0.0, 1.0)
        position = jnp.mod(index, _LATTICE).astype(int)
        masses = masses.at[position].add(weight * (1 - share))
        masses = masses.at[jnp.mod(position + 1, _LATTICE)].add(weight * share)
    total = masses.sum()
    convolved = jnp.fft.irfft(_power(jnp.fft.rfft(masses / total), n), _LATTICE)
    centre = jnp.round(n * (law.tilted(tilt)[1] - start) / step)
    index = centre - _LATTICE // 2 + jnp.arange(0.0, _LATTICE)
    probability = convolved[jnp.mod(index, _LATTICE).astype(int)]
    s = n * start + step * index
    log_weight = mechanism.log_density(y - s) - tilt * step * index
    log_term = jnp.where(probability > 1e-16, jnp.log(jnp.maximum(probability, 1e-300)) + log_weight, -jnp.inf)
    return jax.nn.logsumexp(log_term) + n * (jnp.log(total) + top)


def _power(phi: Complex[Array, " m"], n: Numeric) -> Complex[Array, " m"]:
    """φⁿ, of which 0 has no angle and so no slope."""
    is_nothing = phi == 0
    turned = jnp.where(is_nothing, 1.0 + 0j, phi)
    modulus, angle = jnp.where(is_nothing, 0.0, jnp.abs(turned) ** n), n * jnp.angle(turned)
    return jax.lax.complex(modulus * jnp.cos(angle), modulus * jnp.sin(angle))


def _grid(
    family: AbstractUnboundedFamily, theta: Float[Array, ""], law: Record, tilt: Float[Array, ""], n: Numeric
) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
    """Start and step of the lattice, wide enough for 18 standard deviations of the sum and a few single records; and
    whether it holds every record as it is."""
    low, high = _open_interval(family)
    start, stop = (jnp.clip(edge, low, max(high, low)) for edge in family.window(theta))
    k, _, variance = law.tilted(tilt)
    matters = law.log_mass + tilt * law.x - k > jnp.log(1e-15 / n)
    span = jnp.where(matters, law.x, -jnp.inf).max() - jnp.where(matters, law.x, jnp.inf).min()
    needed = (18 * jnp.sqrt(n * variance) + 4 * span) / _LATTICE
    step = jnp.maximum(needed, (stop - start) / (_CELLS - 2))
    if family.query.is_whole:
        return start, jnp.maximum(jnp.ceil(step), 1.0), step <= 1
    # with no record between the bounds an atom is all there is, and it lies on the lattice
    atoms, log_atoms = law.x[-2:], law.log_mass[-2:] + tilt * law.x[-2:]
    start = jnp.where(stop > start, start, atoms[jnp.argmax(log_atoms)])
    extent = law.x.max() - law.x.min()
    extent = jnp.where(extent > 0, extent, 1.0)  # all records are alike, at 0: a lattice of any step holds them
    return start, jnp.maximum(step, _FINEST * n * extent), jnp.zeros((), bool)


def _cell_masses(
    family: AbstractUnboundedFamily,
    theta: Float[Array, ""],
    law: Record,
    start: Float[Array, ""],
    step: Float[Array, ""],
) -> Float[Array, " cells"]:
    """log mass of the inner part at each lattice point."""
    low, high = _open_interval(family)
    left = start + step * jnp.arange(0.0, _CELLS)
    if family.query.is_whole:
        middle = left + 0.5 * (step - 1)
        is_inside = (middle >= family.query.support[0]) & (middle <= high)
        return jnp.where(is_inside, family.log_density(middle, theta) + jnp.log(step), -jnp.inf)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    u = jnp.asarray(0.5 * (nodes + 1))
    width = jnp.where(left < low, 0.0, jnp.clip(high - left, 0.0, step))[:, None]
    x = left[:, None] + width * u
    # outside the bounds nothing is asked of the density, which may be infinite there
    density = jnp.where(width > 0, jnp.exp(family.log_density(jnp.where(width > 0, x, 1.0), theta)), 0.0)
    mass = density * jnp.asarray(0.5 * weights) * width
    share = (x - left[:, None]) / step
    cell = (mass * (1 - share)).sum(-1) + jnp.append(jnp.zeros(1), (mass * share).sum(-1)[:-1])
    # what three nodes miss of a density that is infinite at the lower end belongs to the first point
    missed = jnp.exp(law.log_mass[:-2]).sum() - cell.sum() if family.head < 1 else 0.0
    return _held(jnp.log(cell.at[0].add(jnp.maximum(missed, 0.0))))
