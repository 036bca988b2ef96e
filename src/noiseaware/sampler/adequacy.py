"""Whether what HMC neglects may be neglected: the central limit theorem, and records that bounds have moved.

At parameters that are plausible given the release, w = V^−½(r − E r) with V = n Cov r + D is one record's share of
the noisy sums in units of their own spread, D the variance of the noise. By Edgeworth's series the CDF of a noisy sum
is then off from a normal one by up to

    |n E w³| / 6√(2π)        and        |n (E w⁴ − 3(E w²)²)| · 0.55/24

and where moved records are taken as unmoved, by up to ‖n V^−½(E t − E r)‖ / √(2π): V grows with the noise, which
hides either. Plausible parameters come from the prior and the naive posterior alike, each with its own weight.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, AbstractGeneralizedLinear, LinearRegression, MultivariateNormal
from noiseaware.likelihood import gaussian
from noiseaware.prior import AbstractPrior, CovariateMoments, Independent, Numeric

# Of a normal's mean and variance the limit theorem was found good from n = 10 at ε ≤ 2 and from n ≈ 100 at ε = 10,
# where the error below is 0.010 and 0.016; at n = 30 and ε = 10 it is 0.029.
LARGEST = 0.02
_NEGLIGIBLE = 0.002  # a tenth of it: below, moved records are not worth a thought
_MOST_COVARIATES = 6  # of a generalized linear model, whose clipped moments would take hours with more
_PARAMETERS, _RECORDS = 128, 1024
_MANY, _FEW_PARAMETERS = 32, 16  # statistics, of which a look at one parameter takes long; and how many are looked at


class Doubt(NamedTuple):
    """How far the CDF of a released sum is off by each neglect, at plausible parameters."""

    normality: float
    clamping: float

    @property
    def reason(self) -> str | None:
        """A sentence on the larger of them, if it is too large."""
        if max(self) <= LARGEST:
            return None
        if self.normality >= self.clamping:
            return f"The released sums are too far from normal for hmc, by {self.normality:.2f} in a CDF."
        return f"Records moved to the bounds, which hmc neglects, matter: by {self.clamping:.2f} in a CDF."


class _Errors(NamedTuple):
    """Of a CDF: by the limit theorem, and by neglecting moved records."""

    normality: Float[Array, ""]
    clamping: Float[Array, ""]


class Adequacy:
    """How good HMC's approximations are of a release, or of those to be expected where there are no values yet.

    Each error is computed when it is first asked for, and then once; ask under float64.
    """

    def __init__(self, evidence: Evidence, prior: AbstractPrior) -> None:
        self.evidence, self.prior = evidence, prior

    @functools.cached_property
    def doubt(self) -> Doubt:
        """What HMC neglects."""
        family = self.evidence.family
        is_quadratic = family.as_quadratic(self.prior) is not None
        if self.evidence.is_noiseless or (is_quadratic and not family.query.is_altered):
            return Doubt(0.0, 0.0)
        normality, clamping = float(self._errors.normality), float(self._errors.clamping)
        if self.clips:
            return Doubt(normality, 0.0)
        if isinstance(family, AbstractGeneralizedLinear):
            return Doubt(normality, clamping)
        # of second moments the law is known, and only what was moved is neglected; elsewhere it is the other way round
        return Doubt(0.0, clamping) if is_quadratic else Doubt(normality, 0.0)

    @functools.cached_property
    def clips(self) -> bool:
        """True if HMC is to know of clamped records: where they matter and, if it has no need of the limit theorem
        otherwise, more than that does."""
        if not has_choice(self.evidence.family, self.prior) or self.evidence.is_noiseless:
            return False
        return bool(_is_clipped(self.evidence.family, self._errors))

    @functools.cached_property
    def coarseness(self) -> float:
        """How far a CDF of a released sum moves when moments that are sums over points are summed over others."""
        return float(_by_points(self.evidence, self.prior))

    @functools.cached_property
    def _errors(self) -> _Errors:
        return _errors(self.evidence, self.prior)


def has_choice(family: AbstractFamily, prior: AbstractPrior) -> bool:
    """Whether HMC can take moved records as they are or as unmoved; as they are, the sums of them are normal."""
    if isinstance(family, AbstractGeneralizedLinear):
        return family.query.is_altered and len(family.x) <= _MOST_COVARIATES
    knows = isinstance(family, MultivariateNormal | LinearRegression)
    return knows and family.query.is_altered and not has_given_moments(prior)


def has_given_moments(prior: AbstractPrior) -> bool:
    """Whether of the covariates nothing but moments is believed, so that they have no parameters to walk on."""
    return isinstance(prior, Independent) and isinstance(prior.parts.get("covariates"), CovariateMoments)


def _is_clipped(family: AbstractFamily, found: _Errors) -> Bool[Array, ""]:
    if isinstance(family, AbstractGeneralizedLinear):
        return found.clamping > _NEGLIGIBLE
    # a regression's own law is ten times as quick to walk on, and is left only where it would be wrong
    least = LARGEST if isinstance(family, LinearRegression) else _NEGLIGIBLE
    return found.clamping > jnp.maximum(found.normality, least)


@jax.jit
def _errors(evidence: Evidence, prior) -> _Errors:
    """Return the errors, averaged over parameters by how plausible they are."""
    theta, log_weight = _parameters(evidence, prior)
    keys = jax.random.split(jax.random.key(1), len(theta))
    errors, log_likelihood = jax.lax.map(lambda at: _seen(at[0], evidence, at[1]), (keys, theta))
    return _Errors(*(_average(error, log_weight + log_likelihood) for error in errors))


def _parameters(evidence: Evidence, prior) -> tuple[Float[Array, "m ..."], Float[Array, " m"]]:
    """Return parameters of an even mixture of the prior and the naive posterior, and the log of each one's weight."""
    family, y, n = evidence.family, evidence.y, evidence.n
    key_theta, key_near = jax.random.split(jax.random.key(0))
    count = _PARAMETERS if len(family.query.names) <= _MANY else _FEW_PARAMETERS
    theta, near = prior.sample(key_theta, (count,)), prior
    if y is not None:
        near = family.update(prior, family.project(y, n), n)
        theta = jnp.concatenate([theta, jax.vmap(near.sample)(jax.random.split(key_near, count))])
    log_prior, log_near = prior.log_density(theta), near.log_density(theta)
    return theta, log_prior - jnp.logaddexp(log_prior, log_near)


def _average(error: Float[Array, " m"], log_weight: Float[Array, " m"]) -> Float[Array, ""]:
    """What is not a number counts as 1, the worst."""
    weight = jax.nn.softmax(jnp.where(jnp.isnan(log_weight), -jnp.inf, log_weight))
    return (weight * jnp.clip(jnp.nan_to_num(error, nan=1.0), 0, 1)).sum()


def _seen(key: Key[Array, ""], evidence: Evidence, theta: Float[Array, "..."]) -> tuple[_Errors, Float[Array, ""]]:
    """Return the errors at one parameter, and log p(y | θ) as if the sums were normal."""
    family, mechanism, n = evidence.family, evidence.mechanism, evidence.n
    x = family.sample(key, theta, _RECORDS)
    t, r = (jnp.stack([column.astype(theta.dtype) for column in f(x)]) for f in (family.modelled, family.query.alter))
    mean = r.mean(1)
    away = r - mean[:, None]
    inverse = _inverse_root(mechanism, n * away @ away.T / _RECORDS)
    w = inverse @ away
    fourth = n * ((w**4).mean(1) - 3 * (w**2).mean(1) ** 2)
    kurtosis = jnp.abs(fourth).max() * 0.55 / 24
    shift = inverse @ (n * (t.mean(1) - mean))
    return _Errors(_skewness(w, n) + kurtosis, _length(shift)), _log_likelihood(inverse, n * mean, evidence.y)


def _inverse_root(mechanism, covariance: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """V^−½, from the covariance of the sums."""
    return gaussian.inverse_root(covariance, jnp.broadcast_to(mechanism.variance, (len(covariance),)))


def _log_likelihood(inverse: Float[Array, "k k"], mean: Float[Array, " k"], y) -> Float[Array, ""]:
    if y is None:
        return jnp.zeros((), mean.dtype)
    return gaussian.log_density_of(y - mean, inverse)


def _skewness(w: Float[Array, "k r"], n: Numeric) -> Float[Array, ""]:
    """‖n E w³‖ / 6√(2π), the square from pairs of different records, so that it is not too large by chance."""
    k, r = w.shape
    if k**2 < r:
        squares = (jnp.einsum("ir,jr,kr->ijk", w, w, w) ** 2).sum()
    else:  # the same from the products of every two records
        squares = ((w.T @ w) ** 3).sum()
    squares = jnp.maximum(squares - ((w**2).sum(0) ** 3).sum(), 0.0) / (r * (r - 1))
    return n * jnp.sqrt(squares) / (6 * np.sqrt(2 * np.pi))


def _length(shift: Float[Array, " k"]) -> Float[Array, ""]:
    return jnp.sqrt((shift**2).sum()) / np.sqrt(2 * np.pi)


@jax.jit
def _by_points(evidence: Evidence, prior) -> Float[Array, ""]:
    """A shift of δ sd moves a CDF by up to δ/√(2π), and a variance that is larger by a share δ by up to 0.121 δ."""
    family: Any = evidence.family
    mechanism, y, n = evidence.mechanism, evidence.y, evidence.n
    theta, log_weight = _parameters(evidence, prior)

    def one(theta):
        mean, covariance = family.released_moments(theta)
        other_mean, other_covariance = family.released_again(theta)
        inverse = _inverse_root(mechanism, n * covariance)
        shift = inverse @ (n * (other_mean - mean))
        wider = inverse @ (n * (other_covariance - covariance)) @ inverse.T
        spread = jnp.abs(jnp.linalg.eigvalsh(wider)).max()
        return _length(shift) + 0.121 * spread, _log_likelihood(inverse, n * mean, y)

    error, log_likelihood = jax.lax.map(one, theta)
    return _average(error, log_weight + log_likelihood)
