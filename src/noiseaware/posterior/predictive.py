"""The probability, under the prior, of a release as extreme as the one at hand.

    P(y ≤ t) = ∫ p(θ) P(n m(θ) + N(0, n v(θ)) + noise ≤ t) dθ        for each released sum by itself

with m and v the mean and variance of what one record adds. θ goes through quantiles of its prior, the tails in steps as
fine as the middle, so that 10⁻⁸ is told from 10⁻⁴. Sums are skewed where records are: their cube root is nearer to
normal (Wilson and Hilferty 1931). Sums on a grid reach half a step further. Where the law of the sum has a closed form,
that one is taken (predictive_sum); where bounds alter records or n is private it is as if they did not, and the more
probable of the two counts, since small counts are far from normal: what is told is then too cautious rather than wrong.
Of several sums the most extreme counts, times their number (Bonferroni).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from noiseaware.evidence.release import Release
from noiseaware.family import (
    AbstractFamily,
    AbstractGeneralizedLinear,
    AbstractScalarFamily,
    Categorical,
    GammaShapeRate,
    LinearRegression,
    MultivariateNormal,
    NormalMeanVariance,
)
from noiseaware.family.recorded import Recorded, normal, unaltered
from noiseaware.posterior import predictive_sum
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, NormalInverseGamma, NormalInverseWishart

LEAST = 1e-4
"""The probability below which prior and release disagree."""
_NODES, _OUTERMOST = 161, 18.0  # of log odds of a quantile: all but 2·10⁻⁸ of the prior
_NORMAL_NODES = np.linspace(-6.5, 6.5, 131)
_DRAWS = 20_000  # of a line, of which y has too many numbers for nodes


class Sum(NamedTuple):
    """Moments of one record's part of a released sum, at each node of the parameter: mean, variance, third cumulant."""

    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    third: np.ndarray


def tail(release: Release, prior: AbstractPrior) -> float | None:
    """The probability under the prior of a release as extreme as this one; None for a family of one's own."""
    family, n = release.family, release.likely_n
    with np.errstate(all="ignore"):  # quantiles of a prior without a tail may be 0 or infinite: they are left out
        prior = family.completed(prior)
        laws = predictive_sum.laws(family, prior, n)
        is_closed = bool(laws) and release.n_mechanism is None and not family.query.is_altered
        if is_closed:
            found = [_two_sided(release, k, None, law) for k, law in laws.items()]
            if None not in found:
                return _most_extreme(found)
        laws = {k: law for k, law in laws.items() if law.is_skewed}  # where the cube root would not do
        sums = _sums(family, prior)
        return _most_extreme([_two_sided(release, k, one, laws.get(k)) for k, one in sums.items()])


def _most_extreme(found: list[float | None]) -> float | None:
    """The least of several probabilities, times their number; None where one is not known."""
    known = [probability for probability in found if probability is not None and np.isfinite(probability)]
    return min(1.0, len(known) * min(known)) if known and len(known) == len(found) else None


def _two_sided(release: Release, k: int, one: Sum | None, law: predictive_sum.Law | None) -> float | None:
    """Twice the lesser of P(y ≤ the released value) and P(y ≥ it); of an interval, its farther end on either side."""
    sides = [_probability(release, k, one, law, side) for side in (1.0, -1.0)]
    known = [side for side in sides if side is not None]
    return 2 * min(known) if len(known) == 2 else None


def _probability(
    release: Release, k: int, one: Sum | None, law: predictive_sum.Law | None, side: float
) -> float | None:
    """P(y ≤ value), or P(y ≥ value) on the side −1: the greater one, where two are known."""
    value = float(release.values[k])
    if release.within is not None and (within := release.within[k]) is not None:
        value = within[1 if side > 0 else 0] * release.grid
    if math.isinf(value):
        return 1.0
    scale = float(np.broadcast_to(np.asarray(release.noise_scale, dtype=float), release.values.shape)[k])
    found = []
    if law is not None:
        half = 0.0 if law.log_mass is not None and release.grid == 1 else _half(release)
        found = [predictive_sum.noisy(law, release.evidence().mechanism, scale, value + side * half, side)]
    if one is not None:
        found.append(_nearly_normal(release, one, value + side * _half(release), scale, side))
    return max((one for one in found if one is not None), default=None)


def _half(release: Release) -> float:
    """Half a step between values that a release can have."""
    steps = [release.grid] * release.mechanism.is_discrete + [1.0] * release.query.is_whole
    return 0.5 * max(steps, default=0.0)


def _nearly_normal(release: Release, one: Sum, value: float, scale: float, side: float) -> float:
    """By the mean, variance and skew of the sum at each node."""
    n, noise = float(release.likely_n), release.evidence().mechanism
    own = scale**2 * noise.shape.variance_of_unit  # of discrete noise too: of a small scale its variance is less
    variance = n * one.variance + release.count.variance * one.mean**2
    total = np.sqrt(np.maximum(variance + own, np.finfo(float).tiny))
    score = _unskewed((value - n * one.mean) / total, n * one.third / total**3)
    below = noise.shape.below_with(side * score * total, np.sqrt(variance), float(own))
    is_known = np.isfinite(below)
    return float((one.weight * np.where(is_known, below, 0.0)).sum() / (one.weight * is_known).sum())


def _unskewed(score: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """A standardised score of a skewed law as that of a normal one."""
    is_skewed = np.abs(skew) > 1e-6
    g = np.where(is_skewed, skew, 1.0)
    root = 1 + 0.5 * g * score
    found = np.where(root > 0, 6 / g * (np.cbrt(root) - 1) + g / 6, -np.sign(g) * np.inf)
    return np.where(is_skewed, found, score)


# ---- what one record adds ------------------------------------------------------------------------------------


def _sums(family: AbstractFamily, prior: Any) -> dict[int, Sum]:
    """By the place of the statistic."""
    match family:
        case Categorical():
            return {k: _counted(marginal) for k, marginal in enumerate(prior.marginals())}
        case AbstractScalarFamily():
            return _of_records(family, *prior.marginals())
        case NormalMeanVariance():
            _, variance = prior.marginals()
            weight, draws = _normal_nodes(float(prior.mean), variance, float(prior.precision))
            return _with_squares(family, weight, draws)
        case GammaShapeRate():
            (first, shape), (second, rate) = (_nodes(part, 61) for part in prior.marginals())
            weight = np.outer(first, second).ravel()
            draws = {"shape": np.repeat(shape, len(rate)), "rate": np.tile(rate, len(shape))}
            return _with_squares(family, weight, draws)
        case MultivariateNormal():
            return _of_columns(family, prior, family.query.pairs)
        case LinearRegression() | AbstractGeneralizedLinear():
            return _of_regression(family, *family.parted(prior))
    return {}


def _nodes(prior: AbstractScalarPrior, count: int = _NODES) -> tuple[np.ndarray, np.ndarray]:
    """Weights and values at quantiles whose log odds are evenly spaced."""
    odds = np.linspace(-_OUTERMOST, _OUTERMOST, count)
    share = special.expit(odds)
    return share * special.expit(-odds), np.array([prior.quantile(float(q)) for q in share])


def _normal_nodes(
    centre: float, variance: AbstractScalarPrior, precision: float
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return nodes of a variance, and of mean ~ Normal(centre, variance/precision) given it."""
    weight, v = _nodes(variance, 81)
    z = np.tile(_NORMAL_NODES, len(v))
    v = np.repeat(v, len(_NORMAL_NODES))
    draws = {"mean": centre + np.sqrt(v / precision) * z, "variance": v}
    return np.outer(weight, np.exp(-0.5 * _NORMAL_NODES**2)).ravel(), draws


def _counted(prior: AbstractScalarPrior) -> Sum:
    weight, theta = _nodes(prior)
    variance = theta * (1 - theta)
    return Sum(weight, theta, variance, variance * (1 - 2 * theta))


def _of_records(family: AbstractScalarFamily, prior: AbstractScalarPrior) -> dict[int, Sum]:
    """Return the moments for a sum of the values themselves, clamped or dropped."""
    weight, theta = _nodes(prior)
    cumulants = family.cumulants(theta)
    if cumulants is None:
        return {}
    mean, variance, third = cumulants
    if (found := family.recorded({family.parameters[0]: theta})) is not None and family.query.bounds is not None:
        mean, variance = _summed(family, found, found.mean)
        low, high = family.query.bounds
        third = np.minimum(third, (high - low) * variance)  # |κ₃| of what lies between two ends
    return {0: Sum(weight, mean, variance, third)}


def _summed(family, found: Recorded, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of what is summed of a record, given those of the recorded values: 0 where it was dropped."""
    if family.query.outside == "clamp":
        return values, found.variance
    inside = 1 - found.moved
    return inside * values, inside * (found.variance + (1 - inside) * values**2)


def _with_squares(family, weight: np.ndarray, draws: dict[str, np.ndarray]) -> dict[int, Sum]:
    """Return the moments for Σu and Σu² of one column."""
    found = family.recorded(draws)
    if found is None:
        mean, variance = draws.get("mean"), draws.get("variance")
        if mean is None or variance is None:
            mean, variance = draws["shape"] / draws["rate"], draws["shape"] / draws["rate"] ** 2
        found = unaltered(mean, variance)
    (centre,), (half,) = family.query.centre, family.query.half
    inner = found._replace(mean=(found.mean - centre) / half, variance=found.variance / half**2)
    is_bounded = family.query.intervals is not None
    first = _summed(family, inner, inner.mean)
    return dict(enumerate(_pair(weight, *first, is_bounded=is_bounded)))


def _of_columns(family: MultivariateNormal, prior, pairs, dimension: int | None = None) -> dict[int, Sum]:
    """Return the moments for Σu_j and Σu_j² of each column, by their places among those of `dimension` columns."""
    d, columns, sums = family.dimension, prior.columns(), {}
    places = {pair: (dimension or d) + k for k, pair in enumerate(pairs)}
    for j in range(d):
        weight, draws = _normal_nodes(float(np.asarray(prior.mean)[j]), columns[j][1], float(prior.count))
        mean = (draws["mean"] - family.query.centre[j]) / family.query.half[j]
        variance, is_bounded = draws["variance"] / family.query.half[j] ** 2, family.query.intervals is not None
        if is_bounded:
            mean, variance, *_ = normal(mean, variance, (-1.0, 1.0))
        sums[j], sums[places[j, j]] = _pair(weight, mean, variance, is_bounded=is_bounded)
    return sums


def _of_regression(family, line: Any, covariates: AbstractPrior) -> dict[int, Sum]:
    """Return what a record adds to the sums of covariates and, where it is linear, of y."""
    if not isinstance(covariates, NormalInverseWishart):
        return {}
    intervals = None if family.query.intervals is None else family.query.intervals[:-1]
    sums = _of_columns(MultivariateNormal(family.x, intervals), covariates, family.query.pairs, family.dimension)
    return sums | (_of_response(family, line, covariates) if family.predictor is not None else {})


def _of_response(family, line: NormalInverseGamma, covariates: NormalInverseWishart) -> dict[int, Sum]:
    """Return the moments for y, by draws of the line and of the covariates, each by itself."""
    rng, p = np.random.default_rng(0), len(family.x)
    rest = float(line.scale) / rng.gamma(float(line.shape), size=_DRAWS)
    root = np.linalg.cholesky(np.asarray(line.precision, dtype=float))
    z = np.linalg.solve(root.T, rng.standard_normal((p + 1, _DRAWS))).T
    theta = np.asarray(line.mean, dtype=float) + np.sqrt(rest)[:, None] * z
    shape, scale = 0.5 * (float(covariates.dof) - p + 1), 0.5 * np.diag(np.asarray(covariates.scale, dtype=float))
    spreads = scale / rng.gamma(shape, size=(_DRAWS, p))
    middles = np.asarray(covariates.mean) + np.sqrt(spreads / float(covariates.count)) * rng.standard_normal(
        (_DRAWS, p)
    )
    mean = (theta[:, :-1] * middles).sum(1) + theta[:, -1]
    u = (mean - family.query.centre[-1]) / family.query.half[-1]
    variance = ((theta[:, :-1] ** 2 * spreads).sum(1) + rest) / family.query.half[-1] ** 2
    if family.query.intervals is not None:
        u, variance, *_ = normal(u, variance, (-1.0, 1.0))
    pair = _pair(np.ones(_DRAWS), u, variance, is_bounded=family.query.intervals is not None)
    return dict(zip((p, family.dimension + family.query.pairs.index((p, p))), pair, strict=True))


def _pair(weight: np.ndarray, mean: np.ndarray, variance: np.ndarray, *, is_bounded: bool) -> tuple[Sum, Sum]:
    """Return the moments for u and u², the latter as if u were normal, and within what |u| ≤ 1 allows."""
    square = variance + mean**2
    spread = 2 * variance**2 + 4 * mean**2 * variance
    if is_bounded:
        spread = np.minimum(spread, square * np.maximum(1 - square, 0.0))
    none = np.zeros_like(mean)
    return Sum(weight, mean, variance, none), Sum(weight, square, spread, none)
