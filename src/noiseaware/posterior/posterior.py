"""From a release to the posterior that it supports.

    p(θ | y) ∝ p(θ) ∫ p(s | θ) p(y | s) ds        the graph is θ → s → y, and only y is seen

A method is a function (key, release, prior, num_draws) → draws, and a sentence on why its draws are approximate,
or none when they are exact. It runs in float64 whatever the user's own JAX setting is.
"""

import functools
import math
import os
import secrets
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np

from noiseaware.baseline import naive
from noiseaware.check import whole
from noiseaware.evidence import several
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.file import check_free, write_whole
from noiseaware.mechanism import Identity
from noiseaware.posterior import concern, predictive, recorded
from noiseaware.posterior.diagnostic import CHAINS, diagnostics, doubt
from noiseaware.posterior.estimate import PROBABILITY, Estimate, entries, numbers, of_conjugate, of_draws, split
from noiseaware.posterior.form import form_of
from noiseaware.posterior.seed import own_seed
from noiseaware.prior import AbstractPrior, AbstractScalarPrior
from noiseaware.report.words import PERCENT, cells, convention, prior_words, shown
from noiseaware.sampler import (
    adequacy,
    augmentation,
    covariate,
    covariate_law,
    exact,
    gibbs,
    gibbs_regression,
    hmc,
    mcmc_ind,
)

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas as pd
    import xarray as xr

    from noiseaware.posterior.prediction import Prediction
    from noiseaware.study.calibration import Calibration

Truth = float | Mapping[str, object]
MOST_DRAWS = 10_000_000


@dataclass(frozen=True)
class Method:
    """A way to draw from p(θ | release): for one release, for a batch that differs in y alone, and how exact it is."""

    draws: Callable[..., jax.Array]
    batch: Callable[..., jax.Array]
    explanation: Callable[[Release, AbstractPrior], str | None]
    serves: Callable[[AbstractFamily], bool] = lambda family: True
    is_chain: bool = False
    """Whether draws depend on those before them, and may not have forgotten where they started."""
    takes_noisy_n: bool = False
    """Whether a private number of records may be unknown to it."""
    takes_interval: bool = False
    """Whether an interval may be all that is known of a count."""
    by_auto: bool = True
    """Whether auto may take it: never what ignores the noise."""


def _of_2019(variant: gibbs_regression.Variant) -> tuple:
    return variant.draws, variant.batch, variant.explanation, variant.serves


METHODS = {
    "exact": Method(exact.draws, exact.batch, exact.explanation, exact.serves, takes_noisy_n=True, takes_interval=True),
    "hmc": Method(hmc.draws, hmc.batch, hmc.explanation, hmc.serves, is_chain=True, takes_noisy_n=True),
    "gibbs": Method(gibbs.draws, gibbs.batch, gibbs.explanation, gibbs.serves, is_chain=True),
    "gibbs_ss_update": Method(*_of_2019(gibbs_regression.UPDATE), is_chain=True),
    "gibbs_ss_prior": Method(*_of_2019(gibbs_regression.PRIOR), is_chain=True),
    "gibbs_ss_noisy": Method(*_of_2019(gibbs_regression.NOISY), is_chain=True),
    "augmentation": Method(
        augmentation.draws, augmentation.batch, augmentation.explanation, augmentation.serves, is_chain=True
    ),
    "mcmc_ind": Method(mcmc_ind.draws, mcmc_ind.batch, mcmc_ind.explanation, mcmc_ind.serves, is_chain=True),
    "naive": Method(
        naive.draws, naive.batch, naive.explanation, takes_noisy_n=True, takes_interval=True, by_auto=False
    ),
}


def infer(
    release: Release | Sequence[Release],
    prior: AbstractPrior,
    *,
    method: str = "auto",
    num_draws: int = 4000,
    seed: int | None = None,
    same_table: bool = False,
) -> "Posterior":
    """Draws from p(θ | release), or given several releases: of independent tables, or of the same table.

    The same release and seed give the same draws, on every machine. Other releases have other random numbers with
    that seed, so that groups are compared draw by draw::

        women, men = (na.infer(release, prior, seed=1).draws["theta"] for release in by_sex)
        np.quantile(women - men, [0.025, 0.975]), np.quantile(women / men, [0.025, 0.975])
    """
    return _warned(drawn(release, prior, method=method, num_draws=num_draws, seed=seed, same_table=same_table))


def drawn(
    release: Release | Sequence[Release],
    prior: AbstractPrior,
    *,
    method: str,
    num_draws: int,
    seed: int | None,
    same_table: bool = False,
) -> "Posterior":
    """What `infer` gives, before its concerns are looked at."""
    releases = (release,) if isinstance(release, Release) else several.checked_alike(release)
    if len(releases) > 1 and not same_table:
        return _infer_given(releases, prior, method, num_draws, seed)
    release = releases[0] if len(releases) == 1 else several.same_table(releases)
    name = method_for(release, method)
    prior = checked_prior(release.family, prior)
    seed = checked_seed(num_draws, seed)
    if name != "naive":
        covariate.check(release, prior)
    with jax.enable_x64(True):
        name, choice = (name, None) if method != "auto" else _chosen(name, release, prior)
        found = METHODS[name].draws(key_of(seed, releases), release, prior, int(num_draws))
        draws = release.family.named(np.asarray(found, dtype=np.float64))
    check_finite(name, draws)
    why = METHODS[name].explanation(release, prior)
    if name != "naive":
        why = " ".join(filter(None, (why, covariate.assumption(release, prior)))) or None
        why = " ".join(filter(None, (why, covariate_law.sentence(release, draws)))) or None
    if choice is not None and name == "hmc":
        why = " ".join(filter(None, (why, choice)))
    if METHODS[name].is_chain and (doubted := doubt(draws)) is not None:
        warnings.warn(doubted, RuntimeWarning, stacklevel=3)
        why = " ".join(filter(None, (why, doubted)))
    return Posterior(draws, release, prior, name, with_convention(why, release), seed, choice)


def _infer_given(
    releases: tuple[Release, ...], prior: AbstractPrior, method: str, num_draws: int, seed: int | None
) -> "Posterior":
    """Exact draws of the one θ of several independent tables."""
    first, *others = several.checked_tables(releases)
    if method not in ("auto", "exact"):
        raise ValueError(f"method must be one of auto, exact for several tables, got {method!r}.")
    prior = checked_prior(first.family, prior)
    assert isinstance(prior, AbstractScalarPrior)
    seed = checked_seed(num_draws, seed)
    with jax.enable_x64(True):
        found = exact.draws_given(key_of(seed, releases), releases, prior, int(num_draws))
        draws = first.family.named(np.asarray(found, dtype=np.float64))
    check_finite("exact", draws)
    why = next(filter(None, (exact.explanation(release, prior) for release in releases)), None)
    return Posterior(draws, first, prior, "exact", with_convention(why, first), seed, others=tuple(others))


def _warned(posterior: "Posterior") -> "Posterior":
    """The posterior, with a warning of each of its concerns."""
    for sentence in posterior.concerns:
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)
    return posterior


def with_convention(why: str | None, release: Release) -> str | None:
    """Why draws are approximate, and after it what missing cells count as, which by itself makes no draw so."""
    return None if why is None else " ".join(filter(None, (why, convention(release))))


def key_of(seed: int, releases: Sequence[Release]) -> jax.Array:
    """The key of all that is drawn given these releases: what they say is in it, so that no two share their draws."""
    return jax.random.key(own_seed(seed, *(release.fingerprint for release in releases)))


def check_finite(method: str, draws: dict[str, np.ndarray]) -> None:
    for parameter, values in draws.items():
        if lost := int((~np.isfinite(values)).sum()):
            raise RuntimeError(f"method {method!r} gave {lost} draws of {parameter} that are not finite numbers.")


def _chosen(name: str, release: Release, prior: AbstractPrior) -> tuple[str, str | None]:
    """What auto takes in the end: not HMC where what it neglects shows, and a sentence on that."""
    n = release.n
    if name != "hmc" or release.n_mechanism is not None or n > augmentation.MOST_RECORDS:
        return name, None
    if not augmentation.simulates(release.family, prior):
        return name, None
    noise = exact.noise_of(release)
    reason = adequacy.doubt(release.family, prior, noise, jax.numpy.asarray(release.values), n).reason
    if reason is None:
        return name, None
    if n <= augmentation.QUICK_RECORDS and release.family.as_quadratic(prior) is None:
        return "augmentation", reason  # of second moments its chains are too slow to be taken unasked
    return name, f"{reason} Take method='augmentation', which is slower and neglects nothing."


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
        return [*(recorded.naive(self.release, belief) if self.recorded else ()), *split(belief)]

    def prior_marginals(self) -> list[AbstractScalarPrior]:
        """The prior of each number by itself, in the order of `marginals`."""
        family, is_altered = self.release.family, self._knows_bounds
        first = recorded.believed(family, self.prior, is_altered=is_altered) if self.recorded else []
        return [*first, *split(self.prior)]

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


def method_for(release: Release, method: str) -> str:
    """The name of a method that serves the release; one of whose values nothing can be made is refused."""
    exact.check_interval(release)
    name = checked_method(method, release.family, has_private_n=release.n_mechanism is not None)
    if release.within is not None and exact.is_count(release.family) and not METHODS[name].takes_interval:
        able = ", ".join(name for name, known in METHODS.items() if known.takes_interval)
        raise ValueError(f"method must be one of {able} where values have an interval, got {method!r}.")
    return name


def checked_method(method: str, family: AbstractFamily, *, has_private_n: bool = False) -> str:
    """The name of a method; auto is the exact one where there is one for the family, else HMC, else Gibbs."""
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method must be one of auto, {', '.join(METHODS)}, got {method!r}.")
    fit = [name for name, known in METHODS.items() if known.serves(family)]
    able = [name for name in fit if METHODS[name].takes_noisy_n or not has_private_n]
    if method == "auto":
        return _first(able, fit, family)
    if method not in fit:
        raise ValueError(f"method must be one of {', '.join(fit)} for this {family.name} family, got {method!r}.")
    if method not in able:
        raise ValueError(f"method must be one of {', '.join(able)} where n is private, got {method!r}.")
    return method


def _first(able: list[str], fit: list[str], family: AbstractFamily) -> str:
    """The method that auto takes of those that are able to; refused where only one that ignores the noise is."""
    chosen = [name for name in able if METHODS[name].by_auto]
    if chosen:
        return chosen[0]
    if others := [name for name in fit if METHODS[name].by_auto]:
        served = f"n must be public for this {family.name} family, which {' and '.join(others)} then serve"
        raise ValueError(f"{served}, got a private one; method='naive' ignores all noise.")
    raise ValueError(f"family must be one that a method serves, got {family.name}; method='naive' ignores all noise.")


def checked_prior(family: AbstractFamily, prior: AbstractPrior) -> AbstractPrior:
    """The prior, with what it leaves unsaid; refused if it does not fit the family."""
    family.check_prior(prior)
    return family.completed(prior)


def checked_seed(num_draws: int, seed: int | None) -> int:
    """The seed, or one by chance; refused as the number of draws may be."""
    whole("num_draws", num_draws, 1, MOST_DRAWS)
    return whole("seed", secrets.randbits(32) if seed is None else seed, 0, 2**63 - 1)
