"""The Gaussian mechanism under zero-concentrated differential privacy (Bun & Steinke 2016).

    p(x) = e^{−x²/2σ²} / √(2πσ²)        φ(t) = e^{−σ²t²/2}        ρ = Δ₂²/2σ²

Proof sketch. The Rényi divergence of order α between N(s, σ²I) and N(s', σ²I) is α‖s − s'‖₂²/2σ², which is
at most αΔ₂²/2σ² = ρα. The proof is about real numbers, so the custodian never draws this law: see
discrete_gaussian.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, log_ndtr
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._gaussian import AbstractGaussian, GaussianShape
from noiseaware.mechanism._mechanism import Spread, as_spread, log_less, mirrored


class Gaussian(AbstractGaussian):
    """Continuous Gaussian noise with the given standard deviation σ."""

    stddev: Spread = eqx.field(converter=as_spread)
    name: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian"
    is_discrete: ClassVar[bool] = False
    shape: ClassVar[type[GaussianShape]] = GaussianShape

    @property
    def variance(self) -> Spread:
        return self.stddev**2

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        return -0.5 * (x / self.stddev) ** 2 - jnp.log(self.stddev) - 0.5 * jnp.log(2 * jnp.pi)

    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """Φ(high/σ) − Φ(low/σ)."""
        low, high = mirrored(low / self.stddev, high / self.stddev)
        about = jnp.log(0.5 * (erf(jnp.maximum(high, 0.0) / 2**0.5) - erf(jnp.minimum(low, 0.0) / 2**0.5)))
        return jnp.where(high > 0, about, log_less(log_ndtr(jnp.minimum(high, 0.0)), log_ndtr(low)))

    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-0.5 * (self.stddev * t) ** 2)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        return self.stddev * jax.random.normal(key, shape)

    def below(self, x: np.ndarray) -> np.ndarray:
        from scipy import special

        return special.ndtr(x / self.stddev)

    def continuous(self, unit: float = 1.0) -> "Gaussian":
        return Gaussian(self.stddev * unit)
