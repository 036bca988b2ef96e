"""The exponential mechanism on integer scores, drawn by OpenDP (McSherry & Talwar 2007).

    P(i) ∝ e^{u(i)/b}        ε = η, ρ = η²/8, for η = 2Δ/b

*Proof sketch.* For neighbours, log P(i)/P'(i) = (u(i) − u'(i))/b + constant lies in an interval of length η, and has
both signs as both sum to 1: so it is at most η in size, which is pure ε. A privacy loss that lies in an interval of
length η is sub-Gaussian (Hoeffding's lemma), which gives ρ = η²/8 (Cesar & Rogers 2021).

OpenDP draws the argmax of u/b + Gumbel noise, which has exactly the law P, from integer scores and without floats.
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

from noiseaware.custodian.engine.quiet import quietly
from noiseaware.privacy import Guarantee, above

_LAST_PLACES = 16  # as in noise.py


@functools.lru_cache(maxsize=16)
def calibrated(guarantee: Guarantee, sensitivity: int) -> float:
    """The least b with 2Δ/b ≤ ε, or (2Δ/b)²/8 ≤ ρ, that OpenDP agrees with."""
    from opendp.mod import OpenDPException

    try:
        scale = guarantee.choice_scale(sensitivity)
        for _ in range(_LAST_PLACES):
            if _keeps(guarantee, scale, sensitivity):
                return scale
            scale = math.nextafter(scale, math.inf)
    except (OverflowError, OpenDPException):  # both mean a float too large
        pass
    raise ValueError("epsilon, rho or bounds_share must be nearer to 1: no float can hold the scale of the choice.")


def select(scores: Sequence[int], *, scale: float, sensitivity: int, guarantee: Guarantee) -> int:
    """An index drawn with P(i) ∝ e^{scores[i]/scale}, refused if that does not keep the promise."""
    if not _keeps(guarantee, scale, sensitivity):
        raise RuntimeError(f"a choice of scale {scale} must keep {guarantee}, and does not; nothing was drawn.")
    return quietly(lambda: _measurement(scale)(list(scores)), "noise could not be drawn.")  # OpenDP quotes a score


def _keeps(guarantee: Guarantee, scale: float, sensitivity: int) -> bool:
    """True if the exact loss is within the promise, and OpenDP, whose map gives η²/8, says so too."""
    most = guarantee.range_squared
    return (2 * sensitivity / Fraction(scale)) ** 2 <= most and _measurement(scale).map(sensitivity) <= above(most / 8)


@functools.lru_cache(maxsize=16)
def _measurement(scale: float):
    """OpenDP's choice of the greatest of i64 scores under Gumbel noise; asked for pure ε it would draw another law."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    return make_noisy_max(domain, linf_distance(T="i64"), zero_concentrated_divergence(), scale)
