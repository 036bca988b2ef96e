"""How far a release lies from the statistics that tables can have, in scales of its noise.

Of n records within their bounds, or within the query's support

    a sum          lies in n · [low, high]
    counts         lie in [0, n] and add up to n
    second moments Σ(1, u)(1, u)ᵀ has no negative eigenvalue: vᵀMv ≥ 0 for every v

Each is a bound on a sum of released values with known weights; how far a release is beyond it, over the scale of the
same sum of noise, is its distance. Noise of scale 1 reaches 15 with probability e⁻¹⁵ = 3·10⁻⁷ (Laplace) or less.
"""

import math
from typing import NamedTuple

import numpy as np

from noiseaware.evidence.release import Release
from noiseaware.query import AbstractMoments

FAR = 15.0
"""Scales of noise beyond which it is not the noise."""
_ROUNDING = 1e-9  # of a sum, which it alone can make of 0


class Beyond(NamedTuple):
    """A value that no table has: which it is, None for several together, and how many scales of noise it is beyond."""

    statistic: str | None
    value: float
    distance: float


def farthest(release: Release) -> Beyond | None:
    """The value that lies farthest beyond what tables have, or None where all are possible."""
    found = [*_by_themselves(release), *_together(release)]
    found = [one for one in found if one.distance > 0]
    return max(found, key=lambda one: one.distance, default=None)


def _by_themselves(release: Release) -> list[Beyond]:
    """Each value against the least and the greatest of n records."""
    n = float(release.likely_n)
    triples = zip(release.query.names, release.query.ranges, _scales(release), _ends(release), strict=True)
    found = []
    for (name, (low, high), scale, (least, most)), value in zip(triples, release.values, strict=True):
        for end, excess in ((high, least - n * high), (low, n * low - most)):
            if math.isfinite(end):
                found.append(Beyond(name, float(value), _over(excess, scale, end, release, abs(value))))
    return found


def _ends(release: Release) -> list[tuple[float, float]]:
    """What each noisy value is known to lie between: itself, or its interval."""
    within = release.within or [None] * len(release.steps)
    pairs = zip(release.values.tolist(), within, strict=True)
    return [(v, v) if w is None else (w[0] * release.grid, w[1] * release.grid) for v, w in pairs]


def _scales(release: Release) -> np.ndarray:
    if not release.mechanism.is_noisy:
        return np.zeros(len(release.steps))
    return np.broadcast_to(np.asarray(release.noise_scale, dtype=float), release.values.shape)


def _over(excess: float, scale: float, of_n: float, release: Release, size: float) -> float:
    """An excess in scales of noise, that of a private n included, of which the bound has `of_n` for each record."""
    if excess <= _ROUNDING * max(size, 1.0):
        return 0.0
    total = math.hypot(scale, of_n * release.count.scale)
    return excess / total if total > 0 else math.inf


def _together(release: Release) -> list[Beyond]:
    """Several values: counts that must add up to n, second moments of which no combination has a negative variance."""
    query = release.query
    if query.levels is not None and release.within is None:
        total = float(release.values.sum())
        scale = math.sqrt(float((_scales(release) ** 2).sum()))
        excess = abs(total - release.likely_n)
        distance = _over(excess, scale, 1.0, release, total)
        return [Beyond(None, total, distance)] if distance > FAR else []
    return [_of_moments(release, query)] if isinstance(query, AbstractMoments) else []


def _of_moments(release: Release, query: AbstractMoments) -> Beyond:
    """By the direction of the lowest eigenvalue, columns first scaled so that their squares have equal noise.

    Divided by √(d + 1), since that direction is the worst of d + 1 that do not depend on each other.
    """
    n, scales, values = float(release.likely_n), _scales(release), release.values
    d = query.dimension
    places = {pair: d + i for i, pair in enumerate(query.pairs)}
    # y² of some regressions is not released: of bounded y it is at most n, and else may be anything
    d = d if (d - 1, d - 1) in places or query.intervals is not None else d - 1
    moments, noise = np.full((d + 1, d + 1), n), np.zeros((d + 1, d + 1))
    moments[0, 1:] = moments[1:, 0] = values[:d]
    noise[0, 1:] = noise[1:, 0] = scales[:d]
    for (i, j), place in places.items():
        if max(i, j) < d:
            moments[i + 1, j + 1] = moments[j + 1, i + 1] = values[place]
            noise[i + 1, j + 1] = noise[j + 1, i + 1] = scales[place]
    own = np.diag(noise)[1:]
    size = np.where(own > 0, own, np.maximum(np.abs(np.diag(moments)[1:]), 1e-300)) ** -0.5
    unit = np.append(n**-0.5, size)
    least, vectors = np.linalg.eigh(moments * np.outer(unit, unit))
    v = vectors[:, 0] * unit
    # a pair stands twice in vᵀMv and has one noise
    weights = np.outer(v, v) * (2 - np.eye(d + 1))
    scale = math.sqrt(float((np.triu(weights * noise) ** 2).sum()) * (d + 1))
    largest = float((np.abs(np.outer(v, v) * moments)).sum())
    return Beyond(None, float(least[0]), _over(-float(v @ moments @ v), scale, float(v[0] ** 2), release, largest))
