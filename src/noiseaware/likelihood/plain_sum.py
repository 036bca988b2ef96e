"""Unaltered records: log p(y | θ) of their noisy sum.

Where the sum is one of few whole numbers, its own density h_n(s) e^{ηs − nA(η)} is summed against the noise, over all
of them. Else: a sum of n records of a natural exponential family has k(z) = A(η + z) − A(η) in closed form, also for
complex z, and is integrated along a contour (see _contour) when it is spread over many values. When it is not, its
density is summed over the counts nearest to the ends of the support (whole numbers) or integrated on a log scale with
panels that crowd at y (positive reals). A normal sum needs none of this: its noise brings the closed form, and a
contour would lose its figures where the mean is many standard deviations from 0.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.family import AbstractScalarFamily
from noiseaware.likelihood import contour
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import Numeric

# Records enough for the contour: of a count with this variance, or of a sum with this (mean/sd)², what is left of the
# integrand at the end of the contour is below 1e−13. A count of smaller variance is within 256 of an end of its
# support but for e^{−40}, unless it is of few records, and then it goes on smoothly.
_MANY = 30.0
_LISTED = 256
_MOST_LISTED = 1024  # from here on the contour is quicker
# Quadrature panels from the kink at y outwards, as parts of the way: halving towards it, then even.
_PANELS = np.concatenate([[0.0], 2.0 ** np.arange(-32, 0) / 128, np.arange(1, 129) / 128])
_FEW_PANELS = np.concatenate([[0.0], 2.0 ** np.arange(-12, 0) / 24, np.arange(1, 25) / 24])
_PER_PANEL = 8


class Natural:
    """A record of a natural exponential family at natural parameter η."""

    def __init__(self, family: AbstractScalarFamily, eta: Float[Array, "1"]) -> None:
        self.family, self.eta = family, eta

    def tilted(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        def partition(eta):
            return self.family.log_partition(eta[None])

        def with_slope(eta):
            return jax.jvp(partition, (eta,), (jnp.ones_like(eta),))

        eta = self.eta[0] + c
        (value, mean), (_, variance) = jax.jvp(with_slope, (eta,), (jnp.ones_like(eta),))
        return value - partition(self.eta[0]), mean, variance

    def turned(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        eta = self.eta + c
        _, mean, _ = self.tilted(c)
        complex_eta = jax.lax.complex(jnp.broadcast_to(eta, t.shape), t)
        value = jax.vmap(lambda e: self.family.log_partition(e[None]))(complex_eta)
        return value.real - self.family.log_partition(eta), value.imag - t * mean

    def reach(self) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        least, greatest = (jnp.full_like(self.eta[0], edge) for edge in self.family.possible(1.0))
        return least, greatest, self.family.ceiling - self.eta[0]


def num_listed(family: AbstractScalarFamily, n: float, most: int = _MOST_LISTED) -> int:
    """How many sums n unaltered records can have, 0, 1, 2, …; 0 where they are too many to list, or not whole."""
    count = float(family.possible(n)[1]) + 1 if family.query.is_whole and not family.query.is_altered else math.inf
    return 2 ** math.ceil(math.log2(count)) if count <= most else 0


def log_terms(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric, listed: int
) -> Float[Array, " listed"]:
    """log h_n(s) + log p(y | s) for every sum s: all that is known of it before θ is."""
    s = jnp.arange(0.0, listed)
    possible = jnp.minimum(s, family.possible(n)[1])
    log_term = family.log_base(possible, n) + mechanism.log_density(y - possible)
    return jnp.where(s == possible, log_term, -jnp.inf)


def summed(
    family: AbstractScalarFamily,
    log_terms: Float[Array, " m"],
    s: Float[Array, " m"],
    n: Numeric,
    eta: Float[Array, "1"],
) -> Float[Array, ""]:
    """log Σ_s e^{log term + ηs − nA(η)}, whose slope in η is E[s | y] − n A'(η)."""
    return jax.nn.logsumexp(log_terms + eta[0] * s) - n * family.log_partition(eta)


def likelihood(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric, listed: int = 0
) -> Callable[[Float[Array, " m"]], Float[Array, " m"]]:
    """log p(y | θ) as a function of a vector of θ, from all sums where these are `listed` (see num_listed)."""
    if listed:
        terms, s = log_terms(family, mechanism, y, n, listed), jnp.arange(0.0, listed)
        return jax.vmap(lambda theta: summed(family, terms, s, n, family.natural(theta)))
    if family.query.is_whole and (mixed := mechanism.between_counts(y - jnp.floor(y))) is not None:
        return _between_counts(family, *mixed, y, n)

    def by_contour(theta: Float[Array, ""]) -> contour.Point:
        return contour.evaluate(Natural(family, family.natural(theta)), mechanism, y, n)

    def whole(theta: Float[Array, ""]) -> Float[Array, ""]:
        point = by_contour(theta)
        many = (point.variance > _MANY) & (point.mean**2 > _MANY * point.variance)
        return jnp.where(many, point.log_density, near_ends(family.natural(theta)))

    if family.query.is_whole:
        near_ends = _near_ends(family, mechanism, y, n)
        return jax.vmap(whole)
    if family.possible(1.0)[0] != 0:
        return jax.vmap(functools.partial(_normal, family, mechanism, y, n))
    many = jax.vmap(lambda theta: by_contour(theta).log_density)
    _, mean, variance = Natural(family, family.natural(jnp.ones_like(y))).tilted(jnp.zeros_like(y))
    shape = n * mean**2 / variance
    few = _few(family, mechanism, y, n, shape)
    return lambda theta: jax.lax.cond(shape < _MANY, few, many, theta)


def _normal(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric, theta: Float[Array, ""]
) -> Float[Array, ""]:
    """A sum that may be any real number is a normal one."""
    _, mean, variance = Natural(family, family.natural(theta)).tilted(jnp.zeros_like(y))
    return mechanism.mixture.log_convolved(y - n * mean, n * variance)


def _between_counts(
    family: AbstractScalarFamily,
    discrete: AbstractMechanism,
    constant: Float[Array, ""],
    share: list[Float[Array, ""]],
    y: Float[Array, ""],
    n: Numeric,
) -> Callable[[Float[Array, " m"]], Float[Array, " m"]]:
    """Continuous noise on a count as a mixture of discrete noise at the two whole numbers around y."""
    below = jnp.floor(y)
    lower, upper = (likelihood(family, discrete, at, n) for at in (below, below + 1))
    return lambda theta: constant + jnp.logaddexp(share[0] + lower(theta), share[1] + upper(theta))


def _near_ends(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric
) -> Callable[[Float[Array, "1"]], Float[Array, ""]]:
    """The sum over the counts nearest to the ends, and the integral of the smooth rest (Euler–Maclaurin) between."""
    low, high = (jnp.full_like(y, edge) for edge in family.possible(n))
    offset = jnp.arange(0.0, _LISTED)
    ends = jnp.concatenate([low + offset, jnp.where(jnp.isfinite(high), high, 0.0) - offset])
    repeated = jnp.arange(2 * _LISTED) >= _LISTED
    within = (ends <= high) & (ends >= low) & (~repeated | (jnp.isfinite(high) & (ends >= low + _LISTED)))
    start = low + _LISTED - 0.5
    stop = jnp.minimum(high - _LISTED + 0.5, jnp.maximum(y, start) + 60 * mechanism.spread)
    v, log_dv = _panels(jnp.log(start), jnp.log(jnp.maximum(stop, start)), jnp.log(jnp.maximum(y, start)), _FEW_PANELS)
    s = jnp.concatenate([jnp.where(within, ends, low), jnp.exp(v)])
    log_weight = jnp.concatenate([jnp.where(within, 0.0, -jnp.inf), log_dv + v])
    smooth = mechanism.continuous()
    noise = jnp.concatenate([mechanism.log_density(y - s[: ends.size]), smooth.log_density(y - s[ends.size :])])
    fixed = family.log_base(s, n) + noise + log_weight
    return lambda eta: summed(family, fixed, s, n, eta)


def _panels(
    low: Float[Array, ""], high: Float[Array, ""], kink: Float[Array, ""], parts: np.ndarray
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Gauss–Legendre nodes and log weights on panels that crowd at the kink."""
    kink = jnp.clip(kink, low, high)
    left, right = (kink + (edge - kink) * jnp.asarray(parts) for edge in (low, high))
    edges = jnp.concatenate([left[::-1], right[1:]])
    nodes, weights = np.polynomial.legendre.leggauss(_PER_PANEL)
    half = 0.5 * jnp.diff(edges)[:, None]
    v = (edges[:-1, None] + half * (1 + jnp.asarray(nodes))).ravel()
    return v, jnp.log(half * jnp.asarray(weights)).ravel()


def _few(
    family: AbstractScalarFamily, mechanism: AbstractMechanism, y: Float[Array, ""], n: Numeric, shape: Float[Array, ""]
) -> Callable[[Float[Array, " m"]], Float[Array, " m"]]:
    """The integral over a positive sum of gamma shape, by Gauss–Legendre in log s.

    The noise rules out sums above y by 60 scales, and s^shape those that are too small.
    """
    high = jnp.log(jnp.maximum(y, 0.0) + 60 * mechanism.spread)
    low = jnp.maximum(high - 60 - 60 / shape, -690.0)
    v, log_dv = _panels(low, high, jnp.log(jnp.maximum(y, 1e-290)), _PANELS)
    s = jnp.exp(v)
    fixed = family.log_base(s, n) + mechanism.log_density(y - s) + v + log_dv

    return jax.vmap(lambda theta: summed(family, fixed, s, n, family.natural(theta)))
