"""What every prior must do, against SciPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noiseaware.prior import (
    Beta,
    CovariateMoments,
    Dirichlet,
    Empirical,
    Gamma,
    Independent,
    InverseGamma,
    MultivariateNormal,
    Normal,
    NormalInverseGamma,
    NormalInverseWishart,
    StudentT,
)

SCALAR = {
    "beta": (Beta(0.5, 100.0), stats.beta(0.5, 100)),
    "gamma": (Gamma(0.5, 5.0), stats.gamma(0.5, scale=0.2)),
    "normal": (Normal(1.0, 4.0), stats.norm(1, 2)),
    "inverse_gamma": (InverseGamma(3.0, 2.0), stats.invgamma(3, scale=2)),
    "student_t": (StudentT(9.0, 1.0, 2.0), stats.t(9, 1, 2)),
}
PRIORS = {name: prior for name, (prior, _) in SCALAR.items()} | {
    "empirical": Empirical(np.random.default_rng(0).normal(3.0, 2.0, 5000)),
    "dirichlet": Dirichlet([0.5, 2.0, 5.0]),
    "multivariate_normal": MultivariateNormal([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]]),
    "normal_inverse_gamma": NormalInverseGamma(1.0, 2.0, 30.0, 40.0),
    "regression": NormalInverseGamma([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]], 30.0, 40.0),
    "normal_inverse_wishart": NormalInverseWishart([1.0, -2.0], 2.0, [[2.0, 0.5], [0.5, 1.0]], 70.0),
    "independent": Independent(shape=Gamma(4.0, 2.0), line=NormalInverseGamma([1.0, 0.0], 0.5, 30.0, 40.0)),
    "covariate_moments": CovariateMoments([0.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]),
}
QUANTILES = [1e-6, 0.025, 0.5, 0.975, 1 - 1e-6]


@pytest.mark.parametrize("name", SCALAR)
def test_density(name, x64):
    prior, law = SCALAR[name]
    theta = law.ppf(np.linspace(0.01, 0.99, 21))
    np.testing.assert_allclose(prior.log_density(jnp.asarray(theta)), law.logpdf(theta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SCALAR)
def test_draws(name, x64, key):
    prior, law = SCALAR[name]
    draws = np.asarray(prior.sample(key, (50_000,)))
    assert stats.kstest(draws, law.cdf).statistic < 2.7 / 50_000**0.5  # the 1e−6 point of Kolmogorov's distribution


@pytest.mark.parametrize("name", SCALAR)
def test_density_in_the_real_coordinate_integrates_to_one(name, x64):
    prior, _ = SCALAR[name]
    v = jnp.linspace(-80.0, 80.0, 60_001)
    assert float(jnp.trapezoid(jnp.exp(prior.log_density_real(v)), v)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", SCALAR)
def test_mean_sd_quantiles_and_support(name):
    prior, law = SCALAR[name]
    assert prior.moments() == pytest.approx((law.mean(), law.std()))
    assert [prior.quantile(q) for q in QUANTILES] == pytest.approx(law.ppf(QUANTILES))
    assert prior.support == law.support()


def test_a_mean_or_sd_that_is_infinite_or_missing_is_told_apart():
    assert (InverseGamma(0.5, 1.0).moments()[0], InverseGamma(1.5, 1.0).moments()[0]) == (np.inf, 2.0)
    assert np.isnan([InverseGamma(1.5, 1.0).moments()[1], StudentT(2.0, 0.0, 1.0).moments()[1]]).all()


@pytest.mark.parametrize("name", PRIORS)
def test_marginals_are_the_laws_of_the_numbers_of_a_draw(name, x64, key):
    """Compare quantiles with those of 20 000 draws: a share is wrong by 5 standard errors once in 10⁶."""
    prior = PRIORS[name]
    draws = np.asarray(prior.sample(key, (20_000,))).reshape(20_000, -1)
    marginals = prior.marginals()
    if name == "normal_inverse_wishart":
        draws = draws[:, [0, 1, 2, 3, 5]]  # A covariance matrix is symmetric.
    assert len(marginals) == draws.shape[1]
    for marginal, column in zip(marginals, draws.T, strict=True):
        for q in (0.025, 0.5, 0.975):
            share = float(np.mean(column <= marginal.quantile(q)))
            assert abs(share - q) < 5 * (2 * q * (1 - q) / 20_000) ** 0.5  # An empirical marginal has draws of its own.
        middle = sorted(column)[200:-200]
        mean, sd = marginal.moments()
        assert marginal.support[0] <= middle[0] < mean < middle[-1] <= marginal.support[1]
        assert 0.2 < sd / (marginal.quantile(0.84) - marginal.quantile(0.16)) < 5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("beta", "Beta(0.5, 100)"),
        ("dirichlet", "Dirichlet(0.5, 2, 5)"),
        ("regression", "NormalInverseGamma([1, -2], [[2, 0.5], [0.5, 1]], 30, 40)"),
        ("independent", "Independent(shape=Gamma(4, 2), line=NormalInverseGamma([1, 0], 0.5, 30, 40))"),
        ("covariate_moments", "CovariateMoments(of 2 numbers)"),
    ],
)
def test_a_prior_is_written_as_by_its_author(name, text):
    assert str(PRIORS[name]) == text


def test_normal_inverse_gamma(x64, key):
    prior = NormalInverseGamma(1.0, 2.0, 3.0, 4.0)
    mean, variance = 0.3, 2.5
    right = stats.invgamma(3, scale=4).logpdf(variance) + stats.norm(1, (variance / 2) ** 0.5).logpdf(mean)
    assert float(prior.log_density(jnp.asarray([mean, variance]))) == pytest.approx(right)
    draws = np.asarray(prior.sample(key, (50_000,)))
    laws = stats.t(6, 1, (4 / (3 * 2)) ** 0.5), stats.invgamma(3, scale=4)
    for column, law, marginal in zip(draws.T, laws, prior.marginals(), strict=True):
        assert stats.kstest(column, law.cdf).statistic < 2.7 / 50_000**0.5
        x = law.ppf([0.1, 0.5, 0.9])
        np.testing.assert_allclose(marginal.log_density(jnp.asarray(x)), law.logpdf(x), rtol=1e-9)


def test_dirichlet(x64, key):
    prior, a = Dirichlet([0.5, 2, 5]), np.array([0.5, 2, 5])
    theta = np.array([0.1, 0.3, 0.6])
    assert float(prior.log_density(jnp.asarray(theta))) == pytest.approx(stats.dirichlet(a).logpdf(theta))
    draws = np.asarray(prior.sample(key, (50_000,)))
    for j in range(3):
        assert stats.kstest(draws[:, j], stats.beta(a[j], a.sum() - a[j]).cdf).statistic < 2.7 / 50_000**0.5


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Beta(0, 1), "a must be positive and finite, got 0"),
        (lambda: Beta(1, float("nan")), "b must be positive and finite, got nan"),
        (lambda: Beta(np.int64(-1), 2), "a must be positive and finite, got -1"),
        (lambda: Beta(np.array(-1.0), 2), "a must be positive and finite, got -1.0"),
        (lambda: Normal(0, "x"), "variance must be positive and finite, got 'x'"),
        (lambda: Gamma(-1, 1), "shape must be positive and finite, got -1"),
        (lambda: Normal(0, 0), "variance must be positive and finite, got 0"),
        (lambda: Normal(float("inf"), 1), "mean must be finite, got inf"),
        (lambda: Dirichlet([1]), "concentration must have two or more entries, got 1"),
        (lambda: Dirichlet([1, -1]), "concentration must be positive and finite, got -1.0"),
    ],
)
def test_bad_parameters_are_refused(make, sentence):
    with pytest.raises(ValueError) as refusal:
        make()
    assert str(refusal.value) == f"{sentence}."
