"""Moments of gamma records that are clipped or dropped: of (u, u²), u = (x − centre)/half, x ~ Gamma(shape, rate).

    E f(u) = ∫ f p over the bounds + f at each bound · the probability beyond it, or 0 where records are dropped

By points: Gauss–Legendre in w, rate·x = B wᵖ, over what is within the bounds and not beyond e^−40 of the mass. With
p · shape whole the integrand is smooth at 0 also where the density is not. Incomplete gamma functions would give the
same, but as differences of large numbers where the shape is large or the bounds are narrow, and their slope in the
shape is slow. Here every weight is positive, so that no figure is lost, and the slope is that of the sum. Next to
mpmath the error is below 1e−10 for shapes from 0.02 to 10⁴ and bounds of any width, and that of slopes below 1e−8.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from noiseaware.prior import Numeric

_NODES = 64


def moments(
    shape: Float[Array, ""], rate: Float[Array, ""], bounds: tuple[float, float], *, keeps_outside: bool
) -> tuple[Float[Array, "2"], Float[Array, "2 2"]]:
    """Mean and covariance of what the bounds, of which the upper one is positive, leave of (u, u²)."""
    low, high = bounds
    x, inside = _points(shape, rate, low, high)
    below = _points(shape, rate, 0.0, low)[1].sum() if low > 0 else jnp.zeros_like(rate)
    above = jnp.maximum(1 - below - inside.sum(), 0.0)
    u = (2 * x - (low + high)) / (high - low)
    ends = jnp.array([-1.0, 1.0]) if keeps_outside else jnp.zeros(2)
    u, weight = jnp.concatenate([u, ends]), jnp.concatenate([inside, jnp.stack([below, above])])
    t = jnp.stack([u, u**2])
    mean = t @ weight
    away = t - mean[:, None]
    return mean, (weight * away) @ away.T


def _points(
    shape: Float[Array, ""], rate: Float[Array, ""], low: Numeric, high: Numeric
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Records between two values, and a weight for each: together, the probability of a record there."""
    reach = 9.5 * jnp.sqrt(shape)
    first, last = jnp.maximum(shape - reach, 0.0), shape + reach + 45
    top = jnp.minimum(rate * high, last)
    start = jnp.minimum(jnp.maximum(rate * low, first), top)
    power = jnp.ceil(2 * shape) / shape
    at, weight = _rule()
    # w from (start/top)^{1/p} to 1; where there is nothing between, all weights are 0
    least = jnp.where(start > 0, jnp.exp((jnp.log(jnp.where(start > 0, start, 1.0)) - jnp.log(top)) / power), 0.0)
    w = least + (1 - least) * at
    log_z = jnp.log(top) + power * jnp.log(w)
    density = jnp.exp(shape * log_z - jnp.exp(log_z) - gammaln(shape))
    return jnp.exp(log_z - jnp.log(rate)), (1 - least) * weight * power / w * density


@functools.cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the unit interval."""
    at, weight = np.polynomial.legendre.leggauss(_NODES)
    return 0.5 * (at + 1), 0.5 * weight
