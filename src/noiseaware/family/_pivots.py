"""log of the diagonal of a Cholesky factor, of which log determinants are made.

Those of tiny matrices are written out, a column at a time, without roots.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from noiseaware.triangular import cholesky

_MOST_ROWS = 5


def log_pivots(a: Float[Array, "r r"]) -> Float[Array, " r"]:
    """log L_jj of the positive definite a = LLᵀ."""
    if len(a) > _MOST_ROWS:
        return jnp.log(jnp.diag(cholesky(a)))
    squares = []
    while len(a):
        pivot, column = a[0, 0], a[1:, 0]
        squares.append(pivot)
        a = a[1:, 1:] - column[:, None] * column[None] / pivot
    return 0.5 * jnp.log(jnp.stack(squares))
