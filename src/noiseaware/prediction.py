"""What a regression predicts: y of new records, with the noise of the release and of the parameters in it.

    y_new = coefficientsᵀ(x, 1) + √variance · e,  e ~ Normal(0, 1)        one for each draw of the posterior
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from noiseaware.family import LinearRegression
from noiseaware.marginal import PROBABILITY, Estimate, of_draws

if TYPE_CHECKING:
    import pandas as pd

    from noiseaware.posterior import Posterior


@dataclass(frozen=True, eq=False)
class Prediction:
    """Draws of y, and of its expectation, for some new records."""

    draws: np.ndarray
    """y, draws first and then records."""
    expectation: np.ndarray
    """The regression line at the records, draws first: what y is on average."""

    def estimates(self, probability: float = PROBABILITY) -> list[Estimate]:
        """Mean, sd and interval of y for each record."""
        return [of_draws(f"y[{i}]", column, probability) for i, column in enumerate(self.draws.T)]

    def interval(self, probability: float = PROBABILITY) -> np.ndarray:
        """Low and high ends that hold y with this probability, a row for each record."""
        return np.array([(e.low, e.high) for e in self.estimates(probability)])

    def summary(self, probability: float = PROBABILITY) -> "pd.DataFrame":
        """A row for each record, under ArviZ's names."""
        import pandas as pd

        percent = f"{100 * probability:g}"
        rows = [
            {"mean": e.mean, "sd": e.sd, f"eti{percent}_lb": e.low, f"eti{percent}_ub": e.high}
            for e in self.estimates(probability)
        ]
        return pd.DataFrame(rows)


def predict(posterior: "Posterior", x: object, seed: int) -> Prediction:
    """Draws of y for each row of x."""
    family = posterior.release.family
    if not isinstance(family, LinearRegression):
        raise ValueError(f"predict must follow a regression, got a {family.name} posterior.")
    rows = _rows(family, x)
    coefficients, variance = posterior.draws["coefficients"], posterior.draws["variance"]
    expectation = coefficients[:, :-1] @ rows.T + coefficients[:, -1:]
    noise = np.random.default_rng(seed).standard_normal(expectation.shape)
    return Prediction(expectation + np.sqrt(variance)[:, None] * noise, expectation)


def _rows(family: LinearRegression, x: object) -> np.ndarray:
    """Covariates as rows of numbers, from columns by name or from rows."""
    if isinstance(x, Mapping) or hasattr(x, "columns"):
        missing = [name for name in family.x if name not in x]  # type: ignore[operator]
        if missing:
            raise ValueError(f"x must have a column {missing[0]!r}, got none.")
        x = np.stack(np.broadcast_arrays(*(np.atleast_1d(x[name]) for name in family.x)), axis=-1)  # type: ignore[index]
    try:
        rows = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"x must be numbers, got {type(x).__name__}.") from None
    p = len(family.x)
    if rows.ndim < 2:
        rows = rows.reshape(-1, 1) if p == 1 else rows.reshape(1, -1)
    if rows.ndim != 2 or rows.shape[1] != p:
        names = ", ".join(family.x)
        raise ValueError(f"x must have {p} number{'s' * (p > 1)} a record ({names}), got {rows.shape[-1]}.")
    if not np.isfinite(rows).all():
        raise ValueError("x must be finite.")
    return rows
