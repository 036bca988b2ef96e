"""The contract of a mechanism: the law of its noise, as data.

A mechanism does not draw private noise: the custodian does, with exact integers (custodian/noise.py); `sample` and
`simulated` here are floating point, for simulations only. A law brings all that is asked of it elsewhere: its words,
its name in files, its tails (`shape`), and, where it has them, its normal mixture (`mixture`) and its moment
generating function in the complex plane (`tilt`). A new law is its own file and a line in the registry, __init__.py.
"""

import abc
from fractions import Fraction
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num

from noiseaware.privacy import Guarantee

Spread = float | Float[Array, "..."]
"""One number for all statistics, or one for each of them, along the last axis."""


class AbstractLaw(eqx.Module):
    """The likelihood of a statistic s given a published value y, as a function of y − s alone."""

    def __repr__(self) -> str:
        return eqx.tree_pformat(self, short_arrays=False)

    @property
    def is_stepped(self) -> bool:
        """True if the density jumps, so that it cannot be interpolated, integrated by quadrature or walked on."""
        return False

    @property
    @abc.abstractmethod
    def spread(self) -> Spread:
        """The scale (Laplace) or standard deviation (Gaussian)."""

    @abc.abstractmethod
    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        """log p(y | s) at x = y − s."""


class AbstractShape(eqx.Module):
    """The tails of a law, as normal noise with a variance of its own: scale² times a random number, or a fixed one.

    Arrays of NumPy are for plans, where only the variance of the noise and the shape count; those of JAX for inference.
    """

    scale: Spread
    is_random: eqx.AbstractClassVar[bool]
    """True if the variance is random: then each statistic has a hidden coordinate."""
    variance_of_unit: eqx.AbstractClassVar[float]
    """The variance of noise of scale 1."""

    @abc.abstractmethod
    def variance(self, hidden: Float[Array, "..."]) -> Float[Array, "..."]:
        """The variance at a hidden coordinate that is standard normal."""

    @abc.abstractmethod
    def draw_variance(self, key: Key[Array, ""], noise: Float[Array, " k"]) -> Float[Array, " k"]:
        """The variance of each noise, drawn given the noise."""

    @abc.abstractmethod
    def log_convolved(self, off: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(off) of normal noise of this variance and the noise together."""

    @staticmethod
    @abc.abstractmethod
    def unit_quantile(u: np.ndarray) -> np.ndarray:
        """Quantiles of noise of variance 1."""

    @staticmethod
    @abc.abstractmethod
    def unit_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Draws of noise of variance 1."""

    @staticmethod
    @abc.abstractmethod
    def unit_variances(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Draws of the variance of noise whose mean variance is 1."""

    @staticmethod
    @abc.abstractmethod
    def unit_exponent(z: np.ndarray) -> np.ndarray:
        """−log p of noise of variance 1, up to a constant."""

    @staticmethod
    @abc.abstractmethod
    def log_density_with(off: np.ndarray, own: np.ndarray, variance: float) -> np.ndarray:
        """log p(off) of normal noise of variance `own` and noise of this variance together."""

    @staticmethod
    @abc.abstractmethod
    def below_with(x: np.ndarray, sd: np.ndarray, variance: float) -> np.ndarray:
        """P(normal noise of this sd + noise of this variance ≤ x)."""

    @staticmethod
    @abc.abstractmethod
    def lower_quantile(u: np.ndarray) -> np.ndarray:
        """Quantiles of noise of scale 1 at u ≤ ½."""


class AbstractTilt(eqx.Module):
    """The noise under a tilt e^{cx}, and its moment generating function E e^{zx} in the complex plane."""

    scale: Spread

    @property
    @abc.abstractmethod
    def pole(self) -> Spread | None:
        """The least c > 0 at which E e^{cx} is infinite; None where there is none."""

    @property
    @abc.abstractmethod
    def log_residue(self) -> Float[Array, ""]:
        """log of the factor that the pole's residue brings with it."""

    @abc.abstractmethod
    def log_mgf(self, c: Float[Array, ""]) -> Float[Array, ""]:
        """log E e^{cx} of continuous noise of the shape and scale."""

    @abc.abstractmethod
    def slope(self, c: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The first and the second derivative of log_mgf."""

    @abc.abstractmethod
    def factor(self, c: Float[Array, ""], t: Float[Array, " m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """log modulus and angle of E e^{zx} at z = c + it."""

    @abc.abstractmethod
    def place(self, c: Float[Array, ""]) -> float | Float[Array, ""]:
        """The noise at which log p has slope −c; at a kink, that."""

    @abc.abstractmethod
    def limited(self, c: Float[Array, ""]) -> Float[Array, ""]:
        """c within the slopes that log p has."""


class AbstractMechanism(AbstractLaw):
    """Additive noise with a known law, independent for each statistic."""

    name: eqx.AbstractClassVar[str]
    """The law's name in release files."""
    title: eqx.AbstractClassVar[str]
    """The law's name for people, as in "discrete Laplace"."""
    spread_title: ClassVar[str] = "scale"
    """The name of `spread` for people."""
    since: ClassVar[int] = 1
    """The first version of the release format that has the law."""
    is_noisy: ClassVar[bool] = True
    """False for the law of no noise."""
    promises: ClassVar[str | None] = None
    """The kind of promise that the noise keeps; None where it keeps none."""
    weighs: ClassVar[bool] = False
    """True if statistics that stand for several entries have a spread of their own (custodian/noise.py)."""
    adds_up: ClassVar[bool] = False
    """True if a weighted mean of values with such noise says all that they say together."""
    settings: ClassVar[tuple[str, ...]] = ()
    """The fields of the law besides its spread, which are numbers."""
    reach: ClassVar[float] = 45.0
    """Spreads beyond which the noise has a probability of less than e^−40."""
    is_discrete: eqx.AbstractClassVar[bool]
    """True if the noise takes whole numbers (of the release's grid) only."""
    shape: eqx.AbstractClassVar[type[AbstractShape]]
    """The tails of the law, or of the smooth law that it is nearest to."""

    @property
    @abc.abstractmethod
    def variance(self) -> Spread:
        """Of the noise of each statistic."""

    @abc.abstractmethod
    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        """log p(x) of the noise; for a discrete law, of its mass at whole x."""

    @abc.abstractmethod
    def exponent(self, x: Any) -> Any:
        """log p(0) − log p(x), for arrays of NumPy or JAX."""

    @abc.abstractmethod
    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """log P(low ≤ x ≤ high) for low ≤ high, either of which may be infinite; accurate far in the tails."""

    @abc.abstractmethod
    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """E e^{itx}, which is real because the noise is symmetric."""

    @abc.abstractmethod
    def below(self, x: np.ndarray) -> np.ndarray:
        """P(noise ≤ x), by NumPy."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Draws for simulations. Never add these to a private value."""

    @abc.abstractmethod
    def simulated(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Whole draws of about the law by NumPy, for simulations. Never add these to a private value."""

    @abc.abstractmethod
    def guarantee(self, sensitivity: float, num_statistics: int | None = None) -> Guarantee | None:
        """The promise that noise of this scale keeps for statistics of this sensitivity: of any number, unless stated.

        Of several scales the least counts: Σ|s_j − s'_j|/b_j ≤ ‖s − s'‖₁ / min b_j, and likewise for squares.
        """

    @abc.abstractmethod
    def continuous(self, unit: float = 1.0) -> "AbstractMechanism":
        """The smooth law of its shape, with a spread of `unit` for 1."""

    @classmethod
    def of(cls, spread: Any, **settings: float) -> Self:
        """The law of this spread, one or a list of them, and these settings."""
        law: Any = cls
        return law(spread, **settings)

    def with_spread(self, spread: Any) -> Self:
        """The law with another spread, all else being as it is."""
        return self.of(spread, **{name: getattr(self, name) for name in self.settings})

    @property
    def mixture(self) -> AbstractShape:
        """The noise as normal noise of random variance; refused where it is none (`is_stepped`)."""
        raise ValueError(f"mechanism must be a mixture of normal noise for this method, got {self.title} noise.")

    @property
    def tilt(self) -> AbstractTilt:
        """The noise under tilts; refused where its characteristic function does not fall (`is_stepped`)."""
        raise ValueError(f"mechanism must have a characteristic function that falls, got {self.title} noise.")

    def smooth(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(x) up to a constant, or that of a smooth law with the same tails: for the search of a mode."""
        return -self.exponent(x)

    def between_counts(
        self, part: Float[Array, ""]
    ) -> "tuple[AbstractMechanism, Float[Array, ''], list[Float[Array, '']]] | None":
        """For counts k and y = ⌊y⌋ + part: p(y − k) as a mixture of a discrete law at ⌊y⌋ and at ⌊y⌋ + 1.

        Return that law, the log of a constant and of the two shares; None where the law itself will do.
        """
        return None


def mirrored(low: Num[Array, "..."], high: Num[Array, "..."]) -> tuple[Num[Array, "..."], Num[Array, "..."]]:
    """The interval, or its mirror image if it lies above 0: then only one tail needs a formula."""
    is_above = low > 0
    return jnp.where(is_above, -high, low), jnp.where(is_above, -low, high)


def log_less(log_a: Float[Array, "..."], log_b: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(a − b) from log a ≥ log b; −∞ where they are the same."""
    gap = jnp.where(log_a > log_b, log_b - log_a, -1.0)
    return jnp.where(log_a > log_b, log_a + jnp.log(-jnp.expm1(gap)), -jnp.inf)


def as_spread(value: Any) -> Any:
    """A list of scales as an array; a number, and an array of JAX, as it is."""
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    try:
        if any(isinstance(entry, str | bytes | bool) for entry in value):
            raise TypeError
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"a scale must be a number, or a list of numbers, got {value!r}.") from None
    return float(numbers) if numbers.ndim == 0 else numbers


def least(spread: Spread) -> Fraction:
    """The least of the scales, exactly."""
    return Fraction(spread if isinstance(spread, int | float) else float(np.min(spread)))


def check_positive(name: str, value: object) -> None:
    """Refuse a scale that is not a positive finite number, or a list of them; what JAX holds passes."""
    if isinstance(value, jax.Array):
        return
    if isinstance(value, str | bytes | bool):
        raise ValueError(f"{name} must be a number, or a list of numbers, got {value!r}.")
    try:
        given = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.") from None
    if not given.size or not ((given > 0) & (given < float("inf"))).all():
        raise ValueError(f"{name} must be positive and finite, got {given.tolist() if given.ndim else value}.")
