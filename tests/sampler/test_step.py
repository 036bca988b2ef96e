"""One step of each chain against the law that it draws from: what takes minutes to see in a posterior shows at once."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.evidence.count import Private, Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.sampler import _target, adequacy, augmentation, gibbs, gibbs_regression, hmc, markov_chain

DRAWS = 4000
# The Kolmogorov–Smirnov statistic of so many draws passes this once in a million times.
MOST = 2.7 / DRAWS**0.5
MEAN, COVARIANCE, NOISE = np.array([20.0, 30.0]), np.array([[9.0, 4.0], [4.0, 16.0]]), np.array([4.0, 9.0])
Y = np.array([26.0, 22.0])


@pytest.fixture
def keys(key):
    return jax.random.split(key, DRAWS)


def is_law(draws, cdf) -> bool:
    return stats.kstest(np.asarray(draws), cdf).statistic < MOST


def given_y(draws: np.ndarray) -> bool:
    """Whether draws are of s ~ N(mean, covariance) given y ~ N(s, noise): in each coordinate and in their sum."""
    gain = COVARIANCE @ np.linalg.inv(COVARIANCE + np.diag(NOISE))
    mean, spread = MEAN + gain @ (Y - MEAN), COVARIANCE - gain @ COVARIANCE
    sides = (np.array(side) for side in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]))
    return all(is_law(draws @ side, stats.norm(side @ mean, (side @ spread @ side) ** 0.5).cdf) for side in sides)


def test_a_sweep_of_gibbs_draws_from_the_conditionals(x64, keys):
    """s given θ and y, θ given s, and the variance of the noise given y − s."""
    family, prior, noise = na.family.Normal(variance=0.21), na.prior.Normal(0.1, 0.04), na.mechanism.Laplace(8.0)
    state = gibbs.State(jnp.asarray(0.3), jnp.asarray([30.0]), jnp.asarray([50.0]))
    y = jnp.asarray([45.0])
    step = jax.jit(jax.vmap(lambda key: gibbs.step(key, state, Evidence(family, noise, y, Public(100)), prior)))
    found, info = step(keys)
    s, gain = np.asarray(found.s[:, 0]), 21 / (21 + 50)
    assert is_law(s, stats.norm(30 + gain * 15, (gain * 50) ** 0.5).cdf)
    precision = 1 / 0.04 + 100 / 0.21
    assert is_law((found.theta - (0.1 / 0.04 + s / 0.21) / precision) * precision**0.5, stats.norm.cdf)
    np.testing.assert_array_equal(info.released[:, 0], s)
    law = stats.invgauss(8 / np.abs(45 - s), scale=1 / 64)
    assert is_law(law.cdf(1 / np.asarray(found.noise_variance[:, 0])), stats.uniform.cdf)


def test_gibbs_draws_several_statistics_given_y(x64, keys):
    family = na.family.Normal()  # any s is possible that has s₂ ≥ s₁²/n
    state = gibbs.State(jnp.zeros(2), jnp.asarray(MEAN), jnp.asarray(NOISE))
    given = jnp.asarray(MEAN), jnp.asarray(COVARIANCE), jnp.asarray(Y), state, 1000.0
    draw = jax.jit(jax.vmap(lambda key: gibbs._draw_vector(key, family, *given)))
    s, released, _ = draw(keys)
    assert given_y(np.asarray(s))
    np.testing.assert_array_equal(s, released)


def test_the_statistics_of_a_regression_are_drawn_given_y(x64, keys):
    given = (jnp.asarray(part) for part in (MEAN, COVARIANCE, Y, NOISE))
    mean, covariance, y, noise = given
    draw = jax.jit(jax.vmap(lambda key: gibbs_regression._norm_product(key, mean, covariance, y, noise)))
    assert given_y(np.asarray(draw(keys)))


def test_records_of_a_release_that_says_nothing_keep_their_prior(x64, keys):
    """Bounds that leave nothing of a record: θ and x stay as they were drawn, and every move is accepted."""
    family, prior, n = na.family.Normal(bounds=(0, 1e-9), variance=1.0), na.prior.Normal(1.0, 4.0), 5
    setting, noise, y = augmentation.Setting(2, 8), na.mechanism.Laplace(1.0), jnp.zeros(1)

    def swept(key):
        key_theta, key_x, key_step = jax.random.split(key, 3)
        theta = prior.sample(key_theta)
        state = augmentation.State(theta, family.sample(key_x, theta, n), jnp.asarray(1.0))
        return augmentation.step(key_step, state, Evidence(family, noise, y, Public(n)), prior, setting)

    state, info = jax.jit(jax.vmap(swept))(keys)
    assert float(info.replaced.min()) == 1
    assert float(info.moved.min()) > 1 - 1e-6
    assert is_law(state.theta, stats.norm(1, 2).cdf)
    assert is_law(state.x[:, 0] - state.theta, stats.norm.cdf)


def test_chains_of_hmc_are_where_they_say(x64):
    """The density that a walker has in its own coordinates is that of the place it stands for."""

    def log_density(v):
        return v[0] - 3 * v[1]

    target = _target.Target(log_density, log_density, log_density, jnp.ones((1, 2)), log_density)
    z, centre, spread = jnp.array([[1.0, -2.0]]), jnp.array([0.5, 1.0]), jnp.array([[2.0, 0.0], [1.5, 0.1]])
    state = hmc.State(SimpleNamespace(position=z), centre, spread, None)
    assert float(hmc._whitened(target, centre, spread)(z[0])) == pytest.approx(float(log_density(state.v[0])))


def test_a_private_number_of_records_has_the_law_of_its_noise(x64):
    """In the coordinate log(n − least): with its measure, the density of all n sums to 1."""
    count = Private(40, na.mechanism.Laplace(2.0)).above(3.0)
    v = np.linspace(-20, 8, 20_001)
    density = jax.jit(jax.vmap(lambda v: count.log_density_real(v[None], _target.log_noise)))(v)
    assert np.trapezoid(np.exp(density), v) == pytest.approx(1, abs=1e-4)  # the kink, on 20 000 points


def test_one_state_of_so_many_is_kept(key):
    kept = markov_chain.run(
        key, lambda key: jnp.zeros(()), lambda key, s: s + 1, lambda s: s, num_draws=3, num_warmup=5, thin=4
    )
    assert kept.tolist() == [9, 13, 17]


def test_a_doubt_that_is_no_number_is_the_worst(x64):
    assert float(jax.jit(adequacy._average)(np.array([np.nan, 0.0]), np.zeros(2))) == 0.5
