"""Cholesky factors and triangular systems of small matrices, written out by halves.

    [A Bᵀ]   [L     ] [Lᵀ Xᵀ]
    [B C ] = [X    M] [   Mᵀ]        L = root of A,  LXᵀ = Bᵀ,  M = root of C − XXᵀ

XLA gives a batch of LAPACK calls to its own threads, and waits for them in one: on a machine of two cores, two such
calls at once wait for each other forever. Up to some fourteen rows these here are also the quicker.
"""

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

_MOST_ROWS = 40  # more would take too long to compile
_BLOCK = 8


def cholesky(a: Float[Array, "*b n n"]) -> Float[Array, "*b n n"]:
    """The lower triangular L with LLᵀ = a; of what is not positive definite, no numbers."""
    n = a.shape[-1]
    if n > _MOST_ROWS:
        return jnp.linalg.cholesky(a)
    if n == 1:
        return jnp.sqrt(a)
    half = n // 2
    first = cholesky(a[..., :half, :half])
    across = _transposed(solve(first, a[..., :half, half:]))
    last = cholesky(a[..., half:, half:] - across @ _transposed(across))
    nothing = jnp.zeros((*a.shape[:-2], half, n - half), a.dtype)
    return jnp.concatenate(
        [jnp.concatenate([first, nothing], axis=-1), jnp.concatenate([across, last], axis=-1)], axis=-2
    )


def solve(
    root: Float[Array, "*b n n"], right: Float[Array, "*c n m"], *, transposed: bool = False
) -> Float[Array, "*b n m"]:
    """The x with root x = right, root lower triangular; with rootᵀ x = right where it is transposed."""
    n = root.shape[-1]
    if n > _MOST_ROWS:
        return solve_triangular(root, right, trans=int(transposed), lower=True)
    if n == 1:
        return right / root
    half = n // 2
    first, across, last = root[..., :half, :half], root[..., half:, :half], root[..., half:, half:]
    if transposed:
        below = solve(last, right[..., half:, :], transposed=True)
        above = solve(first, right[..., :half, :] - _transposed(across) @ below, transposed=True)
    else:
        above = solve(first, right[..., :half, :])
        below = solve(last, right[..., half:, :] - across @ above)
    return jnp.concatenate([above, below], axis=-2)


def inverse_root(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse of cholesky(a), block of rows after block of rows, so that it compiles as soon for many as for few.

    With X the inverse so far, a block S and what is left of it, R: Y = RXᵀ stands left of M = root of S − YYᵀ in the
    root, and −M⁻¹YX left of M⁻¹ in the inverse.
    """
    n, block = len(a), min(len(a), _BLOCK)
    beyond = -n % block
    whole = jnp.pad(a, (0, beyond)) + jnp.diag(jnp.append(jnp.zeros(n, a.dtype), jnp.ones(beyond, a.dtype)))

    def step(at, inverse):
        rows = lax.dynamic_slice_in_dim(whole, block * at, block)
        across = jnp.where(jnp.arange(n + beyond) < block * at, rows, 0.0) @ inverse.T
        left = lax.dynamic_slice_in_dim(rows, block * at, block, axis=1) - across @ across.T
        own = solve(cholesky(left), jnp.eye(block, dtype=a.dtype))
        found = lax.dynamic_update_slice_in_dim(-own @ (across @ inverse), own, block * at, axis=1)
        return lax.dynamic_update_slice_in_dim(inverse, found, block * at, axis=0)

    return lax.fori_loop(0, (n + beyond) // block, step, jnp.zeros_like(whole))[:n, :n]


def _transposed(a: Float[Array, "*b n m"]) -> Float[Array, "*b m n"]:
    return jnp.swapaxes(a, -1, -2)
