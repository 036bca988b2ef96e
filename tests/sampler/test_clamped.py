"""A multivariate normal whose bounds move records: HMC with the clip inside, against weighted tables and by ranks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.sampler.test_hmc import agree, noisy, second_moments, weighted, wishart_prior

import noiseaware as na
from noiseaware.family import _clipped
from noiseaware.sampler import _normal, _target, hmc, limit


def release_of(family, x: np.ndarray, scale: float, rng) -> na.Release:
    """Of records (records, columns) within bounds of ±1."""
    values = noisy(rng, "laplace", scale, second_moments(x.clip(-1, 1)[None])[0])
    return na.Release(family=family, values=values, n=len(x), mechanism=na.mechanism.Laplace(scale))


def test_the_log_density_is_that_of_normal_sums_of_clamped_records(x64, seed):
    """At three points, against SciPy's laws and moments of a million clamped records; the measure by differences."""
    rng, n, scale = np.random.default_rng(seed), 60.0, 3.0
    family = na.family.MultivariateNormal(["a", "b"], bounds=[(-1, 2), (-2, 1)])
    prior = na.prior.NormalInverseWishart([0.5, -0.5], 5, [[4.0, 1.0], [1.0, 5.0]], 15)
    y = jnp.asarray([3.0, -2.0, 18.0, 4.0, 16.0])
    target = _target.of(family, prior, na.mechanism.Laplace(scale), y, _target.Public(n), clips=True)
    z = rng.standard_normal((1_000_000, 2))

    def right(v):
        theta = np.asarray(prior.from_real(v[:5]))
        mean, covariance, u = theta[:2], theta[2:].reshape(2, 2), np.asarray(v[5:])
        measure = np.asarray(jax.jacfwd(prior.from_real)(v[:5]))[[0, 1, 2, 3, 5]]
        believed = stats.invwishart(15, prior.scale).logpdf(covariance) + np.log(abs(np.linalg.det(measure)))
        believed += stats.multivariate_normal(prior.mean, covariance / 5).logpdf(mean) + stats.norm.logpdf(u).sum()
        x = mean + z @ np.linalg.cholesky(covariance).T
        w = (x.clip([-1, -2], [2, 1]) - [0.5, -0.5]) / 1.5
        t = np.column_stack([w, w[:, 0] ** 2, w[:, 0] * w[:, 1], w[:, 1] ** 2])
        spread = n * np.cov(t.T) + np.diag(2 * scale**2 * -stats.norm.logcdf(-u))
        return believed + stats.multivariate_normal(n * t.mean(0), spread).logpdf(np.asarray(y))

    first, found = np.asarray(target.starts[0]), jax.jit(target.log_density)
    wider, at_first = np.repeat([0.0, 1.0], 5), found(first) - right(first)  # of the noise alone: the determinant shows
    for other in (first + 0.1 * rng.standard_normal(10), first + wider):
        assert float(found(other) - right(other)) == pytest.approx(float(at_first), abs=0.03)


@pytest.mark.parametrize("law", [na.mechanism.Gaussian(2.0), na.mechanism.Laplace(2.0)], ids=["gaussian", "laplace"])
def test_held_correlations_are_right_where_they_are_held(law, x64, seed):
    """There density and slope are those of the covariance worked out; when variances grow by a fifth, the determinant
    with them, nearly. Held as a whole, the covariance would miss by log 1.2 · (2·3 + 9)/2 = 1.4 and more."""
    rng, n = np.random.default_rng(seed), 400.0
    family = na.family.MultivariateNormal(dimension=3, bounds=(-1, 1))
    prior = na.prior.NormalInverseWishart([0.0, 0.1, -0.1], 20, 36 * 0.16, 40)
    x = rng.multivariate_normal([0.0, 0.1, -0.1], 0.16 * (0.3 + 0.7 * np.eye(3)), int(n))
    y = jnp.asarray(second_moments(x.clip(-1, 1)[None])[0])
    worked = _target.of(family, prior, law, y, _target.Public(n), clips=True)
    theta = worked.theta(jax.random.key(0), worked.starts[0])
    held = _target.of(family, prior, law, y, _target.Public(n), clips=True, held=_target.holding(family, theta))
    at = worked.starts[0]
    assert float(held.log_density(at)) == pytest.approx(float(worked.log_density(at)), abs=1e-6)
    wider = theta.at[3:].mul(1.2)
    there = at.at[:9].set(prior.to_real(wider))
    own = worked.log_density(there) - worked.log_density(at)
    assert float(held.log_density(there) - held.log_density(at)) == pytest.approx(float(own), abs=0.35)


def test_the_slopes_of_a_held_normal_are_those_of_differentiation(x64, seed):
    rng = np.random.default_rng(seed)
    away, variance = jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.gamma(1.0, size=6))
    covariance = jnp.asarray(np.cov(rng.normal(size=(6, 30))))
    slopes = [
        jax.value_and_grad(f, argnums=(0, 2))(away, covariance, variance)
        for f in (_normal.log_density, _normal.log_density_held)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), *slopes)
    law = stats.multivariate_normal(np.zeros(6), np.asarray(covariance) + np.diag(np.asarray(variance)))
    normal = law.logpdf(np.asarray(away)) + 3 * np.log(2 * np.pi)
    assert float(slopes[1][0]) == pytest.approx(normal, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "scale"), [(60, 6.0), (30, 1.5)])
def test_the_posterior_is_that_of_clamped_tables_from_the_prior(n, scale, seed):
    """One number in five is clamped; as if none were, sums of squares would be off by two thirds of the noise, and a
    CDF by a tenth. 0.01 is for the limit theorem."""
    rng = np.random.default_rng(seed)
    prior = na.prior.NormalInverseWishart([0.0, 0.2], 5, 12 * 0.4, 15)

    def tables(size):
        mean, covariance = wishart_prior(rng, prior, size)
        z = rng.standard_normal((size, n, 2))
        x = mean[:, None] + np.einsum("tij,tnj->tni", np.linalg.cholesky(covariance), z)
        return np.column_stack([mean, covariance.reshape(size, 4)[:, [0, 1, 3]]]), second_moments(x.clip(-1, 1))

    x = rng.multivariate_normal([0.1, 0.1], [[0.6, 0.2], [0.2, 0.6]], n)
    release = release_of(na.family.MultivariateNormal(["a", "b"], bounds=(-1, 1)), x, scale, rng)
    posterior = na.infer(release, prior, seed=4)
    assert not posterior.is_exact
    assert "central limit theorem" in str(posterior.explanation)
    assert "good to" in str(posterior.explanation)
    draws = np.column_stack(list(posterior.marginals().values()))
    agree(draws, *weighted("laplace", scale, release.values, [tables(40_000) for _ in range(4)]), slack=0.01)


@pytest.mark.slow
def test_the_way_follows_what_matters_more(seed):
    """Bounds at six sd move nobody, and hmc keeps the law of second moments; at 1.6 they do, and it takes moved records
    as they are."""
    rng = np.random.default_rng(seed)
    family = na.family.MultivariateNormal(["a", "b"], bounds=(-1, 1))
    said = []
    for sd in (0.15, 0.6):
        prior = na.prior.NormalInverseWishart([0, 0], 5, 12 * sd**2, 15)
        release = release_of(family, rng.normal(0, sd, (200, 2)), 2.0, rng)
        said.append(hmc.explanation(release, prior))
        with jax.enable_x64(True):
            found = limit.doubt(family, prior, release.mechanism, jnp.asarray(release.values), 200)
        assert found.reason is None
        assert min(found) == 0
    assert said[0] == "Records outside the bounds are taken as if they had not been moved to them."
    assert "central limit theorem" in said[1]


@pytest.mark.slow
def test_too_few_points_are_spoken_of(monkeypatch):
    few = _clipped.points(2)[:12]
    monkeypatch.setattr(_clipped, "points", lambda d, again=False: -few if again else few)
    limit._by_points.clear_cache()
    family = na.family.MultivariateNormal(["a", "b"], bounds=(-1, 1))
    prior = na.prior.NormalInverseWishart([0, 0], 5, 12 * 0.36, 15)
    values = [2.0, -3.0, 58.0, 5.0, 61.0]
    release = na.Release(family=family, values=values, n=200, mechanism=na.mechanism.Laplace(0.2))
    assert "too few points" in str(hmc.explanation(release, prior))
    limit._by_points.clear_cache()


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1000])
def test_it_is_calibrated(n):
    """Three columns, one record in ten clamped; the 0.1 % point for 300 tables and ten numbers is 2.2/√300."""
    family = na.family.MultivariateNormal(["a", "b", "c"], bounds=(-1, 1))
    prior = na.prior.NormalInverseWishart([0, 0, 0], 20, 36 * 0.36, 40)
    found = na.calibrate(family, prior, n=n, epsilon=2, num_trials=300, seed=1)
    assert found.ks < 2.2 / 300**0.5, found.by_parameter


@pytest.mark.slow
def test_twenty_columns(seed):
    """The truth is within what the posterior says, in most of 230 numbers; ignoring the clamp, no variance would be."""
    rng, d, n = np.random.default_rng(seed), 20, 20_000
    family = na.family.MultivariateNormal(dimension=d, bounds=(-1, 1))
    truth = 0.36 * (0.3 + 0.7 * np.eye(d))
    release = release_of(family, rng.multivariate_normal(np.zeros(d), truth, n), 20.0, rng)
    prior = na.prior.NormalInverseWishart(np.zeros(d).tolist(), 20, 30 * 0.36, 50)
    posterior = na.infer(release, prior, seed=1, num_draws=400)
    covariance = posterior.draws["covariance"]
    assert np.isfinite(covariance).all()
    score = (covariance.mean(0) - truth) / covariance.std(0)
    assert stats.norm.sf(np.abs(np.diag(score))).min() > 1e-6
    assert 0.7 < np.sqrt((score[np.triu_indices(d)] ** 2).mean()) < 1.4
