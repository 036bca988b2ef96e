"""The Poisson family: counts of events.

t(x) = x        η = log θ        A(η) = e^η
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
from noiseaware.family._special import log_gammainc, log_gammaincc
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import Gamma, Numeric
from noiseaware.query import Sum


class Poisson(AbstractUnboundedFamily):
    """Poisson(θ) with mean θ."""

    query: Sum = eqx.field(static=True)
    name: ClassVar[str] = "poisson"
    records: ClassVar[str] = "counts of events (Poisson)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"theta": Meaning("the mean count")}
    conjugate: ClassVar[type] = Gamma
    parameters: ClassVar[tuple[str, ...]] = ("theta",)
    ceiling: ClassVar[float] = float("inf")

    def __init__(self, column: str | None = None, bounds: object = None, outside: str = "clamp") -> None:
        self.query = Sum(column, bounds, outside, is_whole=True, support=(0.0, float("inf")))

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return jnp.log(theta)[None]

    def from_natural(self, eta: Float[Array, "1"]) -> Float[Array, ""]:
        return jnp.exp(eta[0])

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return jnp.exp(eta[0])

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return jax.random.poisson(key, theta, (n,)).astype(theta.dtype)

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, ""], other: Float[Array, ""]
    ) -> Num[Array, " n"]:
        """Events are thinned where θ falls, and others join them where it rises."""
        key_kept, key_new = jax.random.split(key)
        kept = jax.random.binomial(key_kept, x, jnp.minimum(other / theta, 1.0), x.shape)
        return kept + jax.random.poisson(key_new, jnp.maximum(other - theta, 0.0), x.shape).astype(theta.dtype)

    def update(self, prior: Gamma, s: Num[Array, "*batch 1"], n: Numeric) -> Gamma:
        return Gamma(prior.shape + s[..., 0], prior.rate + n)

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return jnp.maximum(s, 0)

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return theta, theta, theta

    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        return 0.0, jnp.inf

    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        return xlogy(s, n) - gammaln(s + 1.0)

    def log_density(self, x: Float[Array, "..."], theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return xlogy(x, theta) - theta - gammaln(x + 1.0)

    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        if x < 0:
            return jnp.full_like(theta, -jnp.inf)
        return log_gammaincc(jnp.asarray(x + 1.0, theta.dtype), theta)

    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        if x <= 0:
            return jnp.zeros_like(theta)
        return log_gammainc(jnp.asarray(x, theta.dtype), theta)

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        mean = draws["theta"]
        return recorded.of(self, (mean, mean), recorded.poisson, mean, is_altered=is_altered)

    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return (
            jnp.maximum(jnp.floor(theta - 9.5 * jnp.sqrt(theta)), 0.0),
            jnp.ceil(theta + 9.5 * jnp.sqrt(theta) + 45),
        )

    @property
    def head(self) -> float:
        return 1.0
