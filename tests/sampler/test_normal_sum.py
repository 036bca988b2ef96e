"""A normal sum under continuous noise: its closed form, and posteriors where a contour has no figures left."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import stats

import noiseaware as na

DRAWS = 20_000
# variance of a record, prior, and how many prior sds the data are from its mean
SETTINGS = {
    "far from 0": (1e-6, na.prior.Normal(100, 1e-6), 3.0),
    "vague": (1.0, na.prior.Normal(-5, 1e12), 0.3),
    "vague and narrow": (1e-6, na.prior.Normal(-5, 1e8), 1.0),
    "wide": (1e6, na.prior.Normal(0, 1), 0.0),
}


@pytest.mark.parametrize("scale", [1e-3, 1e5])
@pytest.mark.parametrize("n", [1, 10**6, 10**9])
@pytest.mark.parametrize("name", SETTINGS)
def test_normal_noise_is_conjugate(name, n, scale, matches, seed):
    """Where the mean of a sum is up to 10¹⁴ of its sds from 0, and a prior up to 10¹³ times too wide."""
    variance, prior, off = SETTINGS[name]
    y = n * (prior.mean + off * prior.variance**0.5)
    family, noise = na.family.Normal(variance=variance), na.mechanism.Gaussian(scale)
    draws = na.infer(
        na.Release(family=family, values=[y], n=n, mechanism=noise), prior, num_draws=DRAWS, seed=seed
    ).draws["mean"]
    known = n * n / (n * variance + scale**2)
    left = 1 / (1 / prior.variance + known)
    matches(draws, stats.norm(left * (prior.mean / prior.variance + known * y / n), left**0.5).cdf)


@pytest.mark.parametrize("name", SETTINGS)
def test_laplace_noise_far_above_the_sum_s_spread(name, matches, seed):
    """n = 10⁶: the posterior is that of the prior and the noise alone, on a grid."""
    variance, prior, off = SETTINGS[name]
    n, scale = 10**6, 1e6
    y = n * (prior.mean + off * prior.variance**0.5)
    release = na.Release(
        family=na.family.Normal(variance=variance), values=[y], n=n, mechanism=na.mechanism.Laplace(scale)
    )
    draws = na.infer(release, prior, num_draws=DRAWS, seed=seed).draws["mean"]
    at = y / n + np.linspace(-45, 45, 200_001) * (scale + 1000 * variance**0.5) / n
    at = at if prior.variance > 1e-3 else prior.mean + np.linspace(-12, 12, 200_001) * prior.variance**0.5
    if variance == 1e6:  # of a record: here the sum is as wide as the noise
        shares = stats.norm.ppf((np.arange(400) + 0.5) / 400)[:, None] * (n * variance) ** 0.5
        density = np.mean([stats.laplace.pdf((y - n * at - s) / scale) for s in shares], axis=0)
    else:
        density = stats.laplace.pdf((y - n * at) / scale)
    density = density * stats.norm.pdf(at, prior.mean, prior.variance**0.5)
    cumulative = np.cumsum(density)
    matches(draws, lambda t: np.interp(t, at, cumulative / cumulative[-1]), slack=1e-3)


@pytest.mark.parametrize("sd", [1e-4, 40.0, 3e7])
@pytest.mark.parametrize("off", [0.0, 3.0, 55.0, -900.0, 1e9])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0, 1e5])
def test_the_density_has_all_its_figures(scale, off, sd, x64):
    """Against the formula in 80 digits; in floats it has none where the sum is wide and the noise is not."""
    found = na.mechanism.Laplace(scale).mixture.log_convolved(*map(jnp.asarray, (off, sd**2)))
    with mpmath.workdps(80):
        d, s, b = map(mpmath.mpf, (off, sd, scale))
        sides = [mpmath.exp(s**2 / (2 * b**2) - d / b) * mpmath.ncdf(d / s - s / b) for d in (d, -d)]
        wanted = float(mpmath.log(sum(sides) / (2 * b)))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
