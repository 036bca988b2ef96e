"""Masses of intervals of the noise, against sums and integrals in 150 digits."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace, Gaussian, Identity, Interval, Laplace

INFINITE = math.inf
# in scales of the noise: about 0, on either side, far in a tail, half-lines, and narrow ones
SPANS = [(-0.5, 0.5), (-4, 7), (2.5, 3.5), (-9, -3), (15, 16), (-INFINITE, 0), (-INFINITE, -12), (12, INFINITE)]
SPANS += [(-INFINITE, 5), (-3, -2.99)]


@mpmath.workdps(150)  # and of what comes after as it was
def exact(law, scale: float, low: float, high: float) -> float:
    """log P(low ≤ x ≤ high)."""
    b = mpmath.mpf(scale)
    if law is Gaussian:
        return float(mpmath.log(mpmath.ncdf(high / b) - mpmath.ncdf(low / b)))
    if law is Laplace:
        below = lambda x: mpmath.exp(x / b) / 2 if x < 0 else 1 - mpmath.exp(-x / b) / 2  # noqa: E731
        return float(mpmath.log(below(mpmath.mpf(high)) - below(mpmath.mpf(low))))
    most = math.ceil(60 * scale) + 5
    power = 1 if law is DiscreteLaplace else 2
    weight = lambda k: mpmath.exp(-((abs(k) / b) ** power) / power)  # noqa: E731
    first, last = max(low, -most), min(high, most)
    total = 2 * mpmath.nsum(weight, [1, mpmath.inf]) + 1 if law is DiscreteLaplace else None
    total = total or mpmath.fsum(weight(k) for k in range(-most, most + 1))
    mass = mpmath.fsum(weight(k) for k in range(math.ceil(first), math.floor(last) + 1))
    return float(mpmath.log(mass / total)) if mass else -INFINITE


@pytest.mark.parametrize("scale", [0.2, 0.7, 3.3, 9.7])
@pytest.mark.parametrize("law", [Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian])
def test_the_mass_of_an_interval(law, scale, x64):
    for low, high in SPANS:
        low, high = low * scale, high * scale
        found = float(law(scale).log_mass(jnp.asarray(low), jnp.asarray(high)))
        wanted = exact(law, scale, low, high)
        assert found == wanted or abs(found - wanted) < 1e-8, (low, high, found, wanted)


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
def test_of_whole_numbers_only_those_inside_count(law, x64):
    noise = law(1.7)
    same = noise.log_mass(jnp.asarray([-1.9, 0.2, 2.0]), jnp.asarray([2.9, 0.8, 2.0]))
    masses = np.exp(noise.log_density(jnp.arange(-1.0, 3.0)))
    np.testing.assert_allclose(np.exp(same), [masses.sum(), 0.0, masses[3]], rtol=1e-10)


def test_rounded_laplace_noise_is_not_the_discrete_law(x64):
    """P(0) = 1 − e^{−1/2b} and P(k) = sinh(1/2b) e^{−|k|/b}."""
    b, k = 0.8, np.arange(-6.0, 7.0)
    found = np.exp(Interval(Laplace(b), 0.5, 0.5).log_density(jnp.asarray(k)))
    wanted = np.where(k == 0, 1 - np.exp(-0.5 / b), np.sinh(0.5 / b) * np.exp(-np.abs(k) / b))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert np.abs(found - np.exp(DiscreteLaplace(b).log_density(jnp.asarray(k)))).max() > 0.05


def test_of_several_values_some_may_be_known(x64):
    law = Interval(Laplace([2.0, 3.0]), [0.0, INFINITE], [0.0, 1.0])
    found = law.log_density(jnp.asarray([4.0, -5.0]))
    below = Laplace(3.0).log_mass(jnp.asarray(-INFINITE), jnp.asarray(-4.0))
    wanted = [Laplace(2.0).log_density(jnp.asarray(4.0)), below]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_without_noise_only_what_lies_inside_is_possible(x64):
    found = Interval(Identity(), 2.0, 1.0).log_density(jnp.asarray([-3.0, -1.0, 0.0, 2.0, 3.0]))
    np.testing.assert_array_equal(np.exp(found), [0, 1, 1, 1, 0])


def test_of_an_interval_to_one_side_the_other_end_is_the_value(x64):
    noise, x = Laplace(2.0), jnp.array([-3.0, 0.5, 4.0])
    found, wanted = jax.jit(lambda x: (Interval(noise, 0.0, 3.0).log_density(x), noise.log_mass(x, x + 3)))(x)
    np.testing.assert_allclose(found, wanted)
