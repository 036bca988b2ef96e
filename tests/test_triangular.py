"""Factors and systems written out, against LAPACK; batched, and differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg

from noiseaware import triangular


def positive(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.normal(size=(*shape, shape[-1] + 3))
    return x @ np.swapaxes(x, -1, -2)


@pytest.mark.parametrize("n", [1, 2, 5, 14, 41])
def test_they_are_those_of_lapack(n, x64, seed):
    """41 rows are more than are written out."""
    rng = np.random.default_rng(seed)
    a, right = positive(rng, 3, n), rng.normal(size=(3, n, 2))
    root = jax.jit(triangular.cholesky)(jnp.asarray(a))
    np.testing.assert_allclose(root, np.linalg.cholesky(a), rtol=1e-9, atol=1e-11)
    for transposed in (False, True):
        found = jax.jit(lambda r, b, t=transposed: triangular.solve(r, b, transposed=t))(root, jnp.asarray(right))
        pairs = zip(root, right, strict=True)
        wanted = [linalg.solve_triangular(*pair, trans=int(transposed), lower=True) for pair in pairs]
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 41])
def test_an_inverse_root_is_that_of_lapack(n, x64, seed):
    """Of less than a block of rows, of one, and of some and a rest."""
    a = positive(np.random.default_rng(seed), 3, n)
    found = jax.jit(jax.vmap(triangular.inverse_root))(jnp.asarray(a))
    np.testing.assert_allclose(found, np.linalg.inv(np.linalg.cholesky(a)), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [6, 19])
def test_slopes_are_those_of_the_log_determinant(n, x64, seed):
    """d log|a|/da is the inverse of a."""
    a = jnp.asarray(positive(np.random.default_rng(seed), n))
    for log_size in (
        lambda a: 2 * jnp.log(jnp.diag(triangular.cholesky(a))).sum(),
        lambda a: -2 * jnp.log(jnp.diag(triangular.inverse_root(a))).sum(),
    ):
        slope = jax.jit(jax.grad(log_size))(a)
        np.testing.assert_allclose(0.5 * (slope + slope.T), np.linalg.inv(a), rtol=1e-7, atol=1e-10)


def test_what_is_not_positive_definite_has_no_root(x64):
    a = jnp.asarray([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(triangular.cholesky(a)).any()
    assert np.isnan(jnp.diag(triangular.inverse_root(jnp.kron(jnp.eye(9), a)))).any()
