"""A posterior in numbers: draws from p(θ | release), and what follows from them without a picture or a sentence.

Sentences, pictures and predictions are made of this noun; the final `Posterior` is above them, and asks them.
"""

import abc
import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np

from noiseaware.baseline import naive
from noiseaware.evidence.release import Release
from noiseaware.posterior import predictive, recorded
from noiseaware.posterior.diagnostic import diagnostics
from noiseaware.posterior.estimate import PROBABILITY, Estimate, entries, numbers, of_conjugate, of_draws
from noiseaware.prior import AbstractPrior, AbstractScalarPrior
from noiseaware.report.release_words import with_convention
from noiseaware.sampler import covariate
from noiseaware.sampler.method import METHODS, Route

if TYPE_CHECKING:
    import pandas as pd

Truth = float | Mapping[str, object]


@dataclass(frozen=True, eq=False)
class AbstractPosterior(abc.ABC):
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
    route: Route | None = None
    """The decision on how to draw; None of draws that no sampler made alone."""
    info: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """How drawing went: of hmc, the shares of steps that were accepted (acceptance) and that diverged (divergences)."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """All releases that the draws are given: `release` and `others`."""
        return (self.release, *self.others)

    @property
    def is_exact(self) -> bool:
        """True if the draws are of the posterior itself, under the family; if not, `explanation` says why."""
        return self.explanation in (None, with_convention(covariate.NORMAL, self.release))

    @property
    def is_chain(self) -> bool:
        """True if a draw depends on those before it."""
        sampler = METHODS.get(self.method) if self.route is None else self.route.sampler
        return sampler is not None and sampler.is_chain

    @property
    def num_draws(self) -> int:
        """The number of draws of each parameter."""
        return len(next(iter(self.draws.values())))

    @property
    def naive(self) -> AbstractPrior:
        """The belief of someone who takes the noisy statistics for the true ones."""
        with jax.enable_x64(True):
            return functools.reduce(
                lambda belief, release: naive.posterior(release.evidence(), belief), self.releases, self.prior
            )

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
        return recorded.moved(self.release.family, self.draws) or covariate.moved(self.release.evidence(), self.prior)

    @functools.cached_property
    def tail(self) -> float | None:
        """The probability under the prior of a release as extreme as this one; None where that is not worked out."""
        found = [predictive.tail(release, self.prior) for release in self.releases]
        known = [probability for probability in found if probability is not None]
        return min(1.0, len(known) * min(known)) if known else None

    @property
    @abc.abstractmethod
    def concerns(self) -> tuple[str, ...]:
        """Sentences on assumptions that the release speaks against; `infer` warns of each."""

    @property
    def _is_alike(self) -> bool:
        """True if the values of all tables are recorded within the same bounds."""
        return all(bool(eqx.tree_equal(other.family, self.release.family)) for other in self.others)

    @property
    def _knows_bounds(self) -> bool:
        """True if the method knows that bounds clamped or dropped records."""
        return self.method != "naive" and self.release.mechanism.is_noisy

    def marginals(self) -> dict[str, np.ndarray]:
        """The draws of each number by itself: those of `recorded` first, then the parameters, entry by entry.

        An entry is theta, or theta[level] of a vector; of a symmetric matrix, one half.
        """
        return self.recorded | numbers(self.release.family, self.draws)

    def estimates(self, probability: float = PROBABILITY) -> list[Estimate]:
        """Mean, sd and interval of each number."""
        return [of_draws(name, draws, probability) for name, draws in self.marginals().items()]

    def naive_marginals(self) -> list[AbstractScalarPrior]:
        """The naive posterior of each number by itself, in the order of `marginals`."""
        belief = self.naive
        family, release = self.release.family, self.release
        first = family.recorded_belief(belief, release.values, release.likely_n) if self.recorded else ()
        own, _ = family.parted(belief)
        return [*first, *own.marginals()]

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
        effective draws as draws. How drawing went, such as the share of divergences, is in the frame's `attrs`.
        """
        import pandas as pd

        percent = f"{100 * probability:g}"
        rows = {
            e.name: {"mean": e.mean, "sd": e.sd, f"eti{percent}_lb": e.low, f"eti{percent}_ub": e.high}
            | diagnostics(draws)
            for e, draws in zip(self.estimates(probability), self.marginals().values(), strict=True)
        }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.attrs.update(self.info)
        return frame

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
            found |= {entry.name: float(truths[entry.place]) for entry in entries(self.release.family, parameter)}
        return (self._recorded_truths(given) if set(given) == set(self.draws) else {}) | found

    def _recorded_truths(self, given: Mapping[str, object]) -> dict[str, float]:
        """Return the recorded numbers at the true parameters."""
        if not self.recorded:
            return {}
        point = {name: np.asarray(given[name], dtype=float)[None] for name in self.draws}
        found = recorded.numbers(self.release.family, point)
        return {name: float(values[0]) for name, values in found.items()}
