"""Exponential families, one a file: each says how far one record can move its sums (`sensitivity`)."""

from noiseaware.family._family import AbstractFamily as AbstractFamily
from noiseaware.family._family import AbstractNumberFamily as AbstractNumberFamily
from noiseaware.family._family import AbstractScalarFamily as AbstractScalarFamily
from noiseaware.family._family import AbstractTruncatedFamily as AbstractTruncatedFamily
from noiseaware.family._family import AbstractUnboundedFamily as AbstractUnboundedFamily
from noiseaware.family._family import summed_ranges as summed_ranges
from noiseaware.family._generalized import AbstractGeneralizedLinear as AbstractGeneralizedLinear
from noiseaware.family._moment import AbstractMomentFamily as AbstractMomentFamily
from noiseaware.family._power import AbstractPowerFamily as AbstractPowerFamily
from noiseaware.family._quadratic import AbstractQuadraticFamily as AbstractQuadraticFamily
from noiseaware.family.binomial import Bernoulli as Bernoulli
from noiseaware.family.binomial import Binomial as Binomial
from noiseaware.family.categorical import Categorical as Categorical
from noiseaware.family.exponential import Exponential as Exponential
from noiseaware.family.gamma import Gamma as Gamma
from noiseaware.family.gamma import GammaRate as GammaRate
from noiseaware.family.gamma import GammaShapeRate as GammaShapeRate
from noiseaware.family.geometric import Geometric as Geometric
from noiseaware.family.linear_regression import LinearRegression as LinearRegression
from noiseaware.family.logistic_regression import LogisticRegression as LogisticRegression
from noiseaware.family.multivariate_normal import MultivariateNormal as MultivariateNormal
from noiseaware.family.normal import Normal as Normal
from noiseaware.family.normal import NormalMean as NormalMean
from noiseaware.family.normal import NormalMeanVariance as NormalMeanVariance
from noiseaware.family.poisson import Poisson as Poisson
from noiseaware.family.poisson_regression import PoissonRegression as PoissonRegression
