"""What every noise law must do, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace, Gaussian, Identity, Laplace
from noiseaware.privacy import Pure, ZeroConcentrated

SCALES = [0.2, 0.39, 0.7, 3.3, 41.0]
CONTINUOUS = {Laplace: stats.laplace, Gaussian: stats.norm}
DISCRETE = [DiscreteLaplace, DiscreteGaussian]


def exact_masses(law, scale: float) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-3000, 3001)
    weight = np.exp(-np.abs(k) / scale) if law is DiscreteLaplace else np.exp(-0.5 * (k / scale) ** 2)
    return k, weight / weight.sum()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", CONTINUOUS)
def test_continuous_density_and_characteristic_function(law, scale, x64):
    reference = CONTINUOUS[law](scale=scale)
    x = np.linspace(-5 * scale, 5 * scale, 41)
    np.testing.assert_allclose(law(scale).log_density(jnp.asarray(x)), reference.logpdf(x), rtol=1e-12)
    t = np.linspace(0, 3 / scale, 7)
    u = (np.arange(200_000) + 0.5) / 200_000
    wanted = np.array([np.cos(s * reference.ppf(u)).mean() for s in t])
    np.testing.assert_allclose(law(scale).characteristic_function(jnp.asarray(t)), wanted, atol=2e-5)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", DISCRETE)
def test_discrete_mass_and_characteristic_function(law, scale, x64):
    k, mass = exact_masses(law, scale)
    near = np.abs(k) < 10 * scale
    np.testing.assert_allclose(np.exp(law(scale).log_density(jnp.asarray(k[near], float))), mass[near], rtol=1e-10)
    t = np.linspace(0, 7, 15)
    wanted = np.cos(t[:, None] * k) @ mass
    np.testing.assert_allclose(law(scale).characteristic_function(jnp.asarray(t)), wanted, atol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", [*CONTINUOUS, *DISCRETE])
def test_variance(law, scale, x64):
    k, mass = exact_masses(law, scale) if law in DISCRETE else (None, None)
    wanted = CONTINUOUS[law](scale=scale).var() if law in CONTINUOUS else mass @ k**2
    np.testing.assert_allclose(law(scale).variance, wanted, rtol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", [*CONTINUOUS, *DISCRETE])
def test_simulated_noise_has_the_law(law, scale, x64, key):
    draws = np.asarray(law(scale).sample(key, (50_000,)))
    if law in CONTINUOUS:
        # the 1e−6 point of the Kolmogorov distribution
        assert stats.kstest(draws, CONTINUOUS[law](scale=scale).cdf).statistic < 2.7 / 50_000**0.5
    else:
        k, mass = exact_masses(law, scale)
        share = np.searchsorted(np.sort(draws), k, side="right") / draws.size
        assert np.abs(share - np.cumsum(mass)).max() < 2.7 / 50_000**0.5


@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace])
def test_laplace_promises_sensitivity_over_scale(law):
    assert law(4.0).guarantee(2.0) == Pure(1 / 2)


@pytest.mark.parametrize("law", [Gaussian, DiscreteGaussian])
def test_gaussian_promises_zero_concentration(law):
    assert law(4.0).guarantee(2.0) == ZeroConcentrated(1 / 8)


def test_identity_promises_nothing(key):
    assert Identity().guarantee(1.0) is None
    assert (Identity().sample(key, (3,)) == 0).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), np.int64(-5), np.float32(-1)])
@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian])
def test_a_scale_must_be_positive_and_finite(law, scale):
    with pytest.raises(ValueError, match="must be positive and finite"):
        law(scale)


@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian])
def test_a_mechanism_can_be_batched(law, x64):
    found = jax.vmap(lambda scale: law(scale).log_density(jnp.asarray(2.0)))(jnp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(found, [law(s).log_density(jnp.asarray(2.0)) for s in (1.0, 2.0)], rtol=1e-12)


@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian])
def test_each_statistic_may_have_its_own_scale(law, x64, key):
    """Entry by entry along the last axis as one scale after another."""
    scales = [0.3, 3.3, 41.0]
    noise = law(scales)
    assert isinstance(noise.spread, np.ndarray)
    x = jnp.asarray([[1.0, -2.0, 0.0], [0.0, 5.0, -40.0]])
    for j, scale in enumerate(scales):
        one = law(scale)
        np.testing.assert_allclose(noise.log_density(x)[:, j], one.log_density(x[:, j]), rtol=1e-12)
        t = 0.3 * x / 41
        wanted = one.characteristic_function(t[:, j])
        np.testing.assert_allclose(noise.characteristic_function(t)[:, j], wanted, rtol=1e-12)
    draws = np.asarray(noise.sample(key, (50_000, 3)))
    for j, scale in enumerate(scales):
        if law in CONTINUOUS:
            assert stats.kstest(draws[:, j], CONTINUOUS[law](scale=scale).cdf).statistic < 2.7 / 50_000**0.5
        else:
            k, mass = exact_masses(law, scale)
            share = np.searchsorted(np.sort(draws[:, j]), k, side="right") / len(draws)
            assert np.abs(share - np.cumsum(mass)).max() < 2.7 / 50_000**0.5


@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian])
def test_several_scales_promise_what_the_least_does(law):
    assert law([4.0, 9.0, 5.0]).guarantee(2.0) == law(4.0).guarantee(2.0)


@pytest.mark.parametrize("scale", [[1.0, 0.0], [1.0, float("nan")], (1.0, float("inf")), [], np.array([-1.0])])
@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian])
def test_every_scale_must_be_positive_and_finite(law, scale):
    with pytest.raises(ValueError, match="must be positive and finite"):
        law(scale)
    with pytest.raises(ValueError, match="must be a number, or a list of numbers"):
        law(["wide"])
