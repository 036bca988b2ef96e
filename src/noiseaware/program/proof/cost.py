"""Addition of costs, by the counts that one record can move."""

from collections import defaultdict
from fractions import Fraction

from noiseaware.program.language.pattern import Count


class Costs:
    """Costs, each of one count or of any: a replaced record moves two counts, one that comes or goes moves one."""

    def __init__(self, adjacency: str) -> None:
        self._moved = 2 if adjacency == "replace" else 1
        self._fixed = Fraction(0)
        self._by_count: dict[Count, Fraction] = defaultdict(Fraction)

    def add(self, cost: Fraction, count: Count | None) -> None:
        if count is None:
            self._fixed += cost
        else:
            self._by_count[count] += cost

    @property
    def total(self) -> Fraction:
        return self._fixed + sum(sorted(self._by_count.values(), reverse=True)[: self._moved], Fraction(0))
