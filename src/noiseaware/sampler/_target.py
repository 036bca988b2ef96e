"""What a chain walks on: an unconstrained vector v, its log density, and the parameters that go with it.

    the statistic    p(s | y) ∝ p(s) p(y | s),  p(s) = h_n(s) Z(prior + s)/Z(prior);  then θ | s by conjugacy
    the parameter    y ~ Normal(n E r(θ), n Cov r(θ) + D),  r what the bounds leave of the statistic t

The first serves families of second moments: the parameters are integrated out, every v is a possible statistic, and
nothing is approximated but records that bounds have moved, which are taken as unmoved. The second is the central limit
theorem with the sum integrated out, for any family and any bounds; Laplace noise of scale b is normal of variance 2b²w
with w ~ Exp(1), and w = −log Φ(−u) with u standard normal. Of many statistics moments are held (_held_moment).

A private n is one coordinate more: log(n − least), with n taken as a real number.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.evidence.release import NoisyCount
from noiseaware.family import AbstractFamily, AbstractGeneralizedLinear, AbstractQuadraticFamily
from noiseaware.likelihood import frozen_moment, gaussian, moment
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import AbstractPrior, AbstractRealPrior, AbstractScalarPrior, Numeric

_NAIVE = 200  # draws that tell where the naive posterior is


class Target(NamedTuple):
    """A log density of v; one with its kinks smoothed, and its curvature; where to start; and a draw of θ given v."""

    log_density: Callable[[Float[Array, " k"]], Float[Array, ""]]
    smooth: Callable[[Float[Array, " k"]], Float[Array, ""]]
    curvature: Callable[[Float[Array, " k"]], Float[Array, "k k"]]
    starts: Float[Array, "m k"]
    theta: Callable[[Key[Array, ""], Float[Array, " k"]], Float[Array, "..."]]


class Public(NamedTuple):
    """A number of records that is known."""

    likely: Numeric

    def of(self, v: Float[Array, " k"]) -> tuple[Float[Array, " k"], Numeric]:
        """The coordinates of all else, and n."""
        return v, self.likely

    def log_density(self, v: Float[Array, " k"], noise: Callable) -> float:
        return 0.0

    def appended(self, v: Float[Array, " k"]) -> Float[Array, " k"]:
        return v


class Private(NamedTuple):
    """A number of records of which only a noisy one is known: the last coordinate is log(n − least)."""

    likely: Numeric
    value: Numeric
    mechanism: AbstractMechanism
    least: Numeric

    def of(self, v: Float[Array, " k"]) -> tuple[Float[Array, " j"], Numeric]:
        return v[:-1], self.least + jnp.exp(v[-1])

    def log_density(self, v: Float[Array, " k"], noise: Callable) -> Float[Array, ""]:
        """log p(ñ | n) and the coordinate's own measure; all n are as likely before ñ is seen."""
        return noise(self.mechanism, self.value - self.of(v)[1]) + v[-1]

    def appended(self, v: Float[Array, " j"]) -> Float[Array, " k"]:
        return jnp.append(v, jnp.log(self.likely - self.least))


Size = Public | Private


def size_of(family: AbstractFamily, prior: AbstractPrior, count: int | NoisyCount) -> Size:
    """n as a chain knows it; the scatter of d columns has a density from d + 1 records on."""
    if not isinstance(count, NoisyCount):
        return Public(float(count))
    quadratic = family.as_quadratic(prior)
    least = 0.0 if quadratic is None else float(quadratic[0].dimension)
    return Private(max(float(count.value), least + 2), float(count.value), count.mechanism, least)


def of(
    family: AbstractFamily,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, " k"],
    size: Size,
    *,
    clips: bool = False,
    held: Float[Array, "k k"] | None = None,
) -> Target:
    """The target of a release; where it `clips`, one that knows of bounds, and of second moments not the statistic.
    Where third and fourth moments are held (_held_moment), they are given."""
    quadratic = family.as_quadratic(prior)
    if quadratic is not None and not clips:
        return _of_statistic(*quadratic, mechanism, y, size)
    assert isinstance(prior, AbstractRealPrior)
    moments: Callable[[Float[Array, "..."]], Any] = functools.partial(moment.released, family)
    if isinstance(family, AbstractGeneralizedLinear) and not clips:
        moments = family.modelled_moments
    if held is not None:
        assert isinstance(family, frozen_moment.HOLDS)
        moments = functools.partial(frozen_moment.released, family, held)
    return _of_parameter(family, prior, mechanism, y, size, moments)


def _of_statistic(
    family: AbstractQuadraticFamily,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, " k"],
    size: Size,
) -> Target:
    inner = family.scaled(prior)

    def log_marginal(v):
        rest, n = size.of(v)
        mean, scatter, log_measure = family.from_real(rest, n)
        of_n = family.log_of_count(inner, n) if isinstance(size, Private) else 0.0
        return family.joined(mean, scatter, n), log_measure + family.log_evidence(inner, mean, scatter, n) + of_n

    def log_density(v):
        s, log_prior = log_marginal(v)
        return log_prior + log_noise(mechanism, y - s).sum() + size.log_density(v, log_noise)

    def smooth(v):
        s, log_prior = log_marginal(v)
        return log_prior + smooth_noise(mechanism, y - s).sum() + size.log_density(v, smooth_noise)

    def theta(key, v):
        rest, n = size.of(v)
        mean, scatter, _ = family.from_real(rest, n)
        return family.unscaled_theta(family.update_scaled(inner, mean, scatter, n).sample(key))

    n = size.likely
    expected = family.joined(*family.expected(inner, n), n)
    likely = [family.project(share * y + (1 - share) * expected, n) for share in (0.0, 0.1, 0.5, 1.0)]
    starts = jnp.stack([size.appended(family.to_real(s, n)) for s in likely])
    return Target(log_density, smooth, jax.hessian(smooth), starts, theta)


def log_noise(mechanism: AbstractMechanism, noise: Float[Array, "..."]) -> Float[Array, "..."]:
    return mechanism.log_density(noise)


def smooth_noise(mechanism: AbstractMechanism, noise: Float[Array, "..."]) -> Float[Array, "..."]:
    """log p(noise) up to a constant, or that of a smooth law with the same tails."""
    return mechanism.smooth(noise)


def _of_parameter(
    family: AbstractFamily,
    prior: AbstractRealPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, " k"],
    size: Size,
    moments_of: Callable[[Float[Array, "..."]], Any],
) -> Target:
    mixture = mechanism.mixture
    own, k = prior.num_coordinates, y.size

    def coordinate(v):
        return v[0] if isinstance(prior, AbstractScalarPrior) else v[:own]

    def hidden(v):
        return v[own : own + k]  # of Laplace noise, u for each statistic; else nothing

    def believed(v, noise):
        """log of the prior of all that is walked on."""
        scales = 0.5 * (hidden(v) ** 2).sum() if mixture.is_random else 0.0
        return prior.log_density_real(coordinate(v)) - scales + size.log_density(v, noise)

    def noise_variance(v):
        return jnp.broadcast_to(mixture.variance(hidden(v)), (k,))

    def moments(v):
        """Of y without its noise: the mean and the covariance."""
        n = size.of(v)[1]
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

    starts = starts_of(family, prior, y, size, jnp.zeros(k if mixture.is_random else 0))
    smooth = functools.partial(log_density, noise=smooth_noise)
    return Target(log_density, smooth, information, starts, lambda key, v: prior.from_real(coordinate(v)))


def starts_of(
    family: AbstractFamily, prior: AbstractRealPrior, y: Float[Array, " k"], size: Size, middle: Float[Array, " m"]
) -> Float[Array, "2 j"]:
    """Where the naive posterior and the prior are, and the middle of all else."""
    n = size.likely
    near = family.update(prior, family.project(y, n), n).sample(jax.random.key(0), (_NAIVE,))
    before = prior.sample(jax.random.key(1), (_NAIVE,))
    reals = [jnp.reshape(prior.to_real(draws), (_NAIVE, -1)).mean(0) for draws in (near, before)]
    return jnp.stack([size.appended(jnp.concatenate([real, middle])) for real in reals])
