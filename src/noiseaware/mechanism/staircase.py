"""The staircase mechanism on whole numbers (Geng & Viswanath 2016): of all noise that keeps a pure ε, the least.

    P(kw + j) = P(−kw − j) = a e^{−kε} for 0 ≤ j < r, a e^{−(k+1)ε} for r ≤ j < w        k = 0, 1, 2, …

with stairs of width w, of which the first r steps are high, q = e^{−ε} and a = (1 − q)/(2r + 2q(w − r) − (1 − q)). As
of Laplace noise the scale is b = w/ε, in which the tails fall by e. With z = e^{it},

    φ(t) = a (2 Re [(1 + … + z^{r−1}) + q (z^r + … + z^{w−1})]/(1 − qz^w) − 1)

Proof sketch. P falls in |i|, and P(i + w) = e^{−ε}P(i) for i ≥ 0. For |d| ≤ w, |i + d| ≤ |i| + w, so that
P(i + d) ≥ e^{−ε}P(i): one statistic that moves by up to w costs ε, and by up to kw costs kε. Of several statistics that
move by S in all, t = min(their number, S) may each pass the edge of a stair by moving one step, and what is left of S
passes an edge more for each w of it: t + ⌊(S − t)/w⌋ stairs, each of which costs ε.

The density jumps, so that no quadrature and no chain on smooth coordinates may be used: counts are inferred by listing
their sums. The custodian draws it from OpenDP's integers (custodian/noise.py).
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._laplace import LaplaceShape
from noiseaware.mechanism._mechanism import (
    AbstractMechanism,
    Spread,
    as_spread,
    check_positive,
    least,
    log_less,
    mirrored,
)
from noiseaware.mechanism.laplace import Laplace
from noiseaware.privacy import Pure


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != round(value):
        raise ValueError(f"width and step must be whole numbers, got {value!r}.")
    return int(value)


class Staircase(AbstractMechanism):
    """Staircase noise of scale w/ε, with r high steps in each stair of w, in units of the release's grid."""

    scale: Spread = eqx.field(converter=as_spread)
    width: int = eqx.field(static=True, converter=_whole)
    step: int = eqx.field(static=True, converter=_whole)
    name: ClassVar[str] = "staircase"
    title: ClassVar[str] = "staircase"
    since: ClassVar[int] = 5
    promises: ClassVar[str | None] = "pure"
    settings: ClassVar[tuple[str, ...]] = ("width", "step")
    is_discrete: ClassVar[bool] = True
    shape: ClassVar[type[LaplaceShape]] = LaplaceShape

    def __check_init__(self) -> None:
        check_positive("scale", self.scale)
        if not 1 <= self.step <= self.width <= _WIDEST:
            raise ValueError(f"step and width must be 1 ≤ step ≤ width ≤ 2^40, got {self.step} and {self.width}.")

    @classmethod
    def optimal(cls, epsilon: float, width: int) -> "Staircase":
        """Return the law that keeps ε for one statistic which neighbours move by up to `width`, of least E|noise|.

        The best share of high steps of a continuous law is 1/(1 + e^{ε/2}); one of the two steps next to it is best.
        """
        best = width / (1 + math.exp(epsilon / 2))
        steps = {min(max(step, 1), width) for step in (math.floor(best), math.ceil(best))}
        return min((cls(width / epsilon, width, step) for step in sorted(steps)), key=lambda law: law._mean_size)

    @property
    def spread(self) -> Spread:
        return self.scale

    @property
    def is_stepped(self) -> bool:
        return True

    @property
    def _loss(self) -> Any:
        """ε of a stair."""
        return self.width / self.scale

    @property
    def _decay(self) -> Any:
        """q = e^{−ε}."""
        return np.exp(-self._loss) if _is_known(self.scale) else jnp.exp(-self._loss)

    @property
    def _half(self) -> Any:
        """The sum of P(i)/P(0) over i ≥ 0; over all i it is twice that, less 1."""
        q = self._decay
        return (self.step + q * (self.width - self.step)) / -(np if _is_known(q) else jnp).expm1(-self._loss)

    def _sums(self, power: int) -> tuple[float, float]:
        """Σ j^power over the high steps of a stair, and over the low ones."""
        r, w = self.step, self.width
        high, whole = ((m * (m - 1) / 2, (m - 1) * m * (2 * m - 1) / 6)[power - 1] for m in (r, w))
        return high, whole - high

    @property
    def _mean_size(self) -> float:
        """E|noise|."""
        q, (high, low) = self._decay, self._sums(1)
        inner = self.step + q * (self.width - self.step)
        return float(2 * (self.width * inner * q / (1 - q) ** 2 + (high + q * low) / (1 - q)) / (2 * self._half - 1))

    @property
    def variance(self) -> Spread:
        """Σ i² P(i), with Σ_k q^k, Σ_k k q^k and Σ_k k² q^k in closed form."""
        q, w = self._decay, self.width
        rest = -(np if _is_known(q) else jnp).expm1(-self._loss)
        (high, low), (high_squared, low_squared) = self._sums(1), self._sums(2)
        stairs = w**2 * (self.step + q * (w - self.step)) * q * (1 + q) / rest**3
        within = 2 * w * (high + q * low) * q / rest**2 + (high_squared + q * low_squared) / rest
        return 2 * (stairs + within) / (2 * self._half - 1)

    def exponent(self, x: Any) -> Any:
        """ε for each edge of a stair that is passed."""
        return ((abs(x) - self.step) // self.width + 1) * self._loss

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        return -self.exponent(x) - jnp.log(2 * self._half - 1)

    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """From the tails: about 0, 1 less both of them."""
        low, high = mirrored(jnp.ceil(low), jnp.floor(high))
        about = jnp.log1p(-jnp.exp(self._log_tail(high + 1)) - jnp.exp(self._log_tail(1 - jnp.minimum(low, 0.0))))
        below = log_less(self._log_tail(-jnp.minimum(high, 0.0)), self._log_tail(1 - low))
        return jnp.where(high >= 0, about, below)

    def _log_tail(self, start: Any) -> Any:
        """log P(i ≥ start) for whole start ≥ 0: a q^k (Σ of a stair and all after it, less the steps before start)."""
        xp = np if _is_known(start) and _is_known(self.scale) else jnp
        is_finite = xp.isfinite(start)
        start = xp.where(is_finite, start, 0.0)
        k, j = start // self.width, start % self.width
        passed = xp.minimum(j, self.step) + self._decay * xp.maximum(j - self.step, 0.0)
        log_tail = xp.log(self._half - passed) - k * self._loss - xp.log(2 * self._half - 1)
        return xp.where(is_finite, log_tail, -xp.inf)

    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """By half angles: the sums of powers are ratios of sines, and nothing cancels where the scale is large."""
        t = jnp.mod(t + jnp.pi, 2 * jnp.pi) - jnp.pi
        q, theta, r, rest = self._decay, self.width * t, self.step, -jnp.expm1(-jnp.asarray(self._loss))
        size = rest**2 + 4 * q * jnp.sin(theta / 2) ** 2

        def part(first: int, count: int) -> Float[Array, "..."]:
            """Re (z^first + … + z^{first+count−1})/(1 − qz^w)."""
            half = jnp.sin(t / 2)
            ratio = jnp.where(half == 0, count, jnp.sin(count * t / 2) / jnp.where(half == 0, 1.0, half))
            alpha = t * (first + (count - 1) / 2)
            turned = rest * jnp.cos(alpha) - 2 * q * jnp.sin(alpha - theta / 2) * jnp.sin(theta / 2)
            return ratio * turned / size

        half = part(0, r) + q * part(r, self.width - r)
        return (2 * half - 1) / (2 * self._half - 1)

    def below(self, x: np.ndarray) -> np.ndarray:
        whole = np.floor(x)
        tail = np.exp(np.asarray(self._log_tail(np.where(whole < 0, -whole, whole + 1))))
        return np.where(whole < 0, tail, 1 - tail)

    def _quantile(self, u: Any, xp: Any) -> Any:
        """The noise at a share u of all mass, put in the order 0, 1, 2, …, −1, −2, …"""
        total = self._half
        place = u * (2 * total - 1)
        is_negative = place >= total
        place = xp.where(is_negative, place - total + 1, place)  # 0 is on the other side already
        k = xp.floor(-xp.log1p(-xp.minimum(place / total, _NEARLY_ONE)) / self._loss)
        left = (place + total * xp.expm1(-k * self._loss)) * xp.exp(k * self._loss)
        j = xp.where(left < self.step, xp.floor(left), self.step + xp.floor((left - self.step) / self._decay))
        size = k * self.width + xp.clip(j, 0, self.width - 1)
        return xp.where(is_negative, -xp.maximum(size, 1), size)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Return draws by the inverse of the mass, put in the order 0, 1, 2, …, −1, −2, …"""
        return self._quantile(jax.random.uniform(key, shape), jnp)

    def simulated(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return self._quantile(rng.random(count), np)

    def guarantee(self, sensitivity: float, num_statistics: int | None = None) -> Pure:
        return Pure(self.stairs(sensitivity, num_statistics) * self.width / least(self.scale))

    def stairs(self, sensitivity: float, num_statistics: int | None = None) -> int:
        """Return how many edges of stairs whole statistics pass at most that move by so much in all."""
        moved = math.ceil(Fraction(sensitivity))
        together = moved if num_statistics is None else min(num_statistics, moved)
        return together + (moved - together) // self.width

    def continuous(self, unit: float = 1.0) -> Laplace:
        """The Laplace law of its scale, between e^{−ε} and e^ε times its mass but for a constant."""
        return Laplace(self.scale * unit)

    def smooth(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.continuous().smooth(x)


_WIDEST = 2**40
_NEARLY_ONE = 1 - 1e-16


def _is_known(value: Any) -> bool:
    """True if a number is no array of JAX."""
    return not isinstance(value, jax.Array)
