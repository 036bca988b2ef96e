"""Noise laws, one a file: densities and guarantees. Private noise is drawn in `custodian/noise.py` and nowhere else.

`LAWS` is the one registry of built-in laws, which release files, words and loaders read; the first law of a kind is the
usual one.
"""

from collections.abc import Mapping

from noiseaware.mechanism._mechanism import AbstractLaw as AbstractLaw
from noiseaware.mechanism._mechanism import AbstractMechanism as AbstractMechanism
from noiseaware.mechanism._mechanism import AbstractShape as AbstractShape
from noiseaware.mechanism._mechanism import AbstractTilt as AbstractTilt
from noiseaware.mechanism._mechanism import Spread as Spread
from noiseaware.mechanism.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from noiseaware.mechanism.gaussian import Gaussian as Gaussian
from noiseaware.mechanism.identity import Identity as Identity
from noiseaware.mechanism.interval import Interval as Interval
from noiseaware.mechanism.laplace import DiscreteLaplace as DiscreteLaplace
from noiseaware.mechanism.laplace import Laplace as Laplace
from noiseaware.mechanism.staircase import Staircase as Staircase

LAWS: Mapping[str, type[AbstractMechanism]] = {
    law.name: law for law in (Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian, Staircase, Identity)
}
"""Every built-in law by its name in release files."""


def law_for(kind: str, *, is_discrete: bool) -> type[AbstractMechanism]:
    """Return the usual law whose noise keeps a promise of this kind."""
    return next(law for law in LAWS.values() if law.promises == kind and law.is_discrete == is_discrete)
