"""A posterior: draws from p(θ | release), and what people ask of them."""

import functools
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np

from noiseaware.baseline import naive
from noiseaware.evidence.release import Release
from noiseaware.file import check_free, write_whole
from noiseaware.mechanism import Identity
from noiseaware.posterior import concern, predictive, recorded
from noiseaware.posterior.diagnostic import CHAINS, diagnostics
from noiseaware.posterior.estimate import PROBABILITY, Estimate, entries, numbers, of_conjugate, of_draws
from noiseaware.posterior.form import form_of
from noiseaware.prior import AbstractPrior, AbstractScalarPrior
from noiseaware.report.words import PERCENT, cells, convention, prior_words, shown
from noiseaware.sampler import (
    covariate,
)
from noiseaware.sampler.method import METHODS

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas as pd
    import xarray as xr

    from noiseaware.posterior.prediction import Prediction
    from noiseaware.study.calibration import Calibration

Truth = float | Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from p(θ | release), and what they were drawn from."""

    draws: dict[str, np.ndarray]
    """Parameter name → draws, draws first."""
    release: Release
    prior: AbstractPrior
    method: str
    explanation: str | None
    """Why the draws are approximate, and what a regression takes for granted; None when there is nothing to say."""
    seed: int
    choice: str | None = None
    """Why auto took another method than its first for the family, or why another would be better."""
    others: tuple[Release, ...] = ()
    """Releases of further tables with the same parameter."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """All releases that the draws are given: `release` and `others`."""
        return (self.release, *self.others)

    @property
    def is_exact(self) -> bool:
        """Whether the draws are of the posterior itself, under the family; if not, `explanation` says why."""
        return self.explanation in (None, with_convention(covariate.NORMAL, self.release))

    @property
    def is_chain(self) -> bool:
        """Whether a draw depends on those before it."""
        return METHODS[self.method].is_chain

    @property
    def num_draws(self) -> int:
        """How many draws there are of each parameter."""
        return len(next(iter(self.draws.values())))

    @property
    def naive(self) -> AbstractPrior:
        """What someone who does not know of the noise would believe."""
        with jax.enable_x64(True):
            return functools.reduce(lambda belief, release: naive.posterior(release, belief), self.releases, self.prior)

    def __repr__(self) -> str:
        found = self.estimates()
        told = [f"{shown(e.name)} {cells(e)[0]} ({PERCENT}: {cells(e)[2]})" for e in found[:3]]
        told += [f"{len(found) - 3} more"] * (len(found) > 3)
        kind = "exact" if self.is_exact else "approximate"
        return f"Posterior({', '.join(told)}: {self.num_draws:,} draws, method {self.method!r}, {kind})"

    @functools.cached_property
    def recorded(self) -> dict[str, np.ndarray]:
        """Draws of the mean, and variance where squares were released, of the values as recorded within their bounds.

        Of clamped records, of which those beyond a bound count as the bound: they follow from `draws`, are what was
        summed, and so hold whatever the law behind the bounds is. Empty where no bound cuts into the support, and of
        dropped records, since a sum does not say how many it left out.
        """
        return (
            recorded.numbers(self.release.family, self.draws, is_altered=self._knows_bounds) if self._is_alike else {}
        )

    @functools.cached_property
    def moved(self) -> dict[str, tuple[float, float]]:
        """The share of each column's records that the draws take for lying below its bounds, and above."""
        if not self._is_alike or not self._knows_bounds:
            return {}
        return recorded.moved(self.release.family, self.draws) or covariate.moved(self.release, self.prior)

    @functools.cached_property
    def tail(self) -> float | None:
        """The probability under the prior of a release as extreme as this one; None where that is not worked out."""
        found = [predictive.tail(release, self.prior) for release in self.releases]
        known = [probability for probability in found if probability is not None]
        return min(1.0, len(known) * min(known)) if known else None

    @functools.cached_property
    def concerns(self) -> tuple[str, ...]:
        """What is taken for granted although the release speaks against it, in sentences; `infer` warns of each."""
        return concern.of(self)

    @property
    def _is_alike(self) -> bool:
        """Whether the values of all tables are recorded within the same bounds."""
        return all(bool(eqx.tree_equal(other.family, self.release.family)) for other in self.others)

    @property
    def _knows_bounds(self) -> bool:
        """Whether the method knows that bounds altered records."""
        return self.method != "naive" and not isinstance(self.release.mechanism, Identity)

    def marginals(self) -> dict[str, np.ndarray]:
        """The draws of each number by itself: those of `recorded` first, then the parameters, entry by entry.

        An entry is theta, or theta[level] of a vector; of a symmetric matrix, one half.
        """
        return self.recorded | numbers(self.release.family, self.draws)

    def estimates(self, probability: float = PROBABILITY) -> list[Estimate]:
        """Mean, sd and interval of each number."""
        return [of_draws(name, draws, probability) for name, draws in self.marginals().items()]

    def predict(self, x: object, *, seed: int | None = None) -> "Prediction":
        """What y will be of new records with covariates x, for a regression: a table of columns, or rows of numbers."""
        from noiseaware.posterior.prediction import predict

        return predict(self, x, self.seed if seed is None else seed)

    def naive_marginals(self) -> list[AbstractScalarPrior]:
        """The naive posterior of each number by itself, in the order of `marginals`."""
        belief = self.naive
        own, _ = self.release.family.parted(belief)
        return [*(recorded.naive(self.release, belief) if self.recorded else ()), *own.marginals()]

    def prior_marginals(self) -> list[AbstractScalarPrior]:
        """The prior of each number by itself, in the order of `marginals`."""
        family, is_altered = self.release.family, self._knows_bounds
        first = recorded.believed(family, self.prior, is_altered=is_altered) if self.recorded else []
        own, _ = family.parted(self.prior)
        return [*first, *own.marginals()]

    def naive_estimates(self, probability: float = PROBABILITY) -> list[Estimate]:
        """Mean, sd and interval of each number, for someone who does not know of the noise."""
        pairs = zip(self.marginals(), self.naive_marginals(), strict=True)
        return [of_conjugate(name, marginal, probability) for name, marginal in pairs]

    def summary(self, probability: float = PROBABILITY) -> "pd.DataFrame":
        """Estimates and diagnostics under ArviZ's names.

        The draws are split into four runs for the diagnostics; independent draws give an R-hat of 1 and as many
        effective draws as draws.
        """
        import pandas as pd

        percent = f"{100 * probability:g}"
        rows = {
            e.name: {"mean": e.mean, "sd": e.sd, f"eti{percent}_lb": e.low, f"eti{percent}_ub": e.high}
            | diagnostics(draws)
            for e, draws in zip(self.estimates(probability), self.marginals().values(), strict=True)
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def to_arviz(self) -> "xr.DataTree":
        """The draws as a DataTree with ArviZ's groups, dimensions and attributes."""
        import xarray as xr

        return xr.DataTree.from_dict(
            {
                "/": xr.Dataset(attrs=self._attributes()),
                "/posterior": self._draws_group(),
                "/observed_data": self._observed(),
            }
        )

    def save(self, path: str | os.PathLike, *, force: bool = False) -> None:
        """Write the draws, whole or not at all, in the form that the suffix says.

        .nc is netCDF, which ArviZ reads with `from_netcdf`; .csv and .parquet are tables with a row for each draw and a
        column for each number, named as in `summary`.
        """
        path = Path(path)
        write = form_of(path)
        check_free(path, force=force)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            draft = Path(folder) / path.name
            write(self, draft)
            os.replace(draft, path)

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

    def truths(self, truth: Truth | None) -> dict[str, float]:
        """The true value of each number, from one value or from a mapping by parameter."""
        if truth is None:
            return {}
        given = truth if isinstance(truth, Mapping) else {next(iter(self.draws)): truth}
        if surplus := sorted(set(given) - set(self.draws)):
            raise ValueError(f"truth must name parameters among {sorted(self.draws)}, got {surplus[0]!r}.")
        found = {}
        for parameter, values in given.items():
            wanted, truths = self.draws[parameter].shape[1:], np.asarray(values, dtype=float)
            if truths.shape != wanted or not np.isfinite(truths).all():
                size = " × ".join(map(str, wanted)) or "one"
                raise ValueError(f"truth of {parameter} must be {size} finite numbers, got {values}.")
            found |= {name: float(truths[place]) for name, place in entries(self.release.family, parameter)}
        return (self._recorded_truths(given) if set(given) == set(self.draws) else {}) | found

    def _recorded_truths(self, given: Mapping[str, object]) -> dict[str, float]:
        """What the recorded numbers are at the true parameters."""
        if not self.recorded:
            return {}
        point = {name: np.asarray(given[name], dtype=float)[None] for name in self.draws}
        found = recorded.numbers(self.release.family, point)
        return {name: float(values[0]) for name, values in found.items()}

    def _attributes(self) -> dict[str, str | int | float]:
        from noiseaware import __version__

        return {
            "inference_library": "noiseaware",
            "inference_library_version": __version__,
            "method": self.method,
            "is_exact": int(self.is_exact),
            "explanation": self.explanation or "",
            "choice": self.choice or "",
            "concerns": " ".join(self.concerns),
            "prior_predictive_tail": math.nan if self.tail is None else self.tail,
            "prior": prior_words(self.prior),
            "seed": self.seed,
            "release": self.release.to_json(),
        } | {f"release_{i}": other.to_json() for i, other in enumerate(self.others, 2)}

    def _draws_group(self) -> "xr.Dataset":
        import xarray as xr

        chains = next(c for c in (CHAINS, 3, 2, 1) if self.num_draws % c == 0)
        axes = self.release.family.axes
        shaped = {
            parameter: (
                ("chain", "draw", *(axis for axis, _ in axes.get(parameter, ()))),
                values.reshape(chains, -1, *values.shape[1:]),
            )
            for parameter, values in self.draws.items()
        }
        coords: dict = {"chain": np.arange(chains), "draw": np.arange(self.num_draws // chains)}
        coords |= {axis: np.array(labels) for pairs in axes.values() for axis, labels in pairs}
        return xr.Dataset(shaped, coords, attrs=self._attributes())

    def _observed(self) -> "xr.Dataset":
        import xarray as xr

        names = list(self.release.family.statistics)
        names += [f"{name}_{i}" for i, other in enumerate(self.others, 2) for name in other.family.statistics]
        values = np.concatenate([release.values for release in self.releases])
        return xr.Dataset({"y": (("statistic",), values)}, {"statistic": np.array(names)})


def with_convention(why: str | None, release: Release) -> str | None:
    """Why draws are approximate, and after it what missing cells count as, which by itself makes no draw so."""
    return None if why is None else " ".join(filter(None, (why, convention(release))))
