"""Priors of vectors and matrices, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noiseaware.posterior.estimate import of_conjugate
from noiseaware.prior import (
    CovariateMoments,
    Gamma,
    Independent,
    MultivariateNormal,
    Normal,
    NormalInverseGamma,
    NormalInverseWishart,
)

DRAWS = 50_000
KOLMOGOROV = 2.7 / DRAWS**0.5  # the 1e−6 point of Kolmogorov's distribution
PRECISION = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]])
SCALE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 4.0]])
GAMMA = NormalInverseGamma([1.0, -2.0, 30.0], PRECISION, 3.0, 4.0)
WISHART = NormalInverseWishart([1.0, -2.0, 30.0], 2.0, SCALE, 7.0)


def _theta_of(mean, covariance) -> jax.Array:
    return jnp.asarray(np.concatenate([mean, np.ravel(covariance)]))


# ---- normal–inverse-gamma ----------------------------------------------------------------------------------


def test_normal_inverse_gamma_density(x64):
    for mean, variance in (([0.5, -2.0, 29.0], 2.5), ([1.5, 0.0, 31.0], 0.4)):
        normal = stats.multivariate_normal([1, -2, 30], variance * np.linalg.inv(PRECISION))
        right = stats.invgamma(3, scale=4).logpdf(variance) + normal.logpdf(mean)
        assert float(GAMMA.log_density(jnp.asarray([*mean, variance]))) == pytest.approx(right)


def test_normal_inverse_gamma_draws_and_marginals(x64, key):
    draws = np.asarray(GAMMA.sample(key, (DRAWS,)))
    assert draws.shape == (DRAWS, 4)
    spread = np.linalg.inv(PRECISION)
    laws = [stats.t(6, m, (4 / 3 * spread[j, j]) ** 0.5) for j, m in enumerate((1, -2, 30))]
    laws += [stats.invgamma(3, scale=4)]
    for column, law, marginal in zip(draws.T, laws, GAMMA.marginals(), strict=True):
        assert stats.kstest(column, law.cdf).statistic < KOLMOGOROV
        x = law.ppf([0.05, 0.5, 0.95])
        np.testing.assert_allclose(marginal.log_density(jnp.asarray(x)), law.logpdf(x), rtol=1e-9)
        assert [marginal.quantile(q) for q in (0.05, 0.5, 0.95)] == pytest.approx(x)
    # what the marginals do not show: a contrast of the entries, given the variance, is normal
    contrast = np.array([1.0, -1.0, 0.5])
    z = (draws[:, :3] - [1, -2, 30]) @ contrast / np.sqrt(draws[:, 3] * (contrast @ spread @ contrast))
    assert stats.kstest(z, stats.norm.cdf).statistic < KOLMOGOROV


@pytest.mark.parametrize("prior", [GAMMA, NormalInverseGamma(1.0, 2.0, 3.0, 4.0)], ids=["vector", "number"])
def test_normal_inverse_gamma_in_real_coordinates(prior, x64, key):
    theta = prior.sample(key, (7,))
    v = prior.to_real(theta)
    assert v.shape == (7, prior.num_coordinates)
    np.testing.assert_allclose(prior.from_real(v), theta, rtol=1e-12)
    slope = jax.vmap(lambda v: jnp.linalg.slogdet(jax.jacfwd(prior.from_real)(v))[1])(v)
    np.testing.assert_allclose(prior.log_density_real(v), prior.log_density(theta) + slope, rtol=1e-10)


@pytest.mark.parametrize("precision", [0.25, [0.25, 0.25], np.eye(2) / 4])
def test_a_precision_may_be_a_number_a_diagonal_or_a_matrix(precision):
    np.testing.assert_array_equal(NormalInverseGamma([1, 0], precision, 3, 3).precision, np.eye(2) / 4)


# ---- normal–inverse-Wishart --------------------------------------------------------------------------------


def test_normal_inverse_wishart_density(x64, key):
    for theta in np.asarray(WISHART.sample(key, (3,))):
        mean, covariance = theta[:3], theta[3:].reshape(3, 3)
        normal = stats.multivariate_normal([1, -2, 30], covariance / 2)
        right = stats.invwishart(7, SCALE).logpdf(covariance) + normal.logpdf(mean)
        assert float(WISHART.log_density(_theta_of(mean, covariance))) == pytest.approx(right)


def test_normal_inverse_wishart_draws_and_marginals(x64, key):
    draws = np.asarray(WISHART.sample(key, (DRAWS,)))
    means, covariances = draws[:, :3], draws[:, 3:].reshape(-1, 3, 3)
    np.testing.assert_allclose(covariances, np.swapaxes(covariances, 1, 2))
    assert (np.linalg.eigvalsh(covariances)[:, 0] > 0).all()
    columns = [*means.T, *(covariances[:, j, j] for j in range(3))]
    # an inverse Wishart's diagonal entry is InverseGamma((dof − d + 1)/2, scale/2)
    laws = [
        *(stats.t(5, m, (SCALE[j, j] / (2 * 5)) ** 0.5) for j, m in enumerate((1, -2, 30))),
        *(stats.invgamma(2.5, scale=SCALE[j, j] / 2) for j in range(3)),
    ]
    marginals = [column[kind] for kind in (0, 1) for column in WISHART.columns()]
    for column, law, marginal in zip(columns, laws, marginals, strict=True):
        assert stats.kstest(column, law.cdf).statistic < KOLMOGOROV
        x = law.ppf([0.05, 0.5, 0.95])
        np.testing.assert_allclose(marginal.log_density(jnp.asarray(x)), law.logpdf(x), rtol=1e-9)
    # the covariance of two columns, against SciPy's own draws; two samples differ by √2 of one
    theirs = stats.invwishart(7, SCALE).rvs(DRAWS, random_state=np.random.default_rng(1))
    assert stats.ks_2samp(covariances[:, 0, 1], theirs[:, 0, 1]).statistic < 2**0.5 * KOLMOGOROV
    roots = np.linalg.cholesky(covariances / 2)
    z = np.linalg.solve(roots, (means - [1, -2, 30])[..., None])[..., 0]
    assert stats.kstest(z @ [0.6, 0.0, 0.8], stats.norm.cdf).statistic < KOLMOGOROV


def test_one_dimension_is_a_normal_inverse_gamma(x64):
    one, other = NormalInverseWishart([1.0], 2.0, 8.0, 6.0), NormalInverseGamma(1.0, 2.0, 3.0, 4.0)
    theta = jnp.asarray([[0.3, 2.5], [2.0, 0.7]])
    np.testing.assert_allclose(one.log_density(theta), other.log_density(theta), rtol=1e-12)


def test_a_wishart_is_split_into_means_variances_and_covariances():
    numbers = WISHART.marginals()
    assert len(numbers) == 3 + 6
    covariance = of_conjugate("c", numbers[4])
    # E covariance = scale/(dof − d − 1); its sd from the textbook, here of 20 000 draws
    nu, p = 7, 3
    square = ((nu - p + 1) * SCALE[0, 1] ** 2 + (nu - p - 1) * SCALE[0, 0] * SCALE[1, 1]) / (
        (nu - p) * (nu - p - 1) ** 2 * (nu - p - 3)
    )
    assert covariance.mean == pytest.approx(SCALE[0, 1] / (nu - p - 1), abs=5 * (square / 20_000) ** 0.5)
    assert covariance.low < covariance.mean < covariance.high


# ---- priors made of others ---------------------------------------------------------------------------------


def test_independent_is_the_product(x64, key):
    prior = Independent(rate=Gamma(3.0, 2.0), line=GAMMA, place=Normal(1.0, 4.0))
    assert list(prior.parts) == ["rate", "line", "place"]
    draws = prior.sample(key, (DRAWS,))
    assert draws.shape == (DRAWS, 6)
    laws = [stats.gamma(3, scale=0.5), stats.norm(1, 2)]
    for column, law in zip((draws[:, 0], draws[:, 5]), laws, strict=True):
        assert stats.kstest(np.asarray(column), law.cdf).statistic < KOLMOGOROV
    theta = draws[:5]
    parts = [Gamma(3.0, 2.0).log_density(theta[:, 0]), GAMMA.log_density(theta[:, 1:5])]
    right = parts[0] + parts[1] + Normal(1.0, 4.0).log_density(theta[:, 5])
    np.testing.assert_allclose(prior.log_density(theta), right, rtol=1e-12)
    constants = [part.log_normalizer() for part in prior.parts.values()]
    assert float(prior.log_normalizer()) == pytest.approx(float(sum(constants)))


def test_independent_keeps_its_order_through_jit(x64, key):
    prior = Independent(z=Normal(100.0, 1.0), a=Normal(-100.0, 1.0))
    draws = jax.jit(lambda prior: prior.sample(key, (10,)))(prior)
    assert (draws[:, 0] > 0).all()
    assert (draws[:, 1] < 0).all()


def test_moments_of_a_public_sample():
    x = np.random.default_rng(2).normal(size=(500, 2)) ** 2
    prior = CovariateMoments.of(x)
    a, b = x.T
    right = np.stack([a, b, a * a, a * b, b * b])
    np.testing.assert_allclose(prior.mean, right.mean(1))
    np.testing.assert_allclose(prior.covariance, np.cov(right))
    one = CovariateMoments.of(a)
    np.testing.assert_allclose(one.mean, [a.mean(), (a * a).mean()])


def test_known_moments_leave_nothing_unknown(x64, key):
    prior = CovariateMoments.of(np.arange(9.0))
    assert prior.sample(key, (4,)).shape == (4, 0)
    np.testing.assert_array_equal(prior.log_density(jnp.zeros((4, 0))), np.zeros(4))


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: NormalInverseGamma([0, 0], [1, 2, 3], 3, 3), "precision must be 2 × 2, got 3"),
        (lambda: NormalInverseGamma([0, 0], [[1, 2], [2, 1]], 3, 3), "symmetric and positive definite, got"),
        (lambda: NormalInverseGamma([0, 0], [[1, 0.5], [0, 1]], 3, 3), "precision must be symmetric"),
        (lambda: NormalInverseGamma([0, 0], "much", 3, 3), "precision must be a number, 2 of them, or a matrix"),
        (lambda: NormalInverseGamma([0, float("nan")], 1, 3, 3), "mean must be finite"),
        (lambda: NormalInverseGamma([0, 0], 1, -3, 3), "shape must be positive and finite, got -3"),
        (lambda: NormalInverseGamma(0, -1, 3, 3), "precision must be positive and finite, got -1"),
        (lambda: NormalInverseWishart([0, 0], 1, np.eye(3), 5), "scale must be 2 × 2, got 3 × 3"),
        (lambda: NormalInverseWishart([0, 0], 0, 1, 5), "count must be positive and finite, got 0"),
        (lambda: NormalInverseWishart([0, 0], 1, 1, 1), "dof must be above 1 for 2 dimensions, got 1"),
        (lambda: NormalInverseWishart([0, float("inf")], 1, 1, 5), "mean must be finite"),
        (lambda: NormalInverseWishart([0, 0], 1, 5, np.eye(2)), r"dof must be one number, .* got \[\[1.0, 0.0\]"),
        (lambda: NormalInverseGamma([0, 0], 1, [3, 3], 3), r"shape must be one number, .* got \[3, 3\]"),
        (lambda: NormalInverseGamma(np.zeros((2, 2)), 1, 3, 3), "mean must be a number, or a list of them, got"),
        (lambda: MultivariateNormal(["low"], 1), "mean must be a number, or a list of them, got"),
        (lambda: Independent(), "Independent must have one or more priors"),
        (lambda: Independent(rate=3.0), "rate must be one of noiseaware.prior, got float"),
        (lambda: CovariateMoments(np.zeros(2), np.zeros((3, 3))), r"covariance must be 2 × 2, got \(3, 3\)"),
        (lambda: CovariateMoments(np.full(2, np.nan), np.eye(2)), "mean must be finite"),
        (lambda: CovariateMoments([0, 0], [1, 2]), r"covariance must be 2 × 2, got \(2,\)"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_in_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        make()
    assert str(refusal.value).count("\n") == 0
    assert str(refusal.value).endswith(".")


def test_several_normals(x64, key):
    prior, covariance = MultivariateNormal([1, -1], [[2, 0.5], [0.5, 1]]), [[2, 0.5], [0.5, 1]]
    theta = np.array([[0.3, 0.2], [2.0, -3.0]])
    right = stats.multivariate_normal([1, -1], covariance).logpdf(theta)
    np.testing.assert_allclose(prior.log_density(jnp.asarray(theta)), right, rtol=1e-12)
    for column, variance, mean in zip(np.asarray(prior.sample(key, (50_000,))).T, (2, 1), (1, -1), strict=True):
        assert stats.kstest(column, stats.norm(mean, variance**0.5).cdf).statistic < 2.7 / 50_000**0.5


def test_real_coordinates_of_independent_parts(x64, key):
    """There and back, and the density of v is that of θ times the Jacobian of its free entries."""
    d, lower = 3, np.tril_indices(3)
    covariates = NormalInverseWishart([0.0, 1.0, 2.0], 2.0, [[2, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 3]], 7.0)
    prior = Independent(own=MultivariateNormal([1, -1], 2.0), covariates=covariates)
    theta = prior.sample(key, (3,))
    v = prior.to_real(theta)
    assert v.shape == (3, prior.num_coordinates)
    np.testing.assert_allclose(prior.from_real(v), theta, rtol=1e-9)

    def free(v):
        theta = prior.from_real(v)
        return jnp.concatenate([theta[: 2 + d], theta[2 + d :].reshape(d, d)[lower]])

    jacobian = [float(jnp.linalg.slogdet(jax.jacfwd(free)(row))[1]) for row in v]
    np.testing.assert_allclose(prior.log_density_real(v), prior.log_density(theta) + jnp.asarray(jacobian), rtol=1e-9)
