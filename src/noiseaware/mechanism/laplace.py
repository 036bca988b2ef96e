"""The Laplace mechanism (Dwork, McSherry, Nissim & Smith 2006).

    p(x) = e^{−|x|/b} / 2b        φ(t) = 1 / (1 + b²t²)        ε = Δ₁/b

Proof sketch. For neighbours with ‖s − s'‖₁ ≤ Δ₁ the ratio of output densities at any y is
Π_j exp((|y_j − s'_j| − |y_j − s_j|)/b) ≤ exp(‖s − s'‖₁/b) ≤ e^{Δ₁/b} by the triangle inequality.
The proof is about real numbers, so the custodian never draws this law: see discrete_laplace.
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


class Laplace(AbstractMechanism):
    """Continuous Laplace noise with the given scale b."""

    scale: Spread = eqx.field(converter=as_spread)
    is_discrete: ClassVar[bool] = False
    is_laplace: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_positive("scale", self.scale)

    @property
    def spread(self) -> Spread:
        return self.scale

    @property
    def variance(self) -> Spread:
        return 2 * self.scale**2

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        return -jnp.abs(x) / self.scale - jnp.log(2 * self.scale)

    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """½ (e^{high/b} − e^{low/b}) below 0; about 0, ½ (1 − e^{low/b}) + ½ (1 − e^{−high/b})."""
        low, high = mirrored(low, high)
        about = jnp.log(-0.5 * (jnp.expm1(jnp.minimum(low, 0.0) / self.scale) + jnp.expm1(-high / self.scale)))
        below = log_less(jnp.minimum(high, 0.0) / self.scale, low / self.scale) - jnp.log(2.0)
        return jnp.where(high > 0, about, below)

    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        return 1 / (1 + (self.scale * t) ** 2)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        return self.scale * jax.random.laplace(key, shape)

    def guarantee(self, sensitivity: float) -> Pure:
        return Pure(Fraction(sensitivity) / least(self.scale))
