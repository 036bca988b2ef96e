"""An audit before anything is released: can the worst pair of neighbours be told apart better than was promised?

    ε ≥ log(P(E | D) / P(E | D'))        ρ ≥ max over α of D_α(P(E | D) ‖ P(E | D'))/α        for any event E

Two made-up tables, as far apart as neighbours can be (neighbour.py), go through the custodian's own sums and grid, and
the promised noise is drawn for both, and for n where it is private, a hundred thousand times. All that is released
of a table, of all its groups together, is one observation. E is the most telling of {Λ ≥ t}, where Λ is the ratio of
the two densities; t is chosen on one half of the releases and its probabilities are bounded on the other half, by the
intervals of Clopper and Pearson (1934). ε and δ are promised through the ρ that implies them, and ρ is what is bounded.
An audit can show that a promise is broken, and never that it is kept. Nothing of a real table is read.

A test that would see nothing anyway says nothing: `needed` is the number of releases with which half of the promise is
seen with probability 0.9, were the losses those of the noise as planned; by the same intervals, of the counts that
are met with that probability. (A quarter where no event shows half, as of a ρ of some 8.)
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from noiseaware.check import whole
from noiseaware.custodian.grid import Grid
from noiseaware.custodian.neighbour import Outcome, worst
from noiseaware.custodian.terms import terms_of
from noiseaware.privacy import Promise
from noiseaware.query import AbstractQuestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONFIDENCE = 0.999
_THRESHOLDS = 200
_ORDERS = 1 + np.geomspace(1e-3, 1e3, 61)  # α of the Rényi divergences
_USUAL, _MOST = 100_000, 1_000_000  # releases of each table, unless said
_POWER = 0.9  # with which half of the promise is to be seen
_FORETOLD = 50_000  # losses, made up to find out how many releases that takes
_TRIED = 25  # thresholds
_LARGEST = 10**12
_SLACK = 1.2  # for the threshold, which is chosen on other releases

Measure = Callable[[float, float], float]
Draw = Callable[[Grid, list[int]], list[int]]


@dataclass(frozen=True)
class Audit:
    """What was promised, and what so many releases show it to be at least."""

    family: AbstractQuestion
    promise: Promise
    lower: float
    shares: tuple[float, float]
    losses: tuple[np.ndarray, np.ndarray]
    tables: tuple[tuple, tuple]
    """The records that differ; () for none."""
    neighbours: str
    """How the two tables differ, in words."""
    needed: int | None
    """How many releases of each table it takes to see half of the promise; None where no number does."""

    def __repr__(self) -> str:
        seen = f"{self.letter} at least {max(self.lower, 0):.3g} in {self.num_releases:,} releases"
        return f"Audit({self.family.name}, promised {self.promise}, seen {seen}: {self.verdict})"

    @property
    def verdict(self) -> str:
        """What the releases show, in words."""
        if self.is_within is None:
            return "no verdict, for " + (
                "no number of releases would do" if self.needed is None else f"that takes {self.needed:,} of each table"
            )
        return f"{'within' if self.is_within else 'above'} the promise"

    @property
    def letter(self) -> str:
        """The letter of the amount that is bounded: ε or ρ."""
        return self.promise.kept_by().letter

    @property
    def claim(self) -> float:
        """ε or ρ, as promised; of ε and δ, the ρ by which they are kept."""
        return float(self.promise.kept_by().amount)

    @property
    def is_within(self) -> bool | None:
        """False where the promise is broken; True where it is not, of releases enough to see half of it; else None."""
        if self.lower > self.claim:
            return False
        has_power = self.needed is not None and len(self.losses[0]) >= self.needed
        return True if has_power or self.lower >= self.claim / 2 else None

    @property
    def num_releases(self) -> int:
        """How many releases there were, of both tables together."""
        return sum(map(len, self.losses))

    def plot(self) -> "Figure":
        """How often Λ passes each threshold for both tables, and the line that the promise draws between them."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(5.0, 4.4), layout="constrained")
        first, second = (np.sort(losses) for losses in self.losses)
        thresholds = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 400)))
        shares = [1 - np.searchsorted(side, thresholds) / len(side) for side in (first, second)]
        axes.plot(shares[1], shares[0], color="#1d5fa3", lw=2, label="what the releases show")
        limit = np.linspace(0, 1, 500)
        axes.plot(limit, self._most(limit), color="#6b7280", ls="--", label="the most that the promise allows")
        axes.plot([0, 1], [0, 1], color="#6b7280", lw=0.8, label="cannot be told apart")
        axes.set(xlabel="P(event) for the one table", ylabel="P(event) for its neighbour", xlim=(0, 1), ylim=(0, 1.01))
        axes.set_aspect("equal")
        axes.legend(frameon=False, loc="lower right", fontsize="small")
        axes.set_title(f"{self.letter} at least {max(self.lower, 0):.3g}, promised {self.claim:.3g}", loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        return figure

    def _most(self, share: np.ndarray) -> np.ndarray:
        """The greatest P(E | D) for each P(E | D'); of ρ, by the bound at each order."""
        if self.letter == "ρ":
            orders = _ORDERS[:, None]
            bounds = share ** (1 - 1 / orders) * np.exp(
                np.minimum((orders - 1) * self.claim, 700)
            )  # P^α P'^{1−α} ≤ e^{α(α−1)ρ}
            return np.minimum(1, bounds.min(0))
        return np.minimum(math.exp(self.claim) * share, 1 - np.maximum(0, (1 - share) * math.exp(-self.claim)))


def audit(family: AbstractQuestion, *, num_releases: int | None = None, **terms: Any) -> Audit:
    """Release the worst neighbours of a family many times each, and bound ε or ρ from below.

    Terms are those of `release`: epsilon, rho, delta, neighbours, n_share, by, levels, unit, max_records, bounds, …
    Unless num_releases is given, there are 100 000 releases of each table, or as many more, up to a million, as it
    takes to see half of the promise.

    >>> audit = na.audit(na.family.Bernoulli("ill"), epsilon=1, num_releases=2000)
    >>> str(audit.promise)
    'ε = 1'
    """
    agreed = terms_of(family, **terms)
    pair = worst(agreed)
    kept = agreed.agreement.kept
    claim, measure = float(kept.amount), _MEASURES[kept.letter]
    needed = _needed(pair.outcomes, measure, claim / 2) or _needed(pair.outcomes, measure, claim / 4)
    usual = _MOST if needed is None else min(max(_USUAL, needed), _MOST)
    count = whole("num_releases", usual if num_releases is None else num_releases, 1000)
    rng = np.random.default_rng()
    first, second = (_losses(pair.outcomes, side, count, rng, Grid.noisy) for side in (0, 1))
    lower, shares = _bound(first, second, measure)
    return Audit(family, agreed.agreement.promise, lower, shares, (first, second), pair.rows, pair.words, needed)


def _least_epsilon(low: float, high: float) -> float:
    """What an event of these two probabilities, or more and less, shows ε to be at least."""
    return math.log(low / high) if low > 0 else -math.inf


def _least_rho(low: float, high: float) -> float:
    """max over α of D_α/α, for an event and its complement."""
    if not high < low < 1:
        return 0.0
    logs = np.logaddexp(
        _ORDERS * math.log(low) + (1 - _ORDERS) * math.log(high),
        _ORDERS * math.log1p(-low) + (1 - _ORDERS) * math.log1p(-high),
    )
    return float(np.max(logs / (_ORDERS - 1) / _ORDERS))


_MEASURES: dict[str, Measure] = {"ε": _least_epsilon, "ρ": _least_rho}


# ---- what the releases show ----------------------------------------------------------------------------------------


def _losses(outcomes: list[Outcome], side: int, count: int, rng: np.random.Generator, draw: Draw) -> np.ndarray:
    """Λ of so many releases of one table: how much likelier, in logs, each is from the first table than the second."""
    shares = np.array([outcome.shares[side] for outcome in outcomes])
    found = []
    for outcome, times in zip(outcomes, rng.multinomial(count, shares / shares.sum()), strict=True):
        own = [_of_noise(*noisy, side, int(times), draw) for noisy in outcome.noisy] if times else []
        found.append(np.sum([np.full(times, outcome.log_ratio), *own], axis=0))
    return rng.permutation(np.concatenate(found))


def _of_noise(grid: Grid, both: tuple[list[int], list[int]], side: int, count: int, draw: Draw) -> np.ndarray:
    """What the noise of one grid adds to Λ."""
    width = len(both[side])
    spread = np.broadcast_to(np.asarray(grid.mechanism.spread, dtype=float), width)
    law = grid.mechanism.with_spread(np.tile(spread, count))
    many = replace(grid, mechanism=law, entries=tuple(np.broadcast_to(grid.entries, width)) * count)
    y = np.array(draw(many, list(both[side]) * count), dtype=float).reshape(count, width)
    first, second = (grid.mechanism.exponent(y - np.array(totals, dtype=float)) for totals in both)
    return (second - first).sum(1)


def _needed(outcomes: list[Outcome], measure: Measure, wanted: float) -> int | None:
    """How many releases of each table show so much with probability _POWER, by losses made up without OpenDP."""
    rng = np.random.default_rng(0)
    made_up = functools.partial(_made_up, rng)
    first, second = (np.sort(_losses(outcomes, side, _FORETOLD, rng, made_up)) for side in (0, 1))
    shares = []
    for t in np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, _TRIED + 2)[1:-1])):
        one, other = (1 - np.searchsorted(side, t) / _FORETOLD for side in (first, second))
        one, other = min(one, 1 - 1 / _FORETOLD), max(other, 1 / _FORETOLD)
        if other < one and measure(one, other) > wanted:
            shares.append((one, other))
    if not shares or not _shows(shares, _LARGEST, measure, wanted):
        return None
    low, high = 2.0, math.log(_LARGEST)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if _shows(shares, round(math.exp(middle)), measure, wanted) else (middle, high)
    number = 2 * _SLACK * math.exp(high)
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return math.ceil(number / unit) * unit


def _shows(shares: list[tuple[float, float]], half: int, measure: Measure, wanted: float) -> bool:
    """Whether half of the releases show so much by one of the events, where both counts are as bad as they may be."""
    from scipy import stats

    each, rare = (1 - _CONFIDENCE) / 2, (1 - _POWER) / 2
    one, other = np.array(shares).T
    few, many = stats.binom.ppf(rare, half, one), stats.binom.ppf(1 - rare, half, other)
    low = stats.beta.ppf(each, np.maximum(few, 1e-9), half - few + 1)
    high = stats.beta.ppf(1 - each, many + 1, np.maximum(half - many, 1e-9))
    return any(measure(*pair) >= wanted for pair in zip(low.tolist(), high.tolist(), strict=True))


def _made_up(rng: np.random.Generator, grid: Grid, totals: list[int]) -> list[int]:
    """The totals with noise of about the law, by NumPy."""
    return (np.array(totals, dtype=float) + grid.mechanism.simulated(rng, len(totals))).tolist()


def _bound(first: np.ndarray, second: np.ndarray, measure: Measure) -> tuple[float, tuple[float, float]]:
    """What the event chosen on one half of the releases shows on the other, and its shares there."""
    half = len(first) // 2
    seen = np.concatenate([first[:half], second[:half]])
    thresholds = np.unique(np.quantile(seen, np.linspace(0, 1, _THRESHOLDS)))

    def shown(t: float, part: slice) -> tuple[float, tuple[float, float]]:
        low, high = _ends_of(first[part] >= t, second[part] >= t)
        return measure(low, high), (float(np.mean(first[part] >= t)), float(np.mean(second[part] >= t)))

    best = max(thresholds, key=lambda t: shown(t, slice(half))[0])
    return shown(best, slice(half, None))


def _ends_of(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The low end of the first share's interval, and the high end of the second's."""
    from scipy import stats

    each, count = (1 - _CONFIDENCE) / 2, len(first)
    one, other = int(first.sum()), int(second.sum())
    low = stats.beta.ppf(each, one, count - one + 1) if one else 0.0
    high = stats.beta.ppf(1 - each, other + 1, count - other) if other < count else 1.0
    return float(low), float(high)
