"""A distribution of one number that is known by draws alone.

Quantiles and moments are those of the draws, and the density is a kernel estimate of theirs.
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractScalarPrior

_LARGEST = 1e150  # of a draw: the square of a larger one is no number


class Empirical(AbstractScalarPrior):
    """Empirical(draws), all of them finite."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    draws: np.ndarray

    @classmethod
    def of(cls, draws: np.ndarray) -> "Empirical":
        """Leave out draws that are too large for a number, as vague priors have."""
        return cls(draws[np.abs(draws) < _LARGEST])

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        return jax.random.choice(key, jnp.asarray(self.draws), shape)

    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        from scipy.stats import gaussian_kde

        if len(self.draws) == 0 or np.ptp(self.draws) == 0:
            return jnp.full(np.shape(theta), -np.inf)  # All draws are at one point, where there is no curve.
        return jnp.log(np.maximum(gaussian_kde(self.draws)(np.asarray(theta)), np.finfo(float).tiny))

    def log_normalizer(self) -> Float[Array, ""]:
        return jnp.zeros(())

    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        return theta

    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return v

    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.log_density(v)

    def moments(self) -> tuple[float, float]:
        return float(self.draws.mean()), float(self.draws.std(ddof=1))

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.draws, q))

    def marginals(self) -> "tuple[Empirical]":
        return (self,)
