"""The Bernoulli and binomial families: successes in a known number of trials.

t(x) = x        η = logit θ        A(η) = trials · log(1 + e^η)
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.check import whole
from noiseaware.family._family import AbstractScalarFamily
from noiseaware.family.glossary import Meaning
from noiseaware.prior import Beta, Numeric
from noiseaware.query import Sum


class AbstractSuccesses(AbstractScalarFamily):
    """Successes with probability θ in `trials` trials a record."""

    trials: eqx.AbstractVar[int]
    conjugate: ClassVar[type] = Beta
    parameters: ClassVar[tuple[str, ...]] = ("theta",)
    ceiling: ClassVar[float] = float("inf")

    def natural(self, theta: Float[Array, ""]) -> Float[Array, "1"]:
        return (jnp.log(theta) - jnp.log1p(-theta))[None]

    def log_partition(self, eta: Inexact[Array, "1"]) -> Inexact[Array, ""]:
        return self.trials * jnp.logaddexp(eta[0], jnp.zeros_like(eta[0]))

    def sample(self, key: Key[Array, ""], theta: Float[Array, ""], n: int) -> Num[Array, " n"]:
        return (jax.random.uniform(key, (n, self.trials)) < theta).sum(-1, dtype=theta.dtype)

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, ""], other: Float[Array, ""]
    ) -> Num[Array, " n"]:
        """Each trial succeeds where a uniform number is below θ: given that it was, and given that it was not."""
        kept, won = other / theta, (other - theta) / (1 - theta)
        u = jax.random.uniform(key, (x.size, self.trials))
        return jnp.where(jnp.arange(0.0, self.trials) < x[:, None], u < kept, u < won).sum(-1, dtype=theta.dtype)

    def update(self, prior: Beta, s: Num[Array, "*batch 1"], n: Numeric) -> Beta:
        return Beta(prior.a + s[..., 0], prior.b + n * self.trials - s[..., 0])

    def project(self, s: Num[Array, "1"], n: Numeric) -> Float[Array, "1"]:
        return jnp.clip(s, 0, n * self.trials)

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = self.trials * theta * (1 - theta)
        return self.trials * theta, variance, variance * (1 - 2 * theta)

    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        return 0.0, n * self.trials

    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        """log of n·trials over s."""
        total = n * self.trials + 1.0
        return gammaln(total) - gammaln(s + 1.0) - gammaln(total - s)


class Bernoulli(AbstractSuccesses):
    """Bernoulli(θ): a record is yes with probability θ.

    In a table true, t, yes, y, on and numbers of 1 or more are yes, and false, f, no, n, off and lesser numbers are no.
    """

    query: Sum = eqx.field(static=True)
    name: ClassVar[str] = "bernoulli"
    records: ClassVar[str] = "yes or no (Bernoulli)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"theta": Meaning("the probability of success")}

    def __init__(self, column: str | None = None) -> None:
        self.query = Sum(column, is_yes_or_no=True)

    @property
    def trials(self) -> int:
        return 1

    def settings(self) -> dict[str, Any]:
        return {"column": self.query.column}


class Binomial(AbstractSuccesses):
    """Binomial(trials, θ): a record counts the successes in `trials` trials, the same number for all."""

    query: Sum = eqx.field(static=True)
    trials: int = eqx.field(static=True)
    name: ClassVar[str] = "binomial"
    records: ClassVar[str] = "successes in a fixed number of trials (binomial)"
    glossary: ClassVar[Mapping[str, Meaning]] = {"theta": Meaning("the probability of success", " in one trial")}

    def __init__(self, column: str | None = None, *, trials: int | np.integer) -> None:
        self.trials = whole("trials", trials)
        self.query = Sum(column, (0, self.trials), is_whole=True, support=(0.0, float(self.trials)))

    def settings(self) -> dict[str, Any]:
        return {"column": self.query.column, "trials": self.trials}
