"""The posterior that people hold: its numbers, and the sentences, pictures and files made of it."""

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noiseaware.file import check_free, write_whole
from noiseaware.posterior import concern, export
from noiseaware.posterior.numbers import AbstractPosterior, Truth
from noiseaware.posterior.prediction import Prediction, predict
from noiseaware.report.number import shown
from noiseaware.report.posterior_words import PERCENT, cells

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from noiseaware.study.calibration import Calibration


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(AbstractPosterior):
    """Draws from p(θ | release), and what they were drawn from.

    >>> noise = na.mechanism.Laplace(10.0)
    >>> release = na.Release(family=na.family.Bernoulli("ill"), values=[12], n=1000, mechanism=noise)
    >>> posterior = na.infer(release, na.prior.Beta(1, 1), seed=1)
    >>> (theta,) = posterior.estimates()
    >>> bool(theta.low < 0.012 < theta.high), posterior.is_exact
    (True, True)
    """

    def __repr__(self) -> str:
        found = self.estimates()
        told = [f"{shown(e.name)} {cells(e)[0]} ({PERCENT}: {cells(e)[2]})" for e in found[:3]]
        told += [f"{len(found) - 3} more"] * (len(found) > 3)
        kind = "exact" if self.is_exact else "approximate"
        return f"Posterior({', '.join(told)}: {self.num_draws:,} draws, method {self.method!r}, {kind})"

    @property
    def concerns(self) -> tuple[str, ...]:
        return self._concerns

    @functools.cached_property
    def _concerns(self) -> tuple[str, ...]:
        return concern.of(self)

    def predict(self, x: object, *, seed: int | None = None) -> Prediction:
        """Predict y of new records with covariates x, for a regression: a table of columns, or rows of numbers."""
        return predict(self, x, self.seed if seed is None else seed)

    def to_arviz(self) -> "xr.DataTree":
        """The draws as a DataTree with ArviZ's groups, dimensions and attributes."""
        return export.tree(self)

    def save(self, path: str | os.PathLike, *, force: bool = False) -> None:
        """Write the draws, whole or not at all, in the form that the suffix says.

        .nc is netCDF, which ArviZ reads with `from_netcdf`; .csv and .parquet are tables with a row for each draw and a
        column for each number, named as in `summary`.
        """
        export.save(self, path, force=force)

    def plot(self, truth: Truth | None = None) -> "matplotlib.figure.Figure":
        """The posterior's density, with the prior's and the naive posterior's beside it."""
        from noiseaware.report.plot import densities

        return densities(self, self.truths(truth))

    def plot_band(
        self, column: str | None = None, *, data: object = None, truth: Truth | None = None
    ) -> "matplotlib.figure.Figure":
        """The regression line over one covariate or each, with its credible and predictive bands; data are public."""
        from noiseaware.report.band import bands

        return bands(self, column, data=data, truths=self.truths(truth))

    def report(
        self,
        path: str | os.PathLike,
        *,
        truth: Truth | None = None,
        calibration: "Calibration | None" = None,
        force: bool = False,
    ) -> None:
        """Write a page that says what was released and what follows from it; it needs nothing but itself.

        With `calibration`, such as `na.calibrate(posterior)` makes, it also says whether the method is right here.
        """
        from noiseaware.report.page import page

        check_free(path, force=force)
        write_whole(path, page(self, self.truths(truth), calibration), force=force)
