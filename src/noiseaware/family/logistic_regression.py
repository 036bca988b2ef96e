"""Logistic regression: yes or no given covariates x.

    P(y = 1) = 1/(1 + e^−a)        a = coefficientsᵀ(x, 1), the intercept last

In the units of its bounds (0, 1), y is −1 or 1: h₁ = tanh(a/2) and h₂ = 1.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key, Num

from noiseaware.family._generalized import AbstractGeneralizedLinear
from noiseaware.family._moment import regression_columns
from noiseaware.family.glossary import Meaning
from noiseaware.query import Moments
from noiseaware.query.moments import all_pairs

_YES_OR_NO = (0.0, 1.0)


class LogisticRegression(AbstractGeneralizedLinear):
    """Logistic regression of the column y, yes or no, on the columns x; bounds are those of x. Without bounds, nothing
    was clamped."""

    query: Moments = eqx.field(static=True)
    name: ClassVar[str] = "logistic_regression"
    records: ClassVar[str] = "yes or no, and what explains it (logistic regression)"
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "coefficients": Meaning(
            "the coefficients", ", of log odds, the intercept last", entry="the coefficient of {}", last="the intercept"
        )
    }

    def __init__(self, x=("x",), y: str = "y", bounds: object = None) -> None:
        columns = regression_columns(x, y)
        pairs = all_pairs(len(columns))[:-1]
        self.query = Moments(columns, _with_own(bounds, *columns), pairs=pairs, yes_or_no=columns[-1:])
        if self.query.intervals is not None and self.query.intervals[-1] != _YES_OR_NO:
            raise ValueError(f"bounds of {self.y} must be (0, 1), or left out, got {self.query.intervals[-1]}.")

    def link(self, a: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        probability = jax.nn.sigmoid(a)
        return probability, probability

    def respond(self, key: Key[Array, ""], a: Float[Array, "..."]) -> Num[Array, "..."]:
        return jax.random.bernoulli(key, jax.nn.sigmoid(a)).astype(a.dtype)


def _with_own(bounds: object, *columns: str) -> object:
    """Return the bounds of x with those of y, the last column, which need not be given."""
    p = len(columns) - 1
    if isinstance(bounds, Mapping):
        return {columns[-1]: _YES_OR_NO, **bounds}
    if isinstance(bounds, Sequence) and len(bounds) == 2 and all(isinstance(b, int | float) for b in bounds):
        return [bounds] * p + [_YES_OR_NO]
    if isinstance(bounds, Sequence) and len(bounds) == p:
        return [*bounds, _YES_OR_NO]
    return bounds
