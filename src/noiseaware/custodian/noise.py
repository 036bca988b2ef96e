"""Exact integer noise for any mechanism, drawn by OpenDP.

    DLap(b), b ≥ Δ₁/ε        DGauss(σ), Δ₂²/2σ² ≤ ρ        (Canonne, Kamath & Steinke 2020)

OpenDP's samplers work on integers and fractions only, so that the law of what is drawn is the law that was proved.
The inequality is checked twice before anything is drawn: by us in exact fractions, and by OpenDP's own map of
sensitivity to loss, which rounds up.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace
from noiseaware.privacy import Guarantee, Pure, above

# OpenDP rounds every step of its map up, so σ may need a unit or two in the last place more until it agrees.
_LAST_PLACES = 16


def calibrated(guarantee: Guarantee, sensitivity: int, sensitivity_squared: int) -> AbstractMechanism:
    """The least noise that keeps a promise, for statistics that neighbours move by Δ₁ and Δ₂² at most."""
    if isinstance(guarantee, Pure):
        mechanism = DiscreteLaplace(above(Fraction(sensitivity) / guarantee.epsilon))
    else:
        mechanism = DiscreteGaussian(root_above(Fraction(sensitivity_squared) / (2 * guarantee.rho)))
    for _ in range(_LAST_PLACES):
        if _keeps(guarantee, mechanism, sensitivity, sensitivity_squared):
            return mechanism
        mechanism = type(mechanism)(math.nextafter(mechanism.spread, math.inf))
    raise OverflowError("no float is a scale that keeps this promise")


def draw(
    mechanism: AbstractMechanism,
    values: Sequence[int],
    *,
    sensitivity: int,
    sensitivity_squared: int,
    guarantee: Guarantee,
) -> list[int]:
    """The values with fresh noise added to each, refused if the mechanism does not keep the promise."""
    if not _keeps(guarantee, mechanism, sensitivity, sensitivity_squared):
        raise RuntimeError(f"noise of scale {mechanism.spread} must keep {guarantee}, and does not; nothing was drawn.")
    return _measurement(mechanism)(list(values))


def _keeps(guarantee: Guarantee, mechanism: AbstractMechanism, sensitivity: int, sensitivity_squared: int) -> bool:
    """Whether the mechanism's exact loss is within the promise, and OpenDP says so too."""
    scale = Fraction(mechanism.spread)
    if isinstance(guarantee, Pure):
        promise, loss, distance = guarantee.epsilon, Fraction(sensitivity) / scale, sensitivity
    else:
        promise, loss = guarantee.rho, Fraction(sensitivity_squared) / (2 * scale**2)
        distance = root_above(Fraction(sensitivity_squared))
    if isinstance(mechanism, DiscreteLaplace) != isinstance(guarantee, Pure):
        return False
    return loss <= promise and _measurement(mechanism).map(distance) <= above(promise)


def _measurement(mechanism: AbstractMechanism):
    """OpenDP's measurement of this law on vectors of i64."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if isinstance(mechanism, DiscreteLaplace):
        return make_laplace(domain, l1_distance(T="i64"), mechanism.scale)
    if isinstance(mechanism, DiscreteGaussian):
        return make_gaussian(domain, l2_distance(T="f64"), mechanism.stddev)
    raise TypeError(f"mechanism must be discrete to be drawn, got {type(mechanism).__name__}.")


def root_above(square: Fraction) -> float:
    """The least float found that is not below the root of square."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
