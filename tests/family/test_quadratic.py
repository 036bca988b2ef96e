"""How far one record can move second moments: the formulas are never exceeded, and attained; and conjugate updates."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from noiseaware import family, prior

DIMENSIONS = [1, 2, 3, 4]


def member(d: int) -> family.AbstractQuadraticFamily:
    return family.MultivariateNormal([f"x{j}" for j in range(d)], bounds=(-1, 1))


def moved(model, u, w, power: int) -> float:
    """‖t(u) − t(w)‖₁, or the square of the weighted ‖·‖₂."""
    apart = np.array(model.query.monomials(list(u))) - np.array(model.query.monomials(list(w)))
    return float(np.abs(apart).sum() if power == 1 else (np.array(model.query.entries) * apart**2).sum())


def greatest(model, power: int, seed: int) -> float:
    """The most that a numerical search finds, from 30 starts."""
    d, rng = model.dimension, np.random.default_rng(seed)
    found = [
        -optimize.minimize(
            lambda v: -moved(model, v[:d], v[d:], power), rng.uniform(-1, 1, 2 * d), bounds=[(-1, 1)] * (2 * d)
        ).fun
        for _ in range(30)
    ]
    return max(found)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_sensitivity_is_attained_and_not_exceeded(d, seed):
    model = member(d)
    for power, stated in ((1, model.query.sensitivity()), (2, model.query.sensitivity("replace", 2))):
        found = greatest(model, power, seed)
        assert 0.99 * stated <= found <= stated * (1 + 1e-9)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_record_alone_moves_them_most_at_a_corner(d):
    model = member(d)
    corners = list(itertools.product([-1.0, 1.0], repeat=d))
    zero = [0.0] * d
    assert model.query.sensitivity("add_remove") == max(moved(model, u, zero, 1) for u in corners)
    squares = max(moved(model, u, zero, 2) for u in corners)
    assert model.query.sensitivity("add_remove", 2) == pytest.approx(squares, rel=1e-12)
    inside = np.random.default_rng(d).uniform(-1, 1, (2000, d))
    assert max(moved(model, u, zero, 1) for u in inside) <= model.query.sensitivity("add_remove")


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("d", [*DIMENSIONS, 7, 12])
def test_in_steps_of_a_grid_it_is_whole_and_exact(d, neighbours):
    h, k = 2**15, 15
    exact = Fraction(d * (d + 2) ** 2, 2 * (d + 1)) if neighbours == "replace" else Fraction(d * (d + 3), 2)
    steps = member(d).query.whole(2 * k, neighbours).sensitivity
    assert type(steps) is int
    assert steps == math.ceil(exact * h**2)
    squared = member(d).query.whole(2 * k, neighbours).sensitivity_squared
    assert type(squared) is int
    assert squared == (2 if neighbours == "replace" else 1) * d * (d + 1) * h**4


def test_one_column_is_the_normal_of_unknown_variance():
    normal, several = family.Normal("x", bounds=(-3, 5)).query, member(1).query
    for neighbours in ("replace", "add_remove"):
        assert normal.whole(14, neighbours) == several.whole(14, neighbours)
        for norm in (1, 2):
            assert normal.sensitivity(neighbours, norm) == several.sensitivity(neighbours, norm)
    assert (normal.degrees, normal.entries) == (several.degrees, several.entries)
    assert normal.monomials([3]) == several.monomials([3]) == (3, 9)
    assert (normal.centre.tolist(), normal.half.tolist(), normal.intervals) == ([1.0], [4.0], ((-3.0, 5.0),))
    assert normal.query.statistic(3.0) == (0.5, 0.25)


@given(data=st.data(), d=st.integers(1, 4), k=st.integers(0, 15))
def test_no_neighbour_moves_whole_moments_further(data, d, k):
    """Adversarial records on the grid itself, corners and halves often among them."""
    h, model = 2**k, member(d)
    number = st.one_of(st.sampled_from([-h, -(h // 2), 0, h // 2, h]), st.integers(-h, h))
    here, there = (data.draw(st.lists(number, min_size=d, max_size=d)) for _ in range(2))
    rows = [
        [t * h if degree == 1 else t for t, degree in zip(model.query.monomials(u), model.query.degrees, strict=True)]
        for u in (here, there)
    ]
    apart = [a - b for a, b in zip(*rows, strict=True)]
    assert sum(map(abs, apart)) <= model.query.whole(2 * k, "replace").sensitivity
    weighted = sum(m * a * a for m, a in zip(model.query.entries, apart, strict=True))
    assert weighted <= model.query.whole(2 * k, "replace").sensitivity_squared
    assert sum(map(abs, rows[0])) <= model.query.whole(2 * k, "add_remove").sensitivity
    squares = sum(m * a * a for m, a in zip(model.query.entries, rows[0], strict=True))
    assert squares <= model.query.whole(2 * k, "add_remove").sensitivity_squared


def test_without_bounds_there_is_no_sensitivity():
    for model in (family.MultivariateNormal(["a", "b"]), family.LinearRegression("a", "b"), family.Normal("a")):
        for norm in (1, 2):
            with pytest.raises(ValueError, match="bounds must be given"):
                model.query.sensitivity("replace", norm)


# ---- conjugacy, by the formulas of one number and of the normal equations --------------------------------------------


def test_the_update_of_one_column_is_that_of_the_normal_family(x64, seed):
    x, bounds = np.random.default_rng(seed).normal(1.0, 0.8, 12), (-1, 4)
    several, one = family.MultivariateNormal(["x"], bounds=bounds), family.Normal("x", bounds=bounds)
    s = jnp.asarray([column.sum() for column in one.query.statistic(x)])
    found = jax.jit(several.update)(prior.NormalInverseWishart([0.3], 1.5, 2.0, 5.0), s, 12.0)
    wanted = jax.jit(one.update)(prior.NormalInverseGamma(0.3, 1.5, 2.5, 1.0), s, 12.0)
    np.testing.assert_allclose(found.mean, [wanted.mean])
    np.testing.assert_allclose(found.scale, [[2 * wanted.scale]])
    assert (found.count, found.dof) == (wanted.precision, 2 * wanted.shape)


def test_the_update_of_a_regression_solves_the_normal_equations(x64, seed):
    rng, n = np.random.default_rng(seed), 15
    x = rng.normal(1.0, 0.8, n)
    y = 0.7 * x - 0.4 + rng.normal(0, 0.5, n)
    model = family.LinearRegression(["x"], "y", bounds={"x": (-1, 4), "y": (-3, 5)})
    s = jnp.asarray([column.sum() for column in model.query.statistic([x, y])])
    mean, precision = np.array([0.5, -0.2]), np.array([[1.5, 0.3], [0.3, 2.0]])
    believed = model.completed(prior.NormalInverseGamma(mean, precision, 4.0, 2.0))
    found = jax.jit(model.update)(believed, s, float(n)).parts["regression"]
    z = np.column_stack([x, np.ones(n)])
    whole = precision + z.T @ z
    centre = np.linalg.solve(whole, precision @ mean + z.T @ y)
    left = y @ y + mean @ precision @ mean - centre @ whole @ centre
    np.testing.assert_allclose(found.mean, centre)
    np.testing.assert_allclose(found.precision, whole)
    assert (found.shape, float(found.scale)) == pytest.approx((4 + n / 2, 2 + left / 2))
