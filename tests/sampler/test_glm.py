"""Generalized linear models end to end: from a table to coefficients, and against weighted prior tables."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.trial import simulate

ABOUT_X = na.prior.NormalInverseWishart([0], 20, 36 * 0.0625, 40)
MODELS = {
    "logistic": (na.family.LogisticRegression("x", bounds=(-1, 1)), [0.0, 0.0]),
    "poisson": (na.family.PoissonRegression("x", bounds={"x": (-1, 1), "y": (0, 6)}), [1.0, 0.5]),
}
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_the_posterior_is_that_of_prior_tables_weighted_by_the_noise(name, key):
    """Exact but for Monte Carlo: p(θ | y) is the prior of (θ, table), weighted by p(y | table). 40 records and noise of
    about their own spread; 200 000 tables leave thousands that count, and 0.02 allows for the limit theorem."""
    model, middle = MODELS[name]
    prior = na.prior.Independent(coefficients=na.prior.MultivariateNormal(middle, [4.0, 1.0]), covariates=ABOUT_X)
    mechanism, n = na.mechanism.Laplace(4.0), 40
    values = np.array([1.0, 14.0, 4.0, 9.0])  # Σu_x, Σu_y, Σu_x², Σu_x u_y
    with jax.enable_x64(True):
        tables = simulate(key, model, prior, mechanism, n, 200_000)
        log_weight = np.asarray(mechanism.log_density(jnp.asarray(values) - tables.altered_s).sum(1))
    weight = np.exp(log_weight - log_weight.max())
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert effective > 3000
    release = na.Release(family=model, values=values, n=n, mechanism=mechanism)
    posterior = na.infer(release, prior, seed=1)
    assert posterior.method == "hmc"
    assert not posterior.is_exact
    for j, draws in enumerate(posterior.draws["coefficients"].T):
        theta = np.asarray(tables.theta[:, j])
        cdf = np.array([weight[theta <= q].sum() for q in np.quantile(draws, LEVELS)]) / weight.sum()
        error = np.sqrt(LEVELS * (1 - LEVELS) * (1 / effective + 1 / 1000))
        assert (np.abs(cdf - LEVELS) <= 4 * error + 0.02).all(), cdf


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
    assert release.family.statistics[-1] == "sum[bmi·ill]"
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


def test_bounds_that_cut_deep_are_spoken_of():
    from noiseaware.sampler import hmc

    model = na.family.LogisticRegression("x", bounds=(-1, 1))
    wide = na.prior.NormalInverseWishart([0], 20, 40.0, 40)  # x of sd 1: a third is clamped
    prior = na.prior.Independent(coefficients=na.prior.MultivariateNormal([0, 0], 1), covariates=wide)
    values = np.array([0.0, 0.0, 500.0, 100.0])
    release = na.Release(family=model, values=values, n=1000, mechanism=na.mechanism.Laplace(2.0))
    assert "Records moved to the bounds" in hmc.explanation(release, prior)
