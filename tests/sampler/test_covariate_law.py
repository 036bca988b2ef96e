"""How far slopes move with covariates of another law: against the closed forms of a Poisson regression."""

import numpy as np
import pytest
from scipy import integrate, stats

import noiseaware as na
from noiseaware.sampler import covariate_law

LAWS = {
    "normal": stats.norm(0.4, 1.2),
    "uniform": stats.uniform(-2, 4),
    "exponential": stats.expon(-1),
}
SLOPE, INTERCEPT, SD = 0.5, 0.2, 0.02


def fitted(name: str) -> tuple[na.Release, dict[str, np.ndarray], float]:
    """A release of the expected sums under a law of x, and the slope that a normal law has with the same sums.

    With x ~ N(m, v): E y = e^{b + βm + β²v/2} and E xy = E y (m + βv).
    """
    law, n = LAWS[name], 1000
    inner = (law.ppf(1e-13), law.ppf(1 - 1e-13))
    y, xy = (
        integrate.quad(lambda x, k=k: x**k * np.exp(SLOPE * x + INTERCEPT) * law.pdf(x), *inner, limit=200)[0]
        for k in (0, 1)
    )
    m, v = law.mean(), law.var()
    slope = (xy / y - m) / v
    intercept = np.log(y) - slope * m - slope**2 * v / 2
    values = n * np.array([m, y, v + m**2, xy])
    release = na.Release(
        family=na.family.PoissonRegression("x"), values=values, n=n, mechanism=na.mechanism.Laplace(1.0)
    )
    z = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    draws = {"coefficients": np.array([slope, intercept]) + SD * np.column_stack([z, z]) / z.std()}
    return release, draws, slope


@pytest.mark.parametrize("name", ["uniform", "exponential"])
def test_the_move_is_that_to_the_slope_that_made_the_sums(name):
    """Of the exponential law, which has two directions, the larger move is told."""
    release, draws, slope = fitted(name)
    found = covariate_law.moves(release.evidence(), draws)[name]
    right = abs(SLOPE - slope) / SD
    if name == "uniform":
        assert found == pytest.approx(right, rel=1e-3)
    else:
        assert right - 0.01 < found < 2 * right


def test_two_values_are_those_of_a_closed_form():
    """x is 0 or 1 with 30 % ones: E y = e^b(1 + 0.3(e^β − 1)); the other direction moves less or more."""
    p = 0.3
    y, xy = np.exp(INTERCEPT) * (1 + p * (np.exp(SLOPE) - 1)), p * np.exp(INTERCEPT + SLOPE)
    m, v = p, p * (1 - p)
    slope = (xy / y - m) / v
    intercept = np.log(y) - slope * m - slope**2 * v / 2

    size = slope * v**0.5
    law = covariate_law._laws()["two-valued"][0]
    seen = np.array([y, (xy - m * y) / v**0.5])
    found = covariate_law._scale(np.exp, law, seen, intercept + slope * m, size)
    assert found * slope == pytest.approx(SLOPE, rel=1e-6)


def test_normal_ones_do_not_move():
    _, draws, slope = fitted("normal")
    assert slope == pytest.approx(SLOPE, rel=1e-6)
    size = slope * 1.2
    middle = draws["coefficients"][:, 1].mean() + slope * 0.4
    seen = covariate_law._averages(np.exp, covariate_law._normal(), middle, size)
    assert covariate_law._scale(np.exp, covariate_law._normal(), seen, middle, size) == pytest.approx(1.0)


def test_it_is_said_of_generalized_linear_models_alone():
    release, draws, _ = fitted("uniform")
    said = covariate_law.sentence(release.evidence(), draws)
    assert said.startswith("With covariates of another law slopes would move: with uniform ones by 1.")
    assert said.endswith("posterior sds at most.")
    line = na.family.LinearRegression("x")
    plain = na.Release(family=line, values=np.ones(5), n=9, mechanism=na.mechanism.Laplace(1.0))
    assert covariate_law.sentence(plain.evidence(), draws) is None


def test_a_flat_slope_hardly_moves():
    release, draws, _ = fitted("uniform")
    flat = {"coefficients": draws["coefficients"] * np.array([0.0, 1.0]) + SD * np.array([1.0, 0.0])}
    release = na.Release(
        family=release.family, values=[0.0, 1000 * np.exp(INTERCEPT), 1000.0, 0.0], n=1000, mechanism=release.mechanism
    )
    flat["coefficients"][:, 0] = draws["coefficients"][:, 0] - draws["coefficients"][:, 0].mean()
    assert max(covariate_law.moves(release.evidence(), flat).values()) < 0.01
