"""The beta prior of a probability.

p(θ) = θ^{a−1} (1−θ)^{b−1} / B(a, b)        v = logit θ
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.nn import log_sigmoid, sigmoid
from jax.scipy.special import betaln, xlog1py, xlogy
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractScalarPrior, Numeric, check_number, log_positive


class Beta(AbstractScalarPrior):
    """Beta(a, b), with mean a/(a+b)."""

    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    a: Numeric
    b: Numeric

    def __check_init__(self) -> None:
        check_number("a", self.a, positive=True)
        check_number("b", self.b, positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Draw by the ratio of two gamma draws, in logs: exact for tiny a and b too."""
        key_success, key_failure = jax.random.split(key)
        success = jax.random.loggamma(key_success, jnp.broadcast_to(self.a, shape))
        failure = jax.random.loggamma(key_failure, jnp.broadcast_to(self.b, shape))
        return sigmoid(success - failure)

    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return xlogy(self.a - 1, theta) + xlog1py(self.b - 1, -theta) - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, "..."]:
        return betaln(self.a, self.b)

    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return log_positive(theta) - jnp.log(jnp.maximum(1 - theta, jnp.finfo(float).epsneg))

    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return sigmoid(v)

    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.a * log_sigmoid(v) + self.b * log_sigmoid(-v) - self.log_normalizer()

    def moments(self) -> tuple[float, float]:
        a, b = float(self.a), float(self.b)
        return a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)

    def quantile(self, q: float) -> float:
        from scipy.special import betaincinv

        return float(betaincinv(self.a, self.b, q))
