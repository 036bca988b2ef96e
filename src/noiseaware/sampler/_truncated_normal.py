"""Normal draws held between two ends, however far in a tail these lie.

With Φ in logs on the side where it is small,    x = Φ⁻¹((1 − u) Φ(low) + u Φ(high))
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtri
from jaxtyping import Array, Float, Key

from noiseaware.prior import Numeric

_DEEP = -30.0  # below this log Φ the inverse starts from its asymptotic form
_NEWTON = 3
_FAR = 1e10  # standard deviations, beyond which a draw is at the end of the interval


def draw(key: Key[Array, ""], mean: Numeric, sd: Numeric, low: Numeric, high: Numeric) -> Float[Array, "..."]:
    """One draw of N(mean, sd²) given that it lies in [low, high]; either end may be infinite."""
    u = jax.random.uniform(key, jnp.shape(mean))
    first, last = (jnp.clip((end - mean) / jnp.maximum(sd, 1e-300), -_FAR, _FAR) for end in (low, high))
    is_mirrored = first + last > 0  # the interval is then drawn from its reflection, where Φ is small
    first, last = jnp.where(is_mirrored, -last, first), jnp.where(is_mirrored, -first, last)
    level = jnp.logaddexp(log_ndtr(first) + jnp.log1p(-u), log_ndtr(last) + jnp.log(u))
    x = jnp.clip(log_ndtri(level), first, last)
    return jnp.clip(mean + sd * jnp.where(is_mirrored, -x, x), low, high)


def log_ndtri(level: Float[Array, "..."]) -> Float[Array, "..."]:
    """x with log Φ(x) = level."""
    deep = jnp.minimum(level, _DEEP)
    x = -jnp.sqrt(-2 * deep - jnp.log(-4 * jnp.pi * deep))
    for _ in range(_NEWTON):
        value = log_ndtr(x)
        x = x - (value - deep) * jnp.exp(value + 0.5 * x**2 + 0.5 * jnp.log(2 * jnp.pi))
    return jnp.where(level < _DEEP, x, ndtri(jnp.exp(jnp.maximum(level, _DEEP))))
