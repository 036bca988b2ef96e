"""Bounds chosen from the records themselves, privately: two quantiles by the exponential mechanism.

    P(c) ∝ e^{u(c)/b}        u(c) = −|#{x ≤ c} − q·n| − r·n·k(c)        c ∈ {0, ±2^j, ±3·2^j}        (Smith 2011)

Candidates c are a public list. Above the largest record all of them hold the same n records, so ranks alone would
leave the choice between 64 and four billion to chance: the k-th candidate from 0 therefore pays a toll r·n·k, which
says that a wider bound must bring in a share r = max(q, 1 − q)/T of the records. All but the count is public.

*Sensitivity.* Replacing one of n records moves #{x ≤ c} by 1 at most and nothing else in u, so u moves by Δ = 1 at
most, by the triangle inequality. For q of denominator D, the integer T·D·u moves by T·D. Adding or removing one moves
#{x ≤ c} − q·n by max(q, 1 − q) at most and the toll by r·k(c): T·D·u by max(q, 1 − q)·D·(T + greatest k) at most. Of
several records of one person, each moves it so far at most.

*Cost.* That of the exponential mechanism (exponential.py) with Δ = 1. The upper bound is chosen among the candidates
above the lower one, which is public by then: costs add (Bun & Steinke 2016, lemma 2.3), and what follows from the
bounds alone costs nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from noiseaware.custodian.exponential import calibrated, select
from noiseaware.privacy import Agreement, Guarantee, Neighbours, exact
from noiseaware.query import AbstractQuery

SHARE = Fraction(1, 10)
MOST_SLACK = 0.5
"""Of the records: beyond it bounds say so little of the table that their choice is better not paid for."""
QUANTILES = (Fraction(1, 40), Fraction(39, 40))
# All tolls together stay below 4/5 of the records; below 2/5 with two signs, as half of the records may be on the
# other side of 0. So that the true quantile, wherever it is, still wins over the least candidate.
_RUNGS_PER_RECORD = {1: Fraction(5, 4), 2: Fraction(5, 2)}
_FINEST_QUANTILE = 10**6  # T · D · n stays below 2^60


@dataclass(frozen=True)
class Selection:
    """Quantiles, the candidates among which their bounds are chosen, and the cost of each choice.

    With one quantile the lower bound is 0, the public end of the support.
    """

    candidates: tuple[float, ...]
    quantiles: tuple[Fraction, ...]
    share: Fraction
    each: Guarantee
    neighbours: Neighbours = "replace"
    max_records: int = 1

    @property
    def extremes(self) -> tuple[tuple[float, float], ...]:
        """The widest bounds that can be chosen, the narrowest for their size, and the narrowest of all."""
        *_, below, last = self.candidates
        if len(self.quantiles) == 1:
            return (0.0, last), (0.0, self.candidates[0])
        least = next(place for place, c in enumerate(self.candidates) if c > 0)
        return (self.candidates[0], last), (below, last), self.candidates[least : least + 2]  # type: ignore[return-value]

    def bounds(self, counts: Sequence[int], n: int) -> tuple[float, float]:
        """Fresh bounds, given how many of n records are at or below each candidate."""
        scores = [self._scores(index, counts, n) for index in range(len(self.quantiles))]
        if len(self.quantiles) == 1:
            return 0.0, self.candidates[self._drawn(0, scores[0])]
        low = self._drawn(0, scores[0][:-1])
        high = low + 1 + self._drawn(1, scores[1][low + 1 :])
        return self.candidates[low], self.candidates[high]

    def law(self, counts: Sequence[int], n: int) -> dict[tuple[float, float], float]:
        """The probability of each pair of bounds, by the formula of the choice: for an audit, which draws none."""
        scores = [np.array(self._scores(i, counts, n), dtype=float) / self.scale(i) for i in range(len(self.quantiles))]
        if len(self.quantiles) == 1:
            return {(0.0, c): p for c, p in zip(self.candidates, _softmax(scores[0]), strict=True)}
        found = {}
        for place, share in enumerate(_softmax(scores[0][:-1])):
            above = zip(self.candidates[place + 1 :], _softmax(scores[1][place + 1 :]), strict=True)
            found |= {(self.candidates[place], c): share * p for c, p in above}
        return found

    def _scores(self, index: int, counts: Sequence[int], n: int) -> list[int]:
        """T·D·u(c) of every candidate, as exact integers."""
        part, whole = self.quantiles[index].as_integer_ratio()
        toll, steps = max(part, whole - part) * n, self._steps
        ranks = _ranks(self.candidates)
        return [-steps * abs(whole * c - part * n) - toll * k for c, k in zip(counts, ranks, strict=True)]

    def sensitivity(self, index: int) -> int:
        """How far neighbours move a score of this quantile."""
        part, whole = self.quantiles[index].as_integer_ratio()
        if self.neighbours == "replace":
            return self.max_records * self._steps * whole
        return self.max_records * max(part, whole - part) * (self._steps + max(_ranks(self.candidates)))

    @property
    def _steps(self) -> int:
        """T, a power of two."""
        rungs = math.ceil(_RUNGS_PER_RECORD[len(self.quantiles)] * (max(_ranks(self.candidates)) + 1))
        return 1 << (rungs - 1).bit_length()

    def scale(self, index: int) -> float:
        """The least b that keeps the promise."""
        return calibrated(self.each, self.sensitivity(index))

    @property
    def slack(self) -> float:
        """By how many records the rank of a bound may miss its quantile, tolls apart: not by more in 95 of 100 choices.

        P(u ≤ greatest u − t) ≤ K e^{−t/b} for K candidates (McSherry & Talwar 2007), with u and b in records.
        """
        wholes = [self._steps * quantile.denominator for quantile in self.quantiles]
        scales = [self.scale(index) / whole for index, whole in enumerate(wholes)]
        return max(scales) * math.log(len(self.candidates) / 0.05)

    def _drawn(self, index: int, scores: list[int]) -> int:
        return select(scores, scale=self.scale(index), sensitivity=self.sensitivity(index), guarantee=self.each)


def planned(query: AbstractQuery, agreement: Agreement, quantiles: object) -> Selection:
    """Return how the bounds of a query are to be chosen, or refuse; nothing of the table is needed."""
    low, high = _checked_quantiles(quantiles)
    chosen = (low, high) if query.candidates[0] < 0 else (high,)
    selection = Selection(
        candidates=query.candidates,
        quantiles=chosen,
        share=agreement.bounds_share,
        each=agreement.of_bounds.part(Fraction(1, len(chosen))),
        neighbours=agreement.neighbours,
        max_records=agreement.max_records,
    )
    for index in range(len(chosen)):
        selection.scale(index)
    return selection


# ---- what is public ----------------------------------------------------------------------------------------------


def _softmax(scores: np.ndarray) -> list[float]:
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()).tolist()


def _ranks(candidates: Sequence[float]) -> list[int]:
    """How many candidates further from 0 each is than the nearest."""
    order = {size: k for k, size in enumerate(sorted({abs(c) for c in candidates}))}
    return [order[abs(c)] for c in candidates]


def _checked_quantiles(quantiles: object) -> tuple[Fraction, Fraction]:
    if isinstance(quantiles, str) or not isinstance(quantiles, Sequence) or len(quantiles) != 2:
        raise ValueError(f"bounds_quantiles must be two numbers (low, high), got {quantiles}.")
    low, high = (exact("bounds_quantiles", q) for q in quantiles)
    if not low < Fraction(1, 2) < high < 1:
        raise ValueError(f"bounds_quantiles must lie on either side of 0.5, got ({low}, {high}).")
    if max(low.denominator, high.denominator) > _FINEST_QUANTILE:
        raise ValueError(f"bounds_quantiles must have at most six decimals, got ({low}, {high}).")
    return low, high
