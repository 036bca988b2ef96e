"""Conjugate priors, one a file."""

from noiseaware.prior._prior import AbstractPrior as AbstractPrior
from noiseaware.prior._prior import AbstractScalarPrior as AbstractScalarPrior
from noiseaware.prior._prior import Numeric as Numeric
from noiseaware.prior.beta import Beta as Beta
from noiseaware.prior.dirichlet import Dirichlet as Dirichlet
from noiseaware.prior.gamma import Gamma as Gamma
from noiseaware.prior.normal import Normal as Normal
