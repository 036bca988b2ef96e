"""Generalized linear models end to end: from a table to coefficients, and against weighted prior tables."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from tests.sampler.weighted import LEVELS, shares, weights, worth

import noiseaware as na
from noiseaware.sampler import hmc
from noiseaware.study.simulate import simulate

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

ABOUT_X = na.prior.NormalInverseWishart([0], 20, 36 * 0.0625, 40)
MODELS = {
    "logistic": (na.family.LogisticRegression("x", bounds=(-1, 1)), [0.0, 0.0]),
    "poisson": (na.family.PoissonRegression("x", bounds={"x": (-1, 1), "y": (0, 6)}), [1.0, 0.5]),
}
# the same covariates, of sd 0.25, with bounds that leave half of them as they are
CUT = {
    "logistic": na.family.LogisticRegression("x", bounds=(-0.3, 0.1)),
    "poisson": na.family.PoissonRegression("x", bounds={"x": (-0.3, 0.1), "y": (0, 6)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [False, True], ids=["whole", "clamped"])
@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_the_posterior_is_that_of_prior_tables_weighted_by_the_noise(name, cuts, key):
    """Exact but for Monte Carlo: p(θ | y) is the prior of (θ, table), weighted by p(y | table). 40 records and noise of
    about their own spread; 200 000 tables leave thousands that count, and 0.02 allows for the limit theorem."""
    model, middle = MODELS[name]
    model = CUT[name] if cuts else model
    prior = na.prior.Independent(coefficients=na.prior.MultivariateNormal(middle, [4.0, 1.0]), covariates=ABOUT_X)
    mechanism, n = na.mechanism.Laplace(4.0), 40
    # Σu_x, Σu_y, Σu_x², Σu_x u_y
    values = np.array([12.0, 14.0, 24.0, 11.0] if cuts else [1.0, 14.0, 4.0, 9.0])
    with jax.enable_x64(True):
        tables = simulate(key, model, prior, mechanism, n, 200_000)
        log_weight = np.asarray(mechanism.log_density(jnp.asarray(values) - tables.altered_s).sum(1))
    weight = weights(log_weight)
    assert worth(weight) > 3000
    release = na.Release(family=model, values=values, n=n, mechanism=mechanism)
    posterior = na.infer(release, prior, seed=1)
    assert posterior.method == "hmc"
    assert not posterior.is_exact
    assert ("clamped records are good to" in posterior.explanation) == cuts
    for j, draws in enumerate(posterior.draws["coefficients"].T):
        share = shares(draws, np.asarray(tables.theta[:, j]), weight)
        error = np.sqrt(LEVELS * (1 - LEVELS) * (1 / worth(weight) + 1 / 1000))
        assert (np.abs(share - LEVELS) <= 4 * error + 0.02).all(), share


@pytest.mark.slow
def test_from_a_table_to_coefficients(tmp_path, seed):
    """The issue's call; the file holds the family, and the truth lies within five posterior sds."""
    rng, n = np.random.default_rng(seed), 20_000
    age, bmi = rng.normal(50, 12, n), rng.normal(35, 6, n)
    truth = np.array([0.05, -0.1, 1.0])
    ill = rng.random(n) < 1 / (1 + np.exp(-(truth[0] * age + truth[1] * bmi + truth[2])))
    table = pd.DataFrame({"age": age, "bmi": bmi, "ill": ill})
    model = na.family.LogisticRegression(x=["age", "bmi"], y="ill", bounds={"age": (0, 100), "bmi": (10, 60)})
    release = na.release(table, model, epsilon=1)
    release.save(tmp_path / "ill.json")
    release = na.load(tmp_path / "ill.json")
    assert release.family == model
    assert release.query.names[-1] == "sum[bmi·ill]"
    posterior = na.infer(release, na.prior.Normal(0, 4), num_draws=512, seed=0)
    draws = posterior.draws["coefficients"]
    assert draws.shape == (512, 3)
    assert (np.abs(draws.mean(0) - truth) < 5 * draws.std(0)).all()
    assert list(posterior.marginals()) == ["coefficients[age]", "coefficients[bmi]", "coefficients[intercept]"]
    assert "central limit theorem" in posterior.explanation
    assert "covariates are taken as normal" in posterior.explanation
    naive = posterior.naive_estimates()
    assert len(naive) == 3
    assert all(np.isfinite([e.low, e.high]).all() for e in naive)
    with pytest.raises(ValueError, match="method must be one of hmc, naive"):
        na.infer(release, na.prior.Normal(0, 4), method="augmentation")


def test_the_way_follows_what_the_bounds_did():
    """Covariates of sd 1, a third of them clamped, and of sd 0.2, none."""
    model = na.family.LogisticRegression("x", bounds=(-1, 1))
    for scale, square, clips in ((40.0, 500.0, True), (1.6, 40.0, False)):
        covariates = na.prior.NormalInverseWishart([0], 20, scale, 40)
        prior = na.prior.Independent(coefficients=na.prior.MultivariateNormal([0, 0], 1), covariates=covariates)
        values = np.array([0.0, 0.0, square, 0.2 * square])
        release = na.Release(family=model, values=values, n=1000, mechanism=na.mechanism.Laplace(2.0))
        said = hmc.HMC().route(release.evidence(), prior).explanation
        assert ("The moments of clamped records are good to" in said) == clips, said
        assert ("as if none outside the bounds had been moved" in said) != clips, said
