"""Logistic regression: yes or no given covariates x.

    P(y = 1) = 1/(1 + e^−a)        a = coefficientsᵀ(x, 1), the intercept last

In the units of its bounds (0, 1), y is −1 or 1: h₁ = tanh(a/2) and h₂ = 1.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key, Num

from noiseaware.family._family import Bounds
from noiseaware.family._generalized import AbstractGeneralizedLinear
from noiseaware.family._moment import checked_columns, checked_intervals
from noiseaware.family.glossary import Meaning

_YES_OR_NO = (0.0, 1.0)


class LogisticRegression(AbstractGeneralizedLinear):
    """Logistic regression of the column y, yes or no, on the columns x; bounds are those of x. Without bounds, nothing
    was clamped."""

    x: tuple[str, ...] = eqx.field(static=True)
    y: str = eqx.field(static=True)
    intervals: tuple[Bounds, ...] | None = eqx.field(static=True)
    name: ClassVar[str] = "logistic_regression"
    records: ClassVar[str] = "yes or no, and what explains it (logistic regression)"
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "coefficients": Meaning(
            "the coefficients", ", of log odds, the intercept last", entry="the coefficient of {}", last="the intercept"
        )
    }

    def __init__(self, x=("x",), y: str = "y", bounds: object = None) -> None:
        self.x = checked_columns("x", x)
        (self.y,) = checked_columns("y", y)
        checked_columns("x and y", self.columns)
        self.intervals = checked_intervals(self._with_own(bounds), self.columns)
        if self.intervals is not None and self.intervals[-1] != _YES_OR_NO:
            raise ValueError(f"bounds of {self.y} must be (0, 1), or left out, got {self.intervals[-1]}.")

    @property
    def yes_or_no(self) -> tuple[str, ...]:
        return (self.y,)

    def _with_own(self, bounds: object) -> object:
        """The bounds of x, and beside them those of y, which need not be said."""
        if isinstance(bounds, Mapping):
            return {self.y: _YES_OR_NO, **bounds}
        if isinstance(bounds, Sequence) and len(bounds) == 2 and all(isinstance(b, int | float) for b in bounds):
            return [bounds] * len(self.x) + [_YES_OR_NO]
        if isinstance(bounds, Sequence) and len(bounds) == len(self.x):
            return [*bounds, _YES_OR_NO]
        return bounds

    def link(self, a: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        probability = jax.nn.sigmoid(a)
        return probability, probability

    def respond(self, key: Key[Array, ""], a: Float[Array, "..."]) -> Num[Array, "..."]:
        return jax.random.bernoulli(key, jax.nn.sigmoid(a)).astype(a.dtype)
