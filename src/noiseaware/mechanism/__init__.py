"""Noise laws, one a file: densities and guarantees. Private noise is drawn in `custodian/noise.py` and nowhere else."""

from noiseaware.mechanism._mechanism import AbstractLaw as AbstractLaw
from noiseaware.mechanism._mechanism import AbstractMechanism as AbstractMechanism
from noiseaware.mechanism.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from noiseaware.mechanism.discrete_laplace import DiscreteLaplace as DiscreteLaplace
from noiseaware.mechanism.gaussian import Gaussian as Gaussian
from noiseaware.mechanism.identity import Identity as Identity
from noiseaware.mechanism.interval import Interval as Interval
from noiseaware.mechanism.laplace import Laplace as Laplace
