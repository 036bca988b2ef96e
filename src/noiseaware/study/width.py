"""How wide the interval of a release will be, before there is one: what a plan is made of.

The mean m(θ) and the variance v(θ) of what one record adds to a released sum, and the noise, give the law of the sum

    y | θ ~ n m(θ) + N(0, n v(θ)) + noise        information n² m′(θ)² / (n v(θ) + Var noise)

One number has its interval from that law itself: over truths θ* of the prior and sums y of θ*, the posterior of θ is
laid on a line and its interval read off. Levels have theirs so, each alone; the part of it that is left where all
counts are known together is worked out in tally.py. Several numbers have it from the information, which is a matrix
then: (C⁻¹ + n² Jᵀ (n V + D)⁻¹ J)⁻¹ is their covariance, with J = ∂m/∂θ, noise variances D and C the prior's covariance.
That is right where the sums say much; where they say little, draws of the prior are weighted by that law instead
(weighting.py). Where n is private, what its noise does to a sum, n's error times m(θ), is added to the variance.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri

from noiseaware.evidence.evidence import Evidence
from noiseaware.evidence.release import Release
from noiseaware.family import (
    AbstractFamily,
    AbstractGeneralizedLinear,
    LinearRegression,
)
from noiseaware.likelihood import moment
from noiseaware.posterior.estimate import PROBABILITY, entries, numbers
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Dirichlet
from noiseaware.study import tally, weighting
from noiseaware.study.noise import Noise

_TAIL = 1e-7  # of the prior, left out
_NODES = 240  # of the line
_NEAR = 161  # nodes more, in eight standard deviations about the truth
# Truths are as far out in the prior as these normal numbers, and count as much as their density: far ones, of whose
# records bounds may leave nothing, have intervals so wide that they tell in the mean.
_TRUTHS = np.linspace(-4.5, 4.5, 37)
_WEIGHTS = np.exp(-0.5 * _TRUTHS**2) / np.exp(-0.5 * _TRUTHS**2).sum()
_SUMS = 5  # normal errors of a sum for each truth, and as many of its noise
_LOCAL = 2_000_000  # numbers that the information of several numbers may hold: so many truths it is taken at
_TABLES = 200  # of them, in the order of their widths, for which draws of the prior are weighted
_OUTER = 0.01  # draws of a prior beyond these quantiles count as if at them: some have no variance
_SKEWED = 1.0
_FEW_STATISTICS = 2
# Shares by which a mean width may be wrong, beyond the error of the simulations that say so (benchmarks/plan.py).
ERROR = 0.05
ERROR_IF_RARE = 0.2  # counts so few, under so little noise, that their sum is far from normal
ERROR_OF_TWO = 0.1
ERROR_OF_MORE = 0.25  # regressions and several columns, of which too few settings were simulated to say less
TAILS = ((1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2)
_Z = float(ndtri(TAILS[1]))


class Line(NamedTuple):
    """One number, as functions of its prior's real coordinate v: log density, and the moments of what a record adds."""

    prior: AbstractScalarPrior
    v: np.ndarray
    truths: np.ndarray
    log_prior: CubicSpline
    mean: CubicSpline
    variance: CubicSpline

    @classmethod
    def of(cls, family: AbstractFamily, prior: AbstractScalarPrior) -> "Line":
        moments = jax.jit(jax.vmap(functools.partial(moment.released, family)))
        return cls._through(prior, lambda theta: (moments(theta).mean[:, 0], moments(theta).covariance[:, 0, 0]))

    @classmethod
    def of_level(cls, prior: AbstractScalarPrior) -> "Line":
        """The probability of a level: each record has it or not."""
        return cls._through(prior, lambda theta: (theta, theta * (1 - theta)))

    @classmethod
    def _through(cls, prior: AbstractScalarPrior, moments: Callable) -> "Line":
        shares = (_TAIL, *map(float, ndtr(_TRUTHS)), 1 - _TAIL)
        low, *truths, high = (prior.to_real(jnp.asarray(prior.quantile(q))) for q in shares)
        v = np.linspace(float(low), float(high), _NODES)
        functions = (prior.log_density_real(jnp.asarray(v)), *moments(prior.from_real(jnp.asarray(v))))
        return cls(prior, v, np.array(truths), *(CubicSpline(v, np.asarray(values)) for values in functions))

    def width(self, n: float, noise: Noise) -> float:
        """The mean width of the interval over tables of the prior."""
        ends = np.stack([self._ends(truth, n, noise) for truth in self.truths])
        widths = np.diff(np.asarray(self.prior.from_real(jnp.asarray(ends))), axis=2)
        return float(_WEIGHTS @ widths.mean(axis=(1, 2)))

    def skewness(self, n: float, noise: Noise) -> float:
        """The mean skewness of a sum of counts, were they of rare events: n v/(n v + noise)^{3/2}."""
        own = n * np.maximum(self.variance(self.truths), 0.0)
        return float(_WEIGHTS @ (own / np.maximum(own + noise.variance[0], 1e-300) ** 1.5))

    def _ends(self, truth: float, n: float, noise: Noise) -> np.ndarray:
        """Where the interval begins and ends, for each of several sums of one truth."""
        total = float(self._variance(np.asarray(truth), n, noise)) + noise.variance[0]
        reach = 8 * np.sqrt(total) / max(abs(n * float(self.mean(truth, 1))), 1e-300)
        near = np.clip(np.linspace(truth - reach, truth + reach, _NEAR), self.v[0], self.v[-1])
        v = np.unique(np.concatenate([self.v, near]))
        y = n * float(self.mean(truth)) + self._errors(truth, n, noise)
        log_density = self._log_likelihood(y[:, None], v, n, noise) + self.log_prior(v)
        density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        pieces = 0.5 * (density[:, 1:] + density[:, :-1]) * np.diff(v)
        cdf = np.concatenate([np.zeros((len(y), 1)), np.cumsum(pieces, axis=1)], axis=1)
        return np.array([np.interp(TAILS, own / own[-1], v) for own in cdf])

    def _variance(self, v: np.ndarray, n: float, noise: Noise) -> np.ndarray:
        return n * np.maximum(self.variance(v), 0.0) + self.mean(v) ** 2 * noise.variance_of_n

    def _errors(self, truth: float, n: float, noise: Noise) -> np.ndarray:
        """What is between a sum and its mean: as many normal errors as noises, each with each."""
        u = (np.arange(_SUMS) + 0.5) / _SUMS
        own = np.sqrt(float(self._variance(np.asarray(truth), n, noise))) * ndtri(u)
        sd = np.sqrt(noise.variance[0])
        return (own[:, None] + sd * noise.shape.unit_quantile(u)).ravel()

    def _log_likelihood(self, y: np.ndarray, v: np.ndarray, n: float, noise: Noise) -> np.ndarray:
        off, variance = y - n * self.mean(v), self._variance(v, n, noise)
        return noise.shape.log_density_with(off, variance, float(noise.variance[0]))


class Lines:
    """The numbers of a parameter each on a line of its own: one, or the probabilities of levels."""

    def __init__(self, family: Any, prior: AbstractPrior) -> None:
        own = prior.marginals()
        self.concentration, self.is_count = None, family.query.is_whole or family.exact_by == "counts"
        if family.exact_by == "counts":
            self.concentration = np.array([float(line.a) for line in own])  # type: ignore[attr-defined]
            different = {a: Line.of_level(p) for a, p in dict(zip(self.concentration, own, strict=True)).items()}
            names = [entry.name for entry in entries(family, family.parameters[0])]
            self.lines = {name: different[a] for name, a in zip(names, self.concentration, strict=True)}
            # that the counts add up to n tells of each what the others' noise lets through
            self.factor = 1 - 1 / len(own)
        else:
            self.lines, self.factor = {family.parameters[0]: Line.of(family, own[0])}, 1.0

    def error(self, n: float, noise: Noise) -> float:
        """The share by which a width may be wrong."""
        if not self.is_count:
            return ERROR
        skewed = max(line.skewness(n, noise.less(self.factor)) for line in self.lines.values())
        return ERROR_IF_RARE if skewed > _SKEWED else ERROR

    def widths(self, n: float, noise: Noise) -> dict[str, float]:
        distinct = {id(line): line for line in self.lines.values()}
        alone = {key: line.width(n, noise.less(self.factor)) for key, line in distinct.items()}
        if self.concentration is None:
            return {name: alone[id(line)] for name, line in self.lines.items()}
        left = tally.narrowing(self.concentration, n, noise, self.factor, TAILS)
        return {name: alone[id(line)] * left for name, line in self.lines.items()}


class Ellipsoids:
    """The numbers of a parameter together: their covariance from the information of the released sums, or weighted
    draws of the prior where these say enough."""

    def __init__(self, family: AbstractFamily, prior: AbstractPrior) -> None:
        drawn = prior.sample(jax.random.key(0), (weighting.DRAWS,))
        flat, truths = np.asarray(drawn), drawn[: _LOCAL // len(family.query.names) ** 2]
        self.spread = np.cov(np.clip(flat, *np.quantile(flat, [_OUTER, 1 - _OUTER], axis=0)), rowvar=False)
        self.numbers = numbers(family, family.named(flat))
        self.moments = jax.jit(jax.vmap(functools.partial(moment.released, family)))(drawn)
        self.slopes = jax.jit(jax.vmap(jax.jacfwd(lambda theta: moment.released(family, theta).mean)))(truths)
        self.family = family

    def widths(self, n: float, noise: Noise) -> dict[str, float]:
        mean, covariance = (np.asarray(part) for part in self.moments)
        local = self._local(n, noise, mean, covariance)
        place = np.sum([width / width.mean() for width in local.values()], axis=0)
        few = np.argsort(place)[:: -(-len(place) // _TABLES)]
        weighted, is_known = weighting.widths(self.numbers, mean, covariance, few, n, noise, TAILS)
        mixed = {name: np.where(is_known, weighted[name], width[few]) for name, width in local.items()}
        return {name: float(w.mean() * mixed[name].mean() / w[few].mean()) for name, w in local.items()}

    def error(self, n: float, noise: Noise) -> float:
        """The share by which a width may be wrong."""
        return ERROR_OF_TWO if len(self.family.query.names) <= _FEW_STATISTICS else ERROR_OF_MORE

    def _local(self, n: float, noise: Noise, mean: np.ndarray, covariance: np.ndarray) -> dict[str, np.ndarray]:
        """The width of each number's interval at each truth, were its posterior normal."""
        slopes = n * np.asarray(self.slopes)
        mean, covariance = mean[: len(slopes)], covariance[: len(slopes)]
        through = slopes @ self.spread
        own = n * covariance + noise.variance_of_n * mean[:, :, None] * mean[:, None, :]
        total = through @ np.swapaxes(slopes, 1, 2) + own + np.diag(np.broadcast_to(noise.variance, mean.shape[1:]))
        left = self.spread - np.swapaxes(through, 1, 2) @ np.linalg.solve(total, through)
        sds = np.sqrt(np.maximum(np.diagonal(left, axis1=1, axis2=2), 0.0))
        return {name: 2 * _Z * values for name, values in numbers(self.family, self.family.named(sds)).items()}


def records_worth(release: Release, theta: np.ndarray) -> dict[str, float] | None:
    """How many records without noise would tell as much of each number, if the truth is θ; None where that is unknown.

    n records tell n² Jᵀ (n V + D)⁻¹ J with noise and n' Jᵀ V⁻¹ J without; of a level, J and V are numbers.
    """
    family, n = release.family, float(release.likely_n)
    if release.within is not None or isinstance(family, LinearRegression | AbstractGeneralizedLinear):
        return None  # of a regression the covariates are unknown too
    noise = Noise.of(release.evidence())
    if family.exact_by == "counts":
        if np.ptp(noise.variance) > 0:
            return None
        own = n * theta * (1 - theta)
        total = own + noise.variance[0] * (1 - 1 / len(theta)) + theta**2 * noise.variance_of_n
        return {name: float(w) for name, w in numbers(family, family.named(n * own / total)).items()}
    at = jnp.asarray(theta)
    mean, covariance = (np.asarray(part) for part in jax.jit(functools.partial(moment.released, family))(at))
    slope = np.asarray(jax.jit(jax.jacfwd(lambda t: moment.released(family, t).mean))(at)).reshape(len(mean), -1)
    noisy = n * covariance + noise.variance_of_n * np.outer(mean, mean) + np.diag(noise.variance * np.ones(len(mean)))
    with_noise, without = (np.linalg.pinv(slope.T @ np.linalg.solve(m, slope)) for m in (noisy / n**2, covariance))
    worth = np.diag(without) / np.diag(with_noise)
    return {name: float(w) for name, w in numbers(family, family.named(worth.reshape(theta.shape))).items()}


def predictor(family: AbstractFamily, prior: AbstractPrior) -> Lines | Ellipsoids:
    """What predicts widths for a family and a prior in full; call it under x64."""
    if family.exact_by == "sum" or (family.exact_by == "counts" and isinstance(prior, Dirichlet)):
        return Lines(family, prior)
    return Ellipsoids(family, prior)


def error(found: Lines | Ellipsoids, evidence: Evidence) -> float:
    """Return the share by which the expected widths may be wrong."""
    return found.error(evidence.n, Noise.of(evidence))


def widths(found: Lines | Ellipsoids, evidence: Evidence) -> dict[str, float]:
    """Return the expected width of the interval of each number."""
    return found.widths(evidence.n, Noise.of(evidence))
