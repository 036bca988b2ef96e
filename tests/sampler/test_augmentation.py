"""Latent records against the exact sampler where there is one, and elsewhere against tables drawn from the prior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from tests.sampler.weighted import LEVELS, agrees

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, NormalMean
from noiseaware.sampler import augmentation, exact
from noiseaware.sampler.method import decided

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

DRAWS = 8000

# name: (family, prior, y, n, noise). Noise above, near and below the sampling error, in turn; bounds that cut.
CASES = {
    "bernoulli": (na.family.Bernoulli(), na.prior.Beta(1, 2), [3], 30, na.mechanism.DiscreteLaplace(3.0)),
    "categorical": (
        na.family.Categorical(levels=["a", "b", "c"]), na.prior.Dirichlet([1, 2, 3]), [16, -4, 12], 20,
        na.mechanism.DiscreteLaplace(4.0),
    ),
    "poisson, clamped": (
        na.family.Poisson(bounds=(1, 5)), na.prior.Gamma(8, 2), [41], 15, na.mechanism.DiscreteGaussian(3.0)
    ),
    "exponential, dropped": (
        na.family.Exponential(bounds=(0.1, 1), outside="drop"), na.prior.Gamma(4, 2), [7.0], 40,
        na.mechanism.Laplace(0.7),
    ),
    "normal, clamped": (
        na.family.Normal(bounds=(-1, 2), variance=1.0), na.prior.Normal(0, 4), [25.0], 30, na.mechanism.Laplace(15.0)
    ),
    "binomial": (na.family.Binomial(trials=5), na.prior.Beta(2, 3), [90], 25, na.mechanism.DiscreteLaplace(4.0)),
    "geometric, clamped": (
        na.family.Geometric(bounds=(0, 4)), na.prior.Beta(2, 3), [40], 30, na.mechanism.DiscreteLaplace(6.0)
    ),
    "exponential, clamped": (
        na.family.Exponential(bounds=(0.1, 1)), na.prior.Gamma(4, 2), [9.0], 30, na.mechanism.Gaussian(1.0)
    ),
    "gamma, clamped": (
        na.family.Gamma(bounds=(0, 0.5), shape=0.5), na.prior.Gamma(8, 2), [3.0], 20, na.mechanism.Laplace(1.0)
    ),
    "one record": (na.family.Exponential(bounds=(0, 2)), na.prior.Gamma(2, 2), [0.9], 1, na.mechanism.Laplace(0.3)),
    "out of reach": (na.family.Bernoulli(), na.prior.Beta(1, 1), [-30], 10, na.mechanism.DiscreteGaussian(10.0)),
    "rare events": (na.family.Bernoulli(), na.prior.Beta(0.5, 100), [2], 500, na.mechanism.DiscreteLaplace(1.0)),
}  # fmt: skip
QUICK = ("bernoulli",)


def slow_unless(names):
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def columns(theta: np.ndarray) -> np.ndarray:
    return np.asarray(theta).reshape(len(theta), -1).T


def worth(column: np.ndarray) -> float:
    """Effective draws of chains that lie one after another."""
    runs = column.reshape(8, -1)
    return min(
        float(array_stats.ess(runs, method="bulk")), float(array_stats.ess(runs, method="tail", prob=(0.05, 0.95)))
    )


def levels_at(own: np.ndarray, other: np.ndarray, other_worth: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The CDF of other draws at the quantiles of our own, and 4.5 standard errors."""
    assert np.isfinite(own).all()
    share = np.searchsorted(np.sort(other), np.quantile(own, LEVELS)) / other.size
    variance = 1 / worth(own) + 1 / (other_worth or other.size)
    return share, 4.5 * np.sqrt(LEVELS * (1 - LEVELS) * variance)


def levels_of(release: na.Release, prior, key) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same for each number of θ, against the exact sampler."""
    ours = columns(augmentation.draws(key, release.evidence(), prior, DRAWS))
    right = columns(exact.draws(jax.random.key(0), release.evidence(), prior, 5 * DRAWS))
    return [levels_at(own, other) for own, other in zip(ours, right, strict=True)]


def released(name: str) -> tuple[na.Release, object]:
    family, prior, y, n, mechanism = CASES[name]
    return na.Release(family=family, values=y, n=n, mechanism=mechanism), prior


@pytest.mark.parametrize("name", slow_unless(CASES))
def test_draws_match_the_exact_sampler(name, x64, key):
    for share, most in levels_of(*released(name), key):
        assert (np.abs(share - LEVELS) <= most).all(), (share, most)


# ---- where there is no exact sampler ---------------------------------------------------------------------------


def normal_tables(rng, size: int, n: int, bounds, outside: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the prior NormalInverseGamma(0.5, 2, 4, 3), and the statistics of a table of each."""
    variance = stats.invgamma(4.0, scale=3.0).rvs(size, random_state=rng)
    mean = 0.5 + np.sqrt(variance / 2.0) * rng.standard_normal(size)
    x = mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
    u = (x.clip(*bounds) - np.mean(bounds)) / (np.ptp(bounds) / 2)
    u = np.where((outside == "clamp") | ((x >= bounds[0]) & (x <= bounds[1])), u, 0.0)
    return np.column_stack([mean, variance]), np.column_stack([u.sum(1), (u**2).sum(1)])


@pytest.mark.parametrize(
    ("n", "scale", "outside"),
    [pytest.param(*c, marks=pytest.mark.slow) for c in [(6, 0.4, "clamp"), (20, 3.0, "clamp"), (8, 0.6, "drop")]],
)
def test_a_normal_with_unknown_variance(n, scale, outside, x64, key, seed):
    """Against tables from the prior, weighted by the noise; the same tables without bounds do not agree."""
    rng, bounds, mechanism = np.random.default_rng(seed), (-0.5, 1.5), na.mechanism.Laplace(scale)
    y = np.array([0.2, 0.7]) * n
    family = na.family.Normal(bounds=bounds, outside=outside)
    release = na.Release(family=family, values=y, n=n, mechanism=mechanism)
    found = np.asarray(
        augmentation.draws(key, release.evidence(), na.prior.NormalInverseGamma(0.5, 2.0, 4.0, 3.0), DRAWS)
    )
    theta, s = normal_tables(rng, 400_000, n, bounds, outside)
    assert agrees(found, theta, -np.abs(y - s).sum(1) / scale, worth)
    assert not agrees(found, theta, -np.abs(y - s).sum(1) / (2 * scale), worth)


@pytest.mark.slow
def test_a_family_of_ones_own_that_says_nothing_of_residuals(x64, key, monkeypatch):
    """Records of their own are carried as well as any, only less far."""
    monkeypatch.setattr(NormalMean, "carried", AbstractFamily.carried)
    jax.clear_caches()
    found = levels_of(*released("normal, clamped"), key)
    jax.clear_caches()
    for share, most in found:
        assert (np.abs(share - LEVELS) <= most).all(), (share, most)


@pytest.mark.slow
@pytest.mark.parametrize("several", ["multivariate normal", "regression"])
def test_several_columns_against_hmc(several, x64):
    """Nothing clamped, where the limit of hmc is the posterior too."""
    rng = np.random.default_rng(7)
    x = rng.normal(0.3, 0.8, (2, 40))
    values = np.append(x.sum(1), (x @ x.T)[np.triu_indices(2)]) + rng.laplace(scale=4.0, size=5)
    covariates = na.prior.NormalInverseWishart([0.3], 2, 1.0, 6)
    line = na.prior.NormalInverseGamma([0.5, -0.2], 1.5, 4, 2)
    family, prior = {
        "multivariate normal": (
            na.family.MultivariateNormal(dimension=2), na.prior.NormalInverseWishart([0.5, -0.5], 1.5, 1.0, 6)
        ),
        "regression": (
            na.family.LinearRegression(), na.prior.Independent(regression=line, covariates=covariates)
        ),
    }[several]  # fmt: skip
    release = na.Release(family=family, values=values, n=40, mechanism=na.mechanism.Laplace(4.0))
    ours, right = (
        na.infer(release, prior, method=m, num_draws=DRAWS, seed=3).marginals() for m in ("augmentation", "hmc")
    )
    for name, own in ours.items():
        share, most = levels_at(own, right[name], worth(right[name]))
        assert (np.abs(share - LEVELS) <= most).all(), (name, share, most)


@pytest.mark.slow
def test_a_clamped_regression_against_nuts_on_the_records(x64):
    """Bounds in other units than ±1, some of the records outside."""
    rng = np.random.default_rng(3)
    x = rng.normal(0.4, 0.9, 30)
    family = na.family.LinearRegression(["x"], "y", bounds={"x": (-1.0, 2.0), "y": (-2.0, 1.0)})
    s = [
        float(c.sum()) for c in family.query.alter(jnp.asarray(np.stack([x, 0.9 * x - 1 + 0.5 * rng.normal(size=30)])))
    ]
    release = na.Release(family=family, values=s, n=30, mechanism=na.mechanism.Laplace(1.5))
    prior = na.prior.Independent(
        regression=na.prior.NormalInverseGamma([0.5, -0.2], 2.0, 5.0, 2.0),
        covariates=na.prior.NormalInverseWishart([0.4], 2.0, 2.0, 6.0),
    )
    ours, right = (
        na.infer(release, prior, method=m, num_draws=DRAWS, seed=3).marginals() for m in ("augmentation", "mcmc_ind")
    )
    for name, own in ours.items():
        share, most = levels_at(own, right[name], worth(right[name]))
        assert (np.abs(share - LEVELS) <= most).all(), (name, share, most)


# ---- faults: each must be seen in the CDF levels ---------------------------------------------------------------


def _ignores_the_bounds(monkeypatch, cls):
    monkeypatch.setattr(cls, "alter", lambda self, x: self.statistic(x))


def _carries_too_far(monkeypatch, cls):
    """x' has the law of another θ than θ': what a forgotten Jacobian amounts to."""
    right = cls.carried

    def far(self, key, x, theta, other):
        return right(self, key, x, theta, theta + 1.5 * (other - theta))

    monkeypatch.setattr(cls, "carried", far)


def _updates_by_less(monkeypatch, cls):
    """θ given what the bounds have left of the records, more or less."""
    right = cls.update
    monkeypatch.setattr(cls, "update", lambda self, prior, s, n: right(self, prior, 0.9 * s, n))


def _takes_too_much(monkeypatch, cls):
    def half(mechanism, noise, old):
        return 0.5 * (mechanism.log_density(noise) - mechanism.log_density(old)).sum()

    monkeypatch.setattr(augmentation, "_log_ratio", half)


def _forgets_the_prior(monkeypatch, cls):
    """θ' by a walk, accepted on the noise alone."""

    def move(key, state, evidence, prior, most):
        family, mechanism, y = evidence.family, evidence.mechanism, evidence.y
        key_walk, key_carried, key_accept = jax.random.split(key, 3)
        theta = jnp.clip(state.theta + 0.1 * jax.random.normal(key_walk), 1e-3, 1 - 1e-3)
        x = family.carried(key_carried, state.x, state.theta, theta)
        noise = (y - augmentation._total(family.query.alter(records), y) for records in (x, state.x))
        ratio = augmentation._log_ratio(mechanism, *noise)
        is_taken = jnp.log(jax.random.uniform(key_accept)) < ratio
        theta, x = jnp.where(is_taken, theta, state.theta), jnp.where(is_taken, x, state.x)
        return augmentation.State(theta, x, state.pace), jnp.exp(jnp.minimum(ratio, 0.0))

    monkeypatch.setattr(augmentation, "_move", move)


FAULTS = {
    _ignores_the_bounds: "poisson, clamped",
    _carries_too_far: "normal, clamped",
    _updates_by_less: "exponential, dropped",
    _takes_too_much: "bernoulli",
    _forgets_the_prior: "bernoulli",
}


@pytest.mark.slow
@pytest.mark.parametrize("plant", FAULTS)
def test_a_fault_is_seen(plant, x64, key, monkeypatch):
    release, prior = released(FAULTS[plant])
    right = exact.draws(jax.random.key(0), release.evidence(), prior, 5 * DRAWS)
    plant(monkeypatch, type(release.family))
    jax.clear_caches()
    ours = augmentation.draws(key, release.evidence(), prior, DRAWS)
    jax.clear_caches()
    share, most = levels_at(columns(ours)[0], columns(right)[0])
    assert (np.abs(share - LEVELS) > most).any(), share


# ---- refusals, and what is said --------------------------------------------------------------------------------


def test_what_cannot_be_walked_on_is_refused(x64):
    noise = na.mechanism.Laplace(1.0)
    line = na.prior.NormalInverseGamma([0, 0], 1, 3, 1)
    known = na.prior.Independent(regression=line, covariates=na.prior.CovariateMoments.of(np.arange(9.0)))
    regression, prior = na.family.LinearRegression(), na.family.LinearRegression().completed(line)
    for believed, mechanism, n, sentence in (
        (prior, noise, 10_001, r"n must be at most 10000 for augmentation.*got 10001\."),
        (prior, na.mechanism.Identity(), 9, "must have noise for augmentation, got Identity"),
        (known, noise, 9, "whole records can be drawn from"),
    ):
        with pytest.raises(ValueError, match=sentence):
            decided(augmentation.Augmentation(), Evidence(regression, mechanism, jnp.zeros(5), Public(n)), believed)


def test_it_says_what_it_neglects():
    """Noise with a scale for each statistic too: the least of them is what is coarse, or not."""
    prior = na.prior.NormalInverseWishart([0, 0], 1, 1, 6)
    for stddev, is_exact in ([300.0] * 5, True), ([300.0, 300, 5, 300, 300], False):
        family = na.family.MultivariateNormal(dimension=2, bounds=(-1, 1))
        noise = na.mechanism.DiscreteGaussian(np.array(stddev))
        release = na.Release(family=family, values=[1, 2, 3, 4, 5], n=9, mechanism=noise, grid=0.01)
        assert (augmentation.Augmentation().route(release.evidence(), prior).explanation is None) == is_exact
