"""Normal draws between two ends, against SciPy and in tails where SciPy's own draws stop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from noiseaware.sampler import _truncated_normal

INFINITY = float("inf")


@pytest.mark.parametrize(
    ("low", "high"), [(-INFINITY, INFINITY), (0.0, INFINITY), (-1.0, 0.5), (5.0, 9.0), (-9.0, -7.5), (20.0, 20.5)]
)
def test_draws(low, high, x64, key):
    draws = jax.vmap(lambda key: _truncated_normal.draw(key, jnp.asarray(1.0), 2.0, low, high))(
        jax.random.split(key, 20_000)
    )
    law = stats.truncnorm((low - 1) / 2, (high - 1) / 2, 1, 2)
    assert stats.kstest(np.asarray(draws), law.cdf).statistic < 2.7 / 20_000**0.5


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
def test_far_tails_are_exponential(far, x64, key):
    """Beyond z standard deviations, z(x − z) is nearly exponential with mean 1."""
    for sign in (1.0, -1.0):
        ends = (far, INFINITY) if sign > 0 else (-INFINITY, -far)
        draws = jax.vmap(lambda key, ends=ends: _truncated_normal.draw(key, jnp.asarray(0.0), 1.0, *ends))(
            jax.random.split(key, 20_000)
        )
        beyond = far * (sign * np.asarray(draws) - far)
        assert stats.kstest(beyond, stats.expon.cdf).statistic < 2.7 / 20_000**0.5 + 2 / far


def test_no_spread_and_nowhere_to_go(x64, key):
    assert float(_truncated_normal.draw(key, jnp.asarray(3.0), 0.0, 0.0, INFINITY)) == 3.0
    assert float(_truncated_normal.draw(key, jnp.asarray(-3.0), 0.0, 0.0, INFINITY)) == 0.0


def test_inverse_of_the_log_cdf(x64):
    level = -np.geomspace(1e-9, 1e9, 200)
    np.testing.assert_allclose(special.log_ndtr(_truncated_normal.log_ndtri(jnp.asarray(level))), level, rtol=1e-7)
