"""The normal family: a mean, when the variance is known.

    t(x) = x        η = θ/variance        A(η) = variance · η²/2
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family._family import (
    AbstractUnboundedFamily,
    Bounds,
    Outside,
    checked_bounds,
    checked_outside,
    checked_positive,
)
from noiseaware.prior import Normal as NormalPrior
from noiseaware.prior import Numeric


class Normal(AbstractUnboundedFamily):
    """Normal(mean, variance) with a known variance."""

    column: str | None = eqx.field(static=True)
    bounds: Bounds | None = eqx.field(static=True)
    outside: Outside = eqx.field(static=True)
    variance: float = eqx.field(static=True)
    name: ClassVar[str] = "normal"
    conjugate: ClassVar[type] = NormalPrior
    parameters: ClassVar[tuple[str, ...]] = ("mean",)
    ceiling: ClassVar[float] = float("inf")
    is_integer: ClassVar[bool] = False
    support: ClassVar[Bounds] = (-float("inf"), float("inf"))

    def __init__(
        self,
        column: str | None = None,
        bounds: object = None,
        variance: float | None = None,
        outside: str = "clamp",
    ) -> None:
        self.column = column
        self.bounds = checked_bounds(bounds)
        self.outside = checked_outside(outside)
        if variance is None:
            raise ValueError("variance must be given: a normal with unknown variance cannot be released yet.")
        self.variance = checked_positive("variance", variance)

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return (theta / self.variance)[None]

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return 0.5 * self.variance * eta[0] ** 2

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return theta + self.variance**0.5 * jax.random.normal(key, (n,))

    def update(self, prior: NormalPrior, s: Num[Array, "*batch 1"], n: Numeric) -> NormalPrior:
        precision = 1 / prior.variance + n / self.variance
        location = prior.mean / prior.variance + s[..., 0] / self.variance
        return NormalPrior(location / precision, 1 / precision)

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return s

    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        return -jnp.inf, jnp.inf

    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        return -0.5 * s**2 / (n * self.variance) - 0.5 * jnp.log(2 * jnp.pi * n * self.variance)

    def log_density(self, x: Float[Array, "..."], theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return -0.5 * (x - theta) ** 2 / self.variance - 0.5 * jnp.log(2 * jnp.pi * self.variance)

    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return log_ndtr((x - theta) / self.variance**0.5)

    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return log_ndtr((theta - x) / self.variance**0.5)

    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return theta - 9.5 * self.variance**0.5, theta + 9.5 * self.variance**0.5

    @property
    def head(self) -> float:
        return 1.0
