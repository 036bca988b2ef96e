"""Mean and covariance of one record's statistic, and of what the bounds leave of it, by automatic differentiation.

    E t = ∇A(η)        Cov t = ∇²A(η)

and on a section [v, w] of the line, which holds a record with probability q = F(w) − F(v), the same derivatives of
A(η) + log q (Bernstein & Sheldon 2018, equations 1, 3 and 4). Bounds cut the line into three sections: below them,
between them and above them. What is released of a record, r(x), is t(x) between the bounds and a constant outside:
t(bound) where records are clamped, 0 where they are dropped. The sections hold multinomial counts, so with section
means µ and the means ρ of what is released

    Cov(t, r) = Σ_i q_i [Cov_i(t, r) + (µ_i − E t)(ρ_i − E r)ᵀ]        Cov_i(t, r) = V_i between the bounds, else 0
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware.family import AbstractFamily, AbstractTruncatedFamily

_HALF = -0.6931471805599453  # log ½
_NEVER = 1e-300  # a section of smaller probability counts for nothing

LogProbability = Callable[[Float[Array, "..."]], Float[Array, ""]]


class Moments(NamedTuple):
    """Of (t, r): mean (2k) and covariance (2k × 2k); of t alone, (k) and (k × k), where nothing is altered."""

    mean: Float[Array, " m"]
    covariance: Float[Array, "m m"]


def of_record(family: AbstractFamily, theta: Float[Array, "*batch"]) -> Moments:
    """Moments of one record's statistic and, where bounds alter it, of what is released of it."""
    eta = family.natural(theta)
    mean, covariance = _derivatives(family.log_partition, eta)
    if not isinstance(family, AbstractTruncatedFamily) or not family.query.is_altered:
        return Moments(mean, covariance)
    sections = [_section(family, eta, *section) for section in _sections(family)]
    total = sum(s.probability for s in sections)
    shares = [s.probability / total for s in sections]
    released = sum(q * s.released for q, s in zip(shares, sections, strict=True))
    own, cross = jnp.zeros_like(covariance), jnp.zeros_like(covariance)
    for q, s in zip(shares, sections, strict=True):
        shift = s.released - released
        own = own + q * (s.covariance + jnp.outer(shift, shift))
        cross = cross + q * (s.covariance + jnp.outer(s.mean - mean, shift))
    blocks = jnp.block([[covariance, cross], [cross.T, own]])
    return Moments(jnp.concatenate([mean, released]), blocks)


def released(family: AbstractFamily, theta: Float[Array, "*batch"]) -> Moments:
    """Moments of what is released of one record."""
    known = family.released_moments(theta)
    if known is not None:
        return Moments(*known)
    mean, covariance = of_record(family, theta)
    k = len(family.query.names)
    return Moments(mean[-k:], covariance[-k:, -k:])


class _Section(NamedTuple):
    """Probability of a section; mean of t, mean of r and the covariance that both share, given a record in it."""

    probability: Float[Array, ""]
    mean: Float[Array, " k"]
    released: Float[Array, " k"]
    covariance: Float[Array, "k k"]


def _section(
    family: AbstractTruncatedFamily, eta: Float[Array, " k"], log_probability: LogProbability, constant: tuple | None
) -> _Section:
    log_q = log_probability(family.from_natural(eta))
    mean, covariance = _derivatives(lambda e: family.log_partition(e) + log_probability(family.from_natural(e)), eta)
    # in a section that never happens the derivatives may be anything
    happens = jnp.exp(log_q) > _NEVER
    mean, covariance = (jnp.where(happens, moment, 0.0) for moment in (mean, covariance))
    if constant is not None:
        return _Section(jnp.exp(log_q), mean, jnp.stack(constant), jnp.zeros_like(covariance))
    return _Section(jnp.exp(log_q), mean, mean, covariance)


def _sections(family: AbstractTruncatedFamily) -> list[tuple[LogProbability, tuple | None]]:
    """log P(record in the section | θ) and the constant r there, or None where r = t; empty sections are left out."""
    assert family.query.bounds is not None
    (low, high), step = family.query.bounds, 1.0 if family.query.is_whole else 0.0
    is_clamped = family.query.outside == "clamp"
    # the last value below and the first above the open interval (clamped records sit on the bounds), or the closed one
    below, above = (low, high) if is_clamped else (low - step, high + step)
    first, last = below + step, above - step
    has_lower, has_upper = low > family.query.support[0], high < family.query.support[1]

    def inside(theta):
        if not has_lower:
            return family.log_below(last, theta)
        if not has_upper:
            return family.log_above(first, theta)
        return _log_between(
            family.log_below(below, theta),
            family.log_below(last, theta),
            family.log_above(first, theta),
            family.log_above(above, theta),
        )

    def constant(bound: float) -> tuple:
        t = family.query.statistic(jnp.asarray(bound))
        return t if is_clamped else tuple(jnp.zeros_like(v) for v in t)

    sections: list[tuple[LogProbability, tuple | None]] = []
    if has_lower:
        sections.append((lambda theta: family.log_below(below, theta), constant(low)))
    if last >= (first if has_lower else family.query.support[0]):
        sections.append((inside, None))
    if has_upper:
        sections.append((lambda theta: family.log_above(above, theta), constant(high)))
    return sections


def _log_between(log_below_low, log_below_high, log_above_low, log_above_high) -> Float[Array, ""]:
    """log P(low … high), from whichever of the differences F(high) − F(low), 1 − F and 1 does not cancel."""
    is_left, is_right = log_above_high > _HALF, log_below_low > _HALF
    is_middle = ~(is_left | is_right)
    outside = jnp.where(is_middle, jnp.exp(log_below_low) + jnp.exp(log_above_high), 0.0)
    left = _log_difference(log_below_high, log_below_low, is_left)
    right = _log_difference(log_above_low, log_above_high, is_right)
    return jnp.where(is_middle, jnp.log1p(-outside), jnp.where(is_left, left, right))


def _log_difference(log_large, log_small, is_used) -> Float[Array, ""]:
    """log(e^large − e^small), with derivatives that stay finite where it is not used."""
    gap = jnp.where(is_used & (log_small < log_large), log_small - log_large, -1.0)
    return log_large + jnp.log(-jnp.expm1(gap))


def _derivatives(
    function: Callable[[Float[Array, " k"]], Float[Array, ""]], eta: Float[Array, " k"]
) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Gradient and Hessian, both forward: η has few entries, and some CDFs are loops."""

    def gradient(eta: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        slope = jax.jacfwd(function)(eta)
        return slope, slope

    hessian, slope = jax.jacfwd(gradient, has_aux=True)(eta)
    return slope, hessian
