"""Linear regression with the fourth moments of its covariates: against the table itself, and by brute force."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.sampler.test_gibbs_regression import family_of

import noiseaware as na
from noiseaware.family.linear_regression_fourth import LinearRegressionFourth
from noiseaware.likelihood import regression_moment
from noiseaware.sampler.method import checked_method


@pytest.mark.parametrize("p", [1, 3])
def test_fourth_moments_are_those_of_the_table(p, x64, seed):
    family = LinearRegressionFourth(family_of(p))
    x = np.random.default_rng(seed).normal(0.5, 1.5, (p + 1, 60)).clip(-2.9, 3.9)
    t = family.query.alter(jnp.asarray(x))
    assert len(t) == len(family.query.names) == len(family.noise_scales(1.0))
    s = jnp.stack([column.sum() for column in t])
    u = (x[:p].T - 1.0 - np.arange(p)) / 4.0
    right = na.prior.CovariateMoments.of(np.clip(u, -1, 1))
    found = family.covariate_moments(s, 60.0)
    np.testing.assert_allclose(found.mean, right.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.covariance, right.covariance * 59 / 60, rtol=1e-6, atol=1e-9)


def test_noisy_fourth_moments_are_made_possible(x64, seed):
    family = LinearRegressionFourth(family_of(3))
    for scale in (1.0, 100.0, 1e6):
        s = scale * np.random.default_rng(seed).laplace(size=len(family.query.names))
        found = family.covariate_moments(jnp.asarray(s), 30.0)
        covariate = regression_moment.of_known(found)
        assert np.linalg.eigvalsh(found.covariance)[0] > 0
        assert np.linalg.eigvalsh(covariate.eta)[0] > 0


@pytest.mark.parametrize("p", [1, 2, 3])
def test_fourth_moments_move_by_no_more_than_the_sensitivity(p, seed):
    """Corners and random records of the cube; the corners of sign alone reach the sum of ranges of odd powers."""
    rng = np.random.default_rng(seed)
    family = LinearRegressionFourth(na.family.LinearRegression([f"x{j}" for j in range(p)], "y", (-1, 1)))
    u = np.concatenate([rng.uniform(-1, 1, (300, p + 1)), rng.integers(-1, 2, (300, p + 1))]).T
    t = np.array(family.query.statistic(u)).T
    own = len(family.regression.query.names)
    apart = np.abs(t[:, None] - t[None])
    assert apart.sum(-1).max() <= family.query.sensitivity()
    assert np.abs(t).sum(-1).max() == pytest.approx(family.query.sensitivity("add_remove"))
    scales = family.noise_scales(0.5)
    assert (apart[..., :own] / scales[:own]).sum(-1).max() <= 0.25 + 1e-12
    assert (apart / scales).sum(-1).max() <= 0.5 + 1e-12


def test_it_is_asked_for_as_the_regression_is():
    """Names, priors and parameters are those of the regression, and auto finds the one sampler that reads it."""
    family = LinearRegressionFourth(family_of(2))
    line = na.prior.NormalInverseGamma([0, 0, 0], 1, 3, 1)
    family.check_prior(line)
    family.check_prior(na.prior.Independent(regression=line, covariates=na.prior.NormalInverseWishart([0, 0], 1, 1, 6)))
    with pytest.raises(ValueError, match="must have a mean of 3 entries"):
        family.check_prior(na.prior.NormalInverseGamma([0, 0], 1, 3, 1))
    assert family.axes == family.regression.axes
    assert checked_method("auto", family).name == "gibbs_ss_noisy"
    with pytest.raises(ValueError, match="gibbs_ss_noisy, augmentation, naive"):
        checked_method("hmc", family)
