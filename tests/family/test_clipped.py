"""Moments of clipped normal records, against quadrature by SciPy and against records."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from noiseaware import family
from noiseaware.family import _clipped

# mean and sd of a column whose bounds are ±1: hardly clipped, one in ten, nearly all, and beyond the bounds
COLUMNS = [(0.1, 0.2), (-0.2, 0.6), (0.5, 4.0), (1.8, 0.5), (0.0, 0.01)]
PAIRS = [
    ((0.0, 0.0), (0.6, 0.6), 0.3),
    ((0.4, -0.6), (0.7, 0.9), -0.8),
    ((2.0, 0.1), (0.5, 2.0), 0.95),
    ((0.9, 0.9), (0.3, 0.4), 0.999),
    ((-0.5, 0.5), (3.0, 3.0), -0.99),
    ((0.0, 0.2), (0.05, 0.1), 0.5),
]


powers = jax.jit(_clipped.powers, static_argnums=2, static_argnames="keeps_outside")


def covariance_of(sds: tuple[float, float], rho: float) -> np.ndarray:
    return np.outer(sds, sds) * np.array([[1.0, rho], [rho, 1.0]])


@pytest.mark.parametrize(("mean", "sd"), COLUMNS)
@pytest.mark.parametrize("keeps", [True, False])
def test_powers_of_one_column(mean, sd, keeps, x64):
    law = stats.norm(mean, sd)
    found = powers(jnp.asarray(mean), jnp.asarray(sd), 4, keeps_outside=keeps)
    for k, power in enumerate(found, 1):
        inside = integrate.quad(lambda x, k=k: x**k * law.pdf(x), -1, 1, points=[mean] if abs(mean) < 1 else None)[0]
        outside = (-1) ** k * law.cdf(-1) + law.sf(1) if keeps else 0.0
        assert float(power) == pytest.approx(inside + outside, abs=1e-9)


def product_by_quadrature(means, sds, rho: float) -> float:
    """E c₁c₂ = ∫ φ(z) clip(m₁ + s₁z) E[clip(u₂) | z] dz, split wherever either column meets its bounds."""
    tau = sds[1] * np.sqrt(1 - rho**2)

    def integrand(z):
        a, b = ((end - means[1] - rho * sds[1] * z) / tau for end in (-1, 1))
        inner = 1 - tau * (b * ndtr(b) + stats.norm.pdf(b) - a * ndtr(a) - stats.norm.pdf(a))
        return stats.norm.pdf(z) * np.clip(means[0] + sds[0] * z, -1, 1) * inner

    turns = [(end - means[0]) / sds[0] for end in (-1, 1)] + [(end - means[1]) / (rho * sds[1]) for end in (-1, 1)]
    edges = [-8.5, *sorted(np.clip(turns, -8, 8)), 8.5]
    parts = [integrate.quad(integrand, *edge, epsabs=1e-13, limit=200)[0] for edge in itertools.pairwise(edges)]
    return sum(parts)


@pytest.mark.parametrize(("means", "sds", "rho"), PAIRS)
def test_products_of_two_columns(means, sds, rho, x64):
    mean, _ = jax.jit(_clipped.moments)(jnp.asarray(means), jnp.asarray(covariance_of(sds, rho)))
    assert float(mean[3]) == pytest.approx(product_by_quadrature(means, sds, rho), abs=1e-10)
    one = [powers(jnp.asarray(m), jnp.asarray(s), 4)[:2] for m, s in zip(means, sds, strict=True)]
    np.testing.assert_allclose(np.asarray(mean)[[0, 1, 2, 4]], [one[0][0], one[1][0], one[0][1], one[1][1]], atol=1e-14)


@pytest.mark.parametrize("rho", [0.3, -0.999])
def test_the_mean_alone_is_right_with_fewer_nodes(rho, x64):
    model = family.MultivariateNormal(["a", "b"], bounds=(-1, 1))
    theta = jnp.asarray([0.3, -0.9, 0.25, 0.5 * rho, 0.5 * rho, 1.0])
    np.testing.assert_allclose(model.released_mean(theta), model.released_moments(theta)[0], atol=1e-6)


def are_those_of_records(model, theta, t: np.ndarray, slack: float) -> None:
    """Means within 5 standard errors, the spread in any direction within the slack; by other points nearly the same."""
    mean, covariance = jax.jit(model.released_moments)(theta)
    other_mean, other = jax.jit(model.released_again)(theta)
    assert (np.abs(t.mean(1) - mean) < 5 * t.std(1) / np.sqrt(t.shape[1])).all()
    shares = np.linalg.eigvals(np.linalg.solve(np.cov(t), covariance)).real
    assert (np.abs(shares - 1) < slack).all(), shares
    np.testing.assert_allclose(other_mean, mean, atol=1e-12)
    assert 1e-6 < np.abs(other - covariance).max() < 0.05


@pytest.mark.parametrize("d", [3, pytest.param(1, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
def test_the_covariance_of_the_sums_is_that_of_records(d, x64, seed):
    """200 000 records with bounds of their own: each mean within 5 standard errors, the spread in any direction within
    8 % (that of the points themselves is about 5 %, and of the records about 3 % for 44 statistics)."""
    rng = np.random.default_rng(seed)
    low, high = rng.uniform(-3, -1, d), rng.uniform(2, 4, d)
    model = family.MultivariateNormal(dimension=d, bounds=list(zip(low, high, strict=True)))
    root = np.linalg.cholesky(1.5 * (0.4 + 0.6 * np.eye(d)))
    theta = jnp.asarray(np.concatenate([np.linspace(0, 1, d), (root @ root.T).ravel()]))
    x = np.linspace(0, 1, d)[:, None] + root @ rng.standard_normal((d, 200_000))
    are_those_of_records(model, theta, np.stack(model.query.alter(jnp.asarray(x))), 0.08)


def test_without_bounds_nothing_is_clipped(x64):
    """A normal of unknown variance took ±1 for its bounds once."""
    assert family.MultivariateNormal(dimension=2).released_moments(jnp.asarray([0.0, 0, 1, 0, 0, 1])) is None
    assert family.Normal().released_moments(jnp.asarray([0.0, 9.0])) is None
