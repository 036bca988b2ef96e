"""The gamma family: a rate when the shape is known, or both.

    shape known      t(x) = x          η = −rate        A(η) = −shape · log(−η)
    both unknown     t(x) = (u, u²)    released as a normal's mean and variance are (query/moments.py)

Records tell of both through Σ log x and Σx. Sums of logarithms are not the same whole numbers on every engine, so sums
of powers are released instead: for them there is no exponential family, and θ given records needs the records.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Bool, Float, Inexact, Key, Num

from noiseaware.check import kind
from noiseaware.family import _clipped_gamma, recorded
from noiseaware.family._family import AbstractUnboundedFamily, checked_positive
from noiseaware.family._power import AbstractPowerFamily
from noiseaware.family._special import log_gammainc, log_gammaincc
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Independent, InverseGamma, Numeric, StudentT
from noiseaware.prior import Gamma as GammaPrior
from noiseaware.query import PowerSums, Sum

_DEPTH = 40.0  # log densities this far below the mode are left out: e^−40 of the mass
_WIDEST = 20.0  # of log shape, to either side of 0, is looked at whatever the prior says
_COARSE, _FINE, _NARROWINGS = 33, 385, 4
_LEAST_MEAN = 1e-6  # in sd: noise may leave a mean that no positive records have


def Gamma(
    column: str | None = None, bounds: object = None, shape: float | None = None, outside: str = "clamp"
) -> "GammaRate | GammaShapeRate":
    """Gamma(shape, rate), so that a record has mean shape/rate; a shape that is given is known."""
    if shape is None:
        return GammaShapeRate(column, bounds, outside)
    return GammaRate(column, bounds, shape, outside)


class GammaRate(AbstractUnboundedFamily):
    """Gamma(shape, rate) with a known shape."""

    query: Sum = eqx.field(static=True)
    shape: float = eqx.field(static=True)
    name: ClassVar[str] = "gamma"
    records: ClassVar[str] = "positive amounts (gamma)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"rate": Meaning("the rate", ", shape over mean")}
    conjugate: ClassVar[type] = GammaPrior
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
    ceiling: ClassVar[float] = 0.0

    def __init__(
        self,
        column: str | None = None,
        bounds: object = None,
        shape: float = 1.0,
        outside: str = "clamp",
    ) -> None:
        self.query = Sum(column, bounds, outside, support=(0.0, float("inf")))
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

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.shape / theta, self.shape / theta**2, 2 * self.shape / theta**3

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

    def recorded_belief(self, belief: GammaPrior, s: np.ndarray, n: float) -> tuple[AbstractScalarPrior, ...]:
        return (InverseGamma(float(belief.shape), float(belief.rate) * self.shape),)

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        rate = draws["rate"]
        unbounded = self.shape / rate, self.shape / rate**2
        return recorded.of(self, unbounded, recorded.gamma, self.shape, rate, is_altered=is_altered)


class GammaShapeRate(AbstractPowerFamily):
    """Gamma(shape, rate) with both unknown: θ is the pair of them."""

    query: PowerSums = eqx.field(static=True)
    name: ClassVar[str] = "gamma"
    records: ClassVar[str] = GammaRate.records
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "shape": Meaning("the shape", ", the squared mean over the variance"),
        **GammaRate.glossary,
    }
    conjugate: ClassVar[type] = Independent
    parameters: ClassVar[tuple[str, ...]] = ("shape", "rate")

    def __init__(self, column: str | None = None, bounds: object = None, outside: str = "clamp") -> None:
        self.query = PowerSums(column, bounds, outside)
        if self.query.bounds is not None and self.query.bounds[1] <= 0:
            raise ValueError(f"bounds must reach above 0 for a gamma family, got {self.query.bounds}.")

    @property
    def is_natural(self) -> bool:
        return False

    def check_prior(self, prior: object) -> None:
        wanted = "prior must be Independent(shape=Gamma(…), rate=Gamma(…)) for a gamma family with unknown shape"
        if not isinstance(prior, Independent):
            raise ValueError(f"{wanted}, got {kind(prior)}.")
        if set(prior.names) != set(self.parameters) or not all(isinstance(p, GammaPrior) for p in prior.priors):
            got = ", ".join(f"{name}={type(part).__name__}" for name, part in prior.parts.items())
            raise ValueError(f"{wanted}, got Independent({got}).")

    def completed(self, prior: Any) -> Independent:
        """The same in the order of θ."""
        return Independent(shape=prior.parts["shape"], rate=prior.parts["rate"])

    def natural(self, theta: Float[Array, "2"]) -> Float[Array, "2"]:
        """θ itself: the sums are not those of an exponential family."""
        return theta

    def log_partition(self, eta: Inexact[Array, "2"]) -> Inexact[Array, ""]:
        raise NotImplementedError("the sums of a gamma with unknown shape are not those of an exponential family.")

    # ---- moments ---------------------------------------------------------------------------------------------

    def mean(self, theta: Float[Array, "2"]) -> Float[Array, "2"]:
        return self._unaltered(theta)[0]

    def covariance(self, theta: Float[Array, "2"]) -> Float[Array, "2 2"]:
        return self._unaltered(theta)[1]

    def _unaltered(self, theta: Float[Array, "2"]) -> tuple[Float[Array, "2"], Float[Array, "2 2"]]:
        """Of (u, u²), by the central moments shape · (1, 2, 3 shape + 6) of rate · x."""
        shape, scale = theta[0], 1 / (theta[1] * self.query.unit)
        m = (shape / theta[1] - self.query.middle) / self.query.unit
        two, three, four = shape * scale**2, 2 * shape * scale**3, 3 * shape * (shape + 2) * scale**4
        cross, square = three + 2 * m * two, four - two**2 + 4 * m * three + 4 * m**2 * two
        covariance = jnp.stack([jnp.stack([two, cross]), jnp.stack([cross, square])])
        return jnp.stack([m, two + m**2]), covariance

    def released_moments(self, theta: Float[Array, "2"]) -> tuple[Float[Array, "2"], Float[Array, "2 2"]]:
        """Mean and covariance of what the bounds leave of (u, u²)."""
        if self.query.bounds is None:
            return self._unaltered(theta)
        return _clipped_gamma.moments(
            theta[0], theta[1], self.query.bounds, keeps_outside=self.query.outside == "clamp"
        )

    def recorded_belief(self, belief: AbstractPrior, s: np.ndarray, n: float) -> tuple[AbstractScalarPrior, ...]:
        """Return the beliefs about a normal law's mean and variance, which these sums alone tell of."""
        average, square = s / n
        half, centre = self.query.unit, self.query.middle
        spread = max(square - average**2, 1e-12)
        dof = max(n - 1.0, 1.0)
        scale = float(half * np.sqrt(spread / n))
        middle = StudentT(dof, float(centre + half * average), scale)
        return middle, InverseGamma(0.5 * dof, 0.5 * dof * half**2 * spread)

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        shape, rate = draws["shape"], draws["rate"]
        unbounded = shape / rate, shape / rate**2
        return recorded.of(self, unbounded, recorded.gamma, shape, rate, is_altered=is_altered)

    # ---- records ---------------------------------------------------------------------------------------------

    def sample(self, key: Key[Array, ""], theta: Float[Array, "2"], n: int) -> Num[Array, " n"]:
        return jax.random.gamma(key, theta[0], (n,)) / theta[1]

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, "2"], other: Float[Array, "2"]
    ) -> Num[Array, " n"]:
        """Of two records in units of 1/rate, that of the larger shape is the other and more: Gamma(|s − s'|).

        (g, g + h) with g ~ Gamma(s), h ~ Gamma(s' − s) is one law of both; given the sum, g is a Beta(s, s' − s) part.
        """
        key_more, key_part = jax.random.split(key)
        size = x.shape[-1]
        more = jax.random.gamma(key_more, jnp.maximum(jnp.abs(other[0] - theta[0]), 1e-30), (size,))
        part = jax.random.gamma(key_part, other[0], (size,))
        z = x * theta[1]
        return jnp.where(other[0] >= theta[0], z + more, z * (part / (part + more))) / other[1]

    # ---- what is believed ------------------------------------------------------------------------------------

    def update(self, prior: Independent, s: Num[Array, "*batch 2"], n: Numeric) -> Independent:
        """About the fit of mean m and variance v, and no more than that: there is no conjugate law.

        With q = v/m² the fit has shape 1/q and rate m/v, whose logs have variances (2 + 2q)/n and (2 + 3q)/n. So each
        is told by as many records k of a Gamma(θ, ·) likelihood as have that variance: Gamma(a + k, b + k/fit).
        """
        average = s[..., 0] / n
        sd = self.query.unit * jnp.sqrt(jnp.maximum(s[..., 1] / n - average**2, 0.0))
        m = jnp.maximum(self.query.middle + self.query.unit * average, _LEAST_MEAN * sd + 1e-150)
        q = (sd / m) ** 2
        of_shape, of_rate, believed = n / (2 + 2 * q), n / (2 + 3 * q), prior.parts
        return Independent(
            shape=GammaPrior(believed["shape"].shape + of_shape, believed["shape"].rate + of_shape * q),
            rate=GammaPrior(believed["rate"].shape + of_rate, believed["rate"].rate + of_rate * q * m),
        )

    def given_records(
        self, key: Key[Array, ""], prior: Independent, x: Num[Array, " n"], is_counted: Bool[Array, " n"]
    ) -> Float[Array, "2"]:
        """The shape with the rate integrated out, then the rate; exact, so that both of augmentation's uses are valid.

        p(shape | x) ∝ p(shape) Γ(c + n·shape)/Γ(shape)ⁿ e^{shape·Σ log x} (d + Σx)^{−(c + n·shape)}
        """
        key_shape, key_rate = jax.random.split(key)
        believed, n = prior.parts["rate"], is_counted.sum(dtype=x.dtype)
        logs = jnp.where(is_counted, jnp.log(jnp.maximum(x, jnp.finfo(x.dtype).tiny)), 0.0).sum()
        rate = believed.rate + jnp.where(is_counted, x, 0.0).sum()

        def log_density(v: Float[Array, " m"]) -> Float[Array, " m"]:
            shape = jnp.exp(v)
            likelihood = shape * (logs - n * jnp.log(rate)) + gammaln(believed.shape + n * shape) - n * gammaln(shape)
            return prior.parts["shape"].log_density_real(v) + likelihood

        shape = jnp.exp(_drawn(key_shape, log_density, _range(prior.parts["shape"])))
        return jnp.stack([shape, GammaPrior(believed.shape + n * shape, rate).sample(key_rate)])


def _range(prior: GammaPrior) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Of log θ: all but e^−40 of the prior, and all that data could say."""
    low = jnp.log(prior.shape / prior.rate) - _DEPTH / jnp.minimum(prior.shape, 1.0)
    high = jnp.log((prior.shape + 9.5 * jnp.sqrt(prior.shape) + 45) / prior.rate)
    return jnp.minimum(low, -_WIDEST), jnp.maximum(high, _WIDEST)


def _drawn(
    key: Key[Array, ""], log_density: Callable, ends: tuple[Float[Array, ""], Float[Array, ""]]
) -> Float[Array, ""]:
    """A draw by the inverse CDF on a grid, which is narrowed to where the log density is within 40 of its top.

    The mode lies next to the highest node, since there is but one: of log shape, the slope divided by the shape falls,
    for n ψ'(c + n·shape) < ψ'(shape). In the end a cell is a twentieth of an sd, and the CDF right to about 1e−4.
    """

    def narrowed(_, ends):
        v = jnp.linspace(ends[0], ends[1], _COARSE)
        height = log_density(v)
        is_in = height >= height.max() - _DEPTH
        first, last = jnp.argmax(is_in), _COARSE - 1 - jnp.argmax(is_in[::-1])
        return v[jnp.maximum(first - 1, 0)], v[jnp.minimum(last + 1, _COARSE - 1)]

    low, high = jax.lax.fori_loop(0, _NARROWINGS, narrowed, ends)
    v = jnp.linspace(low, high, _FINE)
    height = log_density(v)
    density = jnp.exp(height - height.max())
    cdf = jnp.append(0.0, jnp.cumsum(density[1:] + density[:-1]))
    return jnp.interp(jax.random.uniform(key) * cdf[-1], cdf, v)
