"""Poisson regression: counts given covariates x.

    y ~ Poisson(e^a)        a = coefficientsᵀ(x, 1), the intercept last

Of a count clamped to bounds (low, high), what is missing from the upper one is a finite sum, with c(j) = max(j, low):

    h₁ = high − Σ_{j<high} (high − c(j)) p_j        h₂ = high² − Σ_{j<high} (high² − c(j)²) p_j
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Key, Num

from noiseaware.family._generalized import AbstractGeneralizedLinear
from noiseaware.family._moment import regression_columns
from noiseaware.family.glossary import Meaning
from noiseaware.query import Moments
from noiseaware.query.moments import all_pairs
from noiseaware.query.sum import checked_whole_bounds

_LARGEST = 300.0  # of a: e^a is still a number, and its square is one too
_MOST = 1e9  # of a simulated count's mean
_HIGHEST = 2000  # bound of y: the sums above have so many terms


class PoissonRegression(AbstractGeneralizedLinear):
    """Poisson regression of the counts in the column y on the columns x. Without bounds, nothing was clamped."""

    query: Moments = eqx.field(static=True)
    name: ClassVar[str] = "poisson_regression"
    records: ClassVar[str] = "counts of events, and what explains them (Poisson regression)"
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "coefficients": Meaning(
            "the coefficients",
            ", of the log mean, the intercept last",
            entry="the coefficient of {}",
            last="the intercept",
        )
    }

    def __init__(self, x=("x",), y: str = "y", bounds: object = None) -> None:
        columns = regression_columns(x, y)
        self.query = Moments(columns, bounds, pairs=all_pairs(len(columns))[:-1])
        if self.query.intervals is None:
            return
        low, high = checked_whole_bounds(self.query.intervals[-1])  # type: ignore[misc]
        if low < 0 or high > _HIGHEST:
            raise ValueError(f"bounds of {self.y} must be between 0 and {_HIGHEST}, got {(low, high)}.")

    def link(self, a: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        a = jnp.minimum(a, _LARGEST)
        mean = jnp.exp(a)
        if self.query.intervals is None:
            return mean, mean + mean**2
        low, high = self.query.intervals[-1]
        j = np.arange(high)
        chance = jnp.exp(j * a[..., None] - mean[..., None] - gammaln(j + 1))
        clamped = np.maximum(j, low)
        return high - chance @ (high - clamped), high**2 - chance @ (high**2 - clamped**2)

    def respond(self, key: Key[Array, ""], a: Float[Array, "..."]) -> Num[Array, "..."]:
        return jax.random.poisson(key, jnp.minimum(jnp.exp(a), _MOST)).astype(a.dtype)
