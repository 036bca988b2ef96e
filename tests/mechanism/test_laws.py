"""What every noise law must do, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noiseaware.mechanism import LAWS, DiscreteGaussian, DiscreteLaplace, Gaussian, Identity, Laplace, Staircase
from noiseaware.privacy import Pure, ZeroConcentrated

SCALES = [0.2, 0.39, 0.7, 3.3, 41.0]
CONTINUOUS = {Laplace: stats.laplace, Gaussian: stats.norm}


def staircase(scale):
    """Stairs of 5 steps, 2 of them high."""
    return Staircase(scale, 5, 2)


def stairs_below(k, scale, width=5, step=2):
    """Stairs down from 0, counted one by one: at most one in each step outwards."""
    k = np.abs(k)
    return sum(((k - step) >= m * width).astype(float) for m in range(int(k.max()) // width + 1)) * width / scale


# of each discrete law, −log P(k) up to a constant
DISCRETE = {
    DiscreteLaplace: lambda k, scale: np.abs(k) / scale,
    DiscreteGaussian: lambda k, scale: 0.5 * (k / scale) ** 2,
    staircase: stairs_below,
}
EVERY = [*CONTINUOUS, *DISCRETE]


def exact_masses(law, scale: float) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-3000, 3001)
    weight = np.exp(-DISCRETE[law](k, scale))
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
@pytest.mark.parametrize("law", EVERY)
def test_variance(law, scale, x64):
    k, mass = exact_masses(law, scale) if law in DISCRETE else (None, None)
    wanted = CONTINUOUS[law](scale=scale).var() if law in CONTINUOUS else mass @ k**2
    np.testing.assert_allclose(law(scale).variance, wanted, rtol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", EVERY)
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
@pytest.mark.parametrize("law", EVERY)
def test_a_scale_must_be_positive_and_finite(law, scale):
    with pytest.raises(ValueError, match="must be positive and finite"):
        law(scale)


@pytest.mark.parametrize("law", EVERY)
def test_a_mechanism_can_be_batched(law, x64):
    found = jax.vmap(lambda scale: law(scale).log_density(jnp.asarray(2.0)))(jnp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(found, [law(s).log_density(jnp.asarray(2.0)) for s in (1.0, 2.0)], rtol=1e-12)


@pytest.mark.parametrize("law", EVERY)
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


@pytest.mark.parametrize("law", EVERY)
def test_several_scales_promise_what_the_least_does(law):
    assert law([4.0, 9.0, 5.0]).guarantee(2.0) == law(4.0).guarantee(2.0)


@pytest.mark.parametrize("scale", [[1.0, 0.0], [1.0, float("nan")], (1.0, float("inf")), [], np.array([-1.0])])
@pytest.mark.parametrize("law", EVERY)
def test_every_scale_must_be_positive_and_finite(law, scale):
    with pytest.raises(ValueError, match="must be positive and finite"):
        law(scale)
    with pytest.raises(ValueError, match="must be a number, or a list of numbers"):
        law(["wide"])


def test_every_built_in_law_is_tried_here():
    assert {law(1.0).name for law in EVERY} | {"identity"} == set(LAWS)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", EVERY)
def test_the_distribution_function_of_numpy(law, scale, x64):
    x = np.linspace(-6 * scale, 6 * scale, 61)
    if law in CONTINUOUS:
        wanted = CONTINUOUS[law](scale=scale).cdf(x)
    else:
        k, mass = exact_masses(law, scale)
        wanted = np.array([mass[k <= at].sum() for at in x])
    np.testing.assert_allclose(law(scale).below(x), wanted, atol=1e-9)


@pytest.mark.parametrize("law", EVERY)
def test_the_exponent_is_the_log_density_but_for_a_constant(law, x64):
    noise, x = law(3.3), np.arange(-40.0, 41.0)
    wanted = np.asarray(noise.log_density(jnp.zeros(())) - noise.log_density(jnp.asarray(x)))
    np.testing.assert_allclose(noise.exponent(x), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("law", EVERY)
def test_noise_simulated_by_numpy_has_the_law(law, seed):
    """Whole numbers: of a continuous law, the mass of each step about them."""
    draws, k = law(3.3).simulated(np.random.default_rng(seed), 50_000), np.arange(-30, 31)
    if law in [*CONTINUOUS, DiscreteGaussian]:
        wanted = law(3.3).continuous().below(k + 0.5)
    else:
        wanted = law(3.3).below(k)
    share = np.searchsorted(np.sort(draws), k, side="right") / draws.size
    assert np.abs(share - wanted).max() < 2.7 / 50_000**0.5


@pytest.mark.parametrize("law", EVERY)
def test_a_law_is_made_again_of_its_spread_and_its_settings(law):
    noise = law(3.3)
    settings = {name: float(getattr(noise, name)) for name in noise.settings}
    assert type(noise).of(noise.spread, **settings) == noise
    assert noise.with_spread(4.4) == law(4.4)
    assert LAWS[noise.name] is type(noise)


@pytest.mark.parametrize("law", [law for law in EVERY if not law(1.0).is_stepped])
def test_the_mixture_of_a_law_has_its_variance(law, x64, key):
    """Normal noise of the variance at a standard normal coordinate, or with the unit variance of plans."""
    noise = law(3.3).continuous()
    hidden = jax.random.normal(key, (100_000,))
    mean = float(jnp.mean(noise.mixture.variance(hidden)))
    assert mean == pytest.approx(float(noise.variance), rel=0.03)
    assert noise.shape.variance_of_unit * 3.3**2 == pytest.approx(float(noise.variance))
    u = (np.arange(100_000) + 0.5) / 100_000
    assert np.var(noise.shape.unit_quantile(u)) == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("law", [law for law in EVERY if law(1.0).is_stepped])
def test_a_law_that_jumps_refuses_what_needs_a_smooth_one(law):
    for part in ("mixture", "tilt"):
        with pytest.raises(ValueError, match="staircase noise"):
            getattr(law(1.0), part)


@pytest.mark.parametrize("law", [law for law in EVERY if not law(1.0).is_stepped])
def test_a_tilt_has_the_moment_generating_function(law, x64):
    """E e^{zx} at z = c + it, by listing or integrating the noise."""
    noise, c, t = law(3.3), 0.2, np.array([0.0, 0.1, 0.5, 1.0])
    x = np.linspace(-300, 300, 600_001) if law in CONTINUOUS else np.arange(-300.0, 301)
    weight = np.exp(np.asarray(noise.log_density(jnp.asarray(x)))) * (x[1] - x[0])
    wanted = (weight * np.exp((c + 1j * t[:, None]) * x)).sum(1)
    log_modulus, angle = map(np.asarray, noise.tilt.factor(jnp.asarray(c), jnp.asarray(t)))
    # at σ = 3.3 the discrete Gaussian law's is e^{σ²z²/2} to e^{−2π²σ²}
    np.testing.assert_allclose(np.exp(log_modulus + 1j * angle), wanted, atol=1e-6 * abs(wanted).max())
