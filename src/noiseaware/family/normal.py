"""The normal family: a mean when the variance is known, or both.

    variance known      t(x) = x          η = mean/variance
    both unknown        t(x) = (u, u²)    η = (m/v, −1/2v)      A(η) = −η₁²/4η₂ − log(−2η₂)/2

With both unknown, u = (x − centre)/half takes the bounds to ±1, where they are given (query/moments.py). Here
m = (mean − centre)/half and v = variance/half².
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family import recorded
from noiseaware.family._clipped import powers
from noiseaware.family._family import AbstractTruncatedFamily, AbstractUnboundedFamily, checked_positive
from noiseaware.family._power import AbstractPowerFamily
from noiseaware.family.glossary import Meaning
from noiseaware.family.multivariate_normal import MultivariateNormal
from noiseaware.family.recorded import Recorded
from noiseaware.prior import Normal as NormalPrior
from noiseaware.prior import NormalInverseGamma, NormalInverseWishart, Numeric
from noiseaware.query import PowerSums, Sum

_IN_DEVIATIONS = (-2, 20)
"""Exponents of the least and the greatest bound that may be chosen privately, in units of the standard deviation."""


def Normal(
    column: str | None = None, bounds: object = None, variance: float | None = None, outside: str = "clamp"
) -> "NormalMean | NormalMeanVariance":
    """Normal(mean, variance); a variance that is given is known."""
    if variance is None:
        return NormalMeanVariance(column, bounds, outside)
    return NormalMean(column, bounds, variance, outside)


class NormalMean(AbstractUnboundedFamily):
    """Normal(mean, variance) with a known variance."""

    query: Sum = eqx.field(static=True)
    variance: float = eqx.field(static=True)
    name: ClassVar[str] = "normal"
    records: ClassVar[str] = "measurements (normal)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"mean": Meaning("the mean")}
    conjugate: ClassVar[type] = NormalPrior
    parameters: ClassVar[tuple[str, ...]] = ("mean",)
    ceiling: ClassVar[float] = float("inf")

    def __init__(
        self,
        column: str | None = None,
        bounds: object = None,
        variance: float = 1.0,
        outside: str = "clamp",
    ) -> None:
        self.variance = checked_positive("variance", variance)
        unit = math.floor(math.log2(self.variance) / 2)
        self.query = Sum(column, bounds, outside, ladder=(unit + _IN_DEVIATIONS[0], unit + _IN_DEVIATIONS[1]))

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return (theta / self.variance)[None]

    def from_natural(self, eta: Float[Array, "1"]) -> Float[Array, ""]:
        return self.variance * eta[0]

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return 0.5 * self.variance * eta[0] ** 2

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return theta + self.variance**0.5 * jax.random.normal(key, (n,))

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, ""], other: Float[Array, ""]
    ) -> Num[Array, " n"]:
        return x + (other - theta)

    def update(self, prior: NormalPrior, s: Num[Array, "*batch 1"], n: Numeric) -> NormalPrior:
        precision = 1 / prior.variance + n / self.variance
        location = prior.mean / prior.variance + s[..., 0] / self.variance
        return NormalPrior(location / precision, 1 / precision)

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return s

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return theta, np.full_like(theta, self.variance), np.zeros_like(theta)

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

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        both = draws["mean"], np.full_like(draws["mean"], self.variance)
        return recorded.of(self, both, recorded.normal, *both, is_altered=is_altered)

    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return theta - 9.5 * self.variance**0.5, theta + 9.5 * self.variance**0.5

    @property
    def head(self) -> float:
        return 1.0


class NormalMeanVariance(AbstractPowerFamily, AbstractTruncatedFamily):
    """Normal(mean, variance) with both unknown: θ is the pair of them."""

    query: PowerSums = eqx.field(static=True)
    name: ClassVar[str] = "normal"
    records: ClassVar[str] = NormalMean.records
    glossary: ClassVar[Mapping[str, Meaning]] = {**NormalMean.glossary, "variance": Meaning("the variance")}
    conjugate: ClassVar[type] = NormalInverseGamma
    parameters: ClassVar[tuple[str, ...]] = ("mean", "variance")

    def __init__(self, column: str | None = None, bounds: object = None, outside: str = "clamp") -> None:
        self.query = PowerSums(column, bounds, outside)

    def natural(self, theta: Float[Array, "2"]) -> Float[Array, "2"]:
        m, v = (theta[0] - self.query.middle) / self.query.unit, theta[1] / self.query.unit**2
        return jnp.stack([m / v, -0.5 / v])

    def from_natural(self, eta: Float[Array, "2"]) -> Float[Array, "2"]:
        v = -0.5 / eta[1]
        return jnp.stack([self.query.middle + self.query.unit * eta[0] * v, self.query.unit**2 * v])

    def log_partition(self, eta: Inexact[Array, "2"]) -> Inexact[Array, ""]:
        return -0.25 * eta[0] ** 2 / eta[1] - 0.5 * jnp.log(-2 * eta[1])

    def log_below(self, x: float, theta: Float[Array, "*batch 2"]) -> Float[Array, "*batch"]:
        return log_ndtr((x - theta[..., 0]) / jnp.sqrt(theta[..., 1]))

    def log_above(self, x: float, theta: Float[Array, "*batch 2"]) -> Float[Array, "*batch"]:
        return log_ndtr((theta[..., 0] - x) / jnp.sqrt(theta[..., 1]))

    def sample(self, key: Key[Array, ""], theta: Float[Array, "2"], n: int) -> Num[Array, " n"]:
        return theta[0] + jnp.sqrt(theta[1]) * jax.random.normal(key, (n,))

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, "2"], other: Float[Array, "2"]
    ) -> Num[Array, " n"]:
        return other[0] + (x - theta[0]) * jnp.sqrt(other[1] / theta[1])

    def update(self, prior: NormalInverseGamma, s: Num[Array, "*batch 2"], n: Numeric) -> NormalInverseGamma:
        """In units of u, and back."""
        average = s[..., 0] / n
        m = (prior.mean - self.query.middle) / self.query.unit
        precision = prior.precision + n
        within = s[..., 1] - n * average**2
        between = prior.precision * n / precision * (average - m) ** 2
        return NormalInverseGamma(
            self.query.middle + self.query.unit * (prior.precision * m + s[..., 0]) / precision,
            precision,
            prior.shape + 0.5 * n,
            prior.scale + 0.5 * self.query.unit**2 * (within + between),
        )

    def released_moments(self, theta: Float[Array, "2"]) -> tuple[Float[Array, "2"], Float[Array, "2 2"]] | None:
        """Mean and covariance of what the bounds leave of (u, u²), in closed form."""
        if not self.query.is_altered:
            return None
        m, sd = (theta[0] - self.query.middle) / self.query.unit, jnp.sqrt(theta[1]) / self.query.unit
        one, two, three, four = powers(m, sd, 4, keeps_outside=self.query.outside == "clamp")
        mean = jnp.stack([one, two])
        second = jnp.stack([jnp.stack([two, three]), jnp.stack([three, four])])
        return mean, second - jnp.outer(mean, mean)

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        both = draws["mean"], draws["variance"]
        return recorded.of(self, both, recorded.normal, *both, is_altered=is_altered)

    @property
    def remedy(self) -> str:
        if self.query.bounds is not None and self.query.bounds[0] >= 0:
            return "Wider bounds would help or, for a positive skewed column, the gamma family."
        return super().remedy

    def as_quadratic(self, prior: Any) -> tuple[MultivariateNormal, NormalInverseWishart] | None:
        if self.query.is_altered:
            return None
        wishart = NormalInverseWishart(
            jnp.reshape(prior.mean, 1), prior.precision, jnp.reshape(2 * prior.scale, (1, 1)), 2 * prior.shape
        )
        return MultivariateNormal(dimension=1), wishart
