"""Counterexamples: two small neighbouring tables and an event, with probabilities that are computed, not proved.

    P(event | left) > e^ε · P(event | right) + δ

Databases come from z3's model of what failed, then from a list of the smallest. On each pair the program's terms are
evaluated in fractions; an event is a half-line of each returned draw (a set of one candidate, for an exponential
mechanism), so its probability is a product. Whatever is not plainly observable in the result is left alone.
"""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import z3

from noiseaware.privacy import plain
from noiseaware.program.language.database import Database, Records
from noiseaware.program.language.distribution import Distribution
from noiseaware.program.language.evaluate import evaluate, numbers_of, scores
from noiseaware.program.language.expression import Draw, Operation, Record, Sample, Size, Statistic, Term, walk
from noiseaware.program.language.mechanism import Mechanism
from noiseaware.program.language.program import Trace
from noiseaware.program.proof.pair import Pairs, fraction
from noiseaware.program.proof.result import terms
from noiseaware.program.proof.verdict import Counterexample

_MOST_RECORDS = 3
_DIGITS = 50
_FAR = (0, 1, 3, 10, 30, 100)  # how many scales from a location events are tried
_FEW = 3000  # candidates


class _Unseen(Exception):
    """A draw was needed to evaluate a term."""


def counterexample(trace: Trace, suspects: Sequence[Term], deadline: float) -> Counterexample | None:
    """The first pair of tables that breaks the budget, or None."""
    for left, right in _neighbours(trace.database, suspects):
        if time.perf_counter() > deadline:
            return None
        for first, second in ((left, right), (right, left)):
            try:
                with mpmath.workdps(_DIGITS):
                    found = _broken(trace, first, second)
            except (ZeroDivisionError, OverflowError, ValueError):
                continue  # the program has no value there, and nothing can be said
            if found is not None:
                return found
    return None


# ---- pairs of tables ----------------------------------------------------------------------------------------------


def _neighbours(database: Database, suspects: Sequence[Term]) -> Iterator[tuple[tuple, tuple]]:
    """Pairs of records: those of z3's models, then the smallest."""
    for suspect in suspects:
        yield from _modelled(database, suspect)
    records = database.records
    values = _values(records)
    if records.size is not None and records.size > 50:
        return
    most = 1 if records.columns else _MOST_RECORDS
    for n in range(1, most + 1) if records.size is None else [records.size]:
        for rest in itertools.combinations_with_replacement(values, n - 1):
            if records.adjacency == "add_remove":
                yield from ((rest, (*rest, x)) for x in values)
            else:
                yield from (((*rest, x), (*rest, y)) for x, y in itertools.combinations(values, 2))


def _values(records: Records) -> list[Any]:
    if records.columns:  # all columns at the top, where all moments together move most from there, and two more
        d, one = len(records.columns), Fraction(1)
        return [(one,) * d, (-one / (d + 1),) * d, (Fraction(0),) * d, (*(one,) * (d - 1), -one)]
    if records.levels:
        return list(range(len(records.levels)))[:4]
    if records.bounds is not None:
        return [records.bounds[0], records.bounds[1]]
    return [Fraction(0), Fraction(1), Fraction(10**6)]


def _modelled(database: Database, suspect: Term) -> Iterator[tuple[tuple, tuple]]:
    """The smallest neighbours that z3 finds to differ in a term."""
    pairs = Pairs()
    left, right = pairs(suspect)
    if id(database) not in pairs.sizes or database.records.columns:
        return  # rows are not given by their moments
    owned = [(index, parts) for (owner, index), parts in pairs.contributions.items() if owner == id(database)]
    if len(owned) < database.records.num_statistics:
        for index in range(database.records.num_statistics):
            pairs(Statistic(database, index))
        owned = [(index, parts) for (owner, index), parts in pairs.contributions.items() if owner == id(database)]
    owned.sort(key=lambda item: item[0])
    for n in range(1, _MOST_RECORDS + 1):
        solver = z3.Solver()
        solver.set("timeout", 500)
        solver.add(*pairs.known, left != right, pairs.sizes[id(database)] == n)
        if database.records.levels:
            solver.add(*(z3.Or(*(rest == count for count in range(n + 1))) for _, (rest, _, _) in owned))
        if solver.check() == z3.sat:
            found = _records_of(solver.model(), database.records, [parts for _, parts in owned], n)
            if found is not None:
                yield found
                return


def _records_of(model: z3.ModelRef, records: Records, owned: list, n: int) -> tuple[tuple, tuple] | None:
    """Databases with the statistics of a model."""
    read = [[fraction(model.eval(part, model_completion=True)) for part in parts] for parts in owned]
    numbers = [[value for value in parts if value is not None] for parts in read]
    if any(len(parts) < 3 for parts in numbers):
        return None  # an algebraic number
    others = n - 1 if records.adjacency == "replace" else n
    if records.levels:
        rest = tuple(place for place, parts in enumerate(numbers) for _ in range(int(parts[0])))
        before, after = ([place for place, parts in enumerate(numbers) if parts[side] == 1] for side in (1, 2))
        return (*rest, *before), (*rest, *after)
    ((rest, before, after),) = numbers
    equal = (rest / others,) * others if others else ()
    first = () if records.adjacency == "add_remove" else (before,)
    return (*equal, *first), (*equal, after)


# ---- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Event:
    """An event in words, with its probability for both tables, each as a number and as it is written."""

    words: str
    probabilities: tuple[Any, Any]
    exact: tuple[str, str]


@dataclass(frozen=True)
class _Side:
    """One of the two tables."""

    database: Database
    records: tuple

    def leaf(self, node: Term) -> Fraction:
        if isinstance(node, Draw | Sample) or (isinstance(node, Statistic) and node.database.mapped is not None):
            raise _Unseen
        if isinstance(node, Size):
            return Fraction(len(self.records))
        if isinstance(node, Statistic):
            return sum((self.database.records.contribution(x)[node.index] for x in self.records), Fraction(0))
        if isinstance(node, Record):
            return Fraction(self.records[-1])  # the one that differs comes last
        raise _Unseen

    def __call__(self, node: Term) -> Fraction:
        return evaluate(node, self.leaf)


def _broken(trace: Trace, left: tuple, right: tuple) -> Counterexample | None:
    sides = _Side(trace.database, left), _Side(trace.database, right)
    returned = terms(trace.result)
    events = [event for place, value in enumerate(returned) if (event := _leak(value, place, sides)) is not None][:1]
    if not events:
        events = _joint_leak(returned, sides) or _observed(returned, sides) + _mapped_events(trace, sides)
    if not events:
        return None
    first, second = mpmath.mpf(1), mpmath.mpf(1)
    for event in events:
        first, second = first * event.probabilities[0], second * event.probabilities[1]
    budget = mpmath.exp(_real(trace.program.epsilon)) * second + _real(trace.program.delta)
    if not first > budget * (1 + mpmath.mpf(10) ** -20):
        return None
    return Counterexample(
        left=_named(trace.database.records, left),
        right=_named(trace.database.records, right),
        event=" and ".join(event.words for event in events),
        probabilities=(float(first), float(second)),
        exact=(_product(event.exact[0] for event in events), _product(event.exact[1] for event in events)),
    )


def _leak(value: Term, place: int, sides: tuple[_Side, _Side]) -> _Event | None:
    """A returned value that no noise reaches, and that differs; or one draw from a beta posterior."""
    if isinstance(value, Sample):
        return _sampled(value.distribution, place, sides)
    try:
        first, second = (side(value) for side in sides)
    except _Unseen:
        return None
    if first == second:
        return None
    return _Event(f"returned value {place + 1} is {plain(first)}", (mpmath.mpf(1), mpmath.mpf(0)), ("1", "0"))


def _joint_leak(returned: list[Term], sides: tuple[_Side, _Side]) -> list[_Event]:
    """Two returned values with the same draw, from which it can be taken away: what is left differs."""
    for (i, first), (j, second) in itertools.combinations(enumerate(returned), 2):
        draws = {id(node): node for value in (first, second) for node in walk([value]) if isinstance(node, Draw)}
        if len(draws) != 1:
            continue
        (draw,) = draws.values()
        try:
            factors = [_factor(first, second, draw, side) for side in sides]
            if None in factors or factors[0] != factors[1]:
                continue
            whole = first * factors[0] + second
            left, right = (_at(whole, draw, side, Fraction(0)) for side in sides)
        except _Unseen:
            continue
        if left != right:
            times = plain(factors[0] or Fraction(0))
            words = f"returned value {j + 1} plus {times} times returned value {i + 1} is {plain(left)}"
            return [_Event(words, (mpmath.mpf(1), mpmath.mpf(0)), ("1", "0"))]
    return []


def _factor(first: Term, second: Term, draw: Draw, side: _Side) -> Fraction | None:
    """The multiple of the first value that, added to the second, removes the draw."""
    slopes = _slope(first, draw, side), _slope(second, draw, side)
    return None if slopes[0] is None or slopes[1] is None else -slopes[1] / slopes[0]


def _sampled(distribution: Distribution, place: int, sides: tuple[_Side, _Side]) -> _Event | None:
    """A draw from beta(a, b) near 0: P(θ ≤ t) is a polynomial where a and b are whole."""
    try:
        (a, b), (c, d) = (numbers_of(distribution, side.leaf) for side in sides)
    except (_Unseen, ValueError):
        return None
    if distribution.name != "beta" or any(x.denominator != 1 for x in (a, b, c, d)) or a >= c:
        return None
    t = Fraction(1, 10**6)
    exact = [_beta_cdf(int(x), int(y), t) for x, y in ((a, b), (c, d))]
    numbers = (_real(exact[0]), _real(exact[1]))
    words = f"returned value {place + 1} is at most {plain(t)}"
    return _Event(words, numbers, (_short(numbers[0]), _short(numbers[1])))


def _beta_cdf(a: int, b: int, t: Fraction) -> Fraction:
    """P(θ ≤ t) = P(Binomial(a + b − 1, t) ≥ a)."""
    n = a + b - 1
    return sum((math.comb(n, k) * t**k * (1 - t) ** (n - k) for k in range(a, n + 1)), Fraction(0))


def _observed(returned: list[Term], sides: tuple[_Side, _Side]) -> list[_Event]:
    """An event for each draw that can be read off the result."""
    seen: set[tuple[int, int]] = set()
    events = []
    for place, value in enumerate(returned):
        draws = [node for node in walk([value]) if isinstance(node, Draw)]
        if len(draws) != 1:
            continue
        mechanism = draws[0].mechanism
        key = (id(mechanism), 0 if mechanism.name == "exponential" else draws[0].index)
        try:
            event = None if key in seen else _event(draws[0], value, f"returned value {place + 1}", sides)
        except _Unseen:
            continue
        if event is not None:
            seen.add(key)
            events.append(event)
    return events


def _mapped_events(trace: Trace, sides: tuple[_Side, _Side]) -> list[_Event]:
    """Databases of one record: its noisy record is what there is."""
    if any(len(side.records) != 1 for side in sides):
        return []
    drawn = [mapped.result for mapped in trace.mechanisms.maps]
    events = [_event(draw, draw, "the noisy record", sides) for draw in drawn]
    return [event for event in events if event is not None]


def _event(draw: Draw, value: Term, name: str, sides: tuple[_Side, _Side]) -> _Event | None:
    mechanism = draw.mechanism
    if mechanism.name == "exponential":
        return _chosen(mechanism, sides)
    if mechanism.name not in ("laplace", "gaussian"):
        return None
    slope = _slope(value, draw, sides[0])
    if slope is None:
        return None
    places = [_at(value, draw, side, side(mechanism.values[draw.index])) for side in sides]
    scales = [abs(slope) * side(mechanism.width) / side(mechanism.epsilon) for side in sides]
    return _half_line(mechanism, name, places, scales)


def _slope(value: Term, draw: Draw, side: _Side) -> Fraction | None:
    """c where the value is c·draw + anything without a draw."""
    at = [_at(value, draw, side, Fraction(x)) for x in (0, 1, 2)]
    slope = at[1] - at[0]
    is_plain = all(node.name in ("+", "-", "*", "/") for node in walk([value]) if isinstance(node, Operation))
    return slope if is_plain and slope and at[2] - at[1] == slope else None


def _at(value: Term, draw: Draw, side: _Side, x: Fraction) -> Fraction:
    return evaluate(value, lambda node: x if node is draw else side.leaf(node))


def _half_line(mechanism: Mechanism, name: str, places: list[Fraction], scales: list[Fraction]) -> _Event | None:
    """The half-line whose probabilities have the greatest ratio."""
    if min(scales) <= 0:
        return None
    tail = _laplace_tail if mechanism.name == "laplace" else _gaussian_tail(mechanism.delta)
    best: tuple[Any, _Event] | None = None
    for sign, start, far in itertools.product((-1, 1), places, _FAR):
        t = start + sign * far * max(scales)
        found = [tail(sign * (t - place) / scale) for place, scale in zip(places, scales, strict=True)]
        side, edge = "least" if sign > 0 else "most", plain(t) if t.denominator < 1000 else f"{float(t):g}"
        words = f"{name} is at {side} {edge}"
        event = _Event(words, (found[0][0], found[1][0]), (found[0][1], found[1][1]))
        gain = mpmath.log(found[0][0]) - mpmath.log(found[1][0])
        if best is None or gain > best[0] * (1 + mpmath.mpf(10) ** -30):
            best = gain, event
    return None if best is None or best[0] <= 0 else best[1]


def _laplace_tail(x: Fraction) -> tuple[Any, str]:
    """P(noise ≥ x) of scale 1."""
    if x >= 0:
        return mpmath.exp(-_real(x)) / 2, f"½e^−{plain(x)}" if x else "½"
    return 1 - mpmath.exp(_real(x)) / 2, f"1 − ½e^−{plain(-x)}"


def _gaussian_tail(delta: Fraction):
    """P(noise ≥ x) of deviation √(2 ln(1.25/δ))."""
    deviation = mpmath.sqrt(2 * mpmath.log(mpmath.mpf("1.25") / _real(delta)))

    def tail(x: Fraction) -> tuple[Any, str]:
        found = mpmath.erfc(_real(x) / deviation / mpmath.sqrt(2)) / 2
        return found, _short(found)

    return tail


def _chosen(mechanism: Mechanism, sides: tuple[_Side, _Side]) -> _Event | None:
    """The candidate whose probabilities have the greatest ratio."""
    laws = [_choice(mechanism, side) for side in sides]
    shared = [candidate for candidate in laws[0] if candidate in laws[1]]
    if not shared:
        return None
    best = max(shared, key=lambda candidate: laws[0][candidate] / laws[1][candidate])
    numbers = laws[0][best], laws[1][best]
    words = f"the choice is {', '.join(plain(x) for x in best)}"
    return _Event(words, numbers, (_short(numbers[0]), _short(numbers[1])))


def _choice(mechanism: Mechanism, side: _Side) -> dict[tuple[Fraction, ...], Any]:
    """P(r) ∝ e^{ε·score(r)/2Δ} over all candidates, of which one may be listed twice; nothing where there are many."""
    rate = side(mechanism.epsilon) / 2 / side(mechanism.width)
    scored = list(itertools.islice(scores(mechanism, len(side.records), side.leaf), _FEW + 1))
    if len(scored) > _FEW:
        return {}
    weights: dict[tuple[Fraction, ...], Any] = {}
    for candidate, score in scored:
        weights[candidate] = weights.get(candidate, mpmath.mpf(0)) + mpmath.exp(_real(rate * score))
    total = sum(weights.values())
    return {candidate: weight / total for candidate, weight in weights.items()}


# ---- words ----------------------------------------------------------------------------------------------------------


def _real(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def _short(value: Any) -> str:
    return mpmath.nstr(value, 6)


def _product(factors) -> str:
    return " · ".join(f"({factor})" if "−" in factor[1:] and " " in factor else factor for factor in factors)


def _named(records: Records, values: tuple) -> tuple:
    """Records as a person would write them."""
    if records.columns:
        middles = [((low + high) / 2, (high - low) / 2) for low, high in records.intervals]
        return tuple(tuple(float(c + h * u) for u, (c, h) in zip(row, middles, strict=True)) for row in values)
    return tuple(records.levels[place] for place in values) if records.levels else values
