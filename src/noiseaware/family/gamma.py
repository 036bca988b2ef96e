"""The gamma family: a rate, when the shape is known.

    t(x) = x        η = −rate        A(η) = −shape · log(−η)
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family._family import (
    AbstractUnboundedFamily,
    Bounds,
    Outside,
    checked_bounds,
    checked_outside,
    checked_positive,
)
from noiseaware.family._special import log_gammainc, log_gammaincc
from noiseaware.prior import Gamma as GammaPrior
from noiseaware.prior import Numeric


class Gamma(AbstractUnboundedFamily):
    """Gamma(shape, rate) with a known shape, so that a record has mean shape/rate."""

    column: str | None = eqx.field(static=True)
    bounds: Bounds | None = eqx.field(static=True)
    outside: Outside = eqx.field(static=True)
    shape: float = eqx.field(static=True)
    name: ClassVar[str] = "gamma"
    conjugate: ClassVar[type] = GammaPrior
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
    ceiling: ClassVar[float] = 0.0
    is_integer: ClassVar[bool] = False
    support: ClassVar[Bounds] = (0.0, float("inf"))

    def __init__(
        self,
        column: str | None = None,
        bounds: object = None,
        shape: float | None = None,
        outside: str = "clamp",
    ) -> None:
        self.column = column
        self.bounds = checked_bounds(bounds)
        self.outside = checked_outside(outside)
        if shape is None:
            raise ValueError("shape must be given: a gamma with unknown shape cannot be released yet.")
        self.shape = checked_positive("shape", shape)

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return -theta[None]

    def from_natural(self, eta: Float[Array, "1"]) -> Float[Array, ""]:
        return -eta[0]

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return -self.shape * jnp.log(-eta[0])

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return jax.random.gamma(key, self.shape, (n,)) / theta

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, ""], other: Float[Array, ""]
    ) -> Num[Array, " n"]:
        return x * (theta / other)

    def update(self, prior: GammaPrior, s: Num[Array, "*batch 1"], n: Numeric) -> GammaPrior:
        return GammaPrior(prior.shape + n * self.shape, prior.rate + s[..., 0])

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return jnp.maximum(s, 0)

    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        return 0.0, jnp.inf

    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        return xlogy(n * self.shape - 1.0, s) - gammaln(n * self.shape)

    def log_density(self, x: Float[Array, "..."], theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.shape * jnp.log(theta) + xlogy(self.shape - 1.0, x) - theta * x - gammaln(self.shape)

    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return log_gammainc(jnp.asarray(self.shape, theta.dtype), theta * max(x, 0.0))

    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        if x <= 0:
            return jnp.zeros_like(theta)
        return log_gammaincc(jnp.asarray(self.shape, theta.dtype), theta * x)

    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return (
            jnp.maximum(self.shape - 9.5 * self.shape**0.5, 0.0) / theta,
            (self.shape + 9.5 * self.shape**0.5 + 45) / theta,
        )

    @property
    def head(self) -> float:
        return self.shape
