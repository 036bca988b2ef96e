"""How many records of a regression's columns the clamped normal model takes for moved to a bound.

With u the column in units of half its bounds' width, the release has two noisy averages of c = clip(u),

    Σc/n ≈ E c(µ, σ)        Σc²/n ≈ E c²(µ, σ)        u ~ Normal(µ, σ²)

each with its sampling error and its noise, and with the prior of (µ, σ²) they give the share P(|u| > 1) on a grid. Of a
column that only takes its two bounds Σc² is n, and nearly all records are taken for moved ones of a normal law of huge
spread. Its slope is then one of y over that spread, and is near 0 whatever the slope of the column itself.
"""

from typing import NamedTuple

import numpy as np

from noiseaware.check import shown
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractGeneralizedLinear, LinearRegression, MultivariateNormal
from noiseaware.family.linear_regression import believed_covariates
from noiseaware.family.recorded import normal, normal_powers
from noiseaware.prior import AbstractPrior, NormalInverseWishart

MOST = 0.2
"""The largest share of a covariate's records that the model may take for moved."""
NORMAL = "The covariates are taken as normal."
_CELLS, _NARROWINGS, _DEPTH = 65, 10, 40.0  # of the grid; log densities this far below the top are left out
_SPREADS = (1e-4, 1e3)  # of σ: beyond, all but a thousandth of the records lie outside, and powers lose their figures
_FARTHEST = 8.0  # of the mean, in units of √(1 + σ²)
_LEAST = 1e-15  # of a variance: a column of two values has squares that do not vary


class Belief(NamedTuple):
    """σ² ~ InverseGamma(shape, scale) and µ given σ² ~ Normal(mean, σ²/worth), in the units of u."""

    mean: float
    worth: float
    shape: float
    scale: float


def assumption(evidence: Evidence, prior: AbstractPrior) -> str | None:
    """Return a sentence on the law of the covariates, where a linear regression has one in its prior."""
    if not isinstance(evidence.family, LinearRegression) or evidence.is_noiseless:
        return None
    return NORMAL if _covariates(evidence, prior) is not None else None


def check(evidence: Evidence, prior: AbstractPrior) -> None:
    """Refuse a release most of whose records of a covariate would be taken for moved ones."""
    family = evidence.family
    if not isinstance(family, LinearRegression | AbstractGeneralizedLinear):
        return
    for column, ends in moved(evidence, prior).items():
        if column in family.x and (share := sum(ends)) > MOST:
            low, high = dict(zip(family.query.columns, family.query.intervals or (), strict=True))[column]
            wider = f"({2 * low - high:g}, {2 * high - low:g})"
            raise ValueError(
                f"bounds of {shown(column)} must hold at least {100 * (1 - MOST):g} % of the normal law that the "
                f"covariates are taken to follow, and this release puts {100 * share:.0f} % of it beyond "
                f"({low:g}, {high:g}); release with wider bounds, such as {wider} for a yes/no column, at the cost of "
                "more noise, or release the two groups apart with by=."
            )


def moved(evidence: Evidence, prior: AbstractPrior) -> dict[str, tuple[float, float]]:
    """Return the shares of each column's records that a regression takes for lying below and above its bounds."""
    family, believed = evidence.family, _covariates(evidence, prior)
    if believed is None or family.query.intervals is None or evidence.is_noiseless:  # type: ignore[attr-defined]
        return {}
    places = {pair: family.dimension + i for i, pair in enumerate(family.query.pairs)}  # type: ignore[attr-defined]
    of_y = MultivariateNormal(family.query.columns[-1:], family.query.intervals[-1:])  # type: ignore[attr-defined]
    believed += _beliefs(believed_covariates(of_y), of_y.query.centre, of_y.query.half)
    return {
        column: _shares(belief, *_averages(evidence, [j, places[j, j]]))
        for j, (column, belief) in enumerate(zip(family.query.columns, believed, strict=True))
        if (j, j) in places
    }


def _covariates(evidence: Evidence, prior: AbstractPrior) -> list[Belief] | None:
    """The prior of each covariate by itself, where it is that of a normal law."""
    family = evidence.family
    if not isinstance(family, LinearRegression | AbstractGeneralizedLinear):
        return None
    believed = family.completed(prior).parts["covariates"]
    if not isinstance(believed, NormalInverseWishart):
        return None
    return _beliefs(believed, family.query.centre[:-1], family.query.half[:-1])


def _beliefs(believed: NormalInverseWishart, centre: np.ndarray, half: np.ndarray) -> list[Belief]:
    """The prior of each column by itself, in the units of u."""
    means = (np.asarray(believed.mean, dtype=float) - centre) / half
    scales = np.diag(np.asarray(believed.scale, dtype=float)) / half**2
    shape, count = 0.5 * (float(believed.dof) - len(means) + 1), float(believed.count)
    return [Belief(float(m), count, shape, 0.5 * float(s)) for m, s in zip(means, scales, strict=True)]


def _averages(evidence: Evidence, here: list[int]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return averages of some statistics, the covariance of their noise, and n."""
    n, y = evidence.n, np.asarray(evidence.y)
    average = y[here] / n
    noise = np.broadcast_to(np.asarray(evidence.mechanism.variance, dtype=float), y.shape)[here]
    return average, (np.diag(noise) + evidence.count.variance * np.outer(average, average)) / n**2, n


def _shares(belief: Belief, average: np.ndarray, noise: np.ndarray, n: float) -> tuple[float, float]:
    """E P(u < −1) and E P(u > 1) on a grid of µ/√(1 + σ²) and log σ, which is narrowed to where the density is.

    On the way down the averages are taken as known to an eighth of a cell at best, so that no peak falls between nodes.
    """
    low, high = np.array([-_FARTHEST, np.log(_SPREADS[0])]), np.array([_FARTHEST, np.log(_SPREADS[1])])
    found = np.zeros(2)
    for _ in range(_NARROWINGS):
        step = (high - low) / (_CELLS - 1)
        at, log_sd = np.meshgrid(*(np.linspace(a, b, _CELLS) for a, b in zip(low, high, strict=True)), indexing="ij")
        sd = np.exp(log_sd)
        mean = at * np.sqrt(1 + sd**2)
        with np.errstate(over="ignore", under="ignore"):
            height = _log_density(belief, mean, sd, average, noise + np.eye(2) * (step.max() / 8) ** 2, n)
            height = height + 0.5 * np.log1p(sd**2) - height.max()
            weight = np.exp(height - height.max())
            law = normal(mean, sd**2, (-1.0, 1.0))
        found = np.array([(weight * end).sum() for end in (law.below, law.above)]) / weight.sum()
        seen = np.argwhere(height >= height.max() - _DEPTH)
        low, high = low + step * np.maximum(seen.min(0) - 1, 0), low + step * np.minimum(seen.max(0) + 1, _CELLS - 1)
    return float(found[0]), float(found[1])


def _log_density(
    belief: Belief, mean: np.ndarray, sd: np.ndarray, average: np.ndarray, noise: np.ndarray, n: float
) -> np.ndarray:
    """log p(µ, log σ) + log p(averages | µ, σ), the averages normal."""
    one, two, three, four = normal_powers(mean, sd, 4)
    a, b = average[0] - one, average[1] - two
    aa = noise[0, 0] + np.maximum(two - one**2, _LEAST) / n
    bb = noise[1, 1] + np.maximum(four - two**2, _LEAST) / n
    ab = noise[0, 1] + (three - one * two) / n
    size = np.maximum(aa * bb - ab**2, _LEAST * aa * bb)
    squares = (bb * a**2 - 2 * ab * a * b + aa * b**2) / size
    spread = (belief.worth * (mean - belief.mean) ** 2 / 2 + belief.scale) / sd**2
    return -0.5 * squares - 0.5 * np.log(size) - (2 * belief.shape + 1) * np.log(sd) - spread
