"""Laplace noise, continuous or discrete: its tails, its mixture and its tilts.

    e^{−|x|/b} ∝ ∫ N(x; 0, v) Exp(v; mean 2b²) dv        v given x: 1/v ~ InverseGaussian(1/(b|x|), 1/b²)
    E e^{zx} = 1/(1 − b²z²), discrete 1/(1 − sinh²(z/2)/sinh²(1/2b)), with poles at z = ±1/b

With a normal sum of mean 0 and variance s², z = d/s and T(x) = log Φ(−x) + x²/2, noise d of both has the density
(1/2b) Σ_± exp(−z²/2 + T(s/b ∓ z)), which is e^{s²/2b²} Φ(−s/b ± z) e^{∓d/b} without its cancelling.
"""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Key

from noiseaware.mechanism._gaussian import GaussianShape
from noiseaware.mechanism._mechanism import (
    AbstractMechanism,
    AbstractShape,
    AbstractTilt,
    Spread,
    as_spread,
    check_positive,
    least,
)
from noiseaware.privacy import Pure

_FAR = 20.0  # from here on the series of T is right to 1e−10
_WIDE = 300.0  # scales: where a normal sum is wider, it hides the noise, and the formula loses all figures
_HIDDEN = 30.0  # scales from which a normal sum hides the shape of the noise in a probability


class AbstractLaplace(AbstractMechanism):
    """Laplace noise, continuous or discrete."""

    scale: eqx.AbstractVar[Spread]
    promises: ClassVar[str | None] = "pure"

    def __check_init__(self) -> None:
        check_positive("scale", self.scale)

    @property
    def spread(self) -> Spread:
        return self.scale

    def exponent(self, x: Any) -> Any:
        return abs(x) / self.scale

    def smooth(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """−2√(1 + (x/2b)²): the tails of the law, and at 0 the curvature of its variance."""
        return -2 * jnp.sqrt(1 + (0.5 * x / self.scale) ** 2)

    def guarantee(self, sensitivity: float, num_statistics: int | None = None) -> Pure:
        return Pure(Fraction(sensitivity) / least(self.scale))

    @property
    def mixture(self) -> "LaplaceShape":
        return LaplaceShape(self.scale)


class LaplaceShape(AbstractShape):
    """Normal noise of variance 2b²w with w ~ Exp(1) (Park & Casella 2008)."""

    scale: Spread = eqx.field(converter=as_spread)
    is_random: ClassVar[bool] = True
    variance_of_unit: ClassVar[float] = 2.0

    def variance(self, hidden: Float[Array, "..."]) -> Float[Array, "..."]:
        """2b²w with w = −log Φ(−u)."""
        return self.scale**2 * (-2 * log_ndtr(-hidden))

    def draw_variance(self, key: Key[Array, ""], noise: Float[Array, " k"]) -> Float[Array, " k"]:
        """By the two roots of Michael, Schucany & Haas (1976) for w = σ²/b², without cancelling at noise = 0:
        w₁ = r + ν/2 + √(rν + ν²/4) with r = |noise|/b and ν ~ χ²₁, taken with probability w₁/(w₁ + r), or else r²/w₁.
        """
        key_normal, key_root = jax.random.split(key)
        r = jnp.abs(noise) / self.scale
        v = jax.random.normal(key_normal, noise.shape) ** 2
        large = r + 0.5 * v + jnp.sqrt(r * v + 0.25 * v**2)
        is_large = jax.random.uniform(key_root, noise.shape) * (large + r) < large
        return self.scale**2 * jnp.where(is_large, large, r**2 / jnp.maximum(large, 1e-300))

    def log_convolved(self, off: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
        scale, sd = jnp.asarray(self.scale), jnp.sqrt(variance)
        sides = [_side(sign * off, sd, scale) for sign in (1.0, -1.0)]
        return jnp.logaddexp(*sides) - jnp.log(2 * scale)

    @staticmethod
    def unit_quantile(u: np.ndarray) -> np.ndarray:
        return -np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5)) / np.sqrt(2)

    @staticmethod
    def unit_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.laplace(0, 0.5**0.5, shape)

    @staticmethod
    def unit_variances(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.exponential(size=shape)

    @staticmethod
    def unit_exponent(z: np.ndarray) -> np.ndarray:
        return np.abs(z) * 2**0.5

    @staticmethod
    def log_density_with(off: np.ndarray, own: np.ndarray, variance: float) -> np.ndarray:
        from scipy import special

        scale = max(np.sqrt(variance / 2), 1e-150)
        sd = np.clip(np.sqrt(own), 1e-9 * scale, _WIDE * scale)
        sides = [sign * off / scale + special.log_ndtr(-sd / scale - sign * off / sd) for sign in (1, -1)]
        both = 0.5 * (sd / scale) ** 2 + np.logaddexp(*sides) - np.log(2 * scale)
        normal = GaussianShape.log_density_with(off, own, variance)
        return np.where(own > (_WIDE * scale) ** 2, normal, both)

    @staticmethod
    def below_with(x: np.ndarray, sd: np.ndarray, variance: float) -> np.ndarray:
        from scipy import special

        plain = GaussianShape.below_with(x, sd, variance)
        if variance == 0:
            return plain
        scale = np.sqrt(variance / 2)
        s = np.clip(sd / scale, 1e-9, _HIDDEN)
        x = np.clip(x / scale, -1e6, 1e6)
        sides = [np.exp(s**2 / 2 - sign * x + special.log_ndtr(sign * x / s - s)) for sign in (1, -1)]
        both = special.ndtr(x / s) - 0.5 * (sides[0] - sides[1])
        return np.where(sd > _HIDDEN * scale, plain, np.clip(both, 0.0, 1.0))

    @staticmethod
    def lower_quantile(u: np.ndarray) -> np.ndarray:
        return np.log(2 * u)


class AbstractLaplaceTilt(AbstractTilt):
    """Laplace noise of scale b under a tilt c, |c| < 1/b."""

    @property
    def pole(self) -> Spread:
        return 1 / self.scale

    def log_mgf(self, c: Float[Array, ""]) -> Float[Array, ""]:
        return -jnp.log1p(-((self.scale * c) ** 2))

    def slope(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        square = (self.scale * c) ** 2
        return 2 * self.scale**2 * c / (1 - square), 2 * self.scale**2 * (1 + square) / (1 - square) ** 2

    def place(self, c: Float[Array, ""]) -> float | Float[Array, ""]:
        return 0.0

    def limited(self, c: Float[Array, ""]) -> Float[Array, ""]:
        steepest = 1 / jnp.asarray(self.scale)
        return jnp.clip(c, -steepest, steepest)


def inverted(real: Float[Array, " m"], imaginary: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """log modulus and angle of 1/z."""
    return -0.5 * jnp.log(real**2 + imaginary**2), -jnp.arctan2(imaginary, real)


def _side(off: Float[Array, "..."], sd: Float[Array, "..."], scale: Float[Array, ""]) -> Float[Array, "..."]:
    """log of the part of the noise on one side of the sum: e^{s²/2b² − d/b} Φ(d/s − s/b)."""
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
