"""Families, one a file: the model of one record, and the query whose statistics it explains."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from noiseaware.family._family import AbstractFamily as AbstractFamily
    from noiseaware.family._family import AbstractScalarFamily as AbstractScalarFamily
    from noiseaware.family._family import AbstractTruncatedFamily as AbstractTruncatedFamily
    from noiseaware.family._family import AbstractUnboundedFamily as AbstractUnboundedFamily
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

BUILT_IN = {
    "bernoulli": "beta",
    "binomial": "beta",
    "categorical": "dirichlet",
    "exponential": "gamma",
    "gamma": "gamma with a known shape, and independent(shape=gamma(4, 2), rate=gamma(3, 1)) without",
    "geometric": "beta",
    "normal": "normal with a known variance, and normal_inverse_gamma without",
    "poisson": "gamma",
    "multivariate_normal": "normal_inverse_wishart",
    "linear_regression": "normal_inverse_gamma, with the intercept last",
    "logistic_regression": "normal, with the intercept last",
    "poisson_regression": "normal, with the intercept last",
}
"""The families that the command line and release files know by name, and the prior that each takes, in words."""

# Where each name lives; imported on first use, so that `noiseaware --help` lists families without waiting for JAX.
_HOMES = {
    "AbstractFamily": "_family",
    "AbstractScalarFamily": "_family",
    "AbstractTruncatedFamily": "_family",
    "AbstractUnboundedFamily": "_family",
    "AbstractGeneralizedLinear": "_generalized",
    "AbstractMomentFamily": "_moment",
    "AbstractPowerFamily": "_power",
    "AbstractQuadraticFamily": "_quadratic",
    "Bernoulli": "binomial",
    "Binomial": "binomial",
    "Categorical": "categorical",
    "Exponential": "exponential",
    "Gamma": "gamma",
    "GammaRate": "gamma",
    "GammaShapeRate": "gamma",
    "Geometric": "geometric",
    "LinearRegression": "linear_regression",
    "LogisticRegression": "logistic_regression",
    "MultivariateNormal": "multivariate_normal",
    "Normal": "normal",
    "NormalMean": "normal",
    "NormalMeanVariance": "normal",
    "Poisson": "poisson",
    "PoissonRegression": "poisson_regression",
}
__all__ = sorted(_HOMES)


def built_in(name: str) -> "Callable[..., AbstractFamily]":
    """Return the class of a built-in family, or the function that makes one, by its name."""
    return __getattr__(name.title().replace("_", ""))


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'noiseaware.family' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"noiseaware.family.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
