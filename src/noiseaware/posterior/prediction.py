"""Predictions of a regression: y of new records, with the noise of the release and of the parameters in it.

y_new = coefficientsᵀ(x, 1) + √variance · e,  e ~ Normal(0, 1)        one for each draw of the posterior
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from noiseaware.check import shown
from noiseaware.family import AbstractFamily, LinearRegression
from noiseaware.posterior.estimate import PROBABILITY, Estimate, of_draws
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.posterior.seed import own_seed
from noiseaware.prior import NormalInverseGamma, StudentT

if TYPE_CHECKING:
    import pandas as pd


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


def predict(posterior: AbstractPosterior, x: object, seed: int) -> Prediction:
    """Draws of y for each row of x."""
    rows = rows_of(posterior.release.family, x)
    coefficients, variance = posterior.draws["coefficients"], posterior.draws["variance"]
    expectation = coefficients[:, :-1] @ rows.T + coefficients[:, -1:]
    # neither two releases nor two tables of new records share their noise
    told = [rows.astype("<f8").tobytes().hex(), *(release.fingerprint for release in posterior.releases)]
    noise = np.random.default_rng(own_seed(seed, *told)).standard_normal(expectation.shape)
    return Prediction(expectation + np.sqrt(variance)[:, None] * noise, expectation)


def of_conjugate(belief: NormalInverseGamma, x: np.ndarray) -> tuple[list[StudentT], list[StudentT]]:
    """The line and y at each row of x, given conjugate coefficients and variance: Student's t, with z = (x, 1).

    line: dof 2 · shape, location zᵀmean, scale² = scale/shape · zᵀ precision⁻¹ z        y: 1 more after the dot
    """
    z = np.column_stack([x, np.ones(len(x))])
    dof, ratio = 2 * float(belief.shape), float(belief.scale) / float(belief.shape)
    centres = z @ np.asarray(belief.mean, dtype=float)
    lengths = np.einsum("ri,ir->r", z, np.linalg.solve(np.asarray(belief.precision, dtype=float), z.T))

    def laws(squares: np.ndarray) -> list[StudentT]:
        return [StudentT(dof, float(c), float(s)) for c, s in zip(centres, np.sqrt(squares), strict=True)]

    return laws(ratio * lengths), laws(ratio * (1 + lengths))


def regression_of(family: AbstractFamily) -> LinearRegression:
    """Return the regression that predicts; refuse a family that has none."""
    if family.predictor is None:
        raise ValueError(f"a prediction must follow a linear regression, got the {family.name} family.")
    return family.predictor


def rows_of(family: AbstractFamily, x: object) -> np.ndarray:
    """Covariates as rows of numbers, from columns by name or from rows."""
    names = regression_of(family).x
    if isinstance(x, Mapping) or hasattr(x, "columns"):
        x = _by_name(names, x)
    try:
        rows = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"x must be numbers, got {shown(x)}.") from None
    p = len(names)
    if rows.ndim < 2:
        rows = rows.reshape(-1, 1) if p == 1 else rows.reshape(1, -1)
    if rows.ndim != 2 or rows.shape[1] != p:
        got = rows.shape[-1] if rows.ndim == 2 else f"an array of {rows.ndim} axes"
        raise ValueError(f"x must have {p} number{'s' * (p > 1)} a record ({', '.join(names)}), got {got}.")
    if not np.isfinite(rows).all():
        raise ValueError(f"x must be finite, got {rows[~np.isfinite(rows)][0]}.")
    return rows


def _by_name(names: tuple[str, ...], x) -> np.ndarray:
    """The columns of a table side by side; a single number stands for a whole column."""
    if missing := [name for name in names if name not in x]:
        raise ValueError(f"x must have a column {missing[0]!r}, got {', '.join(map(str, x)) or 'none'}.")
    columns = [np.atleast_1d(x[name]) for name in names]
    sizes = sorted({len(column) for column in columns} - {1})
    if len(sizes) > 1:
        raise ValueError(f"x must have columns of one length, got {sizes[0]} and {sizes[1]}.")
    return np.stack(np.broadcast_arrays(*columns), axis=-1)
