"""The values of a column as they are recorded within its bounds, as the law behind the bounds has them.

    clamped    c = clip(x):  E c = low·P(x < low) + E[x; low ≤ x ≤ high] + high·P(x > high)
    dropped    c = x, given that it lies within the bounds

Bounds that cut deep leave little to tell one law behind them from another, so that the law is mostly the family's own
choice. The mean and variance of c are what was summed, and are known whatever the law.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from noiseaware.family._clipped import powers

Draws = Float[np.ndarray, "..."]
_RARE = 1e-10  # of records within the bounds: below, differences of probabilities have no figures left
_TINY, _HUGE = 1e-150, 1e150  # of a rate or mean count: beyond, a square is no number, and every record at one end
_WIDE = 1e5  # of sd over half the bounds' width: above, moments by differences of probabilities have no figures left
_STRAIGHT = 1e-4  # of a fall of log density within the bounds: below, a straight line is as good to eight figures


class Recorded(NamedTuple):
    """Mean and variance of the recorded values, and the shares of records beyond either bound; entry by draw of θ."""

    mean: Draws
    variance: Draws
    below: Draws
    above: Draws

    @property
    def moved(self) -> Draws:
        """The share of records beyond the bounds."""
        return self.below + self.above


def unaltered(mean: Draws, variance: Draws) -> Recorded:
    """Records that no bound has altered."""
    return Recorded(mean, variance, np.zeros_like(mean), np.zeros_like(mean))


def of(
    family, unbounded: tuple[Draws, Draws], law: Callable[..., Recorded], *parameters, is_altered: bool
) -> Recorded | None:
    """Of a family of one column: by its law within its bounds or, where no record is taken for altered, unbounded."""
    query = family.query
    if not query.is_altered:
        return None
    if not is_altered:
        return unaltered(*unbounded)
    with np.errstate(all="ignore"):  # draws far from the bounds; what is not finite does not leave np.where
        return law(*parameters, query.bounds, keeps_outside=query.outside == "clamp")


def normal(mean: Draws, variance: Draws, bounds: tuple, *, keeps_outside: bool = True) -> Recorded:
    """Of a normal law."""
    centre, half = 0.5 * (bounds[0] + bounds[1]), 0.5 * (bounds[1] - bounds[0])
    m, sd = (mean - centre) / half, np.sqrt(variance) / half
    below, above = special.ndtr((-1 - m) / sd), special.ndtr((m - 1) / sd)
    one, two = normal_powers(m, sd, 2, keeps_outside=keeps_outside)
    if keeps_outside:  # of a law so wide all but none are within the bounds, and those evenly
        one = np.where(sd > _WIDE, above - below, one)
        two = np.where(sd > _WIDE, 1 - 2 / 3 * np.maximum(1 - below - above, 0.0), two)
    if not keeps_outside:
        # far away, what is left within the bounds is exponential from the nearer one
        away = np.where(m > 0, m - 1, m + 1) / sd**2
        one, two = _within(one, two, 1 - below - above, np.sign(m), away, 2.0)
    return Recorded(centre + half * one, half**2 * np.maximum(two - one**2, 0.0), below, above)


def normal_powers(mean: Draws, sd: Draws, highest: int, *, keeps_outside: bool = True) -> list[Draws]:
    """E c^k for k = 1 … highest of records with bounds at ±1, without JAX; 0 where records outside are not kept."""
    return powers(mean, sd, highest, keeps_outside=keeps_outside, cdf=special.ndtr, pdf=_density)


def gamma(shape: Draws | float, rate: Draws, bounds: tuple, *, keeps_outside: bool = True) -> Recorded:
    """Of a gamma law, of which the moments within the bounds are those of other gamma laws: shape + 1, shape + 2."""
    if (
        bounds[1] <= 0 and not keeps_outside
    ):  # no record is ever within, and the nearest number that could be is the end
        return Recorded(np.full_like(rate, bounds[1]), np.zeros_like(rate), np.zeros_like(rate), np.ones_like(rate))
    rate = np.maximum(rate, _TINY)
    low, high = (np.maximum(bound, 0.0) * rate for bound in bounds)
    below, above = special.gammainc(shape, low), special.gammaincc(shape, high)
    inside = [_between(special.gammainc, special.gammaincc, shape + k, low, high) for k in range(3)]
    one, two = shape / rate * inside[1], shape * (shape + 1) / rate**2 * inside[2]
    if keeps_outside:
        one, two = _kept(one, two, bounds, below, above)
    else:
        is_above = (shape - 1) / bounds[1] > rate  # where the density rises up to the upper bound
        end = np.where(is_above, bounds[1], max(bounds[0], 0.0))
        away = np.where(is_above, -1.0, 1.0) * (rate - (shape - 1) / np.maximum(end, np.finfo(float).tiny))
        one, two = _within(one, two, inside[0], end, np.where(is_above, away, -away), bounds[1] - max(bounds[0], 0.0))
    return Recorded(one, np.maximum(two - one**2, 0.0), below, above)


def poisson(theta: Draws, bounds: tuple, *, keeps_outside: bool = True) -> Recorded:
    """Of a Poisson law, by its factorial moments: E[x; a ≤ x ≤ b] = θ P(a − 1 ≤ x ≤ b − 1)."""
    low, high = bounds
    theta = np.minimum(theta, _HUGE)
    below, above = _at_most(low - 1, theta), special.gammainc(high + 1, theta) if high >= 0 else np.ones_like(theta)
    inside = [_counts_between(low - k, high - k, theta) for k in range(3)]
    one, two = theta * inside[1], theta**2 * inside[2] + theta * inside[1]
    if keeps_outside:
        one, two = _kept(one, two, bounds, below, above)
    else:
        one, two = _within(one, two, inside[0], np.where(above > below, high, max(low, 0)), np.inf, 1.0)
    return Recorded(one, np.maximum(two - one**2, 0.0), below, above)


def geometric(theta: Draws, bounds: tuple, *, keeps_outside: bool = True) -> Recorded:
    """Of failures before the first success, x = low + y: y is geometric again where x ≥ low, and cut at the width m.

    E min(y, m) = Σ q^k and E min(y, m)² = Σ (2k − 1) q^k over k = 1 … m, with q = 1 − θ
    """
    low, high = max(bounds[0], 0.0), max(bounds[1], 0.0)
    m, log_q = high - low, np.log1p(-np.minimum(theta, 1 - 1e-16))
    reached, beyond = np.exp(low * log_q), np.exp((m + 1) * log_q)
    q, past, is_straight = np.exp(log_q), -np.expm1(m * log_q), theta * m < _STRAIGHT
    inner = np.where(is_straight, 1.0, theta)
    first = np.where(is_straight, m - theta * m * (m + 1) / 2, q * past / inner)
    sums = q * (past * (1 + q) / inner - 2 * m * np.exp(m * log_q)) / inner
    second = np.where(is_straight, m**2 - theta * (m * (m + 1) * (2 * m + 1) / 3 - m * (m + 1) / 2), sums)
    below, above = 1 - reached, reached * beyond
    if not keeps_outside:
        held = np.where(is_straight, 1.0, -np.expm1((m + 1) * log_q))
        one, two, three = m * (m + 1) / 2, m * (m + 1) * (2 * m + 1) / 6, (m * (m + 1) / 2) ** 2
        count = m + 1 - theta * one
        first = np.where(is_straight, (one - theta * two) / count, (first - m * beyond) / held)
        second = np.where(is_straight, (two - theta * three) / count, (second - m**2 * beyond) / held)
        reached = np.ones_like(reached)
    mean = reached * first
    return Recorded(low + mean, np.maximum(reached * second - mean**2, 0.0), below, above)


def _density(z: Draws) -> Draws:
    return np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def _between(below, above, shape: Draws | float, low: Draws, high: Draws) -> Draws:
    """P(low ≤ x ≤ high), as a difference in the tail that is the smaller."""
    return np.where(
        below(shape, low) > 0.5,
        above(shape, low) - above(shape, high),
        below(shape, high) - below(shape, low),
    )


def _at_most(k: float, theta: Draws) -> Draws:
    """P(x ≤ k) of a Poisson count."""
    return special.gammaincc(k + 1, theta) if k >= 0 else np.zeros_like(theta)


def _counts_between(low: float, high: float, theta: Draws) -> Draws:
    """P(low ≤ x ≤ high) of a Poisson count."""
    if high < 0:
        return np.zeros_like(theta)
    if low <= 0:
        return _at_most(high, theta)
    lower, upper = _at_most(low - 1, theta), _at_most(high, theta)
    return np.where(lower > 0.5, special.gammainc(low, theta) - special.gammainc(high + 1, theta), upper - lower)


def _kept(one: Draws, two: Draws, bounds: tuple, below: Draws, above: Draws) -> tuple[Draws, Draws]:
    """First and second moment with the records beyond the bounds at the bounds."""
    low, high = bounds
    return low * below + one + high * above, low**2 * below + two + high**2 * above


def _within(one: Draws, two: Draws, held: Draws, end: Draws, away: Draws | float, width: float) -> tuple[Draws, Draws]:
    """First and second moment given that a record is within the bounds.

    Where that is rare it is taken as exponential from the bound `end`, falling at the rate |away| toward the other.
    """
    is_rare = held < _RARE
    share = np.where(is_rare, 1.0, held)
    fall = np.abs(away) * width
    is_flat = fall < _STRAIGHT
    x = np.where(is_flat, 1.0, np.minimum(fall, 700.0))
    left = 1 / np.expm1(x)  # of the exponential beyond the other bound, over what is within
    step = width * np.where(is_flat, 0.5 - fall / 12, 1 / np.maximum(x, fall) - left)
    square = width**2 * np.where(is_flat, 1 / 3 - fall / 12, 2 / np.maximum(x, fall) ** 2 - (1 + 2 / x) * left)
    side = np.where(np.asarray(away) < 0, -1.0, 1.0)
    near, spread = end - side * step, np.maximum(square - step**2, 0.0)
    return np.where(is_rare, near, one / share), np.where(is_rare, near**2 + spread, two / share)
