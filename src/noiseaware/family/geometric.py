"""The geometric family: failures before the first success.

t(x) = x ∈ {0, 1, 2, …}        η = log(1 − θ)        A(η) = −log(1 − e^η)
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlog1py
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family import recorded
from noiseaware.family._family import AbstractUnboundedFamily
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractScalarPrior, Beta, Empirical, Numeric
from noiseaware.query import Sum

_DRAWS = 20_000  # of θ, by which the mean count is known


class Geometric(AbstractUnboundedFamily):
    """Geometric(θ): failures before the first success, P(x) = θ(1−θ)^x for x = 0, 1, 2, …"""

    query: Sum = eqx.field(static=True)
    name: ClassVar[str] = "geometric"
    records: ClassVar[str] = "failures before the first success (geometric)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"theta": Meaning("the probability of success")}
    conjugate: ClassVar[type] = Beta
    parameters: ClassVar[tuple[str, ...]] = ("theta",)
    ceiling: ClassVar[float] = 0.0

    def __init__(self, column: str | None = None, bounds: object = None, outside: str = "clamp") -> None:
        self.query = Sum(column, bounds, outside, is_whole=True, support=(0.0, float("inf")))

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return jnp.log1p(-theta)[None]

    def from_natural(self, eta: Float[Array, "1"]) -> Float[Array, ""]:
        return -jnp.expm1(eta[0])

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return -jnp.log(-jnp.expm1(eta[0]))

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return jnp.floor(-jax.random.exponential(key, (n,)) / jnp.log1p(-theta))

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, ""], other: Float[Array, ""]
    ) -> Num[Array, " n"]:
        """x = ⌊w/rate⌋ of an exponential w, rate = −log(1 − θ): w given x, and the same w at the other rate."""
        rate, wanted = -jnp.log1p(-theta), -jnp.log1p(-other)
        within = -jnp.log1p(-theta * jax.random.uniform(key, x.shape))
        return jnp.floor((x * rate + within) / wanted)

    def update(self, prior: Beta, s: Num[Array, "*batch 1"], n: Numeric) -> Beta:
        return Beta(prior.a + n, prior.b + s[..., 0])

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return jnp.maximum(s, 0)

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return (1 - theta) / theta, (1 - theta) / theta**2, (1 - theta) * (2 - theta) / theta**3

    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        return 0.0, jnp.inf

    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        return gammaln(n + s) - gammaln(s + 1.0) - gammaln(jnp.asarray(n, s.dtype))

    def log_density(self, x: Float[Array, "..."], theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.log(theta) + xlog1py(x, -theta)

    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        if x < 0:
            return jnp.full_like(theta, -jnp.inf)
        return jnp.log(-jnp.expm1((x + 1) * jnp.log1p(-theta)))

    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return max(x, 0.0) * jnp.log1p(-theta)

    def recorded_belief(self, belief: Beta, s: np.ndarray, n: float) -> tuple[AbstractScalarPrior, ...]:
        with jax.enable_x64(True):
            theta = np.asarray(belief.sample(jax.random.key(0), (_DRAWS,)), dtype=float)
        with np.errstate(all="ignore"):
            return (Empirical.of((1 - theta) / theta),)

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        theta = draws["theta"]
        unbounded = (1 - theta) / theta, (1 - theta) / theta**2
        return recorded.of(self, unbounded, recorded.geometric, theta, is_altered=is_altered)

    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return jnp.zeros_like(theta), jnp.ceil(-45 / jnp.log1p(-theta)) + 1

    @property
    def head(self) -> float:
        return 1.0
