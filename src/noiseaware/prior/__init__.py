"""Conjugate priors and what is made of them, one a file."""

from noiseaware.prior._prior import AbstractPrior as AbstractPrior
from noiseaware.prior._prior import AbstractRealPrior as AbstractRealPrior
from noiseaware.prior._prior import AbstractScalarPrior as AbstractScalarPrior
from noiseaware.prior._prior import Numeric as Numeric
from noiseaware.prior.beta import Beta as Beta
from noiseaware.prior.covariate_moments import CovariateMoments as CovariateMoments
from noiseaware.prior.dirichlet import Dirichlet as Dirichlet
from noiseaware.prior.empirical import Empirical as Empirical
from noiseaware.prior.gamma import Gamma as Gamma
from noiseaware.prior.independent import Independent as Independent
from noiseaware.prior.inverse_gamma import InverseGamma as InverseGamma
from noiseaware.prior.multivariate_normal import MultivariateNormal as MultivariateNormal
from noiseaware.prior.normal import Normal as Normal
from noiseaware.prior.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
from noiseaware.prior.normal_inverse_wishart import NormalInverseWishart as NormalInverseWishart
from noiseaware.prior.student_t import StudentT as StudentT
