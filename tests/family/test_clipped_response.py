"""Moments of clipped covariates and their response, against adaptive quadrature and against records."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from tests.family.test_clipped import are_those_of_records
from tests.family.test_glm import responses

from noiseaware import family
from noiseaware.family import _clipped_response

MODELS = {
    "logistic": family.LogisticRegression(["a", "b"], "y", bounds=(-1, 1)),
    "poisson": family.PoissonRegression(["a", "b"], "y", bounds={"a": (-1, 1), "b": (-1, 1), "y": (0, 5)}),
}
# sd of a covariate and of a: hardly clipped, one in ten, half; hardly any slope, and a steep one
SPREADS = [(0.2, 1.0), (0.6, 0.1), (0.6, 3.0), (1.5, 6.0)]


def law(sd: float, s: float, rho: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Mean and covariance of two covariates, slopes that give a an sd of s, and the intercept."""
    mean, covariance = np.array([0.1, -0.4]), sd**2 * np.array([[1.0, rho], [rho, 1.0]])
    slopes = np.array([1.0, -1.5])
    slopes *= s / np.sqrt(slopes @ covariance @ slopes)
    return mean, covariance, slopes, 0.3


def by_quadrature(model, mean, covariance, slopes, intercept, j: int, power: int) -> float:
    """E c_j^power y: u_j outside, a given u_j inside, y summed over its values."""
    rest = np.sqrt(slopes @ covariance @ slopes - (covariance @ slopes)[j] ** 2 / covariance[j, j])
    z = np.arange(-8, 8.01, 0.05)
    weights = 0.05 * stats.norm.pdf(z)

    def integrand(u):
        middle = intercept + slopes @ mean + (covariance @ slopes)[j] / covariance[j, j] * (u - mean[j])
        expected = [np.dot(*responses(model, a)) for a in middle + rest * z]
        return stats.norm.pdf(u, mean[j], np.sqrt(covariance[j, j])) * np.clip(u, -1, 1) ** power * (weights @ expected)

    reach = 8 * np.sqrt(covariance[j, j])
    edges = [mean[j] - reach, *(b for b in (-1, 1) if abs(b - mean[j]) < reach), mean[j] + reach]
    return sum(integrate.quad(integrand, *edge, epsabs=1e-9)[0] for edge in itertools.pairwise(edges))


@pytest.mark.slow
@pytest.mark.parametrize(("sd", "s"), SPREADS)
@pytest.mark.parametrize("name", MODELS)
def test_means_are_those_of_adaptive_quadrature(name, sd, s, x64):
    at = law(sd, s)
    found = _clipped_response.means(*map(jnp.asarray, at), MODELS[name]._response)
    wanted = [by_quadrature(MODELS[name], *at, j, 1) for j in (0, 1)]
    np.testing.assert_allclose(np.asarray(found)[[5, 7]], wanted, atol=1e-7)  # after a, b, y, aa, ab: ay; after bb: by


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("kind", ["logistic", pytest.param("poisson", marks=pytest.mark.slow)])
def test_moments_are_those_of_records(kind, p, x64, key):
    """400 000 records, one covariate in five clipped: means to 5 standard errors; spreads in any direction to 12 %, of
    which points are about 5 and records, of heavy tails, 4."""
    names = [f"x{j}" for j in range(p)]
    of = {"logistic": family.LogisticRegression, "poisson": family.PoissonRegression}[kind]
    model = of(names, "y", bounds=dict.fromkeys(names, (-2.0, 4.0)) | {"y": (0, 1 if kind == "logistic" else 4)})
    covariance = 4.0 * (0.4 + 0.6 * np.eye(p))
    theta = jnp.asarray(np.concatenate([np.linspace(0.5, -0.4, p), [0.3], np.linspace(0, 1, p), covariance.ravel()]))
    are_those_of_records(model, theta, np.stack(model.query.alter(model.sample(key, theta, 400_000))), 0.12)


def test_where_no_bound_cuts_it_is_the_law_of_whole_covariates(x64):
    """Means to the last figures, and covariances as well as points can."""
    model = MODELS["logistic"]
    mean, covariance, slopes, intercept = law(0.12, 1.5)
    theta = jnp.asarray(np.concatenate([slopes, [intercept], mean, covariance.ravel()]))
    (found, spread), (whole, right) = jax.jit(model.released_moments)(theta), jax.jit(model.modelled_moments)(theta)
    np.testing.assert_allclose(found, whole, atol=1e-6)
    np.testing.assert_allclose(spread, right, atol=0.05 * float(jnp.diag(right).max()))


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (0.8, 0.0)])
def test_slopes_of_zero_have_a_derivative(slopes, x64):
    model = MODELS["logistic"]
    theta = jnp.asarray([*slopes, 0.2, 0.1, -0.3, 0.5, 0.0, 0.0, 0.5])
    for moment in (0, 1):
        slope = jax.jit(jax.jacfwd(lambda t, k=moment: model.released_moments(t)[k]))(theta)
        assert np.isfinite(slope).all()
