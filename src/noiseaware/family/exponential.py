"""The exponential family: waiting times.

t(x) = x        η = −θ        A(η) = −log(−η)
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family import recorded
from noiseaware.family._family import AbstractUnboundedFamily
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractScalarPrior, Gamma, InverseGamma, Numeric
from noiseaware.query import Sum


class Exponential(AbstractUnboundedFamily):
    """Exponential(θ) with rate θ, so that a record has mean 1/θ."""

    query: Sum = eqx.field(static=True)
    name: ClassVar[str] = "exponential"
    records: ClassVar[str] = "waiting times (exponential)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"theta": Meaning("the rate", ", one over the mean")}
    conjugate: ClassVar[type] = Gamma
    parameters: ClassVar[tuple[str, ...]] = ("theta",)
    ceiling: ClassVar[float] = 0.0

    def __init__(self, column: str | None = None, bounds: object = None, outside: str = "clamp") -> None:
        self.query = Sum(column, bounds, outside, support=(0.0, float("inf")))

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return -theta[None]

    def from_natural(self, eta: Float[Array, "1"]) -> Float[Array, ""]:
        return -eta[0]

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return -jnp.log(-eta[0])

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return jax.random.exponential(key, (n,)) / theta

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, ""], other: Float[Array, ""]
    ) -> Num[Array, " n"]:
        return x * (theta / other)

    def update(self, prior: Gamma, s: Num[Array, "*batch 1"], n: Numeric) -> Gamma:
        return Gamma(prior.shape + n, prior.rate + s[..., 0])

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return jnp.maximum(s, 0)

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return 1 / theta, 1 / theta**2, 2 / theta**3

    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        return 0.0, jnp.inf

    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        return xlogy(n - 1.0, s) - gammaln(jnp.asarray(n, s.dtype))

    def log_density(self, x: Float[Array, "..."], theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.where(x >= 0, jnp.log(theta) - theta * x, -jnp.inf)

    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.log(-jnp.expm1(-theta * max(x, 0.0)))

    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return -theta * max(x, 0.0)

    def recorded_belief(self, belief: Gamma, s: np.ndarray, n: float) -> tuple[AbstractScalarPrior, ...]:
        return (InverseGamma(float(belief.shape), float(belief.rate)),)

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        rate = draws["theta"]
        return recorded.of(self, (1 / rate, 1 / rate**2), recorded.gamma, 1.0, rate, is_altered=is_altered)

    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return jnp.zeros_like(theta), 45 / theta

    @property
    def head(self) -> float:
        return 1.0
