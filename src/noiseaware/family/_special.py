"""Incomplete gamma functions in logs, accurate where the functions themselves underflow.

    P(k, z) = γ(k, z)/Γ(k)  by  z^k e^{−z}/Γ(k+1) · Σ_j z^j / ((k+1)…(k+j))        for small z
    Q(k, z) = Γ(k, z)/Γ(k)  by  z^{k−1} e^{−z}/Γ(k) · (continued fraction)          for large z

(DLMF 8.7.1 and 8.9.2.)
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammainc, gammaincc, gammaln
from jaxtyping import Array, Float

_TERMS = 60


def log_gammainc(k: Float[Array, "..."], z: Float[Array, "..."]) -> Float[Array, "..."]:
    """log P(k, z). The series is used for z < (k+1)/4, where 60 terms fall below 4^−60."""
    small = z < 0.25 * (k + 1)
    z_small = jnp.where(small, z, 0.25 * (k + 1))

    def add(j, carry):
        term, total = carry
        term = term * z_small / (k + j)
        return term, total + term

    start = jnp.ones_like(z_small + k)
    _, total = jax.lax.fori_loop(1, _TERMS, add, (start, start))
    series = k * jnp.log(z_small) - z_small - gammaln(k + 1) + jnp.log(total)
    direct = jnp.log(gammainc(k, jnp.where(small, k, z)))
    return jnp.where(small, series, direct)


def log_gammaincc(k: Float[Array, "..."], z: Float[Array, "..."]) -> Float[Array, "..."]:
    """log Q(k, z). The continued fraction is used for z > 2(k+15), where 60 steps reach round-off."""
    large = z > 2 * (k + 15)
    z_large = jnp.where(large, z, 2 * (k + 15))

    def step(j, tail):
        """Backward evaluation of z+1−k − 1(1−k)/(z+3−k − 2(2−k)/(…))."""
        i = _TERMS - j
        return z_large + 2 * i + 1 - k - (i + 1) * (i + 1 - k) / tail

    start = z_large + 2 * _TERMS + 3 - k
    fraction = jax.lax.fori_loop(0, _TERMS + 1, step, start)
    continued = k * jnp.log(z_large) - z_large - gammaln(k) - jnp.log(fraction)
    direct = jnp.log(gammaincc(k, jnp.where(large, k, z)))
    return jnp.where(large, continued, direct)
