"""Moments of a record, and of what the bounds leave of it, against sums and quadrature by SciPy."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import noiseaware as na
from noiseaware.likelihood import moment

# name: (family with bounds and outside, θ, law of a record)
FAMILIES = {
    "poisson": (lambda out: na.family.Poisson(bounds=(1, 5), outside=out), 2.5, stats.poisson(2.5)),
    "geometric": (lambda out: na.family.Geometric(bounds=(0, 4), outside=out), 0.3, stats.geom(0.3, loc=-1)),
    "exponential": (lambda out: na.family.Exponential(bounds=(0.2, 3), outside=out), 0.7, stats.expon(scale=1 / 0.7)),
    "gamma": (lambda out: na.family.Gamma(bounds=(0.5, 4), shape=2.5, outside=out), 1.0, stats.gamma(2.5)),
    "normal": (lambda out: na.family.Normal(bounds=(-1, 2), variance=2.0, outside=out), 0.4, stats.norm(0.4, 2**0.5)),
    "mean and variance": (lambda out: na.family.Normal(bounds=(-1, 2), outside=out), [0.4, 4.0], stats.norm(0.4, 2)),
}


def expectation(law, function) -> float:
    if hasattr(law, "pmf"):
        x = np.arange(0, 400)
        return float((law.pmf(x) * function(x)).sum())
    edges = [law.ppf(1e-14), -1.0, 0.2, 0.5, 2.0, 3.0, 4.0, law.isf(1e-14)]
    edges = sorted(e for e in edges if edges[0] <= e <= edges[-1])
    return sum(
        integrate.quad(lambda x: law.pdf(x) * float(function(np.array(x))), a, b, epsabs=1e-11)[0]
        for a, b in itertools.pairwise(edges)
    )


@pytest.mark.parametrize("outside", ["clamp", pytest.param("drop", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FAMILIES)
def test_moments_match_scipy(name, outside, x64):
    make, theta, law = FAMILIES[name]
    family = make(outside)
    found = moment.of_record(family, jnp.asarray(theta))
    k = len(family.query.names)

    def parts(x):
        low, high = family.query.bounds
        kept = np.where((x >= low) & (x <= high), 1.0, float(outside == "clamp"))
        t = [np.asarray(c) for c in family.query.statistic(x)]
        return [*t, *(kept * np.asarray(c) for c in family.query.statistic(np.clip(x, low, high)))]

    mean = [expectation(law, lambda x, i=i: parts(x)[i]) for i in range(2 * k)]
    np.testing.assert_allclose(found.mean, mean, rtol=1e-7, atol=1e-9)
    for i in range(2 * k):
        for j in range(i + 1):
            second = expectation(law, lambda x, i=i, j=j: (parts(x)[i] - mean[i]) * (parts(x)[j] - mean[j]))
            assert float(found.covariance[i, j]) == pytest.approx(second, rel=1e-6, abs=1e-9)


def test_a_family_with_natural_bounds_has_its_own_moments(x64):
    found = moment.of_record(na.family.Binomial(trials=5), jnp.asarray(0.2))
    np.testing.assert_allclose([found.mean[0], found.covariance[0, 0]], [1.0, 0.8], rtol=1e-12)
    found = moment.of_record(na.family.Categorical(levels=["a", "b"]), jnp.asarray([0.2, 0.8]))
    np.testing.assert_allclose(found.covariance, [[0.16, -0.16], [-0.16, 0.16]], rtol=1e-12)


@pytest.mark.parametrize("outside", ["clamp", "drop"])
@pytest.mark.parametrize("theta", [-60.0, -8.0, 8.0, 60.0])
def test_vanishing_sections_give_zero(theta, outside, x64):
    """All records on one side: no variance is left where they are clamped or dropped, and nothing is NaN."""
    found = moment.of_record(na.family.Normal(bounds=(-1, 2), variance=1.0, outside=outside), jnp.asarray(theta))
    edge = 0.0 if outside == "drop" else (2.0 if theta > 0 else -1.0)
    law = stats.norm(theta, 1.0)
    wanted = integrate.quad(lambda x: x * law.pdf(x), -1, 2)[0]
    wanted += 0.0 if outside == "drop" else 2 * law.sf(2) - law.cdf(-1)
    np.testing.assert_allclose(found.mean, [theta, wanted], rtol=1e-6, atol=1e-12)
    assert np.isfinite(np.asarray(found.covariance)).all()
    assert float(found.covariance[1, 1]) == pytest.approx(0, abs=1e-6)
    assert float(found.mean[1]) == pytest.approx(edge, abs=1e-6)
