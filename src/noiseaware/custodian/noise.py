"""Exact integer noise for any mechanism, drawn by OpenDP.

    DLap(b), b ≥ Δ₁/ε        DGauss(σ), Δ₂²/2σ² ≤ ρ        (Canonne, Kamath & Steinke 2020)
    Staircase(b, w, r), b/w ≥ stairs that are passed/ε        (Geng & Viswanath 2016; made of DLap)

OpenDP's samplers work on integers and fractions only, so that the law of what is drawn is the law that was proved.
The inequality is checked twice before anything is drawn: by us in exact fractions, and by OpenDP's own map of
sensitivity to loss, which rounds up.

A statistic that stands for m entries (`entries`; 1 unless said) counts m-fold in Δ₂² = max Σ m_j (s_j − s'_j)², and is
given noise of σ_j ≥ σ/√m_j: independent noise loses Σ (s_j − s'_j)²/2σ_j² ≤ Σ m_j (s_j − s'_j)²/2σ² ≤ Δ₂²/2σ².
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from noiseaware.custodian.engine.quiet import quietly
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace, Staircase, law_for
from noiseaware.privacy import Guarantee, above, root_above

# OpenDP rounds every step of its map up, so σ may need a unit or two in the last place more until it agrees.
_LAST_PLACES = 16


@dataclass(frozen=True)
class Moved:
    """How far neighbours move the statistics: Δ₁, Δ₂², and how many there are."""

    sensitivity: int
    sensitivity_squared: Fraction
    num_statistics: int | None = None
    """None for any number."""


@dataclass(frozen=True)
class _Drawing:
    """A law as OpenDP draws it, for statistics that have one spread."""

    loss: Callable[[Any, Moved], Fraction]
    """ε or ρ of the noise, in exact fractions."""
    measurement: Callable[[Any], Any]
    """OpenDP's measurement, on vectors of i64."""
    distance: Callable[[Any, Moved], Any]
    """The distance that the measurement's map takes."""
    noisy: Callable[[Any, Sequence[int]], list[int]]
    """The values with noise."""


def calibrated(
    guarantee: Guarantee, sensitivity: int, sensitivity_squared: int, entries: Sequence[int] = (1,)
) -> AbstractMechanism:
    """Return the least noise that keeps a promise, for statistics that neighbours move by Δ₁ and Δ₂² at most."""
    law = law_for(guarantee.kind, is_discrete=True)
    counts = entries if law.weighs else (1,)
    least = {count: _least(law, guarantee, sensitivity, Fraction(sensitivity_squared) / count) for count in set(counts)}
    spreads = [least[count] for count in counts]
    return law.of(spreads[0] if set(counts) == {1} else spreads)


def _least(law: type[AbstractMechanism], guarantee: Guarantee, sensitivity: int, square: Fraction) -> float:
    """Return the least spread that keeps the promise, by us and by OpenDP."""
    spread = guarantee.scale(Fraction(sensitivity), square)
    for _ in range(_LAST_PLACES):
        if _keeps_alone(guarantee, law.of(spread), Moved(sensitivity, square)):
            return spread
        spread = math.nextafter(spread, math.inf)
    raise OverflowError("no float is a scale that keeps this promise")


def draw(
    mechanism: AbstractMechanism,
    values: Sequence[int],
    *,
    sensitivity: int,
    sensitivity_squared: int,
    guarantee: Guarantee,
    entries: Sequence[int] = (1,),
) -> list[int]:
    """Return the values with fresh noise added to each; refused if the mechanism does not keep the promise."""
    moved = Moved(sensitivity, Fraction(sensitivity_squared), len(values))
    if not _keeps(guarantee, mechanism, moved, entries):
        raise RuntimeError(f"noise of scale {mechanism.spread} must keep {guarantee}, and does not; nothing was drawn.")
    spreads = _spreads(mechanism, len(values))
    noisy = list(values)
    for spread in sorted(set(spreads)):
        places = [j for j, own in enumerate(spreads) if own == spread]
        law = mechanism.with_spread(spread)
        drawing = functools.partial(_DRAWN[type(law)].noisy, law, [values[j] for j in places])
        drawn = quietly(drawing, "noise could not be drawn.")  # OpenDP quotes a value that 64 bits do not hold
        for j, value in zip(places, drawn, strict=True):
            noisy[j] = value
    return noisy


def _spreads(mechanism: AbstractMechanism, count: int) -> list[float]:
    return np.broadcast_to(np.asarray(mechanism.spread, dtype=float), count).tolist()


def _keeps(guarantee: Guarantee, mechanism: AbstractMechanism, moved: Moved, entries: Sequence[int]) -> bool:
    """True if the mechanism's exact loss is within the promise, and OpenDP says so too.

    OpenDP draws the statistics of each scale by a measurement of their own, and its loss goes as the square of a
    distance (as the distance itself, for Laplace). If statistics of σ_j, which alone can move by Δ₂/√m_j, lose at most
    ρ there, they lose at most ρ · m_j |s_j − s'_j|²/Δ₂² when they move by less; and over all j these shares of ρ sum
    to 1 at most, by what Δ₂² is. So one inequality for each pair of σ_j and m_j is enough for all of them together.
    """
    if type(mechanism) not in _DRAWN or mechanism.promises != guarantee.kind:
        return False
    pairs = {(float(spread), int(count)) for spread, count in np.broadcast(np.asarray(mechanism.spread), entries)}
    return all(
        _keeps_alone(
            guarantee,
            mechanism.with_spread(spread),
            replace(moved, sensitivity_squared=moved.sensitivity_squared / count),
        )
        for spread, count in pairs
    )


def _keeps_alone(guarantee: Guarantee, law: AbstractMechanism, moved: Moved) -> bool:
    """The inequality for statistics of one scale, were they all that moves."""
    drawn = _DRAWN[type(law)]
    is_kept = drawn.loss(law, moved) <= guarantee.amount
    return is_kept and drawn.measurement(law).map(drawn.distance(law, moved)) <= above(guarantee.amount)


# ---- what OpenDP draws ---------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _laplace(scale: float):
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale)


@functools.lru_cache(maxsize=64)
def _gaussian(stddev: float):
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), stddev)


def _staircase(law: Staircase, values: Sequence[int]) -> list[int]:
    """Return the values with staircase noise, made of discrete Laplace noise alone and of no floats.

    For L = DLap(b), L given L ≥ 0 is geometric, P(G = k) ∝ e^{−k/b}, P(G ≥ 1) = e^{−1/b}, and the sign of L given L ≠ 0
    is a fair bit. A stair k = G, a place j below w by fair bits, kept where j < r or another G is at least 1, and a
    sign, of which −0 is thrown away, have together P ∝ e^{−k/b} for j < r and e^{−(k+1)/b} above: the law.
    """
    noisy, scale = list(values), _of_stairs(law)
    left = list(range(len(noisy)))
    while left:
        stairs, kept = _geometric(scale, len(left)), _geometric(scale, len(left))
        places, signs = _uniform(law.width, len(left)), _bits(len(left))
        again = []
        for at, k, more, j, is_negative in zip(left, stairs, kept, places, signs, strict=True):
            size = k * law.width + j
            if (j >= law.step and more == 0) or (is_negative and size == 0):
                again.append(at)
            else:
                noisy[at] = max(-(2**63), min(2**63 - 1, noisy[at] + (-size if is_negative else size)))
        left = again
    return noisy


def _of_stairs(law: Staircase) -> float:
    """Return the scale of the noise in stairs, 1/ε, which is what is drawn and what is paid for."""
    return float(law.scale) / law.width


def _geometric(scale: float, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [k for k in _laplace(scale)([0] * (2 * (count - len(found)) + 4)) if k >= 0]
    return found[:count]


def _bits(count: int) -> list[bool]:
    found: list[bool] = []
    while len(found) < count:
        found += [k < 0 for k in _laplace(8.0)([0] * (count - len(found) + 4)) if k != 0]
    return found[:count]


def _uniform(width: int, count: int) -> list[int]:
    found, length = list[int](), (width - 1).bit_length()
    while len(found) < count:
        bits = iter(_bits(length * count))
        drawn = [sum(next(bits) << place for place in range(length)) for _ in range(count)]
        found += [number for number in drawn if number < width]
    return found[:count]


_DRAWN: Mapping[type[AbstractMechanism], _Drawing] = {
    DiscreteLaplace: _Drawing(
        loss=lambda law, moved: moved.sensitivity / Fraction(law.scale),
        measurement=lambda law: _laplace(law.scale),
        distance=lambda law, moved: moved.sensitivity,
        noisy=lambda law, values: _laplace(law.scale)(list(values)),
    ),
    DiscreteGaussian: _Drawing(
        loss=lambda law, moved: moved.sensitivity_squared / (2 * Fraction(law.stddev) ** 2),
        measurement=lambda law: _gaussian(law.stddev),
        distance=lambda law, moved: root_above(moved.sensitivity_squared),
        noisy=lambda law, values: _gaussian(law.stddev)(list(values)),
    ),
    Staircase: _Drawing(
        loss=lambda law, moved: law.stairs(moved.sensitivity, moved.num_statistics) / Fraction(_of_stairs(law)),
        measurement=lambda law: _laplace(_of_stairs(law)),
        distance=lambda law, moved: law.stairs(moved.sensitivity, moved.num_statistics),
        noisy=_staircase,
    ),
}
"""Every law that can be drawn."""
