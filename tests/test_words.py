"""Numbers and names as they are shown."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

import noiseaware as na
from noiseaware.evidence.json import Origin
from noiseaware.posterior.estimate import Estimate, of_draws
from noiseaware.report.number import number, several, shown
from noiseaware.report.posterior_words import belief, between, exactness, gloss, headline, naive_headline, parameter
from noiseaware.report.release_words import brief, convention, facts, impossible, missing, noise, yes


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
    assert str(prior) == text


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
    assert parameter(released(family, [1.0] * len(family.query.names)), name) == text


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
    release = released(family, [1.0] * len(family.query.names))
    draws = np.random.default_rng(0).normal(size=(13, 100))
    estimates = [of_draws(f"coefficients[{name}]", row) for name, row in zip(names, draws, strict=True)]
    prior = family.completed(na.prior.NormalInverseGamma(np.zeros(13), 1, 3, 3))
    told = headline(SimpleNamespace(release=release, prior=prior, estimates=lambda: estimates))  # type: ignore[arg-type]
    assert told.count("the coefficient of") == 3
    assert "intercept" not in told
    assert ", the coefficient of x1 lies between" in told
    assert " and the coefficient of x2 lies between" in told
    assert told.endswith("with probability 95 % each.")


def test_the_default_of_the_covariates_is_only_mentioned():
    release = released(REGRESSION, [1.0] * 9)
    own = na.prior.NormalInverseGamma([0, 0, 100], 0.1, 3, 200)
    completed = REGRESSION.completed(own)
    told = belief(release, completed)
    assert told == "NormalInverseGamma([0, 0, 100], 0.1, 3, 200) (covariates: normal, spread from the bounds)"
    assert "Independent" in str(completed)
    given = na.prior.Independent(regression=own, covariates=na.prior.NormalInverseWishart([50, 30], 1, 9, 8))
    assert belief(release, given).endswith("200) (covariates: NormalInverseWishart([50, 30], 1, 9, 8))")
    unbounded = na.family.LinearRegression(["age", "bmi"], "pressure")
    told = belief(released(unbounded, [1.0] * 9), unbounded.completed(own))
    assert told.endswith("(covariates: normal, about 0 with a spread of about 1, vaguely, since nothing was said)")
    assert belief(released(na.family.Poisson(), [9.0]), na.prior.Gamma(8, 2)) == "Gamma(8, 2)"


def test_a_long_prior_is_shortened():
    prior = na.prior.NormalInverseGamma([*range(12), 100], 0.1, 3, 200)
    assert belief(released(JOINT, [1.0] * 5), prior) == "NormalInverseGamma([0, 1, 2, …, 11, 100], 0.1, 3, 200)"
    assert "5, 6, 7" in str(prior)


@pytest.mark.parametrize(
    ("explanation", "is_chain", "text"),
    [
        (None, False, "Exact for this family: 4,000 independent draws from the posterior, with nothing approximated."),
        (
            None,
            True,
            "Exact for this family in the limit: 4,000 draws of converged chains whose limit is the posterior itself.",
        ),
        ("Something is neglected.", True, "Approximate: Something is neglected."),
    ],
)
def test_a_chain_is_not_called_independent(explanation, is_chain, text):
    asked = SimpleNamespace(is_exact=explanation is None, is_chain=is_chain, num_draws=4000, explanation=explanation)
    assert exactness(asked) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate("c", 0.3, 0.35, -0.0553, 1.33), "between −0.06 and 1.33"),
        (Estimate("c", 0.3, 1.4, -0.02, 3.1), "between 0.0 and 3.1"),
        (Estimate("c", 0.0204, 0.005, 5.69e-6, 0.03), "between 5.69×10⁻⁶ and 0.0300"),
    ],
)
def test_what_may_have_either_sign_is_rounded_alike(estimate, text):
    assert between(estimate) == text


@pytest.mark.parametrize(
    ("names", "text"), [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcdef", "a, b and 4 more")]
)
def test_several(names, text):
    assert several(list(names)) == text


def test_a_page_lists_no_more_statistics_than_one_can_read():
    family = na.family.MultivariateNormal(dimension=8)
    told = dict(facts(released(family, [1.0] * 44)))["Released"]
    assert told.endswith("and 14 more")


@pytest.mark.filterwarnings("ignore:The prior and the release disagree:RuntimeWarning")
def test_a_ratio_of_hundreds_is_written_as_a_person_would():
    """A prior that the data contradict: an interval from the one to the other."""
    family, law = na.family.Exponential(), na.mechanism.DiscreteLaplace(96.0)
    release = na.Release(family=family, values=[1665], n=400, mechanism=law)
    posterior = na.infer(release, na.prior.Gamma(8, 2), seed=0, num_draws=2000)
    assert re.search(r"an interval 1\d\d times narrower than", naive_headline(posterior))


WORDS = {"true": ("true", "yes"), "false": ("false", "no")}
WAIT, LEVELS = na.family.Exponential("x", (0, 9)), na.family.Categorical("x", levels=["a", "b"])
DROPPED, SEX = na.family.Exponential("x", (0, 9), "drop"), na.family.Bernoulli("x")
LOGISTIC = na.family.LogisticRegression("x", "y", (1, 9))


@pytest.mark.parametrize(
    ("family", "origin", "told"),
    [
        (WAIT, {"missing": (("x", 0.0),)}, "empty or no number counts as 0, the lower bound"),
        (WAIT, {"missing": (("x", 2.5),)}, "empty or no number counts as 2.5"),
        (WAIT, {"missing": "leave_out"}, "leaves its record out of the sums and of n"),
        (DROPPED, {"missing": "drop"}, "adds nothing to the sum and is one of n"),
        (SEX, {"missing": (("x", 0),), **WORDS}, "neither yes (true, yes) nor no (false, no) counts as no"),
        (SEX, {"missing": (("x", 1),), "true": ("F",)}, "a cell that is empty counts as yes"),
        (LEVELS, {"missing": (("x", "a"),)}, "none of the levels counts as a, the first"),
        (LEVELS, {"missing": (("x", "b"),)}, "none of the levels counts as b"),
        (JOINT, {"missing": (("a", 1.0), ("b", -2.0))}, "empty or no number counts as a 1, b −2"),
        (LOGISTIC, {"missing": (("x", 1.0), ("y", 0))}, "empty or unreadable counts as x 1, y 0, the lower bounds"),
    ],
)
def test_what_became_of_missing_cells(family, origin, told):
    values = [1.0] * len(family.query.names)
    release = na.Release(
        family=family, values=values, n=9, mechanism=na.mechanism.Laplace(1.0), origin=Origin(**origin)
    )
    assert told in missing(release)
    assert dict(facts(release))["Missing cells"] == missing(release)
    assert (convention(release) is None) == (origin["missing"] == "leave_out")
    assert missing(released(family, values)) is None


def counted(true) -> na.Release:
    """Yes and no, with these words for yes, and missing cells that are no."""
    origin = Origin(missing=(("x", 0),), true=true)
    return na.Release(family=SEX, values=[3], n=9, mechanism=na.mechanism.Laplace(1.0), origin=origin)


def test_a_page_says_what_counted_as_yes():
    release = counted(("F", "w\x00" + "x" * 200))
    told = dict(facts(release))["Counted as yes"]
    assert told.startswith("F, w\ufffdxxx")
    assert told.endswith("…; as no: all else")
    assert "any other record" not in dict(facts(release))["Bounds"]
    assert yes(released(SEX, [3])) is None


def test_what_missing_cells_count_as_is_explained_where_draws_are_approximate_and_makes_none_so():
    release = counted(("F",))
    exact = na.infer(release, na.prior.Beta(1, 1), seed=0, num_draws=100)
    naive = na.infer(release, na.prior.Beta(1, 1), method="naive", seed=0, num_draws=100)
    assert exact.is_exact
    assert naive.explanation.endswith(" A cell that is empty counts as no.")
