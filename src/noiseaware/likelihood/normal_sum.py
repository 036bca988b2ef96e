"""A normal sum under continuous noise: log p(y | θ) in closed form.

With the sum N(m, s²), d = y − m, z = d/s and T(x) = log Φ(−x) + x²/2,

    normal noise     N(y; m, s² + σ²)
    Laplace noise    (1/2b) Σ_± exp(−z²/2 + T(s/b ∓ z))        e^{s²/2b²} Φ(−s/b ± z) e^{∓d/b}, without its cancelling

A contour loses its figures here where the mean is many standard deviations from 0.
"""

import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from noiseaware.mechanism import AbstractMechanism

_FAR = 20.0  # from here on the series of T is right to 1e−10


def log_density(
    mechanism: AbstractMechanism, y: Float[Array, "..."], mean: Float[Array, "..."], variance: Float[Array, "..."]
) -> Float[Array, "..."]:
    """log p(y) of the sum and its noise."""
    scale, off = jnp.asarray(mechanism.spread), y - mean
    if not mechanism.is_laplace:
        total = variance + scale**2
        return -0.5 * off**2 / total - 0.5 * jnp.log(2 * jnp.pi * total)
    sd = jnp.sqrt(variance)
    sides = [_side(sign * off, sd, scale) for sign in (1.0, -1.0)]
    return jnp.logaddexp(*sides) - jnp.log(2 * scale)


def _side(off: Float[Array, "..."], sd: Float[Array, "..."], scale: Float[Array, ""]) -> Float[Array, "..."]:
    """Log of the part of the noise on one side of the sum: e^{s²/2b² − d/b} Φ(d/s − s/b)."""
    far = sd / scale - off / sd
    beyond = -0.5 * (off / sd) ** 2 + _log_scaled_tail(jnp.maximum(far, 0.0))
    near = 0.5 * (sd / scale) ** 2 - off / scale + log_ndtr(-jnp.minimum(far, 0.0))
    return jnp.where(far > 0, beyond, near)


def _log_scaled_tail(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """T(x) for x ≥ 0."""
    close, far = jnp.minimum(x, _FAR), jnp.maximum(x, _FAR)
    u = far**-2
    series = jnp.log1p(-u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u))))
    return jnp.where(x < _FAR, log_ndtr(-close) + 0.5 * close**2, series - jnp.log(far) - 0.5 * jnp.log(2 * jnp.pi))
