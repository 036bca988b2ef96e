"""Numbers and names as they are shown."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import noiseaware as na
from noiseaware.marginal import of_draws
from noiseaware.words import brief, facts, gloss, headline, impossible, noise, number, parameter, prior_words, shown


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (5.69e-6, 0.005, "5.69×10⁻⁶"),
        (0.0204, 0.005, "0.0204"),
        (0.2198, 0.0218, "0.220"),
        (0.23096, 1e-5, "0.230960"),
        (1234567.0, 300.0, "1,234,567"),
        (-3.2, 1.0, "−3.2"),
        (0.0, 1.0, "0.0"),
        (0.0, math.nan, "0"),
        (-7.0, math.nan, "−7"),
        (6148.2, math.nan, "6,148"),
        (1e-7, 1e-8, "1.00×10⁻⁷"),
        (1e20, 1e18, "1.00×10²⁰"),
        (math.nan, math.nan, "–"),
    ],
)
def test_number(value, sd, text):
    assert number(value, sd) == text


def test_shown_names_are_printable_and_short():
    assert shown("a\x00b\n\u202ec") == "a\ufffdb\ufffd\ufffdc"
    assert len(shown("x" * 1000)) == 60


REGRESSION = na.family.LinearRegression(["age", "bmi"], "pressure", bounds=[(0, 100), (10, 60), (60, 220)])
JOINT = na.family.MultivariateNormal(["a", "b"])


def released(family, values, mechanism=na.mechanism.Laplace(2.0), n=10) -> na.Release:
    return na.Release(family=family, values=values, n=n, mechanism=mechanism)


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        (na.prior.Gamma(8, 2), "Gamma(8, 2)"),
        (na.prior.Dirichlet([1, 2]), "Dirichlet(1, 2)"),
        (na.prior.NormalInverseGamma(0, 1, 3, 3), "NormalInverseGamma(0, 1, 3, 3)"),
        (na.prior.NormalInverseGamma([1, 0], 0.25, 20, 0.5), "NormalInverseGamma([1, 0], 0.25, 20, 0.5)"),
        (na.prior.NormalInverseGamma([1, 0], [1, 2], 20, 0.5), "NormalInverseGamma([1, 0], [1, 2], 20, 0.5)"),
        (
            na.prior.NormalInverseGamma([1, 0], [[1, 0.5], [0.5, 1]], 20, 0.5),
            "NormalInverseGamma([1, 0], [[1, 0.5], [0.5, 1]], 20, 0.5)",
        ),
        (na.prior.NormalInverseWishart([0, 0], 2, 3, 5), "NormalInverseWishart([0, 0], 2, 3, 5)"),
        (na.prior.Independent(rate=na.prior.Gamma(8, 2)), "Independent(rate=Gamma(8, 2))"),
        (na.prior.CovariateMoments.of(np.arange(9.0)), "CovariateMoments(of 2 numbers)"),
    ],
)
def test_priors_read_as_they_are_written(prior, text):
    assert prior_words(prior) == text


@pytest.mark.parametrize(
    ("family", "name", "text"),
    [
        (REGRESSION, "coefficients[age]", "the coefficient of age"),
        (REGRESSION, "coefficients[intercept]", "the intercept"),
        (na.family.LinearRegression("intercept"), "coefficients[intercept]", "the coefficient of intercept"),
        (REGRESSION, "variance", "the variance"),
        (REGRESSION, "coefficients", "the coefficients"),
        (JOINT, "mean[a]", "the mean of a"),
        (JOINT, "covariance[a, b]", "the covariance of a and b"),
        (JOINT, "covariance[b, b]", "the variance of b"),
        (na.family.MultivariateNormal(["a, b", "c"]), "covariance[a, b, c]", "the covariance of a, b and c"),
        (na.family.Normal(), "variance", "the variance"),
    ],
)
def test_parameters_of_several_columns(family, name, text):
    assert parameter(released(family, [1.0] * len(family.statistics)), name) == text


def test_gloss_of_a_regression():
    assert gloss(released(REGRESSION, [1.0] * 9), "coefficients") == "the coefficients, the intercept last"


def test_facts_of_several_columns():
    release = released(REGRESSION, np.arange(9.0), na.mechanism.Gaussian([2.0] * 4 + [1.5, 1.5, 2.0, 1.5, 2.0]))
    told = dict(facts(release))
    assert told["Columns"] == "age, bmi, pressure"
    assert told["Bounds"].startswith("age 0 to 100, bmi 10 to 60, pressure 60 to 220; a number outside is moved to")
    assert told["Released"].endswith("(of numbers in units of half the bounds' width from their centre)")
    assert told["Noise"] == "Gaussian, standard deviation 2 on sums and squares and 1.5 on products of two columns"
    assert "and 3 more, noise Gaussian" in brief(release)
    assert "units" not in dict(facts(released(JOINT, [1.0] * 5)))["Released"]
    each = na.mechanism.Laplace([1, 2, 3, 4, 5])
    assert noise(released(JOINT, [1.0] * 5, each)) == "Laplace, scale 1 to 5 by statistic"
    told = dict(facts(released(na.family.Normal("x", bounds=(0, 4), outside="drop"), [1.0, 2.0])))
    assert told["Bounds"] == "0 to 4; a record outside is left out of the sum (set in public)"


@pytest.mark.parametrize(
    ("family", "values", "words"),
    [
        (na.family.Normal(), [-5.0, 4.0], None),
        (na.family.Normal(), [-5.0, -4.0], "The released sum_of_squares of −4 is one that no table has"),
        (na.family.Normal(), [-5.0, 2.0], "a variance would be negative"),
        (JOINT, [0.0, 0.0, 1.0, 0.9, 1.0], None),
        (JOINT, [0.0, 0.0, 1.0, -0.9, 1.0], None),
        (JOINT, [0.0, 0.0, 1.0, 1.1, 1.0], "a variance would be negative"),
        (JOINT, [0.0, 0.0, 1.0, 0.0, -1.0], "The released sum[b·b] of −1"),
        (JOINT, [10.0, 10.0, 10.0, 10.0, 10.0], None),  # a constant column
    ],
)
def test_moments_that_no_table_has(family, values, words):
    found = impossible(released(family, values))
    assert (found is None) if words is None else words in found


def test_a_headline_tells_a_few_slopes():
    names = [*(f"x{j}" for j in range(12)), "intercept"]
    family = na.family.LinearRegression(names[:-1], "y")
    release = released(family, [1.0] * len(family.statistics))
    draws = np.random.default_rng(0).normal(size=(13, 100))
    estimates = [of_draws(f"coefficients[{name}]", row) for name, row in zip(names, draws, strict=True)]
    prior = na.prior.NormalInverseGamma(0, 1, 3, 3)
    told = headline(SimpleNamespace(release=release, prior=prior, estimates=lambda: estimates))  # type: ignore[arg-type]
    assert told.count("the coefficient of") == 3
    assert "intercept" not in told
    assert ", the coefficient of x1 lies between" in told
    assert " and the coefficient of x2 lies between" in told
    assert told.endswith("with probability 95 % each.")
