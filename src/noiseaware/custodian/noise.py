"""Exact integer noise for any mechanism, drawn by OpenDP.

    DLap(b), b ≥ Δ₁/ε        DGauss(σ), Δ₂²/2σ² ≤ ρ        (Canonne, Kamath & Steinke 2020)

OpenDP's samplers work on integers and fractions only, so that the law of what is drawn is the law that was proved.
The inequality is checked twice before anything is drawn: by us in exact fractions, and by OpenDP's own map of
sensitivity to loss, which rounds up.

A statistic that stands for m entries (`entries`; 1 unless said) counts m-fold in Δ₂² = max Σ m_j (s_j − s'_j)², and is
given noise of σ_j ≥ σ/√m_j: independent noise loses Σ (s_j − s'_j)²/2σ_j² ≤ Σ m_j (s_j − s'_j)²/2σ² ≤ Δ₂²/2σ².
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from noiseaware.custodian.engine.quiet import quietly
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace
from noiseaware.privacy import Guarantee, Pure, above

# OpenDP rounds every step of its map up, so σ may need a unit or two in the last place more until it agrees.
_LAST_PLACES = 16


def calibrated(
    guarantee: Guarantee, sensitivity: int, sensitivity_squared: int, entries: Sequence[int] = (1,)
) -> AbstractMechanism:
    """The least noise that keeps a promise, for statistics that neighbours move by Δ₁ and Δ₂² at most."""
    if isinstance(guarantee, Pure):
        mechanism = DiscreteLaplace(above(Fraction(sensitivity) / guarantee.epsilon))
    else:
        square = Fraction(sensitivity_squared) / (2 * guarantee.rho)
        stddevs = [root_above(square / count) for count in entries]
        mechanism = DiscreteGaussian(stddevs[0] if set(entries) == {1} else stddevs)
    for _ in range(_LAST_PLACES):
        if _keeps(guarantee, mechanism, sensitivity, sensitivity_squared, entries):
            return mechanism
        mechanism = type(mechanism)(_next_above(mechanism.spread))
    raise OverflowError("no float is a scale that keeps this promise")


def _next_above(spread):
    return math.nextafter(spread, math.inf) if isinstance(spread, float) else np.nextafter(spread, math.inf)


def draw(
    mechanism: AbstractMechanism,
    values: Sequence[int],
    *,
    sensitivity: int,
    sensitivity_squared: int,
    guarantee: Guarantee,
    entries: Sequence[int] = (1,),
) -> list[int]:
    """The values with fresh noise added to each, refused if the mechanism does not keep the promise."""
    if not _keeps(guarantee, mechanism, sensitivity, sensitivity_squared, entries):
        raise RuntimeError(f"noise of scale {mechanism.spread} must keep {guarantee}, and does not; nothing was drawn.")
    spreads = _spreads(mechanism, len(values))
    noisy = list(values)
    for spread in sorted(set(spreads)):
        places = [j for j, own in enumerate(spreads) if own == spread]
        drawing = functools.partial(_measurement(type(mechanism), spread), [values[j] for j in places])
        drawn = quietly(drawing, "noise could not be drawn.")  # OpenDP quotes a value that 64 bits do not hold
        for j, value in zip(places, drawn, strict=True):
            noisy[j] = value
    return noisy


def _spreads(mechanism: AbstractMechanism, count: int) -> list[float]:
    return np.broadcast_to(np.asarray(mechanism.spread, dtype=float), count).tolist()


def _keeps(
    guarantee: Guarantee,
    mechanism: AbstractMechanism,
    sensitivity: int,
    sensitivity_squared: int,
    entries: Sequence[int],
) -> bool:
    """Whether the mechanism's exact loss is within the promise, and OpenDP says so too.

    OpenDP draws the statistics of each scale by a measurement of their own, and its loss goes as the square of a
    distance (as the distance itself, for Laplace). If statistics of σ_j, which alone can move by Δ₂/√m_j, lose at most
    ρ there, they lose at most ρ · m_j |s_j − s'_j|²/Δ₂² when they move by less; and over all j these shares of ρ sum
    to 1 at most, by what Δ₂² is. So one inequality for each pair of σ_j and m_j is enough for all of them together.
    """
    law = DiscreteLaplace if isinstance(guarantee, Pure) else DiscreteGaussian
    if not isinstance(mechanism, law):
        return False
    pairs = {(float(spread), int(count)) for spread, count in np.broadcast(mechanism.spread, entries)}
    return all(_keeps_alone(guarantee, spread, sensitivity, sensitivity_squared, count) for spread, count in pairs)


def _keeps_alone(guarantee: Guarantee, spread: float, sensitivity: int, sensitivity_squared: int, count: int) -> bool:
    """The inequality for statistics of one scale, were they all that moves."""
    if isinstance(guarantee, Pure):
        loss, measurement = Fraction(sensitivity) / Fraction(spread), _measurement(DiscreteLaplace, spread)
        return loss <= guarantee.epsilon and measurement.map(sensitivity) <= above(guarantee.epsilon)
    square = Fraction(sensitivity_squared) / count
    loss, measurement = square / (2 * Fraction(spread) ** 2), _measurement(DiscreteGaussian, spread)
    return loss <= guarantee.rho and measurement.map(root_above(square)) <= above(guarantee.rho)


@functools.lru_cache(maxsize=64)
def _measurement(law: type[AbstractMechanism], spread: float):
    """OpenDP's measurement of this law on vectors of i64."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if law is DiscreteLaplace:
        return make_laplace(domain, l1_distance(T="i64"), spread)
    if law is DiscreteGaussian:
        return make_gaussian(domain, l2_distance(T="f64"), spread)
    raise TypeError(f"mechanism must be discrete to be drawn, got {law.__name__}.")


def root_above(square: Fraction) -> float:
    """The least float found that is not below the root of square."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
