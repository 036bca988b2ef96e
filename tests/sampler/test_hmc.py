"""HMC against oracles that share none of its code: tables drawn from the prior and weighted by the noise's density."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from tests.sampler.weighted import LEVELS, weights

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.sampler import _mode, _target, hmc

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

DRAWS = 4000
LAWS = {"laplace": na.mechanism.Laplace, "gaussian": na.mechanism.Gaussian}


def second_moments(u: np.ndarray) -> np.ndarray:
    """Σu_j and Σu_i u_j of tables (tables, records, d)."""
    d = u.shape[2]
    squares = np.einsum("tni,tnj->tij", u, u)
    return np.concatenate([u.sum(1), squares[:, *np.triu_indices(d)]], axis=1)


def wishart_prior(rng, prior, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances from a normal–inverse-Wishart prior, by SciPy."""
    d = len(prior.mean)
    covariance = stats.invwishart(prior.dof, prior.scale).rvs(size, random_state=rng).reshape(size, d, d)
    z = rng.standard_normal((size, d))
    return prior.mean + np.einsum("tij,tj->ti", np.linalg.cholesky(covariance), z) / prior.count**0.5, covariance


def regression_tables(rng, prior, n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Parameters (coefficients and variance) and statistics of tables from the prior, in raw units."""
    regression, covariates = prior.parts["regression"], prior.parts["covariates"]
    q = len(regression.mean)
    variance = stats.invgamma(regression.shape, scale=regression.scale).rvs(size, random_state=rng)
    root = np.linalg.cholesky(np.linalg.inv(regression.precision))
    coefficients = regression.mean + np.sqrt(variance)[:, None] * (rng.standard_normal((size, q)) @ root.T)
    mean, covariance = wishart_prior(rng, covariates, size)
    z = rng.standard_normal((size, n, q - 1))
    x = mean[:, None] + np.einsum("tij,tnj->tni", np.linalg.cholesky(covariance), z)
    noise = np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
    y = np.einsum("tni,ti->tn", x, coefficients[:, :-1]) + coefficients[:, -1:] + noise
    return np.column_stack([coefficients, variance]), second_moments(np.concatenate([x, y[..., None]], axis=2))


def weighted(law: str, scale, y: np.ndarray, tables: list[tuple[np.ndarray, np.ndarray]]):
    """The posterior's CDF of each parameter at given points, and how many tables it is worth."""
    theta, s = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    away = (y - s) / scale
    log_weight = -np.abs(away).sum(1) if law == "laplace" else -0.5 * (away**2).sum(1)
    weight = weights(log_weight)
    weight /= weight.sum()
    return (lambda j, points: np.array([weight[theta[:, j] <= p].sum() for p in points])), 1 / (weight**2).sum()


def agree(draws: np.ndarray, cdf, worth: float, *, slack: float = 0.0) -> None:
    """Five CDF levels of each parameter; a level is off by chance beyond 4.5 standard errors once in 150 000."""
    assert np.isfinite(draws).all()
    assert worth > 500, f"the oracle is worth {worth:.0f} tables only"
    error = 4.5 * np.sqrt(LEVELS * (1 - LEVELS) * (1 / worth + 1 / (0.5 * len(draws)))) + slack
    for j in range(draws.shape[1]):
        levels = cdf(j, np.quantile(draws[:, j], LEVELS))
        assert (np.abs(levels - LEVELS) <= error).all(), (j, levels, error)


def regression_prior(p: int) -> na.prior.Independent:
    return na.prior.Independent(
        regression=na.prior.NormalInverseGamma([0.5] * p + [-0.2], 1.5, 4, 2),
        covariates=na.prior.NormalInverseWishart([0.3] * p, 2, 1.0, p + 5),
    )


def noisy(rng, law: str, scale: float, s: np.ndarray) -> np.ndarray:
    return s + (rng.laplace(scale=scale, size=s.shape) if law == "laplace" else rng.normal(scale=scale, size=s.shape))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


# Noise above, near and below the sampling error, as far as weighted tables reach; NUTS goes on in the slow test below.
@pytest.mark.parametrize(
    ("p", "n", "law", "scale"),
    [
        pytest.param(1, 8, "laplace", 12.0, marks=pytest.mark.slow),
        (1, 12, "laplace", 4.0),
        pytest.param(1, 30, "gaussian", 8.0, marks=pytest.mark.slow),
        pytest.param(3, 12, "laplace", 15.0, marks=pytest.mark.slow),
    ],
)
def test_regression_against_tables_from_the_prior(p, n, law, scale, rng):
    prior = regression_prior(p)
    y = noisy(rng, law, scale, regression_tables(rng, prior, n, 1)[1][0])
    family = na.family.LinearRegression([f"x{j}" for j in range(p)], "y")
    release = na.Release(family=family, values=y, n=n, mechanism=LAWS[law](scale))
    posterior = na.infer(release, prior, seed=3, num_draws=DRAWS)
    assert posterior.method == "hmc"
    assert posterior.is_exact
    draws = np.column_stack([posterior.draws["coefficients"], posterior.draws["variance"]])
    cdf, worth = weighted(law, scale, y, [regression_tables(rng, prior, n, 40_000) for _ in range(10)])
    agree(draws, cdf, worth)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "n", "scale"), [(1, 40, 0.5), (1, 40, 3.0), (3, 30, 1.0)])
def test_regression_against_nuts_on_the_records(p, n, scale, x64, key, rng):
    """Noise below and near the sampling error, where weighted tables are worth nothing."""
    prior = regression_prior(p)
    y = noisy(rng, "laplace", scale, regression_tables(rng, prior, n, 1)[1][0])
    family = na.family.LinearRegression([f"x{j}" for j in range(p)], "y")
    release = na.Release(family=family, values=y, n=n, mechanism=na.mechanism.Laplace(scale))
    posterior = na.infer(release, prior, seed=3, num_draws=DRAWS)
    draws = np.column_stack([posterior.draws["coefficients"], posterior.draws["variance"]])
    records = np.asarray(drawn(MCMCInd(), key, release, prior, DRAWS))
    runs = records.reshape(4, -1, records.shape[1])
    counts = [array_stats.ess(run, method="tail", prob=(0.05, 0.95)) for run in np.moveaxis(runs, 2, 0)]
    worth = float(np.min(counts))
    agree(draws, lambda j, points: np.array([(records[:, j] <= point).mean() for point in points]), worth)


@pytest.mark.slow
def test_regression_with_bounds_is_in_the_units_of_the_data(rng):
    """The same release, once in raw units and once scaled by bounds: the posterior does not change."""
    prior, n = regression_prior(2), 40
    bounds = {"a": (-1.0, 5.0), "b": (0.0, 2.0), "y": (-10.0, 4.0)}
    centre, half = np.array([2.0, 1.0, -3.0]), np.array([3.0, 1.0, 7.0])
    scaled = na.family.LinearRegression(["a", "b"], "y", bounds=bounds)
    raw = na.family.LinearRegression(["a", "b"], "y")
    x = rng.normal(size=(1, n, 3)) * 0.2 * half + centre
    # next to no noise, so that both say the same although one number of noise is not the other
    u, releases = (x - centre) / half, []
    for family, table in ((scaled, u), (raw, x)):
        values = second_moments(table)[0]
        releases.append(na.Release(family=family, values=values, n=n, mechanism=na.mechanism.Gaussian(1e-4)))
    one, other = (na.infer(release, prior, seed=5, num_draws=DRAWS) for release in releases)
    for parameter in ("coefficients", "variance"):
        columns = [posterior.draws[parameter].reshape(DRAWS, -1).T for posterior in (one, other)]
        for a, b in zip(*columns, strict=True):
            assert stats.ks_2samp(a, b, method="asymp").statistic < 1.95 * (2 / (0.5 * DRAWS)) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_multivariate_normal_against_tables_from_the_prior(law, rng):
    prior, n, scale = na.prior.NormalInverseWishart([0.5, -0.5], 1.5, [[1.0, 0.3], [0.3, 2.0]], 6), 15, 10.0

    def tables(size):
        mean, covariance = wishart_prior(rng, prior, size)
        z = rng.standard_normal((size, n, 2))
        x = mean[:, None] + np.einsum("tij,tnj->tni", np.linalg.cholesky(covariance), z)
        return np.column_stack([mean, covariance.reshape(size, 4)[:, [0, 1, 3]]]), second_moments(x)

    y = noisy(rng, law, scale, tables(1)[1][0])
    release = na.Release(family=na.family.MultivariateNormal(["a", "b"]), values=y, n=n, mechanism=LAWS[law](scale))
    posterior = na.infer(release, prior, seed=4, num_draws=DRAWS)
    assert posterior.is_exact
    draws = np.column_stack(list(posterior.marginals().values()))
    agree(draws, *weighted(law, scale, y, [tables(40_000) for _ in range(8)]))


CUT = (-1.0, 2.0)


@pytest.mark.parametrize(
    ("n", "scale", "bounds"),
    [
        (50, 15.0, None),
        *(pytest.param(*c, marks=pytest.mark.slow) for c in [(3, 4.0, None), (100, 4.0, CUT), (60, 1.0, CUT)]),
    ],
)
def test_normal_mean_and_variance_against_tables_from_the_prior(n, scale, bounds, rng):
    """Unclamped: exact also for three records. Clamped: the central limit theorem, good to a hundredth here."""
    prior = na.prior.NormalInverseGamma(0.5, 2.0, 4.0, 3.0)
    centre, half = (0.0, 1.0) if bounds is None else (np.mean(bounds), np.ptp(bounds) / 2)

    def tables(size):
        variance = stats.invgamma(4.0, scale=3.0).rvs(size, random_state=rng)
        mean = 0.5 + np.sqrt(variance / 2.0) * rng.standard_normal(size)
        x = mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
        u = ((x if bounds is None else x.clip(*bounds)) - centre) / half
        return np.column_stack([mean, variance]), np.column_stack([u.sum(1), (u**2).sum(1)])

    y = noisy(rng, "laplace", scale, tables(1)[1][0])
    release = na.Release(family=na.family.Normal(bounds=bounds), values=y, n=n, mechanism=na.mechanism.Laplace(scale))
    posterior = na.infer(release, prior, seed=6, num_draws=DRAWS)
    assert posterior.method == "hmc"
    assert posterior.is_exact == (bounds is None)
    draws = np.column_stack(list(posterior.draws.values()))
    cdf, worth = weighted("laplace", scale, y, [tables(40_000) for _ in range(10)])
    agree(draws, cdf, worth, slack=0.0 if bounds is None else 0.01)


@pytest.mark.slow
def test_covariates_of_any_law_by_their_moments(rng):
    """A skew covariate of known law: only Σx and Σx² are approximated, as normal."""
    n, scale = 60, 12.0
    regression = na.prior.NormalInverseGamma([0.5, -0.2], 1.5, 4, 2)
    covariates = na.prior.CovariateMoments.of(stats.beta(1, 3).ppf((np.arange(4000) + 0.5) / 4000))
    prior = na.prior.Independent(regression=regression, covariates=covariates)

    def tables(size):
        variance = stats.invgamma(4, scale=2).rvs(size, random_state=rng)
        coefficients = regression.mean + np.sqrt(variance / 1.5)[:, None] * rng.standard_normal((size, 2))
        x = rng.beta(1, 3, (size, n))
        y = coefficients[:, :1] * x + coefficients[:, 1:] + np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
        return np.column_stack([coefficients, variance]), second_moments(np.stack([x, y], axis=2))

    y = noisy(rng, "laplace", scale, tables(1)[1][0])
    release = na.Release(family=na.family.LinearRegression(), values=y, n=n, mechanism=na.mechanism.Laplace(scale))
    posterior = na.infer(release, prior, seed=7, num_draws=DRAWS)
    assert "central limit theorem" in (posterior.explanation or "")
    draws = np.column_stack([posterior.draws["coefficients"], posterior.draws["variance"]])
    agree(draws, *weighted("laplace", scale, y, [tables(40_000) for _ in range(10)]), slack=0.01)


@pytest.mark.slow
def test_a_family_of_several_levels_agrees_with_the_exact_sampler():
    """The collapsed central limit theorem for a vector of probabilities."""
    release = na.Release(
        family=na.family.Categorical(levels=["a", "b", "c"]),
        values=[300, 90, 620],
        n=1000,
        mechanism=na.mechanism.DiscreteLaplace(20.0),
    )
    prior = na.prior.Dirichlet([2, 2, 2])
    one, other = (na.infer(release, prior, method=method, seed=1).draws["theta"] for method in ("hmc", "exact"))
    for j in range(3):
        assert stats.ks_2samp(one[:, j], other[:, j], method="asymp").statistic < 1.95 * (3 / 4000) ** 0.5


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([2e3, -2e3, 2e3, -2e3, 2e3], marks=pytest.mark.slow),
        [0.0, 0.0, -500.0, 0.0, -500.0],  # negative sums of squares
        [100.0, 100.0, 100.0, 100.0, 100.0],  # a constant column: no scatter at all
        [50.0, 50.0, 80.0, 80.0, 80.0],  # y is x itself
    ],
)
def test_impossible_and_degenerate_releases_have_an_answer(values):
    release = na.Release(family=na.family.LinearRegression(), values=values, n=100, mechanism=na.mechanism.Laplace(5.0))
    posterior = na.infer(release, regression_prior(1), seed=2, num_draws=DRAWS)
    for draws in posterior.draws.values():
        assert np.isfinite(draws).all()


@pytest.mark.slow
def test_collinear_covariates_have_an_answer(rng):
    x = rng.normal(size=(1, 500, 1)) * 0.3
    table = np.concatenate([x, x, 0.5 * x + 0.1 * rng.normal(size=x.shape)], axis=2)
    release = na.Release(
        family=na.family.LinearRegression(["a", "b"], "y", bounds=(-1, 1)),
        values=second_moments(table)[0],
        n=500,
        mechanism=na.mechanism.Laplace(0.5),
    )
    posterior = na.infer(release, na.prior.NormalInverseGamma([0, 0, 0], 1, 3, 1), seed=2, num_draws=2000)
    slopes = posterior.draws["coefficients"][:, :2]
    assert slopes.sum(1).std() < 0.5 * slopes[:, 0].std()  # their sum is known, each alone is not


def test_too_few_records_are_refused_in_a_sentence():
    release = na.Release(
        family=na.family.LinearRegression(["a", "b"], "y"), values=np.zeros(9), n=3, mechanism=na.mechanism.Laplace(1.0)
    )
    with pytest.raises(ValueError, match=r"n must be at least 4 .* got 3"):
        na.infer(release, na.prior.NormalInverseGamma([0, 0, 0], 1, 3, 1), seed=1)
    alone = na.Release(family=na.family.Normal(), values=[0.1, 0.2], n=1, mechanism=na.mechanism.Laplace(1.0))
    with pytest.raises(ValueError, match=r"n must be at least 2 .* got 1"):
        na.infer(alone, na.prior.NormalInverseGamma(0, 1, 3, 1), seed=1)
    posterior = na.infer(alone, na.prior.NormalInverseGamma(0, 1, 3, 1), method="augmentation", seed=1, num_draws=200)
    assert np.isfinite(posterior.draws["variance"]).all()


def test_without_noise_it_is_conjugacy(rng):
    x = second_moments(0.4 * rng.normal(size=(1, 50, 2)))[0]
    release = na.Release(family=na.family.LinearRegression(), values=x, n=50, mechanism=na.mechanism.Identity())
    prior = na.prior.NormalInverseGamma([0, 0], 1, 3, 1)
    assert na.infer(release, prior, seed=1).is_exact
    bounded = na.Release(
        family=na.family.LinearRegression(bounds=(-1, 1)), values=x, n=50, mechanism=na.mechanism.Identity()
    )
    assert not na.infer(bounded, prior, seed=1, method="naive").is_exact  # some records were clamped
    hmc_draws, conjugate = (na.infer(release, prior, seed=1, method=m).draws["variance"] for m in ("hmc", "naive"))
    assert stats.ks_2samp(hmc_draws, conjugate, method="asymp").statistic < 0.045


def test_the_mode_is_found_and_whitened(x64):
    """On a normal log density from far away: one Newton step, and the inverse curvature."""
    root = jnp.array([[2.0, 0.0], [1.5, 0.1]])
    covariance = root @ root.T
    centre = jnp.array([5.0, -3.0])

    def log_density(v):
        return -0.5 * (v - centre) @ jnp.linalg.solve(covariance, v - centre)

    def curvature(v):
        return -jax.hessian(log_density)(v)

    peak = _mode.climb(log_density, curvature, jnp.array([[1e3, 1e3], [-1e4, 0.0]]))
    np.testing.assert_allclose(peak.mode, centre, atol=1e-3)
    np.testing.assert_allclose(peak.spread @ peak.spread.T, covariance, rtol=1e-6)


def test_chains_that_disagree_have_not_converged(rng):
    v = rng.normal(size=(60, 64, 2))
    assert hmc.has_converged(v)
    assert not hmc.has_converged(v + np.linspace(-1, 1, 64)[:, None])
    assert not hmc.has_converged(np.cumsum(v, axis=0))
    assert not hmc.has_converged(v + np.linspace(-1, 1, 64)[:, None] * [0, 1]), "one coordinate is enough"


@pytest.mark.slow
def test_a_run_that_cannot_converge_says_so(monkeypatch):
    release = na.Release(
        family=na.family.LinearRegression(),
        values=[3.0, 4.0, 20.0, 5.0, 30.0],
        n=100,
        mechanism=na.mechanism.Laplace(5.0),
    )
    monkeypatch.setattr(hmc, "_ACCEPT", 0.99999)  # single steps that go nowhere
    monkeypatch.setattr(hmc, "_MOST_STEPS", 1)
    monkeypatch.setattr(hmc, "_LONGEST", 1)
    jax.clear_caches()
    with pytest.warns(RuntimeWarning, match="have not converged"):
        posterior = na.infer(release, na.prior.NormalInverseGamma([0, 0], 1, 3, 1), seed=2)
    jax.clear_caches()
    assert "not converged" in (posterior.explanation or "")


def test_statistics_and_real_vectors_are_one_to_one(x64, rng):
    family = na.family.MultivariateNormal(["a", "b", "c"])
    s = jnp.asarray(second_moments(rng.normal(size=(1, 20, 3)))[0])
    mean, scatter, _ = family.from_real(family.to_real(s, 20.0), 20.0)
    np.testing.assert_allclose(family.joined(mean, scatter, 20.0), s, rtol=1e-9)


def test_the_measure_is_that_of_normal_records(x64):
    """log h_n(s)|ds/dv| and the evidence make the law of s: its integral over one coordinate is that of a Wishart."""
    family, n = na.family.MultivariateNormal(["a"]), 7.0
    prior = na.prior.NormalInverseWishart([0.0], 1.0, 2.0, 5)
    target = _target.of(Evidence(family, na.mechanism.Gaussian(1e9), jnp.zeros(2), Public(n)), prior)
    means, logs = np.meshgrid(np.linspace(-8, 8, 401), np.linspace(-4, 4, 401), indexing="ij")
    density = np.exp(jax.vmap(target.log_density)(jnp.stack([means.ravel(), logs.ravel()], axis=1)))
    density = density.reshape(means.shape) / density.sum()
    # the scatter of 7 records under IW(2, 5): C = 2 · χ²₆/χ²₅, an F law
    levels = np.cumsum(density.sum(0))
    scatter = n * np.exp(2 * np.linspace(-4, 4, 401))
    np.testing.assert_allclose(levels, stats.f(6, 5).cdf(scatter / 2 * 5 / 6), atol=0.02)


def test_the_law_of_a_statistic_has_the_same_integral_for_every_number_of_records(x64):
    """So that a private n is weighed by its noise alone."""
    family, prior = na.family.MultivariateNormal(["a"]), na.prior.NormalInverseWishart([0.4], 1.5, 2.0, 5)
    inner = family.scaled(prior)
    means, logs = (axis.ravel() for axis in np.meshgrid(np.linspace(-20, 20, 801), np.linspace(-7, 5, 801)))

    def total(n: float) -> float:
        def log_density(v):
            mean, scatter, log_measure = family.from_real(v, n)
            return log_measure + family.log_evidence(inner, mean, scatter, n) + family.log_of_count(inner, n)

        return float(jax.nn.logsumexp(jax.vmap(log_density)(jnp.stack([means, logs], axis=1))))

    assert [total(n) for n in (5.0, 12.0, 80.0)] == pytest.approx([total(30.0)] * 3, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_regression_of_a_private_number_of_records(law, rng):
    """Tables from the prior, of as many records as the noisy number allows."""
    prior, noisy_n, scale_n, scale = regression_prior(1), 12, 4.0, 6.0
    y = noisy(rng, law, scale, regression_tables(rng, prior, noisy_n, 1)[1][0])
    release = na.Release(
        family=na.family.LinearRegression(["x0"], "y"),
        values=y,
        n=noisy_n,
        n_mechanism=LAWS[law](scale_n),
        mechanism=LAWS[law](scale),
    )
    posterior = na.infer(release, prior, seed=3, num_draws=DRAWS)
    assert posterior.method == "hmc"
    assert "real number" in str(posterior.explanation)
    draws = np.column_stack([posterior.draws["coefficients"], posterior.draws["variance"]])
    numbers = np.arange(3, 60)
    density = np.exp(-np.abs(numbers - noisy_n) / scale_n)
    density = density if law == "laplace" else np.exp(-0.5 * ((numbers - noisy_n) / scale_n) ** 2)
    sizes = rng.multinomial(400_000, density / density.sum())
    tables = [regression_tables(rng, prior, int(n), int(size)) for n, size in zip(numbers, sizes, strict=True) if size]
    agree(draws, *weighted(law, scale, y, tables), slack=0.01)
