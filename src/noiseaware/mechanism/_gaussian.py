"""Gaussian noise, continuous or discrete: its tails and its tilts.

E e^{zx} = e^{σ²z²/2}, without poles        N(0, σ²) ∗ N(0, s²) = N(0, σ² + s²)
"""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.mechanism._mechanism import (
    AbstractMechanism,
    AbstractShape,
    AbstractTilt,
    Spread,
    as_spread,
    check_positive,
    least,
)
from noiseaware.privacy import ZeroConcentrated


class AbstractGaussian(AbstractMechanism):
    """Gaussian noise, continuous or discrete."""

    stddev: eqx.AbstractVar[Spread]
    spread_title: ClassVar[str] = "standard deviation"
    promises: ClassVar[str | None] = "zcdp"
    weighs: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    reach: ClassVar[float] = 9.0

    def __check_init__(self) -> None:
        check_positive("stddev", self.stddev)

    @property
    def spread(self) -> Spread:
        return self.stddev

    def exponent(self, x: Any) -> Any:
        return 0.5 * (x / self.stddev) ** 2

    def guarantee(self, sensitivity: float, num_statistics: int | None = None) -> ZeroConcentrated:
        return ZeroConcentrated(Fraction(sensitivity) ** 2 / (2 * least(self.stddev) ** 2))

    def simulated(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return np.round(rng.normal(0, np.asarray(self.stddev, dtype=float), count))

    @property
    def mixture(self) -> "GaussianShape":
        return GaussianShape(self.stddev)

    @property
    def tilt(self) -> "GaussianTilt":
        return GaussianTilt(self.stddev)


class GaussianShape(AbstractShape):
    """Normal noise of a fixed variance."""

    scale: Spread = eqx.field(converter=as_spread)
    is_random: ClassVar[bool] = False
    variance_of_unit: ClassVar[float] = 1.0

    def variance(self, hidden: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.asarray(self.scale**2 * 1.0)

    def draw_variance(self, key: Key[Array, ""], noise: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.full_like(noise, self.scale**2)

    def log_convolved(self, off: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
        total = variance + jnp.asarray(self.scale) ** 2
        return -0.5 * off**2 / total - 0.5 * jnp.log(2 * jnp.pi * total)

    @staticmethod
    def unit_quantile(u: np.ndarray) -> np.ndarray:
        from scipy import special

        return special.ndtri(u)

    @staticmethod
    def unit_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.normal(size=shape)

    @staticmethod
    def unit_variances(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)

    @staticmethod
    def unit_exponent(z: np.ndarray) -> np.ndarray:
        return 0.5 * z**2

    @staticmethod
    def log_density_with(off: np.ndarray, own: np.ndarray, variance: float) -> np.ndarray:
        total = np.maximum(own + variance, 1e-300)
        return -0.5 * off**2 / total - 0.5 * np.log(2 * np.pi * total)

    @staticmethod
    def below_with(x: np.ndarray, sd: np.ndarray, variance: float) -> np.ndarray:
        from scipy import special

        return special.ndtr(x / np.sqrt(sd**2 + variance))

    @staticmethod
    def lower_quantile(u: np.ndarray) -> np.ndarray:
        from scipy import special

        return special.ndtri(u)


class GaussianTilt(AbstractTilt):
    """Normal noise under a tilt c, which moves it by σ²c."""

    scale: Spread = eqx.field(converter=as_spread)

    @property
    def pole(self) -> None:
        return None

    @property
    def log_residue(self) -> Float[Array, ""]:
        return jnp.asarray(-jnp.inf)

    def log_mgf(self, c: Float[Array, ""]) -> Float[Array, ""]:
        return 0.5 * (self.scale * c) ** 2

    def slope(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return self.scale**2 * c, self.scale**2 + jnp.zeros_like(c)

    def factor(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        return 0.5 * self.scale**2 * (c**2 - t**2), self.scale**2 * c * t

    def place(self, c: Float[Array, ""]) -> float | Float[Array, ""]:
        return self.scale**2 * c

    def limited(self, c: Float[Array, ""]) -> Float[Array, ""]:
        return c
