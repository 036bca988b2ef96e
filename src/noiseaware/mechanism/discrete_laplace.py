"""The discrete Laplace (geometric) mechanism (Ghosh, Roughgarden & Sundararajan 2009).

    P(k) = tanh(1/2b) e^{−|k|/b}        φ(t) = (1−r)² / (1 − 2r cos t + r²),  r = e^{−1/b}        ε = Δ₁/b

Proof sketch. As for Laplace: P(y − s)/P(y − s') ≤ exp(|s − s'|/b) for integers s, s', y, coordinate by
coordinate. All values are integers, so the arithmetic of the proof is the arithmetic of the machine.
"""

from fractions import Fraction
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._mechanism import (
    AbstractMechanism,
    Spread,
    as_spread,
    check_positive,
    least,
    log_less,
    mirrored,
)
from noiseaware.privacy import Pure


class DiscreteLaplace(AbstractMechanism):
    """Discrete Laplace noise with the given scale b, in units of the release's grid."""

    scale: Spread = eqx.field(converter=as_spread)
    is_discrete: ClassVar[bool] = True
    is_laplace: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_positive("scale", self.scale)

    @property
    def spread(self) -> Spread:
        return self.scale

    @property
    def variance(self) -> Spread:
        """2r/(1 − r)² = 1/2sinh²(1/2b)."""
        return 0.5 / jnp.sinh(0.5 / self.scale) ** 2

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        return -jnp.abs(x) / self.scale + jnp.log(jnp.tanh(0.5 / self.scale))

    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """With r = e^{−1/b}, P(k ≤ −m) = r^m / (1 + r) for m ≥ 0; about 0, 1 less both tails."""
        low, high = mirrored(jnp.ceil(low), jnp.floor(high))
        r = jnp.exp(-1 / self.scale)
        tails = jnp.expm1(-(high + 1) / self.scale) + r * jnp.expm1(jnp.minimum(low, 0.0) / self.scale)
        below = log_less(jnp.minimum(high, 0.0) / self.scale, (low - 1) / self.scale)
        return jnp.where(high >= 0, jnp.log(-tails), below) - jnp.log1p(r)

    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """Written with half angles, (1−r)²/((1−r)² + 4r sin²(t/2)), which does not cancel when b is large."""
        one_minus_r = -jnp.expm1(-1 / self.scale)
        r = jnp.exp(-1 / self.scale)
        return one_minus_r**2 / (one_minus_r**2 + 4 * r * jnp.sin(t / 2) ** 2)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        """The difference of two geometric draws."""
        waiting = jax.random.exponential(key, (2, *shape))
        first, second = jnp.floor(waiting * self.scale)
        return first - second

    def guarantee(self, sensitivity: float) -> Pure:
        return Pure(Fraction(sensitivity) / least(self.scale))
