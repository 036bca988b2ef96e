"""A private n: the mixture over numbers of records against enumeration, and the draws that follow from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import noiseaware as na
from noiseaware.evidence.count import Private, Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.likelihood import private_count
from noiseaware.sampler import scalar_posterior

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

family, mechanism, prior = na.family, na.mechanism, na.prior

LAPLACE, GAUSSIAN = mechanism.DiscreteLaplace, mechanism.DiscreteGaussian
SCALAR = [
    (family.Bernoulli(), LAPLACE(1.4), 12.0, Private(60, LAPLACE(4.0)), 0.2),
    (family.Bernoulli(), LAPLACE(0.7), 12.0, Private(40, LAPLACE(1.0)), 0.3),
    (family.Bernoulli(), GAUSSIAN(3.0), 2.0, Private(-3, GAUSSIAN(6.0)), 0.2),
    (family.Binomial(trials=5), LAPLACE(7.0), 90.0, Private(55, LAPLACE(4.0)), 0.3),
    (family.Poisson("x", (0, 12)), LAPLACE(16.0), 90.0, Private(30, LAPLACE(4.0)), 3.0),
    (family.Exponential("x", (0.0, 5.0)), mechanism.Laplace(13.0), 40.0, Private(40, LAPLACE(8.0)), 1.0),
    (family.Normal("x", (-3.0, 3.0), 1.0), mechanism.Gaussian(5.0), 9.0, Private(40, GAUSSIAN(8.0)), 0.3),
    (family.Exponential(), mechanism.Laplace(13.0), 40.0, Private(25, LAPLACE(8.0)), 1.0),
]
QUICK = (1, 4)
CASES = [case if i in QUICK else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(SCALAR)]


@pytest.mark.parametrize(("of", "noise", "y", "count", "near"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_the_likelihood_is_that_of_a_sum_over_every_number_of_records(of, noise, y, count, near, x64):
    """Against all n one by one, each with the likelihood of a public n, which has oracles of its own."""
    theta = near * jnp.array([0.5, 0.8, 1.0, 1.2, 1.6])
    at = jnp.asarray([y])
    every = np.arange(1.0, max(count.value, 1) + 45 * count.mechanism.spread)
    each = jax.lax.map(
        lambda n: scalar_posterior.log_likelihood(Evidence(of, noise, at, Public(n)), theta), jnp.asarray(every)
    )
    terms = np.asarray(each) + np.asarray(count.mechanism.log_density(jnp.asarray(count.value - every)))[:, None]
    nobody = noise.log_density(at[0]) + count.mechanism.log_density(jnp.asarray(float(count.value)))
    expected = np.logaddexp(logsumexp(terms, axis=0), float(nobody))
    found = np.asarray(scalar_posterior.log_likelihood(Evidence(of, noise, at, count).placed(), theta))
    assert found - found[2] == pytest.approx(expected - expected[2], abs=2e-3)


def test_a_table_of_no_records_is_one_of_the_possible(x64):
    """Where it may well be: of one noisy record, with a likelihood that anyone can sum."""
    count, empty = Private(1, LAPLACE(2.0)), 0.2
    at = Evidence(family.Bernoulli(), LAPLACE(1.0), None, count).placed().count
    of = private_count.marginal(lambda n: lambda theta: -n * theta, jnp.asarray(empty), at)
    every = np.arange(0, 80)
    terms = np.where(every == 0, empty, -0.7 * every) + stats.dlaplace.logpmf(1 - every, 1 / 2.0)
    assert float(jax.jit(of)(jnp.array([0.7]))[0]) == pytest.approx(logsumexp(terms), abs=1e-6)


def test_of_bernoulli_records_by_hand(x64):
    """Neither n nor the count is taken from the package."""
    theta, y, noisy_n = 0.3, 7, 20
    total = 0.0
    for n in range(200):
        successes = np.arange(n + 1)
        of_y = stats.binom.pmf(successes, n, theta) @ stats.dlaplace.pmf(y - successes, 1 / 2.0)
        total += of_y * stats.dlaplace.pmf(noisy_n - n, 1 / 3.0)
    count = Private(noisy_n, mechanism.DiscreteLaplace(3.0))
    noise = mechanism.DiscreteLaplace(2.0)
    at = Evidence(family.Bernoulli(), noise, jnp.asarray([float(y)]), count).placed()
    found = scalar_posterior.log_likelihood(at, jnp.array([theta]))
    assert float(found[0]) == pytest.approx(np.log(total), abs=5e-3)


def test_of_categorical_records_by_hand(key, x64):
    """p(θ, n | y, ñ) by enumeration of all counts: the CDF of θ₁ at five levels, and of n by the mean count."""
    alpha, noise, count = np.array([1.0, 2.0, 0.7]), 1.5, Private(9, mechanism.DiscreteLaplace(2.0))
    y = np.array([2.0, 6.0, -1.0])
    k = np.stack(np.meshgrid(*[np.arange(40)] * 3, indexing="ij"), -1).reshape(-1, 3)
    n = k.sum(1)
    log_mass = gammaln(n + 1) - gammaln(n + alpha.sum()) + (gammaln(k + alpha) - gammaln(k + 1)).sum(1)
    log_mass += stats.dlaplace.logpmf(y - k, 1 / noise).sum(1) + stats.dlaplace.logpmf(9 - n, 1 / 2.0)
    mass = np.exp(log_mass - log_mass.max())
    mass, k, n = (values[mass > 1e-9] for values in (mass / mass.sum(), k, n))
    rest = alpha.sum() - alpha[0] + n - k[:, 0]
    levels = [0.05, 0.1, 0.2, 0.35, 0.5]
    expected = [mass @ stats.beta.cdf(level, alpha[0] + k[:, 0], rest) for level in levels]
    release = na.Release(
        family=family.Categorical(levels=["a", "b", "c"]),
        values=y.astype(int),
        n=int(count.value),
        n_mechanism=count.mechanism,
        mechanism=mechanism.DiscreteLaplace(noise),
    )
    from noiseaware.sampler import exact

    theta = np.asarray(exact.draws(key, release.evidence(), prior.Dirichlet(alpha.tolist()), 40_000))
    assert [np.mean(theta[:, 0] <= level) for level in levels] == pytest.approx(expected, abs=4 * 0.5 / 200)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "believed", "n", "promise"),
    [
        (family.Bernoulli(), prior.Beta(1, 9), 100, {"epsilon": 1}),
        (family.Bernoulli(), prior.Beta(0.5, 20), 30, {"rho": 0.1}),
        (family.Categorical(levels=["a", "b", "c"]), prior.Dirichlet([1.0, 2.0, 3.0]), 60, {"epsilon": 0.5}),
        (family.Poisson("x", (0, 12)), prior.Gamma(8, 2), 40, {"epsilon": 1}),
        (family.LinearRegression(["x"], "y", (-3, 3)), prior.NormalInverseGamma([0, 0], 1, 20, 0.5), 200, {"rho": 1}),
    ],
    ids=["bernoulli", "few bernoulli", "categorical", "poisson", "regression"],
)
def test_posteriors_of_a_private_number_of_records_are_calibrated(of, believed, n, promise):
    found = na.calibrate(of, believed, n=n, **promise, neighbours="add_remove", num_trials=200, seed=5)
    assert found.ks < found.critical(0.999)


def test_methods_that_need_a_public_number_say_so():
    release = na.Release(family=family.Bernoulli(), values=[3], n=10, n_mechanism=LAPLACE(2.0), mechanism=LAPLACE(1.0))
    for method in ("gibbs", "augmentation"):
        with pytest.raises(ValueError, match="where n is private"):
            na.infer(release, prior.Beta(1, 1), method=method)
    assert "released value" in str(na.infer(release, prior.Beta(1, 1), method="naive").explanation)
