"""Unaltered records: log p(y | θ) of their noisy sum.

A sum of n records of a natural exponential family has k(z) = A(η + z) − A(η) in closed form, also for complex z, and
is integrated along a contour (see _contour) when it is spread over many values. When it is not, its own density
h_n(s) e^{ηs − nA(η)} is summed against the noise: over the counts nearest to the ends of the support (whole numbers),
or by quadrature on a log scale with panels that crowd at y (positive reals).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from jaxtyping import ArrayLike as Numeric

from noiseaware.family import AbstractScalarFamily
from noiseaware.mechanism import AbstractMechanism
from noiseaware.sampler import _contour

# A count with standard deviation below 20 is within 1024 of an end of its support but for e^{−40}.
_LISTED, _SPREAD_OUT = 1024, 400.0
# Panels from the kink at y outwards, as parts of the way: halving towards it, then even. Eight nodes a panel.
_PANELS = np.concatenate([[0.0], 2.0 ** np.arange(-32, 0) / 128, np.arange(1, 129) / 128])
_PER_PANEL = 8
# |φ|^m of a gamma sum of shape m falls below 1e−13 on the contour from here on.
_MANY = 30.0


class Natural:
    """A record of a natural exponential family at natural parameter η."""

    def __init__(self, family: AbstractScalarFamily, eta: Float[Array, "1"]) -> None:
        self.family, self.eta = family, eta

    def tilted(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        eta = self.eta + c
        partition = self.family.log_partition
        k = partition(eta) - partition(self.eta)
        return k, jax.grad(partition)(eta)[0], jax.hessian(partition)(eta)[0, 0]

    def turned(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        eta = self.eta + c
        _, mean, _ = self.tilted(c)
        complex_eta = jax.lax.complex(jnp.broadcast_to(eta, t.shape), t)
        value = jax.vmap(lambda e: self.family.log_partition(e[None]))(complex_eta)
        return value.real - self.family.log_partition(eta), value.imag - t * mean

    def reach(self) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        least, greatest = (jnp.full_like(self.eta[0], edge) for edge in self.family.possible(1.0))
        return least, greatest, self.family.ceiling - self.eta[0]


def likelihood(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric
) -> Callable[[Float[Array, " m"]], Float[Array, " m"]]:
    """log p(y | θ) as a function of a vector of θ."""

    def by_contour(theta: Float[Array, ""]) -> _contour.Point:
        return _contour.evaluate(Natural(family, family.natural(theta)), mechanism, y, n)

    def whole(theta: Float[Array, ""]) -> Float[Array, ""]:
        point = by_contour(theta)
        listed = _listed(family, mechanism, y, n, family.natural(theta))
        return jnp.where(point.variance < _SPREAD_OUT, listed, point.log_density)

    if family.is_integer:
        return jax.vmap(whole)
    many = jax.vmap(lambda theta: by_contour(theta).log_density)
    if family.possible(1.0)[0] != 0:
        return many  # a normal sum, for which the contour is right at any n
    _, mean, variance = Natural(family, family.natural(jnp.ones_like(y))).tilted(jnp.zeros_like(y))
    shape = n * mean**2 / variance
    few = _few(family, mechanism, y, n, shape)
    return lambda theta: jax.lax.cond(shape < _MANY, few, many, theta)


def _listed(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric, eta: Float[Array, "1"]
) -> Float[Array, ""]:
    """The sum over the counts nearest to the ends."""
    low, high = family.possible(n)
    offset = jnp.arange(0.0, _LISTED)
    top = jnp.full_like(y, high)
    from_top = jnp.where(jnp.isfinite(top) & (top - offset >= low + _LISTED), top - offset, jnp.nan)
    s = jnp.concatenate([low + offset, from_top])
    counts = (s <= top) & ~jnp.isnan(s)
    s = jnp.where(counts, s, low)
    log_mass = family.log_base(s, n) + eta[0] * s - n * family.log_partition(eta)
    return jax.nn.logsumexp(jnp.where(counts, log_mass + mechanism.log_density(y - s), -jnp.inf))


def _few(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric, shape: Float[Array, ""]
) -> Callable[[Float[Array, " m"]], Float[Array, " m"]]:
    """The integral over a positive sum of gamma shape, by Gauss–Legendre in log s.

    The noise rules out sums above y by 60 scales, and s^shape those that are too small.
    """
    high = jnp.log(jnp.maximum(y, 0.0) + 60 * mechanism.spread)
    low = jnp.maximum(high - 60 - 60 / shape, -690.0)
    kink = jnp.clip(jnp.log(jnp.maximum(y, 1e-290)), low, high)
    left, right = (kink + (edge - kink) * jnp.asarray(_PANELS) for edge in (low, high))
    edges = jnp.concatenate([left[::-1], right[1:]])
    nodes, weights = np.polynomial.legendre.leggauss(_PER_PANEL)
    half = 0.5 * jnp.diff(edges)[:, None]
    v = (edges[:-1, None] + half * (1 + jnp.asarray(nodes))).ravel()
    s = jnp.exp(v)
    log_dv = jnp.log(jnp.maximum(half * jnp.asarray(weights), 1e-300)).ravel()
    fixed = family.log_base(s, n) + mechanism.log_density(y - s) + v + log_dv

    def at(theta: Float[Array, ""]) -> Float[Array, ""]:
        eta = family.natural(theta)
        return jax.nn.logsumexp(fixed + eta[0] * s) - n * family.log_partition(eta)

    return jax.vmap(at)
