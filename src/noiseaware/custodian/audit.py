"""An audit before anything is released: can the worst pair of neighbours be told apart better than was promised?

    ε ≥ log((P(E | D) − δ) / P(E | D'))        ρ ≥ max over α of D_α(P(E | D) ‖ P(E | D'))/α        for any event E

Two tables of one record each, or one of one record and an empty one where records are added or removed, as far apart as
the bounds allow, go through the custodian's own sums and grid, and the promised noise is drawn for both, and for n
where it is private, a hundred thousand times. E is the most telling of {Λ ≥ t}, where Λ is the ratio of the
two noise densities; t is chosen on one half of the releases and its probabilities are bounded on the other half, by the
intervals of Clopper and Pearson (1934). An audit can show that a promise is broken, and never that it is kept. Nothing
of a real table is read.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from noiseaware.custodian.grid import Grid
from noiseaware.custodian.table import Table
from noiseaware.custodian.terms import terms_of
from noiseaware.family import AbstractFamily
from noiseaware.given import whole
from noiseaware.mechanism import DiscreteLaplace
from noiseaware.privacy import N_SHARE, Approximate, Neighbours, Number, Promise, ZeroConcentrated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONFIDENCE = 0.999
_THRESHOLDS = 200
_FEW_COLUMNS = 2  # all rows of their ends and middles are tried in pairs; of more columns there are too many
_ORDERS = 1 + np.geomspace(1e-3, 1e3, 61)  # α of the Rényi divergences


@dataclass(frozen=True)
class Audit:
    """What was promised, and what so many releases show it to be at least."""

    family: AbstractFamily
    promise: Promise
    lower: float
    shares: tuple[float, float]
    losses: tuple[np.ndarray, np.ndarray]
    tables: tuple[tuple, tuple]

    def __repr__(self) -> str:
        seen = f"{self.letter} at least {self.lower:.3g} in {self.num_releases:,} releases"
        told = "within" if self.is_within else "above"
        return f"Audit({self.family.name}, promised {self.promise}, seen {seen}: {told} the promise)"

    @property
    def letter(self) -> str:
        """What is promised and bounded: ε or ρ."""
        return "ρ" if isinstance(self.promise, ZeroConcentrated) else "ε"

    @property
    def claim(self) -> float:
        """ε or ρ, as promised."""
        return float(self.promise.rho if isinstance(self.promise, ZeroConcentrated) else self.promise.epsilon)

    @property
    def is_within(self) -> bool:
        """Whether the releases agree with the promise."""
        return self.lower <= self.claim

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
        if isinstance(self.promise, ZeroConcentrated):
            orders = _ORDERS[:, None]
            bounds = share ** (1 - 1 / orders) * np.exp((orders - 1) * self.claim)  # P^α P'^{1−α} ≤ e^{α(α−1)ρ}
            return np.minimum(1, bounds.min(0))
        delta = float(self.promise.delta) if isinstance(self.promise, Approximate) else 0.0
        most = math.exp(self.claim) * share + delta
        return np.minimum(most, 1 - np.maximum(0, (1 - share - delta) * math.exp(-self.claim)))


def audit(
    family: AbstractFamily,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    neighbours: Neighbours = "replace",
    n_share: Number = N_SHARE,
    num_releases: int = 100_000,
) -> Audit:
    """Release the worst neighbours of a family so many times each, and bound ε or ρ from below."""
    num_releases = whole("num_releases", num_releases, 1000)
    terms = terms_of(family, epsilon=epsilon, rho=rho, delta=delta, neighbours=neighbours, n_share=n_share)
    grid, n_grid = terms.grid(family), terms.n_grid
    tables = _furthest(family, grid, neighbours)
    (first, n), (second, other_n) = (_totals(family, row, grid.exponent) for row in tables)
    parts = [(grid, (first, second))] + ([] if n_grid is None else [(n_grid, ([n], [other_n]))])
    losses = [np.sum([_losses(*part, side, num_releases) for part in parts], axis=0) for side in (0, 1)]
    lower, shares = _bound(losses[0], losses[1], _measure(terms.promise))
    return Audit(family, terms.promise, lower, shares, (losses[0], losses[1]), tables)


def _measure(promise: Promise) -> Callable[[float, float], float]:
    """What an event of these two probabilities shows ε, or ρ, to be at least."""
    if isinstance(promise, ZeroConcentrated):
        return _least_rho
    delta = float(promise.delta) if isinstance(promise, Approximate) else 0.0
    return lambda low, high: math.log((low - delta) / high) if low > delta else -math.inf


def _least_rho(low: float, high: float) -> float:
    """max over α of D_α/α, for an event and its complement."""
    if not high < low < 1:
        return 0.0
    logs = np.logaddexp(
        _ORDERS * math.log(low) + (1 - _ORDERS) * math.log(high),
        _ORDERS * math.log1p(-low) + (1 - _ORDERS) * math.log1p(-high),
    )
    return float(np.max(logs / (_ORDERS - 1) / _ORDERS))


# ---- the worst neighbours ------------------------------------------------------------------------------------------


def _furthest(family: AbstractFamily, grid: Grid, neighbours: Neighbours) -> tuple[tuple, tuple]:
    """Of records at the ends, the middle and outside of the bounds, the two whose statistics differ most; or the
    empty table and the one that differs most from it."""
    rows = _rows(family) if neighbours == "replace" else [(), *_rows(family)]
    totals = [np.array(_totals(family, row, grid.exponent)[0], dtype=float) for row in rows]
    scale = np.broadcast_to(np.asarray(grid.mechanism.spread, dtype=float), totals[0].shape)
    power = 1 if isinstance(grid.mechanism, DiscreteLaplace) else 2
    pairs = itertools.combinations(range(len(rows)), 2)
    pairs = pairs if neighbours == "replace" else [(0, other) for other in range(1, len(rows))]
    first, second = max(pairs, key=lambda pair: (np.abs((totals[pair[0]] - totals[pair[1]]) / scale) ** power).sum())
    return rows[first], rows[second]


def _rows(family: AbstractFamily) -> list[tuple]:
    """The records to try: of few columns, ends and middles in all ways; of more, those that proofs say are worst.

    Within ±1, the sums of d columns and of their products are moved furthest from (1, …, 1) to (−1, …, −1)/(d + 1) in
    all, and in squares to a corner that agrees with it in ⌊d/2⌋ columns; a record that comes or goes moves them
    furthest at (1, …, 1) (family/_moment.py). Without the square of the last column, it is (0, …, 0, −1) in all.
    """
    if len(family.columns) <= _FEW_COLUMNS:
        return list(itertools.product(*_ends(family)))
    d, agree = len(family.columns), len(family.columns) // 2
    scaled = [[1.0] * d, [-1 / (d + 1)] * d, [1.0] * agree + [-1.0] * (d - agree), [0.0] * (d - 1) + [-1.0]]
    scaled += [[0.0] * d, [-1.0] * d, [3.0] * d]  # and the middle, the other end, and beyond
    intervals = family.intervals  # type: ignore[attr-defined]
    pairs = [list(zip(row, intervals, strict=True)) for row in scaled]
    return [tuple((1 - u) / 2 * low + (1 + u) / 2 * high for u, (low, high) in row) for row in pairs]


def _ends(family: AbstractFamily) -> list[list[Any]]:
    """For each column, the records to try."""
    levels = getattr(family, "levels", None)
    if levels is not None:
        return [list(levels)]
    intervals = getattr(family, "intervals", None)
    if intervals is None:
        intervals = [getattr(family, "bounds", None) or (0, 1)]
    d = len(intervals)
    parts = (0.0, 0.5, (1 - 1 / (d + 1)) / 2, (1 + 1 / (d + 1)) / 2, 1.0)
    ends = [[low + part * (high - low) for part in parts] for low, high in intervals]
    ends = [[*own, own[-1] + 1, own[0] - 1] for own in ends]
    return [sorted({math.floor(x) for x in own}) if family.is_integer else own for own in ends]


def _totals(family: AbstractFamily, row: Sequence[Any], exponent: int) -> tuple[list[int], int]:
    """The sums of a table of one record, or of none."""
    values = row or _rows(family)[0]
    frame = pd.DataFrame({column: [value] for column, value in zip(family.columns, values, strict=True)})
    return Table(frame if row else frame[:0]).sums(family, exponent, least=0)


# ---- what the releases show ----------------------------------------------------------------------------------------


def _losses(grid: Grid, both: tuple[Sequence[int], Sequence[int]], side: int, count: int) -> np.ndarray:
    """Λ of so many releases of one table: how much likelier, in logs, each is from the first table than the second."""
    width = len(both[side])
    spread = np.broadcast_to(np.asarray(grid.mechanism.spread, dtype=float), width)
    law = type(grid.mechanism)(np.tile(spread, count))  # type: ignore[call-arg]
    many = replace(grid, mechanism=law, entries=tuple(np.broadcast_to(grid.entries, width)) * count)
    y = np.array(many.noisy(list(both[side]) * count), dtype=float).reshape(count, width)
    first, second = ((y - np.array(totals, dtype=float)) / spread for totals in both)
    if isinstance(grid.mechanism, DiscreteLaplace):
        return (np.abs(second) - np.abs(first)).sum(1)
    return 0.5 * (second**2 - first**2).sum(1)


def _bound(
    first: np.ndarray, second: np.ndarray, measure: Callable[[float, float], float]
) -> tuple[float, tuple[float, float]]:
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
