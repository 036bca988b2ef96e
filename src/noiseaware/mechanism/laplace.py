"""The Laplace mechanism (Dwork, McSherry, Nissim & Smith 2006), and its discrete or geometric form (Ghosh,
Roughgarden & Sundararajan 2009).

    p(x) = e^{−|x|/b} / 2b                  φ(t) = 1 / (1 + b²t²)                              ε = Δ₁/b
    P(k) = tanh(1/2b) e^{−|k|/b}            φ(t) = (1−r)² / (1 − 2r cos t + r²),  r = e^{−1/b}        ε = Δ₁/b

Proof sketch. For neighbours with ‖s − s'‖₁ ≤ Δ₁ the ratio of output densities at any y is
Π_j exp((|y_j − s'_j| − |y_j − s_j|)/b) ≤ exp(‖s − s'‖₁/b) ≤ e^{Δ₁/b} by the triangle inequality. Of the discrete law
all values are integers, so the arithmetic of the proof is the arithmetic of the machine; of the continuous one the
proof is about real numbers, and the custodian never draws it.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._laplace import AbstractLaplace, AbstractLaplaceTilt, LaplaceShape, inverted
from noiseaware.mechanism._mechanism import Spread, as_spread, log_less, mirrored


class Laplace(AbstractLaplace):
    """Continuous Laplace noise with the given scale b."""

    scale: Spread = eqx.field(converter=as_spread)
    name: ClassVar[str] = "laplace"
    title: ClassVar[str] = "Laplace"
    is_discrete: ClassVar[bool] = False
    shape: ClassVar[type[LaplaceShape]] = LaplaceShape

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

    def simulated(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return np.round(rng.laplace(0, np.asarray(self.scale, dtype=float), count))

    def below(self, x: np.ndarray) -> np.ndarray:
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.where(x < 0, tail, 1 - tail)

    def continuous(self, unit: float = 1.0) -> "Laplace":
        return Laplace(self.scale * unit)

    @property
    def tilt(self) -> "LaplaceTilt":
        return LaplaceTilt(self.scale)

    def between_counts(
        self, part: Float[Array, ""]
    ) -> "tuple[DiscreteLaplace, Float[Array, ''], list[Float[Array, '']]]":
        """With f the part and whole k, e^{−|y−k|/b} sinh(1/b) is
        sinh((1−f)/b) e^{−|⌊y⌋−k|/b} + sinh(f/b) e^{−|⌊y⌋+1−k|/b}."""
        scale, discrete, zero = jnp.asarray(self.scale), DiscreteLaplace(self.scale), jnp.zeros_like(part)
        # log sinh(x) − log sinh(1/b), without overflow for small b
        share = [(u - 1) / scale + jnp.log(jnp.expm1(-2 * u / scale) / jnp.expm1(-2 / scale)) for u in (1 - part, part)]
        return discrete, self.log_density(zero) - discrete.log_density(zero), share


class LaplaceTilt(AbstractLaplaceTilt):
    """Continuous Laplace noise under a tilt."""

    scale: Spread = eqx.field(converter=as_spread)

    @property
    def log_residue(self) -> Float[Array, ""]:
        return Laplace(self.scale).log_density(jnp.zeros(()))

    def factor(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """1/(1 − b²z²)."""
        return inverted(1 - self.scale**2 * (c**2 - t**2), -2 * self.scale**2 * c * t)


class DiscreteLaplace(AbstractLaplace):
    """Discrete Laplace noise with the given scale b, in units of the release's grid."""

    scale: Spread = eqx.field(converter=as_spread)
    name: ClassVar[str] = "discrete_laplace"
    title: ClassVar[str] = "discrete Laplace"
    is_discrete: ClassVar[bool] = True
    shape: ClassVar[type[LaplaceShape]] = LaplaceShape

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
        """Return the difference of two geometric draws."""
        waiting = jax.random.exponential(key, (2, *shape))
        first, second = jnp.floor(waiting * self.scale)
        return first - second

    def simulated(self, rng: np.random.Generator, count: int) -> np.ndarray:
        two = rng.geometric(-np.expm1(-1 / np.asarray(self.scale, dtype=float)), (2, count))
        return two[0] - two[1]

    def below(self, x: np.ndarray) -> np.ndarray:
        whole, r = np.floor(x), np.exp(-1 / self.scale)
        tail = np.exp(-np.where(whole < 0, -whole, whole + 1) / self.scale) / (1 + r)
        return np.where(whole < 0, tail, 1 - tail)

    def continuous(self, unit: float = 1.0) -> "Laplace":
        return Laplace(self.scale * unit)

    @property
    def tilt(self) -> "DiscreteLaplaceTilt":
        return DiscreteLaplaceTilt(self.scale)


class DiscreteLaplaceTilt(AbstractLaplaceTilt):
    """Discrete Laplace noise under a tilt."""

    scale: Spread = eqx.field(converter=as_spread)

    @property
    def log_residue(self) -> Float[Array, ""]:
        return DiscreteLaplace(self.scale).log_density(jnp.zeros(()))

    def factor(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """1/(1 − sinh²(z/2)/sinh²(1/2b))."""
        twice = 2 * jnp.sinh(0.5 / self.scale) ** 2
        return inverted(1 - (jnp.cosh(c) * jnp.cos(t) - 1) / twice, -jnp.sinh(c) * jnp.sin(t) / twice)
