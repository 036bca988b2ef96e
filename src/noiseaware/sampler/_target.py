"""What a chain walks on: an unconstrained vector v, its log density, and the parameters that go with it.

    the statistic    p(s | y) ∝ p(s) p(y | s),  p(s) = h_n(s) Z(prior + s)/Z(prior);  then θ | s by conjugacy
    the parameter    y ~ Normal(n E r(θ), n Cov r(θ) + D),  r what the bounds leave of the statistic t

The first serves families of second moments: the parameters are integrated out, every v is a possible statistic, and
nothing is approximated but records that bounds have moved, which are taken as unmoved. The second is the central limit
theorem with the sum integrated out, for any family and any bounds; Laplace noise of scale b is normal of variance 2b²w
with w ~ Exp(1), and w = −log Φ(−u) with u standard normal. Of many statistics moments are frozen (frozen_moment).

A private n is one coordinate more: log(n − least), with n taken as a real number.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractGeneralizedLinear, AbstractQuadraticFamily
from noiseaware.likelihood import frozen_moment, gaussian, moment
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import AbstractPrior, AbstractRealPrior, AbstractScalarPrior

_NAIVE = 200  # draws that tell where the naive posterior is


class Target(NamedTuple):
    """A log density of v; one with its kinks smoothed, and its curvature; where to start; and a draw of θ given v."""

    log_density: Callable[[Float[Array, " k"]], Float[Array, ""]]
    smooth: Callable[[Float[Array, " k"]], Float[Array, ""]]
    curvature: Callable[[Float[Array, " k"]], Float[Array, "k k"]]
    starts: Float[Array, "m k"]
    theta: Callable[[Key[Array, ""], Float[Array, " k"]], Float[Array, "..."]]


def of(
    evidence: Evidence, prior: AbstractPrior, *, clips: bool = False, frozen: Float[Array, "k k"] | None = None
) -> Target:
    """Return the target of a release; where it `clips`, one that knows of bounds, and not of the law of the statistic.

    `frozen` are third and fourth moments, where they are frozen (frozen_moment).
    """
    family = evidence.family
    quadratic = family.as_quadratic(prior)
    if quadratic is not None and not clips:
        return _of_statistic(evidence, *quadratic)
    assert isinstance(prior, AbstractRealPrior)
    moments: Callable[[Float[Array, "..."]], Any] = functools.partial(moment.released, family)
    if isinstance(family, AbstractGeneralizedLinear) and not clips:
        moments = family.modelled_moments
    if frozen is not None:
        assert isinstance(family, frozen_moment.HOLDS)
        moments = functools.partial(frozen_moment.released, family, frozen)
    return _of_parameter(evidence, prior, moments)


def walked(evidence: Evidence, prior: AbstractPrior) -> Evidence:
    """Return evidence as a chain knows it: the scatter of d columns has a density from d + 1 records on."""
    quadratic = evidence.family.as_quadratic(prior)
    least = 0.0 if quadratic is None else float(quadratic[0].dimension)
    return dataclasses.replace(evidence, count=evidence.count.above(least))


def _of_statistic(evidence: Evidence, family: AbstractQuadraticFamily, prior: AbstractPrior) -> Target:
    inner = family.scaled(prior)
    mechanism, y, count = evidence.mechanism, evidence.y, evidence.count

    def log_marginal(v):
        rest, n = count.of(v)
        mean, scatter, log_measure = family.from_real(rest, n)
        of_n = 0.0 if count.is_public else family.log_of_count(inner, n)
        return family.joined(mean, scatter, n), log_measure + family.log_evidence(inner, mean, scatter, n) + of_n

    def log_density(v):
        s, log_prior = log_marginal(v)
        return log_prior + log_noise(mechanism, y - s).sum() + count.log_density_real(v, log_noise)

    def smooth(v):
        s, log_prior = log_marginal(v)
        return log_prior + smooth_noise(mechanism, y - s).sum() + count.log_density_real(v, smooth_noise)

    def theta(key, v):
        rest, n = count.of(v)
        mean, scatter, _ = family.from_real(rest, n)
        return family.unscaled_theta(family.update_scaled(inner, mean, scatter, n).sample(key))

    n = count.likely
    expected = family.joined(*family.expected(inner, n), n)
    likely = [family.project(share * y + (1 - share) * expected, n) for share in (0.0, 0.1, 0.5, 1.0)]
    starts = jnp.stack([count.appended(family.to_real(s, n)) for s in likely])
    return Target(log_density, smooth, jax.hessian(smooth), starts, theta)


def log_noise(mechanism: AbstractMechanism, noise: Float[Array, "..."]) -> Float[Array, "..."]:
    return mechanism.log_density(noise)


def smooth_noise(mechanism: AbstractMechanism, noise: Float[Array, "..."]) -> Float[Array, "..."]:
    """log p(noise) up to a constant, or that of a smooth law with the same tails."""
    return mechanism.smooth(noise)


def _of_parameter(
    evidence: Evidence, prior: AbstractRealPrior, moments_of: Callable[[Float[Array, "..."]], Any]
) -> Target:
    mechanism, y, count = evidence.mechanism, evidence.y, evidence.count
    mixture = mechanism.mixture
    own, k = prior.num_coordinates, y.size

    def coordinate(v):
        return v[0] if isinstance(prior, AbstractScalarPrior) else v[:own]

    def hidden(v):
        return v[own : own + k]  # of Laplace noise, u for each statistic; else nothing

    def believed(v, noise):
        """log of the prior of all that is walked on."""
        scales = 0.5 * (hidden(v) ** 2).sum() if mixture.is_random else 0.0
        return prior.log_density_real(coordinate(v)) - scales + count.log_density_real(v, noise)

    def noise_variance(v):
        return jnp.broadcast_to(mixture.variance(hidden(v)), (k,))

    def moments(v):
        """Of y without its noise: the mean and the covariance."""
        n = count.of(v)[1]
        mean, covariance = moments_of(prior.from_real(coordinate(v)))
        return n * mean, n * covariance

    def log_density(v, noise=log_noise):
        mean, covariance = moments(v)
        return believed(v, noise) + gaussian.log_density(y - mean, covariance, noise_variance(v))

    def information(v):
        """Fisher's, of the mean alone, and the prior's curvature: a Hessian of moments would be fourth derivatives."""
        slope, covariance = jax.jacfwd(moments, has_aux=True)(v)
        across = gaussian.inverse_root(covariance, noise_variance(v)) @ slope
        return across.T @ across - jax.hessian(believed)(v, smooth_noise)

    starts = starts_of(evidence, prior, jnp.zeros(k if mixture.is_random else 0))
    smooth = functools.partial(log_density, noise=smooth_noise)
    return Target(log_density, smooth, information, starts, lambda key, v: prior.from_real(coordinate(v)))


def starts_of(evidence: Evidence, prior: AbstractRealPrior, middle: Float[Array, " m"]) -> Float[Array, "2 j"]:
    """Return where the naive posterior and the prior are, and the middle of all else."""
    family, y, count, n = evidence.family, evidence.y, evidence.count, evidence.count.likely
    near = family.update(prior, family.project(y, n), n).sample(jax.random.key(0), (_NAIVE,))
    before = prior.sample(jax.random.key(1), (_NAIVE,))
    reals = [jnp.reshape(prior.to_real(draws), (_NAIVE, -1)).mean(0) for draws in (near, before)]
    return jnp.stack([count.appended(jnp.concatenate([real, middle])) for real in reals])
