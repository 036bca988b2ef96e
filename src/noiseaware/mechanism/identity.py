"""No noise at all: the release of a table that is not private, for comparison."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._mechanism import AbstractMechanism


class Identity(AbstractMechanism):
    """The statistic itself. Guarantees nothing."""

    is_discrete: ClassVar[bool] = False
    is_laplace: ClassVar[bool] = False

    @property
    def spread(self) -> float:
        return 0.0

    @property
    def variance(self) -> float:
        return 0.0

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        return jnp.where(x == 0, 0.0, -jnp.inf)

    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        return jnp.where((low <= 0) & (high >= 0), 0.0, -jnp.inf)

    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.ones_like(t)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        return jnp.zeros(shape)

    def guarantee(self, sensitivity: float) -> None:
        return None
