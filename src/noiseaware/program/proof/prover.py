"""Questions to z3: how far neighbours move a term, and whether a claim holds of all of them."""

import time
from dataclasses import dataclass, field
from fractions import Fraction

import z3

from noiseaware.program.language.expression import Sample, Term, is_private, walk
from noiseaware.program.language.pattern import one_count
from noiseaware.program.proof.pair import Expression, Pairs, fraction, number


@dataclass
class Prover:
    """Asks z3, until the deadline; what is not answered by then is not proved.

    `distances` are the distances of posteriors of which it is known how far neighbours move them.
    """

    deadline: float
    distances: dict[int, Fraction] = field(default_factory=dict)

    def largest_move(self, value: Term) -> Fraction | None:
        """max |left − right| over all neighbours, found by z3's optimiser and proved by its solver; None: no bound."""
        if not is_private(value) and not any(isinstance(node, Sample) for node in walk([value])):
            return Fraction(0)
        pairs = Pairs(self.distances)
        left, right = pairs(value)
        bounds = [self._largest(pairs, difference) for difference in (left - right, right - left)]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return None
        best = max(Fraction(0), *known)
        return best if self._stays_within(pairs, value, number(best)) else None

    def _largest(self, pairs: Pairs, difference: Expression) -> Fraction | None:
        if self._is_over:
            return None
        optimizer = z3.Optimize()
        optimizer.set("timeout", self._milliseconds)
        optimizer.add(*pairs.known)
        handle = optimizer.maximize(difference)
        if optimizer.check() != z3.sat:
            return None
        infinite, finite, _ = (fraction(part) for part in list(optimizer.upper_values(handle)))  # type: ignore[arg-type]
        return finite if infinite == 0 else None

    def is_within(self, value: Term, width: Term) -> bool:
        """True if neighbours move a value by no more than a width that is public."""
        pairs = Pairs(self.distances)
        bound, _ = pairs(width)
        return self._stays_within(pairs, value, bound)

    def _stays_within(self, pairs: Pairs, value: Term, bound: Expression) -> bool:
        """|left − right| ≤ bound, and 0 where the one count that matters does not move."""
        left, right = pairs(value)
        count = one_count(value)
        if count is not None:
            _, before, after = pairs.contributions[count]
            bound = z3.If(before == after, number(0), bound)
        return self._never(pairs, z3.Or(left - right > bound, right - left > bound))

    def is_same(self, value: Term) -> bool:
        """True if a term is the same for neighbours."""
        pairs = Pairs()
        left, right = pairs(value)
        return self._never(pairs, left != right)

    def is_positive(self, value: Term) -> bool:
        """True if a term is above 0 on both sides."""
        pairs = Pairs()
        left, right = pairs(value)
        return self._never(pairs, z3.Or(left <= 0, right <= 0))

    def is_never_zero(self, value: Term) -> bool:
        """True if a term is other than 0 on both sides."""
        pairs = Pairs()
        left, right = pairs(value)
        return self._never(pairs, z3.Or(left == 0, right == 0))

    def _never(self, pairs: Pairs, claim: Expression) -> bool:
        """True if z3 proves that no neighbours meet a claim; a database of one record often does, and is soon found."""
        smallest = [size == 1 for size in pairs.sizes.values()]
        return self._check(pairs, claim, *smallest) != z3.sat and self._check(pairs, claim) == z3.unsat

    def _check(self, pairs: Pairs, *claims: Expression) -> z3.CheckSatResult:
        if self._is_over:
            return z3.unknown
        solver = z3.Solver()
        solver.set("timeout", self._milliseconds)
        solver.add(*pairs.known, *claims)
        return solver.check()

    @property
    def _is_over(self) -> bool:
        """True if time is up: then nothing is asked, since what z3 answers at once would be an answer by chance."""
        return time.perf_counter() >= self.deadline

    @property
    def _milliseconds(self) -> int:
        return max(1, int(1000 * (self.deadline - time.perf_counter())))
