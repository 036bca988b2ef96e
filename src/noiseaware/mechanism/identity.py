"""No noise at all: the release of a table that is not private, for comparison."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._gaussian import GaussianShape
from noiseaware.mechanism._mechanism import AbstractMechanism


class Identity(AbstractMechanism):
    """The statistic itself. Guarantees nothing."""

    name: ClassVar[str] = "identity"
    title: ClassVar[str] = "no"
    is_noisy: ClassVar[bool] = False
    is_discrete: ClassVar[bool] = False
    shape: ClassVar[type[GaussianShape]] = GaussianShape

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

    def exponent(self, x: Any) -> Any:
        return np.where(x == 0, 0.0, np.inf)

    def below(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, 0.0, 1.0)

    def simulated(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return np.zeros(count)

    def guarantee(self, sensitivity: float, num_statistics: int | None = None) -> None:
        return None

    def continuous(self, unit: float = 1.0) -> "Identity":
        return self

    @property
    def mixture(self) -> GaussianShape:
        return GaussianShape(0.0)

    @classmethod
    def of(cls, spread: Any, **settings: float) -> "Identity":
        return cls()
