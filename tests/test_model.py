"""Noisy statistics in a model of one's own: values against enumeration, slopes against differences, sites by NUTS."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.family import Bernoulli, Categorical, Exponential, Normal, Poisson
from noiseaware.mechanism import DiscreteLaplace, Gaussian, Identity, Laplace

COUNT = na.Release(family=Bernoulli(), values=[31], n=100, mechanism=DiscreteLaplace(10.0))
CASES = [
    (COUNT, [0.003, 0.03, 0.3, 0.9]),
    (na.Release(family=Bernoulli(), values=[-20], n=9000, mechanism=DiscreteLaplace(10.0)), [1e-5, 0.003, 0.3]),
    (na.Release(family=Poisson(), values=[300], n=100, mechanism=DiscreteLaplace(7.0)), [0.1, 3.0, 10.0]),
    (na.Release(family=Exponential(), values=[30.0], n=10, mechanism=Laplace(7.0)), [0.1, 0.33, 3.0]),
]
SLOW = [
    (na.Release(family=Exponential(bounds=(0, 2)), values=[80.0], n=100, mechanism=Laplace(7.0)), [0.1, 0.33, 3.0]),
    (na.Release(family=Poisson(bounds=(0, 5)), values=[300], n=100, mechanism=DiscreteLaplace(7.0)), [0.1, 3.0]),
    (na.Release(family=Normal(variance=4.0), values=[80.0], n=10, mechanism=Gaussian(7.0)), [0.1, 8.0]),
]


@pytest.mark.parametrize(
    ("release", "theta"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_slope_is_that_of_differences(release, theta, x64):
    theta = jnp.asarray(theta)
    step = 1e-5 * theta
    slope = jax.grad(lambda t: na.model.log_likelihood(release, t).sum())(theta)
    up, down = (na.model.log_likelihood(release, theta + sign * step) for sign in (1.0, -1.0))
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-5, atol=1e-5)


def test_value_is_that_of_enumeration_in_either_precision():
    theta, s = np.array([0.03, 0.3, 0.9]), np.arange(101)
    noise = np.tanh(0.05) * np.exp(-np.abs(31 - s) / 10)
    wanted = np.log((stats.binom.pmf(s, 100, theta[:, None]) * noise).sum(1))
    with jax.enable_x64(True):
        np.testing.assert_allclose(na.model.log_likelihood(COUNT, theta), wanted, rtol=1e-10)
    single = jax.jit(lambda t: na.model.log_likelihood(COUNT, t))(jnp.asarray(theta, jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, wanted, rtol=1e-6)


def test_slope_of_levels(x64):
    family = Categorical(levels=["a", "b", "c"])
    release = na.Release(family=family, values=[10, 50, 43], n=100, mechanism=DiscreteLaplace(5.0))
    theta = jnp.asarray([0.2, 0.3, 0.5])
    slope = jax.grad(lambda t: na.model.log_likelihood(release, t))(theta)
    ends = jnp.concatenate([theta + 1e-5 * np.eye(3), theta - 1e-5 * np.eye(3)])
    up, down = jnp.split(na.model.log_likelihood(release, ends), 2)
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-5)


def test_several_statistics_are_normal_given_their_weights(x64):
    release = na.Release(family=Normal(), values=[10.0, 30.0], n=100, mechanism=Laplace(5.0))
    mean, variance, weights = 0.1, 0.2, np.array([1.0, 2.0])
    between = 2 * mean * variance
    moments = 100 * np.array([[variance, between], [between, 2 * variance**2 + 4 * mean**2 * variance]])
    law = stats.multivariate_normal(100 * np.array([mean, variance + mean**2]), moments + np.diag(2 * 5.0**2 * weights))
    found = na.model.log_likelihood(release, jnp.asarray([mean, variance]), weights=weights)
    assert not na.model.is_exact(release)
    assert na.model.is_exact(COUNT)
    np.testing.assert_allclose(found, law.logpdf([10.0, 30.0]), rtol=1e-8)


def test_each_of_several_releases_has_its_own():
    releases = [case[0] for case in CASES[:3]]
    theta = jnp.asarray([0.3, 0.003, 3.0])
    alone = [float(na.model.log_likelihood(r, t)) for r, t in zip(releases, theta, strict=True)]
    np.testing.assert_allclose(na.model.log_likelihood([*releases, COUNT], jnp.append(theta, 0.3)), [*alone, alone[0]])


@pytest.mark.parametrize(
    ("release", "theta", "sentence"),
    [
        ([], 0.1, "release must be one or more"),
        (COUNT, [[0.1]], "theta must be one"),
        ([COUNT] * 3, [0.1, 0.2], "one for each of 3 releases, got 2"),
        (na.Release(family=Bernoulli(), values=[3.0], n=9, mechanism=Identity()), 0.1, "release must have noise"),
        (na.Release(family=Normal(), values=[3.0, 9.0], n=9, mechanism=Laplace(1.0)), [0.0, 1.0], "weights must be"),
    ],
)
def test_refused(release, theta, sentence):
    with pytest.raises(ValueError, match=sentence):
        na.model.log_likelihood(release, theta)


def test_a_site_needs_numpyro(monkeypatch):
    monkeypatch.delitem(sys.modules, "noiseaware.model.site", raising=False)
    monkeypatch.delattr(na.model, "site", raising=False)  # another test may have asked for it
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"needs numpyro; install noiseaware\[numpyro\]"):
        na.model.noisy_statistics


def test_sites_add_what_a_release_says(x64, key):
    """p(31 | 25) of a statistic that the model has itself, and two releases whose statistics it has not."""
    numpyro = pytest.importorskip("numpyro")
    noise = DiscreteLaplace(10.0)

    def model():
        na.model.noisy_statistics("counts", [COUNT, COUNT], jnp.asarray([0.2, 0.3]))
        numpyro.sample("y", na.model.NoisySum(25.0, noise), obs=31.0)

    with jax.numpy_dtype_promotion("standard"):
        found, _ = numpyro.infer.util.log_density(model, (), {}, {})
    wanted = na.model.log_likelihood(COUNT, jnp.asarray([0.2, 0.3])).sum() + np.log(np.tanh(0.05)) - 0.6
    assert float(found) == pytest.approx(float(wanted), rel=1e-12)
    law = na.model.NoisySum(jnp.asarray([25.0, 40.0]), noise)
    assert law.mean.tolist() == [25.0, 40.0]
    # 10 000 draws of standard deviation 14.1
    assert np.asarray(law.sample(key, (10_000,))).mean(0) == pytest.approx([25.0, 40.0], abs=4.5 * 14.2 / 100)
    with pytest.raises(ValueError, match="mechanism must have noise"):
        na.model.NoisySum(25.0, Identity())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["summed out", "latent"])
def test_nuts_agrees_with_exact_draws(way, seed):
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions
    release = na.Release(family=Normal(variance=4.0), values=[80.0], n=10, mechanism=Laplace(7.0))

    def model():
        theta = numpyro.sample("theta", dist.Normal(0.0, 10.0))
        if way == "summed out":
            na.model.noisy_statistics("y", release, theta)
        else:
            s = numpyro.sample("s", dist.Normal(10 * theta, np.sqrt(40.0)))
            numpyro.sample("y", na.model.NoisySum(s, Laplace(7.0)), obs=80.0)

    with jax.numpy_dtype_promotion("standard"):
        chain = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=500, num_samples=8000, progress_bar=False)
        chain.run(jax.random.key(seed))
    exact = na.infer(release, na.prior.Normal(0, 100), seed=seed, num_draws=20_000).draws["mean"]
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    found = (np.asarray(chain.get_samples()["theta"])[:, None] < np.quantile(exact, levels)).mean(0)
    assert np.all(np.abs(found - levels) < 0.03)  # four standard errors of some 2000 effective draws, and of the exact
