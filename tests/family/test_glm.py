"""Generalized linear models: moments of the sums against simulation and quadrature, sensitivity, priors, refusals."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from noiseaware import family
from noiseaware.prior import Beta, Independent, MultivariateNormal, Normal, NormalInverseWishart

BOUNDS = {"age": (0, 100), "bmi": (10, 60)}
MODELS = {
    "logistic": family.LogisticRegression(["age", "bmi"], "ill", bounds=BOUNDS),
    "logistic, nothing clamped": family.LogisticRegression(["age", "bmi"], "ill"),
    "poisson": family.PoissonRegression(["age", "bmi"], "visits", bounds=BOUNDS | {"visits": (0, 6)}),
    "poisson from 1": family.PoissonRegression(["age", "bmi"], "visits", bounds=BOUNDS | {"visits": (1, 5)}),
    "one covariate": family.PoissonRegression("age", "visits", bounds={"age": (0, 100), "visits": (0, 6)}),
}
SIZES = {"small": 0.3, "middling": 1.5, "large": 6.0}  # sd of a


def law(model, s: float) -> np.ndarray:
    """θ with covariates far inside the bounds, and a of mean 0.4 and sd s."""
    p = len(model.x)
    mean, covariance = np.array([48.0, 33.0])[:p], np.array([[60.0, 10.0], [10.0, 20.0]])[:p, :p]
    slopes = np.array([1.0, -1.5])[:p]
    slopes *= s / np.sqrt(slopes @ covariance @ slopes)
    return np.concatenate([slopes, [0.4 - slopes @ mean], mean, covariance.ravel()])


QUICK = [("logistic", "middling")]
CASES = [c if c in QUICK else pytest.param(*c, marks=pytest.mark.slow) for c in itertools.product(MODELS, SIZES)]


@pytest.mark.parametrize(("name", "size"), CASES)
def test_moments_are_those_of_a_million_records(name, size, x64, key):
    """Mean and covariance to 5 standard errors, those of the covariance from its own squares."""
    model, theta = MODELS[name], jnp.asarray(law(MODELS[name], SIZES[size]))
    mean, covariance = model.modelled_moments(theta)
    t = np.stack([np.asarray(column) for column in model.query.alter(model.sample(key, theta, 1_000_000))])
    away = t - np.asarray(mean)[:, None]
    assert (np.abs(away.mean(1)) <= 5 * np.sqrt(np.diag(covariance) / 1e6)).all()
    for i, j in itertools.combinations_with_replacement(range(len(t)), 2):
        products = away[i] * away[j]
        assert abs(products.mean() - covariance[i, j]) <= 5 * products.std() / 1e3
    assert np.linalg.eigvalsh(covariance)[0] > -1e-12


def responses(model, a: float) -> tuple[np.ndarray, np.ndarray]:
    """The values of y in units of u, and their probabilities given a."""
    if model.name == "logistic_regression":
        return np.array([-1.0, 1.0]), np.array([special.expit(-a), special.expit(a)])
    low, high = model.query.intervals[-1]
    rates = stats.poisson(np.exp(a))
    values = np.arange(low, high + 1)
    chances = np.append(rates.pmf(values[:-1]), rates.sf(high - 1))
    chances[0] = rates.cdf(low)
    return (values - (low + high) / 2) / ((high - low) / 2), chances


@pytest.mark.parametrize("s", [pytest.param(0.01, marks=pytest.mark.slow), 1.0, 5.0, 10.0])
@pytest.mark.parametrize("name", ["logistic", pytest.param("poisson", marks=pytest.mark.slow), "poisson from 1"])
def test_integrals_are_those_of_adaptive_quadrature(name, s, x64):
    """SciPy's, of E[z^k y] and E[z^k y²] with y summed over its values; steps of 1/8 hold to 1e−6 for a logistic of any
    reasonable s, and where counts pass within one step from 0 to the bound, at s = 10, to 3e−3."""
    model, middle = MODELS[name], 0.4
    found = [np.asarray(part) for part in model._integrals(jnp.asarray(middle), jnp.asarray(s))]

    def wanted(k: int, power: int) -> float:
        def integrand(z):
            values, chances = responses(model, middle + s * z)
            return stats.norm.pdf(z) * z**k * (values**power @ chances)

        cuts = np.linspace(-3, 3, 13)
        return integrate.quad(integrand, -8, 8, points=cuts, limit=400, epsabs=1e-9)[0]

    most = 1e-6 if name == "logistic" or s <= 1 else 3e-3 if s == 10 else 1e-4
    np.testing.assert_allclose(found[0], [wanted(k, 1) for k in range(4)], atol=most)
    np.testing.assert_allclose(found[1], [wanted(k, 2) for k in range(3)], atol=most)


@pytest.mark.slow
def test_slopes_of_zero_have_a_derivative(x64):
    for model in MODELS.values():
        theta = jnp.asarray(law(model, 1.0)).at[: len(model.x)].set(0.0)
        slope = jax.jacfwd(lambda t, model=model: model.modelled_moments(t)[0])(theta)
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("name", ["logistic", "poisson", "one covariate"])
def test_no_neighbour_moves_the_sums_further(name, neighbours, seed):
    """Adversarial records: corners, middles and what lies outside the bounds, y included."""
    model, rng = MODELS[name], np.random.default_rng(seed)
    d, size = model.dimension, 40_000
    u = np.where(rng.random((2, d, size)) < 0.5, rng.choice([-3.0, -1.0, 0.0, 1.0], (2, d, size)), 0.0)
    u = np.where(u == 0, rng.uniform(-1.2, 1.2, u.shape), u)
    x = jnp.asarray(model.query.centre[:, None] + model.query.half[:, None] * u)
    here, there = (np.stack([np.asarray(column) for column in model.query.alter(records)]) for records in x)
    apart = here - there if neighbours == "replace" else here
    entries = np.array(model.query.entries)[:, None]
    assert len(apart) == len(model.query.names) == len(model.query.degrees) == d + d * (d + 1) // 2 - 1
    assert np.abs(apart).sum(0).max() <= model.query.sensitivity(neighbours) * (1 + 1e-6)
    assert (entries * apart**2).sum(0).max() <= model.query.sensitivity(neighbours, 2) * (1 + 1e-6)


def test_one_prior_for_every_coefficient_or_for_all():
    model = MODELS["logistic"]
    completed = model.completed(Normal(0, 4))
    np.testing.assert_allclose(completed.parts["coefficients"].covariance, 4 * np.eye(3))
    linear = family.LinearRegression(["age", "bmi"], "ill", bounds=BOUNDS | {"ill": (0, 1)})
    about_x = linear.completed(Normal(0, 1)).parts["covariates"]  # the same as for a line
    for field in ("mean", "count", "scale", "dof"):
        np.testing.assert_array_equal(getattr(completed.parts["covariates"], field), getattr(about_x, field))
    own = NormalInverseWishart([50, 30], 1, 9, 8)
    given = Independent(covariates=own, coefficients=MultivariateNormal([0, 0, 1], [1, 1, 100]))
    model.check_prior(given)
    assert model.completed(given).names == ("coefficients", "covariates")
    assert model.completed(given).parts["covariates"] is own


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", *list(MODELS)[2:]])
def test_the_naive_fit_finds_the_coefficients_of_many_records(name, x64, key):
    """Of a million records without noise, to five of its own standard deviations."""
    model, theta = MODELS[name], jnp.asarray(law(MODELS[name], 1.5))
    t = jnp.stack([column.sum() for column in model.query.alter(model.sample(key, theta, 1_000_000))])
    found = model.update(model.completed(Normal(0, 100)), model.project(t, 1e6), 1e6).parts["coefficients"]
    q = model.dimension
    sds = np.sqrt(np.diag(found.covariance))
    assert (np.abs(found.mean - theta[:q]) < 5 * sds).all()
    assert (sds[:-1] < 0.02 * np.abs(theta[: q - 1])).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: family.LogisticRegression("age", "ill", bounds={"age": (0, 9), "ill": (0, 2)}), r"must be \(0, 1\)"),
        (lambda: family.PoissonRegression("age", "n", bounds={"age": (0, 9)}), "none for 'n'"),
        (lambda: family.PoissonRegression("age", "n", bounds={"age": (0, 9), "n": (0, 2.5)}), "whole numbers"),
        (lambda: family.PoissonRegression("age", "n", bounds={"age": (0, 9), "n": (-1, 2)}), "between 0 and"),
        (lambda: family.LogisticRegression("age", "age"), "each column once"),
        (lambda: family.LogisticRegression("age", "ill").query.sensitivity(), "bounds must be given"),
        (lambda: MODELS["logistic"].check_prior(Beta(1, 1)), "Normal or MultivariateNormal"),
        (lambda: MODELS["logistic"].check_prior(MultivariateNormal([0, 0], 1)), "mean of 3 entries"),
        (lambda: MODELS["logistic"].check_prior(Independent(regression=Normal(0, 1))), "parts coefficients and"),
        (lambda: MultivariateNormal([0, 0], [[1, 2], [2, 1]]), "positive definite"),
    ],
)
def test_bad_models_and_priors_are_refused_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bounds_of_yes_or_no_need_not_be_said():
    wanted = ((0.0, 100.0), (10.0, 60.0), (0.0, 1.0))
    for bounds in (BOUNDS, list(BOUNDS.values()), BOUNDS | {"ill": (0, 1)}, [*BOUNDS.values(), (0, 1)]):
        assert family.LogisticRegression(["age", "bmi"], "ill", bounds=bounds).query.intervals == wanted
    assert family.LogisticRegression(["a", "b"], bounds=(-1, 1)).query.intervals == (
        (-1.0, 1.0),
        (-1.0, 1.0),
        (0.0, 1.0),
    )
