"""The Gibbs samplers of regression: moments against autodiff and simulation, draws against importance sampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.sampler.weighted import LEVELS, shares, worth

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family.linear_regression_fourth import LinearRegressionFourth
from noiseaware.likelihood import regression_moment
from noiseaware.sampler import gibbs_regression
from noiseaware.sampler.method import decided

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

N, DRAWS = 200, 20
# What the central limit theorem and the two views of s cost at n = 200: with 4·10⁴ draws no level was off by more
# than 0.006 at Laplace noise of scale 8, where the standard error was 0.005.
APPROXIMATION = 0.01
SHAPE, SCALE = 5.0, 2.0
UPDATE, PRIOR, NOISY = gibbs_regression.GibbsUpdate(), gibbs_regression.GibbsPrior(), gibbs_regression.GibbsNoisy()
VARIANTS = {"update": UPDATE, "prior": PRIOR, "noisy": NOISY}


def family_of(p: int) -> na.family.LinearRegression:
    """Bounds that no record of the prior reaches, off the centre and not of one width."""
    bounds = {f"x{j}": (-3.0 + j, 5.0 + j) for j in range(p)} | {"y": (-6.0, 4.0)}
    return na.family.LinearRegression([f"x{j}" for j in range(p)], "y", bounds)


def prior_of(p: int) -> na.prior.Independent:
    precision = 2 * np.eye(p + 1) + 0.5
    regression = na.prior.NormalInverseGamma([0.5] * p + [-0.2], precision, SHAPE, SCALE)
    covariates = na.prior.NormalInverseWishart([1.0] * p, 2.0, 6.0, 8.0)
    return na.prior.Independent(regression=regression, covariates=covariates)


def predictive(rng, p: int, size: int, covariates=None) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of the prior and the statistic of N records of each, by Bartlett's factors."""
    variance = stats.invgamma(SHAPE, scale=SCALE).rvs(size, random_state=rng)
    root = np.linalg.cholesky(np.linalg.inv(2 * np.eye(p + 1) + 0.5))
    theta = np.append([0.5] * p, -0.2) + np.sqrt(variance)[:, None] * (rng.normal(size=(size, p + 1)) @ root.T)
    if covariates is None:
        g = rng.normal(size=(size, 8, p))
        spread = np.linalg.cholesky(6 * np.linalg.inv(np.einsum("nij,nik->njk", g, g)))
        mean = 1.0 + np.einsum("nij,nj->ni", spread, rng.normal(size=(size, p))) / 2**0.5
    else:
        mean, spread = covariates[0] + np.zeros((size, p)), np.linalg.cholesky(covariates[1]) + np.zeros((size, p, p))
    factor = np.tril(rng.normal(size=(size, p, p)), -1)
    factor[:, range(p), range(p)] = np.sqrt(rng.chisquare(N - 1 - np.arange(p), (size, p)))
    factor = spread @ factor
    x = mean + np.einsum("nij,nj->ni", spread, rng.normal(size=(size, p))) / N**0.5
    sd = np.sqrt(variance)[:, None]
    along = np.einsum("nij,ni->nj", factor, theta[:, :p]) + sd * rng.normal(size=(size, p))
    cross = np.einsum("nij,nj->ni", factor, along)
    last = (along**2).sum(1) + variance * rng.chisquare(N - p - 1, size)
    y = (x * theta[:, :p]).sum(1) + theta[:, p] + np.sqrt(variance / N) * rng.normal(size=size)
    scatter = np.empty((size, p + 1, p + 1))
    scatter[:, :p, :p] = factor @ factor.transpose(0, 2, 1)
    scatter[:, :p, p] = scatter[:, p, :p] = cross
    scatter[:, p, p] = last
    return np.column_stack([theta, variance]), statistic(p, np.column_stack([x, y]), scatter)


def statistic(p: int, mean: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Σu and Σuuᵀ of u = (x − centre)/half, by hand."""
    centre, half = np.append(1.0 + np.arange(p), -1.0), np.append(np.full(p, 4.0), 5.0)
    u = (mean - centre) / half
    sums = scatter / np.outer(half, half) + N * u[..., :, None] * u[..., None, :]
    return np.concatenate([N * u, sums[..., *np.triu_indices(p + 1)]], axis=-1)


def released(p: int, scale: float) -> np.ndarray:
    """What a table that the prior finds a little odd may give."""
    slopes, mean = np.full(p, 0.9), 1.5 + 0.3 * np.arange(p)
    covariance = 1.2 * np.eye(p) + 0.3
    cross = covariance @ slopes
    scatter = np.block([[covariance, cross[:, None]], [cross[None], np.array([[slopes @ cross + 0.8]])]])
    y = statistic(p, np.append(mean, slopes @ mean - 0.8 * p), N * scatter)
    return y + 0.7 * scale * (-1.0) ** np.arange(y.size)


def levels(found: np.ndarray, theta: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The oracle's CDF at the draws' quantiles, a row for each number of θ."""
    pairs = zip(theta.T, found.reshape(-1, theta.shape[1]).T, strict=True)
    return np.array([shares(drawn, values, weight) for values, drawn in pairs])


def allowed(chains: int, weight: np.ndarray) -> np.ndarray:
    """4.5 standard errors if only one in four draws counted, and what the approximation costs."""
    return 4.5 * np.sqrt(LEVELS * (1 - LEVELS) * (4 / (chains * DRAWS) + 1 / worth(weight))) + APPROXIMATION


def drawn(variant, family, prior, mechanism, y, seed: int, chains: int, n: int = N) -> np.ndarray:
    keys = jax.random.split(jax.random.key(seed), chains)
    settings = {"num_draws": DRAWS, "num_warmup": 300, "thin": 10}
    with jax.enable_x64(True):
        many = jnp.broadcast_to(jnp.asarray(y), (chains, len(y)))
        return np.asarray(
            gibbs_regression.chains(
                keys, variant.believe, Evidence(family, mechanism, many, Public(n)), prior, **settings
            )
        )


def compare(p: int, noises, seed: int, *, chains: int, size: int) -> None:
    """gibbs_ss_update against importance sampling under each noise."""
    theta, s = predictive(np.random.default_rng(seed), p, size)
    for mechanism in noises:
        y = released(p, mechanism.spread)
        weight = np.exp(np.asarray(mechanism.log_density(y - s)).sum(1))
        found = drawn(UPDATE, family_of(p), prior_of(p), mechanism, y, seed, chains)
        found = levels(found, theta, weight)
        assert (np.abs(found - LEVELS) <= allowed(chains, weight)).all(), found


# ---- moments -------------------------------------------------------------------------------------------------------


def normal_setting(rng, p: int):
    root = rng.normal(size=(p, p))
    return rng.normal(size=p + 1), 0.7, rng.normal(size=p), root @ root.T + np.eye(p)


@pytest.mark.parametrize("p", [1, 3])
def test_moments_of_normal_covariates_are_those_of_the_joint_normal(p, x64, seed):
    theta, variance, mean, covariance = normal_setting(np.random.default_rng(seed), p)
    family = na.family.LinearRegression([f"x{j}" for j in range(p)], "y")
    whole = jnp.asarray(np.concatenate([theta, [variance], mean, covariance.ravel()]))
    covariate = regression_moment.of_normal(jnp.asarray(mean), jnp.asarray(covariance))
    found = regression_moment.of_record(covariate, jnp.asarray(theta), jnp.asarray(variance))
    np.testing.assert_allclose(found.mean, jax.jit(family.mean)(whole), rtol=1e-10)
    np.testing.assert_allclose(found.covariance, jax.jit(family.covariance)(whole), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("p", [1, 3])
def test_moments_of_any_covariates_are_those_of_a_sample(p, x64, seed):
    """Skew, dependent covariates: the sample's own moments go in, and the law of e is integrated by its moments."""
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=(50, p)) @ (np.eye(p) + 0.5)
    theta, variance = rng.normal(size=p + 1), 0.7
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)  # exact to the ninth power of e
    z = np.column_stack([x, np.ones(50)])
    y = (z @ theta)[:, None] + variance**0.5 * nodes
    u = [*(np.repeat(x[:, j, None], 5, 1) for j in range(p)), y]
    t = np.array([*u, *(u[i] * u[j] for i in range(p + 1) for j in range(i, p + 1))]).reshape(-1, 250)
    share = np.tile(weights / weights.sum(), 50) / 50
    mean = t @ share
    known = na.prior.CovariateMoments.of(x)
    known = na.prior.CovariateMoments(known.mean, known.covariance * 49 / 50)  # of the sample as a law of its own
    found = regression_moment.of_record(regression_moment.of_known(known), jnp.asarray(theta), jnp.asarray(variance))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, (t * share) @ t.T - np.outer(mean, mean), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("p", [1, 3])
def test_moments_of_a_record_of_the_prior(p, x64, seed):
    """A mean of 8·10⁵ records in 64 groups, whose spread gives its standard error."""
    rng = np.random.default_rng(seed)
    _, _, mean, scale = normal_setting(rng, p)
    g = rng.normal(size=(800_000, 12 + p, p))
    inner = np.linalg.cholesky(np.einsum("nij,nik->njk", g, g))
    root = np.linalg.cholesky(scale) @ np.linalg.inv(inner).swapaxes(1, 2)
    x = mean + np.einsum("nij,nj->ni", root, rng.normal(size=(len(g), p))) * (1 + 1 / 3.0) ** 0.5
    numbers = np.array([*x.T, *(x[:, i] * x[:, j] for i in range(p) for j in range(i, p))])
    found = regression_moment.predictive(na.prior.NormalInverseWishart(mean, 3.0, scale, 12.0 + p))
    away = numbers - np.asarray(found.mean)[:, None]
    groups = np.array([part @ part.T / part.shape[1] for part in np.array_split(away, 64, axis=1)])
    error = groups.std(0) / 8
    assert (np.abs(away.mean(1)) <= 5 * away.std(1) / len(g) ** 0.5).all()
    assert (np.abs(groups.mean(0) - found.covariance) <= 6 * error).all()  # heavy tails: the error is itself uncertain


# ---- draws ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_update_matches_importance_sampling(seed):
    compare(1, map(na.mechanism.Laplace, (8.0, 4.0)), seed, chains=200, size=500_000)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "noise"), [(1, na.mechanism.Gaussian(4.0)), (2, na.mechanism.Laplace(8.0))])
def test_update_matches_importance_sampling_also(p, noise, seed):
    compare(p, [noise], seed, chains=500, size=3_000_000)


@pytest.mark.slow
def test_known_moments_match_importance_sampling(seed):
    """gibbs_ss_prior with the moments of the law that x has."""
    mean, variance, scale = 1.5, 1.2, 4.0
    theta, s = predictive(np.random.default_rng(seed), 1, 500_000, (np.array([mean]), np.array([[variance]])))
    y = released(1, scale)
    weight = np.exp(-np.abs(y - s).sum(1) / scale)
    cross, square = 2 * mean * variance, 4 * mean**2 * variance + 2 * variance**2
    moments = np.array([[variance, cross], [cross, square]])
    covariates = na.prior.CovariateMoments(np.array([mean, mean**2 + variance]), moments)
    prior = na.prior.Independent(regression=prior_of(1).parts["regression"], covariates=covariates)
    found = drawn(PRIOR, family_of(1), prior, na.mechanism.Laplace(scale), y, seed, 200)
    found = levels(found, theta, weight)
    assert (np.abs(found - LEVELS) <= allowed(200, weight)).all(), found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "noise"),
    [
        (UPDATE, na.mechanism.Laplace(1e-7)),
        (PRIOR, na.mechanism.Identity()),
    ],
)
def test_without_noise_it_is_conjugate(variant, noise, seed):
    """The posterior given s, by SciPy in the units of x and y."""
    p, y = 2, released(2, 0.0)
    mean, scatter = y[: p + 1] / N, np.zeros((p + 1, p + 1))
    scatter[np.triu_indices(p + 1)] = y[p + 1 :]
    sums = np.triu(scatter, 1).T + scatter - N * np.outer(mean, mean)
    half, centre = np.array([4.0, 4.0, 5.0]), np.array([1.0, 2.0, -1.0])
    mean, sums = centre + half * mean, np.outer(half, half) * sums
    sums = sums + N * np.outer(mean, mean)
    zz = np.block([[sums[:p, :p], N * mean[:p, None]], [N * mean[None, :p], np.array([[float(N)]])]])
    zy, yy = np.append(sums[:p, p], N * mean[p]), sums[p, p]
    own, start = 2 * np.eye(p + 1) + 0.5, np.append([0.5] * p, -0.2)
    precision = own + zz
    location = np.linalg.solve(precision, own @ start + zy)
    shape = SHAPE + N / 2
    scale = SCALE + 0.5 * (yy + start @ own @ start - location @ precision @ location)
    spread = np.sqrt(scale / shape * np.diag(np.linalg.inv(precision)))
    laws = [stats.t(2 * shape, m, sd) for m, sd in zip(location, spread, strict=True)]
    laws.append(stats.invgamma(shape, scale=scale))
    found = drawn(variant, family_of(p), prior_of(p), noise, y, seed, 50)
    for law, values in zip(laws, found.reshape(-1, p + 2).T, strict=True):
        assert stats.kstest(values, law.cdf).statistic < 2.2 / 1000**0.5


# ---- fourth moments that are released too ----------------------------------------------------------------------------


@pytest.mark.slow
def test_noisy_matches_importance_sampling_where_its_moments_are_right(seed):
    """The further statistics without noise and those of a normal law; the second moments with noise."""
    scale, mean, variance = 4.0, 1.5, 1.2
    family = LinearRegressionFourth(family_of(1))
    y = released(1, scale)
    law = stats.norm((mean - 1.0) / 4.0, variance**0.5 / 4.0)
    y[[0, 2]] = N * law.moment(1), N * law.moment(2)
    whole = np.append(y, [N * law.moment(3), N * law.moment(4)])
    theta, s = predictive(np.random.default_rng(seed), 1, 500_000, (np.array([mean]), np.array([[variance]])))
    weight = np.exp(-np.abs(y - s).sum(1) / scale)
    mechanism = na.mechanism.Laplace(np.append(np.full(5, scale), [1e-9, 1e-9]))
    found = drawn(NOISY, family, prior_of(1), mechanism, whole, seed, 200)
    found = levels(found, theta, weight)
    assert (np.abs(found - LEVELS) <= allowed(200, weight)).all(), found


# ---- edges -----------------------------------------------------------------------------------------------------------

# n, how far y is from 0, the noise
EDGES = {
    "fewer records than coefficients": (2, 1.0, 5.0),
    "one record": (1, 1.0, 5.0),
    "far outside": (50, 1e4, 3.0),
    "little noise, no such table": (50, 100.0, 0.01),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDGES)
def test_edges_give_finite_draws(name, seed):
    n, away, scale = EDGES[name]
    y = away * np.random.default_rng(seed).normal(size=9)
    y[3] = -away  # a sum of squares
    found = drawn(UPDATE, family_of(2), prior_of(2), na.mechanism.Laplace(scale), y, seed, 50, n=n)
    assert np.isfinite(found).all()
    assert (found[..., -1] > 0).all()
    assert np.unique(found[..., 0]).size > 500


@pytest.mark.slow
def test_a_covariate_of_two_values_has_no_inverse_covariance_and_needs_none(seed):
    x = np.repeat([-1.0, 1.0], 30)  # whose square is always 1
    prior = na.prior.Independent(regression=prior_of(1).parts["regression"], covariates=na.prior.CovariateMoments.of(x))
    family = na.family.LinearRegression("x", "y")
    y, noise = [3.0, 9.0, 64.0, 20.0, 80.0], na.mechanism.Laplace(5.0)
    found = drawn(PRIOR, family, prior, noise, y, seed, 10)
    assert np.isfinite(found).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_a_method_of_infer(name, seed):
    variant, fourth = VARIANTS[name], LinearRegressionFourth(family_of(1))
    model = fourth if name == "noisy" else fourth.regression
    mechanism = na.mechanism.Laplace(fourth.noise_scales(5.0) if name == "noisy" else 4.0)
    values = np.append(released(1, 4.0), [10.0, 12.0] if name == "noisy" else [])
    release = na.Release(family=model, values=values, n=N, mechanism=mechanism)
    posterior = na.infer(release, prior_of(1), method=f"gibbs_ss_{name}", num_draws=4000, seed=seed)
    assert list(posterior.marginals()) == ["coefficients[x0]", "coefficients[intercept]", "variance"]
    assert all(np.isfinite(values).all() and values.shape == (4000,) for values in posterior.marginals().values())
    assert "2019" in str(variant.route(release.evidence(), prior_of(1)).explanation)


def test_what_a_variant_cannot_use_is_refused(x64):
    family, prior, y = family_of(1), prior_of(1), jnp.zeros((1, 5))
    noise = na.mechanism.Laplace(1.0)
    known = na.prior.Independent(
        regression=prior.parts["regression"], covariates=na.prior.CovariateMoments.of(np.arange(9.0))
    )
    heavy = na.prior.Independent(
        regression=prior.parts["regression"], covariates=na.prior.NormalInverseWishart([0.0], 1.0, 1.0, 4.0)
    )
    for variant, model, given, sentence in (
        (UPDATE, family, known, "a NormalInverseWishart prior .* got CovariateMoments"),
        (PRIOR, family, heavy, "dof must be above 4 .* got 4.0"),
        (NOISY, family, prior, "must be a LinearRegressionFourth .* got LinearRegression"),
        (UPDATE, na.family.Bernoulli(), prior, "must be a LinearRegression .* got B"),
    ):
        with pytest.raises(ValueError, match=sentence):
            decided(variant, Evidence(model, noise, y[0], Public(N)), given)


# ---- faults ----------------------------------------------------------------------------------------------------------


def _fault_product(change):
    def plant(monkeypatch):
        right = gibbs_regression._norm_product
        monkeypatch.setattr(gibbs_regression, "_norm_product", lambda *a: change(right, *a))

    return plant


def _fault_noise(monkeypatch):
    shape = na.mechanism.Laplace.shape
    right = shape.draw_variance
    monkeypatch.setattr(shape, "draw_variance", lambda *a: 0.5 * right(*a))


# each a function of (right, key, mean, covariance, y, noise_variance)
FAULTS = {
    "wrong sign": _fault_product(lambda right, k, m, v, y, w: right(k, m, v, 2 * m - y, w)),
    "s without y": _fault_product(lambda right, k, m, v, y, w: right(k, m, v, m, w)),
    "no cross-covariance": _fault_product(lambda right, k, m, v, y, w: right(k, m, jnp.diag(jnp.diag(v)), y, w)),
    "no sampling error": _fault_product(lambda right, k, m, v, y, w: right(k, m, 1e-3 * v, y, w)),
    "twice the variance": _fault_product(lambda right, k, m, v, y, w: right(k, m, 2 * v, y, w)),
    "noise variance halved": _fault_noise,
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen(fault, monkeypatch, seed):
    """In the levels, or because draws are not numbers any more."""
    FAULTS[fault](monkeypatch)
    jax.clear_caches()
    with pytest.raises(AssertionError):
        compare(1, [na.mechanism.Laplace(4.0)], seed, chains=400, size=3_000_000)
    monkeypatch.undo()
    jax.clear_caches()


@pytest.mark.slow
def test_a_statistic_that_is_not_projected_is_seen(monkeypatch, seed):
    """The edges would give draws that are not numbers."""
    monkeypatch.setattr(na.family.LinearRegression, "project", lambda self, s, n: s)
    jax.clear_caches()
    y = np.array([1.0, 2.0, -300.0, 40.0, 5.0])
    found = drawn(UPDATE, family_of(1), prior_of(1), na.mechanism.Laplace(0.01), y, seed, 4, n=50)
    monkeypatch.undo()
    jax.clear_caches()
    assert not np.isfinite(found).all()
