"""The Gibbs samplers against the exact one, against importance sampling, and at the edges."""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.sampler.stand_in import drawing
from tests.sampler.weighted import LEVELS, shares, worth

import noiseaware as na
from noiseaware.likelihood import moment
from noiseaware.sampler import exact, gibbs

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

N, DRAWS = 1000, 50
# What the central limit theorem and the two views of s cost at n = 1000, measured with 4·10⁵ draws of each.
APPROXIMATION = 0.012

# name: (family, prior, a middling θ)
FAMILIES = {
    "bernoulli": (na.family.Bernoulli(), na.prior.Beta(10, 10), 0.4),
    "exponential-drop": (na.family.Exponential(bounds=(0.01, 1.0), outside="drop"), na.prior.Gamma(8, 2), 4.0),
    "categorical": (na.family.Categorical(levels=["a", "b", "c"]), na.prior.Dirichlet([5, 5, 5]), [0.2, 0.3, 0.5]),
    "poisson-clamp": (na.family.Poisson(bounds=(1, 4)), na.prior.Gamma(2, 1), 2.0),
    "binomial": (na.family.Binomial(trials=5), na.prior.Beta(2, 3), 0.3),
    "poisson": (na.family.Poisson(), na.prior.Gamma(2, 1), 2.0),
    "poisson-drop": (na.family.Poisson(bounds=(0, 4), outside="drop"), na.prior.Gamma(8, 8), 1.0),
    "geometric": (na.family.Geometric(), na.prior.Beta(5, 5), 0.4),
    "geometric-clamp": (na.family.Geometric(bounds=(0, 3)), na.prior.Beta(5, 5), 0.4),
    "exponential": (na.family.Exponential(), na.prior.Gamma(8, 2), 4.0),
    "exponential-narrow": (na.family.Exponential(bounds=(0.15, 0.4), outside="drop"), na.prior.Gamma(8, 2), 4.0),
    "exponential-clamp": (na.family.Exponential(bounds=(0.01, 1.0)), na.prior.Gamma(8, 2), 4.0),
    "gamma-clamp": (na.family.Gamma(bounds=(0.2, 3.0), shape=2.5), na.prior.Gamma(8, 2), 2.0),
    "normal": (na.family.Normal(variance=1.0), na.prior.Normal(0, 1), 0.3),
    "normal-clamp": (na.family.Normal(bounds=(-1.0, 1.0), variance=1.0), na.prior.Normal(0, 1), 0.3),
}
NOISE = {"laplace": na.mechanism.Laplace, "gaussian": na.mechanism.Gaussian}


def release_near(name: str, ratio: float, law: str) -> na.Release:
    """A release whose noise is `ratio` times the sampling error, with y most of a standard deviation off the middle."""
    family, _, theta = FAMILIES[name]
    with jax.enable_x64(True):
        found = moment.of_record(family, jnp.asarray(theta))
    k = len(family.query.names)
    mean, spread = N * np.asarray(found.mean[-k:]), (N * float(found.covariance[-1, -1])) ** 0.5
    shift = np.linspace(1, -1, k) if k > 1 else 1.0
    y = mean + 0.5 * (1 + ratio) * spread * shift
    return na.Release(family=family, values=y, n=N, mechanism=NOISE[law](ratio * spread))


def levels(release: na.Release, prior, seed: int, chains: int) -> np.ndarray:
    """The share of Gibbs draws below the exact posterior's quantiles, for the first entry of θ."""
    keys = jax.random.split(jax.random.key(seed), chains)
    y = np.broadcast_to(release.values, (chains, len(release.values)))
    with jax.enable_x64(True):
        right = exact.draws(jax.random.key(seed + 1), release.evidence(), prior, 100_000)
        found = gibbs.chains(
            keys,
            release.evidence().at(jnp.asarray(y)),
            prior,
            num_draws=DRAWS,
            num_warmup=300,
            thin=8,
        )
    right, found = (np.asarray(v).reshape(v.size // (3 if v.shape[-1] == 3 else 1), -1)[:, 0] for v in (right, found))
    assert np.isfinite(found).all()
    return np.array([(found < q).mean() for q in np.quantile(right, LEVELS)])


def allowed(chains: int) -> np.ndarray:
    """4.5 standard errors if only one in four draws counted, and what the approximation costs."""
    return 4.5 * np.sqrt(LEVELS * (1 - LEVELS) / (chains * DRAWS / 4)) + APPROXIMATION


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_gibbs_matches_the_exact_posterior(name, seed):
    for ratio, law in ((0.2, "laplace"), (1.0, "laplace"), (3.0, "laplace"), (1.0, "gaussian")):
        found = levels(release_near(name, ratio, law), FAMILIES[name][1], seed, chains=400)
        assert (np.abs(found - LEVELS) <= allowed(400)).all(), (ratio, law, found)


@pytest.mark.slow
def test_mean_and_variance_match_importance_sampling(seed):
    """Nothing clamped: x̄ is normal and the sum of squares about it σ²χ², so s is drawn exactly and weighed by noise."""
    n, scale = 200, 40.0
    prior, y = na.prior.NormalInverseGamma(0.5, 4.0, 6.0, 5.0), np.array([110.0, 290.0])
    rng = np.random.default_rng(seed)
    variance = stats.invgamma(6, scale=5).rvs(2_000_000, random_state=rng)
    mean = rng.normal(0.5, np.sqrt(variance / 4))
    average = rng.normal(mean, np.sqrt(variance / n))
    s = np.stack([n * average, variance * rng.chisquare(n - 1, mean.size) + n * average**2])
    weight = np.exp(-np.abs(y[:, None] - s).sum(0) / scale)
    release = na.Release(family=na.family.Normal(), values=y, n=n, mechanism=na.mechanism.Laplace(scale))
    posterior = na.infer(release, prior, method="gibbs", num_draws=8000, seed=seed)
    assert not posterior.is_exact
    error = 4.5 * np.sqrt(LEVELS * (1 - LEVELS)) * (1 / 2000 + 1 / worth(weight)) ** 0.5
    for name, values in (("mean", mean), ("variance", variance)):
        share = shares(posterior.draws[name], values, weight)
        assert (np.abs(share - LEVELS) <= error + 0.02).all(), (name, share)


def test_the_noise_variance_is_inverse_gaussian(x64, key):
    noise, scale = jnp.full(40_000, 3.0), 2.0
    drawn = np.asarray(na.mechanism.Laplace(scale).mixture.draw_variance(key, noise))
    law = stats.invgauss(scale / 3.0, scale=1 / scale**2)  # SciPy's mean is mu·scale: 1/(b|y − s|)
    assert stats.kstest(1 / drawn, law.cdf).statistic < 2.7 / 40_000**0.5
    at_zero = np.asarray(na.mechanism.Laplace(scale).mixture.draw_variance(key, jnp.zeros(40_000)))
    assert stats.kstest(at_zero / scale**2, stats.chi2(1).cdf).statistic < 2.7 / 40_000**0.5


EDGES = {
    "one record": (na.family.Bernoulli(), na.prior.Beta(1, 1), [3.0], 1, na.mechanism.Laplace(2.0)),
    "far below": (na.family.Bernoulli(), na.prior.Beta(0.5, 100), [-4000.0], 1000, na.mechanism.Laplace(10.0)),
    "far above": (na.family.Bernoulli(), na.prior.Beta(0.5, 100), [9e6], 1000, na.mechanism.Gaussian(10.0)),
    "all outside": (
        na.family.Exponential(bounds=(50.0, 60.0), outside="drop"),
        na.prior.Gamma(8, 2),
        [0.0],
        100,
        na.mechanism.Laplace(60.0),
    ),
    "all clamped": (na.family.Poisson(bounds=(30, 31)), na.prior.Gamma(2, 2), [3000], 100, na.mechanism.Laplace(5.0)),
    "categories out of reach": (
        na.family.Categorical(levels=["a", "b", "c"]),
        na.prior.Dirichlet([0.5, 0.5, 10]),
        [-60.0, 70.0, 90.0],
        20,
        na.mechanism.Laplace(3.0),
    ),
    "a negative sum of squares": (
        na.family.Normal(bounds=(-2.0, 2.0)),
        na.prior.NormalInverseGamma(0, 1, 3, 3),
        [5.0, -80.0],
        30,
        na.mechanism.Laplace(20.0),
    ),
}


@pytest.mark.parametrize(
    "name",
    [n if n == "one record" else pytest.param(n, marks=pytest.mark.slow) for n in EDGES],
)
@pytest.mark.filterwarnings("ignore:The chains of")
def test_edges_give_finite_draws(name, seed):
    family, prior, y, n, mechanism = EDGES[name]
    release = na.Release(family=family, values=y, n=n, mechanism=mechanism)
    for values in na.infer(release, prior, method="gibbs", num_draws=400, seed=seed).draws.values():
        assert np.isfinite(values).all()
        assert np.unique(values).size > 100


def test_chains_that_have_not_converged_are_called_that(monkeypatch, seed):
    from noiseaware.sampler.method import METHODS

    def stuck(key, num_draws):
        return jnp.repeat(jnp.arange(1.0, 5.0), num_draws // 4) / 10 + 1e-3 * jax.random.normal(key, (num_draws,))

    monkeypatch.setitem(METHODS, "gibbs", drawing(METHODS["gibbs"], stuck))
    release = na.Release(family=na.family.Bernoulli(), values=[3], n=9, mechanism=na.mechanism.Laplace(1.0))
    with pytest.warns(RuntimeWarning, match="have not converged"):
        found = na.infer(release, na.prior.Beta(1, 1), method="gibbs", num_draws=400, seed=seed)
    assert "not converged" in found.explanation


def test_the_explanation_names_the_exact_method_where_there_is_one():
    """At 20 records without an event, noise of scale 5 and Beta(0.01, 0.01) Gibbs puts the mean at 0.05 for 0.02."""

    def said(release, prior) -> str:
        return str(gibbs.Gibbs().route(release.evidence(), prior).explanation)

    noise = na.mechanism.DiscreteLaplace(5.0)
    rare = na.Release(family=na.family.Bernoulli(), values=[0], n=20, mechanism=noise)
    assert "Take method='exact'" in said(rare, na.prior.Beta(0.01, 0.01))
    spread = na.Release(family=na.family.Normal(), values=[0, 20], n=20, mechanism=na.mechanism.Laplace(5.0))
    assert "method='exact'" not in said(spread, na.prior.NormalInverseGamma(0, 1, 2, 1))


# Faults as they stand in the paper, its public code, or a tired programmer's: each must be seen in the CDF levels.
def _fault_ignores_y(monkeypatch):
    """Algorithm 2, line 10: the statistic drawn without y."""
    right = gibbs._draw_number

    def blind(key, family, mean, covariance, y, state, n):
        return right(key, family, mean, covariance, mean[-1:], state, n)

    monkeypatch.setattr(gibbs, "_draw_number", blind)


def _fault_moments(change):
    def plant(monkeypatch):
        right = moment.of_record
        monkeypatch.setattr(moment, "of_record", lambda family, theta: change(family, right(family, theta)))

    return plant


def _independent_sections(family, m):
    """Algorithm 2, line 8: what is released and what is not taken as uncorrelated, q(1−q)µµᵀ apart."""
    own = m.covariance[1, 1]
    rest = m.covariance[0, 0] - 2 * m.covariance[0, 1] + own
    return moment.Moments(m.mean, jnp.array([[own + rest, own], [own, own]]))


def _fault_noise(change):
    def plant(monkeypatch):
        shape = na.mechanism.Laplace.shape
        right = shape.draw_variance
        monkeypatch.setattr(shape, "draw_variance", lambda *a: change(right(*a)))

    return plant


FAULTS = {
    "s without y": ("exponential-drop", 1.0, _fault_ignores_y),
    "m = nq": ("exponential-drop", 0.2, _fault_moments(lambda f, m: m._replace(mean=m.mean.at[1].multiply(4.0)))),
    "independent sections": ("exponential-narrow", 1.0, _fault_moments(_independent_sections)),
    "no sampling error": ("bernoulli", 1.0, _fault_moments(lambda f, m: m._replace(covariance=1e-3 * m.covariance))),
    "twice the variance": ("bernoulli", 1.0, _fault_moments(lambda f, m: m._replace(covariance=2 * m.covariance))),
    "noise variance halved": ("bernoulli", 3.0, _fault_noise(lambda v: 0.5 * v)),
    "noise variance held": ("bernoulli", 3.0, _fault_noise(lambda v: jnp.full_like(v, 1.0))),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen(fault, monkeypatch, seed):
    name, ratio, plant = FAULTS[fault]
    plant(monkeypatch)
    jax.clear_caches()
    found = levels(release_near(name, ratio, "laplace"), FAMILIES[name][1], seed, chains=1600)
    monkeypatch.undo()
    jax.clear_caches()
    assert (np.abs(found - LEVELS) > allowed(1600)).any(), found


# ---- a family of the user's own ------------------------------------------------------------------------------


def rayleigh():
    path = pathlib.Path(__file__).parents[2] / "docs" / "examples" / "rayleigh.py"
    spec = importlib.util.spec_from_file_location("rayleigh", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Rayleigh


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "hmc"])
def test_a_family_of_the_users_own_is_the_squares_of_exponential_records(method, seed):
    """x² is exponential, so that a Rayleigh release with bounds (a, b) is an exponential one with (a², b²)."""
    prior = na.prior.Gamma(8, 2)
    own = na.Release(
        family=rayleigh()(bounds=(0.1, 1.0), outside="drop"), values=[205.0], n=N, mechanism=na.mechanism.Laplace(10.0)
    )
    twin = na.Release(
        family=na.family.Exponential(bounds=(0.01, 1.0), outside="drop"),
        values=[205.0],
        n=N,
        mechanism=na.mechanism.Laplace(10.0),
    )
    assert own.family.query.sensitivity() == pytest.approx(1.0)
    posterior = na.infer(own, prior, method=method, num_draws=8000, seed=seed)
    right = na.infer(twin, prior, num_draws=50_000, seed=seed).draws["theta"]
    share = np.array([(posterior.draws["theta"] < q).mean() for q in np.quantile(right, LEVELS)])
    assert (np.abs(share - LEVELS) <= 4.5 * np.sqrt(LEVELS * (1 - LEVELS) / 1500) + APPROXIMATION).all(), share


@pytest.mark.slow
def test_a_family_of_the_users_own_is_calibrated(seed):
    family = rayleigh()(bounds=(0.1, 1.0))
    found = na.calibrate(family, na.prior.Gamma(8, 2), n=100, epsilon=0.5, num_trials=250, seed=seed)
    assert found.ks < 1.95 / 250**0.5
