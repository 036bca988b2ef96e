"""The law of a released sum before it is seen, where it has a closed form: no bounds, a public n, a conjugate prior.

    successes    s ~ BetaBinomial(n·trials, a, b)
    failures     s ~ BetaNegativeBinomial(n, a, b)
    counts       s ~ NegativeBinomial(shape, rate/(rate + n))
    gamma        s/rate ~ BetaPrime(n·shape of a record, shape of the prior)

    P(y ≤ t) = P(s < l) + Σ_{s=l..h} p(s) P(noise ≤ t − s)         from l to h is what noise reaches from t

Small counts and very skewed sums are far from normal, so that no expansion about a normal law serves them.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from noiseaware.family import (
    AbstractFamily,
    Bernoulli,
    Binomial,
    Categorical,
    Exponential,
    GammaRate,
    Geometric,
    Poisson,
)
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import Beta

_SHARES = special.expit(np.linspace(-25.0, 25.0, 401))
_WEIGHTS = _SHARES * _SHARES[::-1] / (_SHARES * _SHARES[::-1]).sum()
_MOST_LISTED = 20_000

Probability = Callable[[float | np.ndarray], np.ndarray]


class Law(NamedTuple):
    """A sum s under the prior: P(s ≤ t), P(s ≥ t) and, for whole numbers, the logarithm of P(s)."""

    below: Probability
    above: Probability
    log_mass: Probability | None
    greatest: float = math.inf
    is_skewed: bool = True
    """True if the sum is too far from normal for an expansion about it."""


def laws(family: AbstractFamily, prior: Any, n: int) -> dict[int, Law]:
    """By the place of the statistic, as if no bounds altered the records; none where there is no closed form."""
    if n < 1:
        return {}
    match family:
        case Categorical():
            return {k: _successes(marginal, n) for k, marginal in enumerate(prior.marginals())}
        case Bernoulli() | Binomial():
            return {0: _successes(prior.marginals()[0], n * family.trials)}
        case Geometric():
            return {0: _failures(prior.marginals()[0], n)}
        case Poisson():
            return {0: _counts(float(prior.shape), float(prior.rate), n)}
        case Exponential():
            return {0: _gamma(float(prior.shape), float(prior.rate), n)}
        case GammaRate():
            return {0: _gamma(float(prior.shape), float(prior.rate), n * family.shape)}
    return {}


def noisy(law: Law, noise: AbstractMechanism, scale: float, value: float, side: float) -> float | None:
    """P(s + noise ≤ value), or P(s + noise ≥ value) on the side −1; None where too many counts would be listed."""
    if not noise.is_noisy:
        return float(law.below(value) if side > 0 else law.above(value))
    if law.log_mass is None:
        from_noise = _quantiles(noise, scale)
        found = law.below(value - from_noise) if side > 0 else law.above(value - from_noise)
        return float((_WEIGHTS * found).sum())
    reach = scale * noise.reach + 1
    if reach > 0.5 * _MOST_LISTED:
        return None
    low, high = max(0.0, math.ceil(value - reach)), min(law.greatest, math.floor(value + reach))
    s = np.arange(low, high + 1)
    beyond = law.below(low - 1) if side > 0 else law.above(high + 1)
    return min(
        1.0, float(beyond + (np.exp(law.log_mass(s)) * noise.with_spread(scale).below(side * (value - s))).sum())
    )


def _quantiles(noise: AbstractMechanism, scale: float) -> np.ndarray:
    """Return quantiles of continuous noise, from the lower half, since a share near 1 has lost its figures."""
    lower = np.minimum(_SHARES, _SHARES[::-1])
    found = noise.shape.lower_quantile(lower)
    return scale * np.where(_SHARES < 0.5, found, -found)


@functools.lru_cache(maxsize=64)
def _probabilities(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of Beta(a, b), and what they leave to 1: of thousands of releases they are the same."""
    return special.betaincinv(a, b, _SHARES), special.betaincinv(b, a, _SHARES[::-1])


def _successes(prior: Beta, trials: int) -> Law:
    a, b = float(prior.a), float(prior.b)
    theta, rest = _probabilities(a, b)

    def above(t: float | np.ndarray) -> np.ndarray:
        k = np.clip(np.ceil(t), 1, trials)
        found = (_WEIGHTS * special.betainc(k, trials - k + 1, theta)).sum()
        return np.where(t <= 0, 1.0, np.where(t > trials, 0.0, found))

    def below(t: float | np.ndarray) -> np.ndarray:
        k = np.clip(np.floor(t), 0, trials - 1)
        found = (_WEIGHTS * special.betainc(trials - k, k + 1, rest)).sum()
        return np.where(t < 0, 0.0, np.where(t >= trials, 1.0, found))

    def log_mass(s: float | np.ndarray) -> np.ndarray:
        ways = -np.log(trials + 1.0) - special.betaln(s + 1, trials - s + 1)
        return ways + special.betaln(a + s, b + trials - s) - special.betaln(a, b)

    return Law(below, above, log_mass, float(trials))


def _failures(prior: Beta, n: int) -> Law:
    a, b = float(prior.a), float(prior.b)
    theta, rest = _probabilities(a, b)

    def above(t: float | np.ndarray) -> np.ndarray:
        found = (_WEIGHTS * special.betainc(np.maximum(np.ceil(t), 1), n, rest)).sum()
        return np.where(t <= 0, 1.0, found)

    def below(t: float | np.ndarray) -> np.ndarray:
        found = (_WEIGHTS * special.betainc(n, np.maximum(np.floor(t), 0) + 1, theta)).sum()
        return np.where(t < 0, 0.0, found)

    def log_mass(s: float | np.ndarray) -> np.ndarray:
        ways = -np.log(n + s) - special.betaln(n, s + 1)
        return ways + special.betaln(a + n, b + s) - special.betaln(a, b)

    return Law(below, above, log_mass)


def _counts(shape: float, rate: float, n: int) -> Law:
    def above(t: float | np.ndarray) -> np.ndarray:
        return np.where(t <= 0, 1.0, special.betainc(np.maximum(np.ceil(t), 1), shape, n / (rate + n)))

    def below(t: float | np.ndarray) -> np.ndarray:
        return np.where(t < 0, 0.0, special.betainc(shape, np.maximum(np.floor(t), 0) + 1, rate / (rate + n)))

    def log_mass(s: float | np.ndarray) -> np.ndarray:
        ways = -np.log(shape + s) - special.betaln(shape, s + 1)
        return ways - shape * np.log1p(n / rate) - s * np.log1p(rate / n)

    return Law(below, above, log_mass)


def _gamma(shape: float, rate: float, own: float) -> Law:
    def above(t: float | np.ndarray) -> np.ndarray:
        return np.where(t <= 0, 1.0, special.betainc(shape, own, rate / (rate + np.maximum(t, 0))))

    def below(t: float | np.ndarray) -> np.ndarray:
        size = np.maximum(t, 0)
        return np.where(t <= 0, 0.0, special.betainc(own, shape, size / (rate + size)))

    return Law(below, above, None, is_skewed=own < 1)
