"""Laplace noise as normal noise of random variance: σ² ~ Exp(mean 2b²), and σ² given the noise (Park & Casella 2008).

1/σ² ~ InverseGaussian(mean 1/(b|noise|), shape 1/b²)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.mechanism import AbstractMechanism


def draw(key: Key[Array, ""], mechanism: AbstractMechanism, noise: Float[Array, " k"]) -> Float[Array, " k"]:
    """σ² of each noise; normal noise has the variance that it has.

    By the two roots of Michael, Schucany & Haas (1976) for w = σ²/b², in a form that does not cancel at noise = 0:
    w₁ = r + ν/2 + √(rν + ν²/4) with r = |noise|/b and ν ~ χ²₁, taken with probability w₁/(w₁ + r), or else r²/w₁.
    """
    if not mechanism.is_laplace:
        return jnp.full_like(noise, mechanism.spread**2)
    key_normal, key_root = jax.random.split(key)
    r = jnp.abs(noise) / mechanism.spread
    v = jax.random.normal(key_normal, noise.shape) ** 2
    large = r + 0.5 * v + jnp.sqrt(r * v + 0.25 * v**2)
    is_large = jax.random.uniform(key_root, noise.shape) * (large + r) < large
    return mechanism.spread**2 * jnp.where(is_large, large, r**2 / jnp.maximum(large, 1e-300))
