"""A multivariate normal whose bounds move records: HMC with the clip inside, against weighted tables and by ranks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.sampler.test_hmc import agree, noisy, second_moments, weighted, wishart_prior

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import _clipped
from noiseaware.likelihood import frozen_moment, gaussian
from noiseaware.sampler import _target, adequacy, hmc

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")


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
    target = _target.of(Evidence(family, na.mechanism.Laplace(scale), y, Public(n)), prior, clips=True)
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


def test_sums_are_turned_into_those_of_standardised_records_and_back(x64, seed):
    """Of two tables, record by record."""
    rng, d, n = np.random.default_rng(seed), 3, 40
    c, m = rng.uniform(-1, 1, (2, n, d)), np.array([0.1, -0.2, 0.3])
    law = 0.2 * (0.4 + 0.6 * np.eye(d))
    upper = np.triu_indices(d)
    w = np.linalg.solve(np.linalg.cholesky(law), (c - m).transpose(0, 2, 1)).transpose(0, 2, 1)
    products = np.einsum("tni,tnj->tij", w, w) - n * np.eye(d)
    right = np.concatenate([w.sum(1).T, products[:, *upper].T])
    mean = jnp.asarray(np.concatenate([m, (law + np.outer(m, m))[upper]]))
    away = jnp.asarray((second_moments(c) - n * mean).T)
    family = na.family.MultivariateNormal(dimension=d, bounds=(-1, 1))
    found = frozen_moment.standardised(family, away, mean)
    np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(frozen_moment.restored(family, found, mean), away, rtol=1e-10, atol=1e-10)


def test_held_moments_are_those_worked_out_where_they_are_held_and_of_stretched_records(x64):
    """Without a clip, records stretched and moved have the same moments when they are standardised."""
    family = na.family.MultivariateNormal(["a", "b"], bounds=(-1, 1))
    theta = jnp.asarray([0.03, 0.0, 0.02, 0.005, 0.005, 0.03])  # bounds at more than three sd, stretched
    held = frozen_moment.hold(family, theta)
    matrix = np.array([[1.5, 0.0], [-0.4, 1.2]])
    law = matrix @ np.asarray(theta[2:]).reshape(2, 2) @ matrix.T
    stretched = jnp.concatenate([jnp.asarray([-0.02, 0.05]), law.ravel()])
    for at, slack in ((theta, 1e-9), (stretched, 0.02)):
        mean, covariance = family.released_moments(at)
        found = frozen_moment.released(family, held, at)
        np.testing.assert_allclose(found.mean, mean, atol=1e-6)
        spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
        np.testing.assert_allclose(found.covariance / spread, covariance / spread, atol=slack)


def test_a_held_target_is_nearly_that_of_moments_worked_out(x64):
    """At the θ where moments are held, and where variances grow by a fifth and where columns depend on each other. Held
    as a whole, the covariance would miss by log 1.2 · (2·3 + 9)/2 = 1.4."""
    n, law = 400.0, na.mechanism.Laplace(2.0)
    family = na.family.MultivariateNormal(dimension=3, bounds=(-1, 1))
    prior = na.prior.NormalInverseWishart([0.0, 0.1, -0.1], 20, 36 * 0.16, 40)

    def parameter(variance, correlation):
        covariance = variance * (correlation + (1 - correlation) * jnp.eye(3))
        return jnp.concatenate([jnp.asarray([0.0, 0.1, -0.1]), covariance.ravel()])

    theta = parameter(0.16, 0.3)
    y = n * family.released_mean(theta)
    held, worked = (
        jax.jit(_target.of(Evidence(family, law, y, Public(n)), prior, clips=True, frozen=moments).log_density)
        for moments in (frozen_moment.hold(family, theta), None)
    )
    for at, slack in ((theta, 1e-6), (parameter(0.192, 0.3), 0.35), (parameter(0.16, 0.4), 0.35)):
        v = jnp.concatenate([prior.to_real(at), jnp.zeros(9)])
        assert float(held(v) - worked(v)) == pytest.approx(0.0, abs=slack)


def test_the_slopes_of_a_normal_law_are_those_of_its_log_density(x64, seed):
    """By differences, along everything at once; eleven sums are not a whole number of blocks."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(11, 11))
    start = (rng.normal(size=11), half @ half.T, rng.uniform(0.5, 2, 11))
    turn = rng.normal(size=(11, 11))
    along = (rng.normal(size=11), turn + turn.T, rng.normal(size=11))

    def at(step):
        return gaussian.log_density(*(jnp.asarray(a + step * b) for a, b in zip(start, along, strict=True)))

    right = stats.multivariate_normal(np.zeros(11), start[1] + np.diag(start[2])).logpdf(start[0])
    assert float(at(0.0)) == pytest.approx(right + 5.5 * np.log(2 * np.pi), abs=1e-6)
    assert float(jax.grad(at)(0.0)) == pytest.approx(float(at(1e-5) - at(-1e-5)) / 2e-5, rel=1e-6)


@pytest.fixture
def holds(monkeypatch):
    """Moments of few statistics are held too; what was compiled before is not to be met, nor after."""
    monkeypatch.setattr(hmc, "_MOST_WORKED_OUT", 0)
    hmc._start.clear_cache()
    yield
    hmc._start.clear_cache()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "scale"), [(60, 6.0), (30, 1.5)])
def test_the_posterior_is_that_of_clamped_tables_from_the_prior(n, scale, seed):
    """One number in five is clamped; as if none were, sums of squares would be off by two thirds of the noise, and a
    CDF by a tenth. 0.01 is for the limit theorem."""
    of_tables_from_the_prior(n, scale, seed, slack=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "scale"), [(60, 6.0), (600, 40.0)])
def test_so_it_is_where_moments_are_held(n, scale, holds, seed):
    """With the slack that the limit theorem has, and half as much for third and fourth moments that are held."""
    of_tables_from_the_prior(n, scale, seed, slack=0.015)


def of_tables_from_the_prior(n: int, scale: float, seed: int, *, slack: float) -> None:
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
    agree(draws, *weighted("laplace", scale, release.values, [tables(40_000) for _ in range(4)]), slack=slack)


@pytest.mark.slow
def test_a_regression_knows_of_clamped_records(seed):
    """Bounds of y that move two in five of 60 records, noise of about their own spread; the oracle as above. Taken as
    unmoved, slopes would be too flat."""
    rng, n, scale = np.random.default_rng(seed), 60, 3.0
    family = na.family.LinearRegression(["x"], "y", bounds={"x": (-1, 1), "y": (-0.5, 0.5)})
    about_x = na.prior.NormalInverseWishart([0.0], 5, 12 * 0.25, 15)
    regression = na.prior.NormalInverseGamma([1.0, 0.0], 2.0, 10, 1.0)
    prior = na.prior.Independent(regression=regression, covariates=about_x)

    def tables(size):
        mean, covariance = wishart_prior(rng, about_x, size)
        theta = regression.sample(jax.random.key(int(rng.integers(2**31))), (size,))
        slope, intercept, variance = (np.asarray(theta[:, j])[:, None] for j in range(3))
        x = mean + np.sqrt(covariance[:, 0]) * rng.standard_normal((size, n))
        y = slope * x + intercept + np.sqrt(variance) * rng.standard_normal((size, n))
        return np.asarray(theta), second_moments(np.stack([x.clip(-1, 1), (2 * y).clip(-1, 1)], axis=-1))

    values = tables(1)[1][0] + rng.laplace(scale=scale, size=5)
    release = na.Release(family=family, values=values, n=n, mechanism=na.mechanism.Laplace(scale))
    posterior = na.infer(release, prior, method="hmc", seed=4)
    assert "clamped records are good to" in str(posterior.explanation)
    draws = np.column_stack(list(posterior.marginals().values()))
    agree(draws, *weighted("laplace", scale, release.values, [tables(40_000) for _ in range(4)]), slack=0.015)


def clamped_regression(p: int, rng) -> tuple[na.Release, na.prior.Independent]:
    """1000 records of covariates with an sd of 0.6 of their bounds, and noise larger than what sums vary by."""
    names = [f"x{j}" for j in range(p)]
    family = na.family.LinearRegression(names, "y", bounds=dict.fromkeys(names, (-1, 1)) | {"y": (-1.5, 1.5)})
    prior = na.prior.Independent(
        regression=na.prior.NormalInverseGamma([0.0] * (p + 1), np.eye(p + 1), 20, 0.5),
        covariates=na.prior.NormalInverseWishart([0.0] * p, 5, 36 * 0.36, 37 + p),
    )
    x = rng.normal(0, 0.6, (1000, p))
    y = x.sum(1) / 3 + rng.normal(0, 0.2, 1000)
    release = release_of(family, np.column_stack([x, y / 1.5]), family.query.sensitivity(), rng)
    return release, prior


@pytest.mark.slow
def test_a_regression_hardly_changes_when_moments_are_held(holds, monkeypatch, seed):
    """Of two covariates, at the 0.1 % level for as many draws as they are worth, and 0.015 for what is held."""
    release, prior = clamped_regression(2, np.random.default_rng(seed))
    found = []
    for most in (20, 0):
        monkeypatch.setattr(hmc, "_MOST_WORKED_OUT", most)
        hmc._start.clear_cache()
        posterior = na.infer(release, prior, seed=most)
        assert ("are held" in posterior.explanation) == (most == 0)
        found.append(posterior.marginals())
    for name, draws in found[0].items():
        assert stats.ks_2samp(draws, found[1][name]).statistic < 1.95 * (2 / 2000) ** 0.5 + 0.015, name


@pytest.mark.slow
@pytest.mark.filterwarnings("error:The chains:RuntimeWarning")
def test_chains_of_several_clamped_covariates_agree(seed):
    """Those that did not agree would warn. The default bounds of R-hat and the effective number are met with room."""
    release, prior = clamped_regression(5, np.random.default_rng(seed))
    posterior = na.infer(release, prior, seed=1)
    assert "are held" in posterior.explanation
    assert posterior.summary()["ess_bulk"].min() > 1000


def explained(release: na.Release, prior) -> str:
    with jax.enable_x64(True):
        return hmc.HMC().route(release.evidence(), prior).explanation


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
        said.append(explained(release, prior))
        with jax.enable_x64(True):
            found = adequacy.Adequacy(release.evidence(), prior).doubt
        assert found.reason is None
        assert min(found) == 0
    assert said[0] == "Records outside the bounds are taken as if they had not been moved to them."
    assert "central limit theorem" in said[1]


@pytest.mark.slow
def test_too_few_points_are_spoken_of(monkeypatch):
    few = _clipped.points(2)[:12]
    monkeypatch.setattr(_clipped, "points", lambda d, again=False: -few if again else few)
    adequacy._by_points.clear_cache()
    family = na.family.MultivariateNormal(["a", "b"], bounds=(-1, 1))
    prior = na.prior.NormalInverseWishart([0, 0], 5, 12 * 0.36, 15)
    values = [2.0, -3.0, 58.0, 5.0, 61.0]
    release = na.Release(family=family, values=values, n=200, mechanism=na.mechanism.Laplace(0.2))
    assert "too few points" in str(explained(release, prior))
    adequacy._by_points.clear_cache()


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
