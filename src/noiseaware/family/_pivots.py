"""log of the diagonal of a Cholesky factor, of which log determinants are made.

A batch of tiny matrices is ten times faster written out, a column at a time, than by calls of LAPACK; larger ones are
not.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_MOST_ROWS = 5


def log_pivots_of_both(
    a: Float[Array, "r r"], b: Float[Array, "s s"]
) -> tuple[Float[Array, " r"], Float[Array, " s"]]:
    """Those of two matrices, the larger first; by one call, since XLA's threads may wait for two calls forever."""
    if len(a) <= _MOST_ROWS:
        return log_pivots(a), log_pivots(b)
    rest = len(a) - len(b)
    padded = jnp.pad(b, ((0, rest), (0, rest))) + np.diag(np.repeat([0.0, 1.0], [len(b), rest]))
    first, second = jnp.log(jnp.diagonal(jnp.linalg.cholesky(jnp.stack([a, padded])), axis1=1, axis2=2))
    return first, second[: len(b)]


def log_pivots(a: Float[Array, "r r"]) -> Float[Array, " r"]:
    """log L_jj of the positive definite a = LLᵀ."""
    if len(a) > _MOST_ROWS:
        return jnp.log(jnp.diag(jnp.linalg.cholesky(a)))
    squares = []
    while len(a):
        pivot, column = a[0, 0], a[1:, 0]
        squares.append(pivot)
        a = a[1:, 1:] - column[:, None] * column[None] / pivot
    return 0.5 * jnp.log(jnp.stack(squares))
