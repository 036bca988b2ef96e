"""Latent records against prior-predictive importance sampling of whole tables, clamped as they were released."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.sampler.stand_in import drawn
from tests.sampler.weighted import LEVELS, shares, weights, worth

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.sampler import mcmc_ind
from noiseaware.sampler.mcmc_ind import MCMCInd
from noiseaware.sampler.method import decided

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

SHAPE, SCALE, DOF = 5.0, 2.0, 6


def family_of(p: int) -> na.family.LinearRegression:
    """Bounds that about one record in ten of the prior is outside of."""
    names = [f"x{j}" for j in range(p)]
    return na.family.LinearRegression(names, "y", dict.fromkeys(names, (-1.0, 2.0)) | {"y": (-2.0, 1.0)})


def prior_of(p: int) -> na.prior.Independent:
    regression = na.prior.NormalInverseGamma([0.5] * p + [-0.2], 2.0, SHAPE, SCALE)
    return na.prior.Independent(
        regression=regression, covariates=na.prior.NormalInverseWishart([0.4] * p, 2.0, 2.0, float(DOF))
    )


def predictive(rng, p: int, n: int, size: int, *, is_clamped: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of the prior and the statistic of a table of each."""
    variance = stats.invgamma(SHAPE, scale=SCALE).rvs(size, random_state=rng)
    theta = np.append([0.5] * p, -0.2) + np.sqrt(variance / 2)[:, None] * rng.normal(size=(size, p + 1))
    g = rng.normal(size=(size, DOF, p))
    root = np.linalg.cholesky(2 * np.linalg.inv(np.einsum("nij,nik->njk", g, g)))
    mean = 0.4 + np.einsum("nij,nj->ni", root, rng.normal(size=(size, p))) / 2**0.5
    x = mean[..., None] + root @ rng.normal(size=(size, p, n))
    y = np.einsum("ni,nij->nj", theta[:, :p], x) + theta[:, p, None]
    y = y + np.sqrt(variance)[:, None] * rng.normal(size=(size, n))
    u = np.concatenate([(x - 0.5) / 1.5, (y[:, None] + 0.5) / 1.5], axis=1)
    u = u.clip(-1, 1) if is_clamped else u
    squares = np.einsum("nij,nkj->nik", u, u)[..., *np.triu_indices(p + 1)]
    return np.column_stack([theta, variance]), np.concatenate([u.sum(-1), squares], axis=1)


def levels(found: np.ndarray, theta: np.ndarray, log_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The oracle's CDF at the draws' quantiles, and 4.5 standard errors if only half of the draws counted."""
    weight = weights(log_weight)
    rows = [shares(drawn, values, weight) for drawn, values in zip(found.T, theta.T, strict=True)]
    return np.array(rows), 4.5 * np.sqrt(LEVELS * (1 - LEVELS) * (2 / len(found) + 1 / worth(weight)))


def released(p: int, n: int, mechanism) -> na.Release:
    """A table with a steep slope and no scatter to speak of, so that the posterior is not the prior."""
    x = np.linspace(-0.9, 1.8, n) * np.ones((p, 1))
    u = np.concatenate([(x - 0.5) / 1.5, ((0.9 * x.sum(0) - 1.0).clip(-2, 1) + 0.5)[None] / 1.5])
    values = np.append(u.sum(1), (u @ u.T)[np.triu_indices(p + 1)])
    return na.Release(family=family_of(p), values=values, n=n, mechanism=mechanism)


CASES = {
    "few records": (1, 8, na.mechanism.Laplace(1.2), 300_000),
    "one record": (1, 1, na.mechanism.Laplace(0.5), 1_000_000),
    "normal noise": (1, 20, na.mechanism.Gaussian(2.0), 1_000_000),
    "fewer records than coefficients": (2, 2, na.mechanism.Laplace(1.5), 1_000_000),
    "noise of several scales": (1, 8, na.mechanism.Laplace(np.array([0.4, 0.8, 1.2, 1.6, 2.0])), 1_000_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_draws_match_importance_sampling(name, x64, key, seed):
    p, n, mechanism, size = CASES[name]
    release = released(p, n, mechanism)
    found = np.asarray(drawn(MCMCInd(), key, release, prior_of(p), 4000))
    assert found.shape == (4000, p + 2)
    theta, s = predictive(np.random.default_rng(seed), p, n, size)
    distance = release.values - s
    share, most = levels(found, theta, np.asarray(mechanism.log_density(distance)).sum(1))
    assert (np.abs(share - LEVELS) <= most).all(), share
    # the same comparison sees what is wrong: a prior for a posterior, noise of twice the scale
    for log_weight in (np.zeros(size), np.asarray(mechanism.log_density(0.5 * distance)).sum(1)):
        share, most = levels(found, theta, log_weight)
        assert (np.abs(share - LEVELS) > most).any(), share


def test_the_mean_and_covariance_of_covariates_have_their_prior(x64, key):
    """T_jj ~ InverseGamma, |Ψ|/|T| ~ Π χ²_{dof − i} and µ_j ~ Student's t, for three covariates."""
    from numpyro.handlers import seed as seeded

    scale = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 1.5]])
    prior = na.prior.NormalInverseWishart([1.0, 0.0, -1.0], 2.0, scale, 7.0)
    with jax.numpy_dtype_promotion("standard"):
        mean, root = jax.vmap(lambda k: seeded(mcmc_ind._covariates, k)(prior))(jax.random.split(key, 40_000))
    covariance = np.asarray(root @ jnp.swapaxes(root, 1, 2))
    most = 2.2 / 40_000**0.5
    rng = np.random.default_rng(0)
    ratio = np.prod([rng.chisquare(7 - i, 400_000) for i in range(3)], axis=0)
    assert stats.ks_2samp(np.linalg.det(scale) / np.linalg.det(covariance), ratio).statistic < 1.1 * most
    for j in range(3):
        assert stats.kstest(covariance[:, j, j], stats.invgamma(2.5, scale=scale[j, j] / 2).cdf).statistic < most
        law = stats.t(5, prior.mean[j], (scale[j, j] / (2 * 5)) ** 0.5)
        assert stats.kstest(np.asarray(mean)[:, j], law.cdf).statistic < most


@pytest.mark.slow
def test_clamping_is_part_of_the_model(x64, key, seed):
    """Without it the same release has another posterior."""
    mechanism = na.mechanism.Laplace(1.2)
    release = released(1, 8, mechanism)
    found = np.asarray(drawn(MCMCInd(), key, release, prior_of(1), 20_000))
    theta, s = predictive(np.random.default_rng(seed), 1, 8, 1_000_000, is_clamped=False)
    share, most = levels(found, theta, np.asarray(mechanism.log_density(release.values - s)).sum(1))
    assert (np.abs(share - LEVELS) > most).any(), share


@pytest.mark.slow
def test_a_release_out_of_reach_gives_finite_draws(x64, key):
    """A negative sum of squares and sums of more than n; discrete noise on a grid."""
    values, noise = [9000, 0, -40_000, 500, 700], na.mechanism.DiscreteLaplace(100.0)
    release = na.Release(family=family_of(1), values=values, n=5, mechanism=noise, grid=0.01)
    found = np.asarray(drawn(MCMCInd(), key, release, prior_of(1), 400))
    assert np.isfinite(found).all()
    assert np.unique(found[:, 0]).size > 200
    assert decided(MCMCInd(), release.evidence(), na.prior.NormalInverseGamma([0, 0], 1, 3, 1)).explanation is None


def test_what_cannot_be_walked_on_is_refused(x64, monkeypatch):
    y, noise = jnp.zeros((1, 5)), na.mechanism.Laplace(1.0)
    known = na.prior.Independent(
        regression=prior_of(1).parts["regression"], covariates=na.prior.CovariateMoments.of(np.arange(9.0))
    )
    for family, prior, mechanism, sentence in (
        (family_of(1), known, noise, "NormalInverseWishart prior for mcmc_ind, got CovariateMoments"),
        (family_of(1), prior_of(1), na.mechanism.Identity(), "noise for mcmc_ind, got Identity"),
        (na.family.Bernoulli(), prior_of(1), noise, "LinearRegression for mcmc_ind, got B"),
    ):
        with pytest.raises(ValueError, match=sentence):
            decided(MCMCInd(), Evidence(family, mechanism, y[0], Public(5)), prior)
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"install noiseaware\[numpyro\]"):
        decided(MCMCInd(), Evidence(family_of(1), noise, y[0], Public(5)), prior_of(1))
