"""The lattice of a term's values: offset + unit·ℤ, for a term that is linear in private values.

Offset and unit follow from what is public, and so are the same for neighbours: noise may be drawn in whole units.
"""

import functools
import math
from fractions import Fraction

from noiseaware.program.language.evaluate import Leaf, evaluate
from noiseaware.program.language.expression import Distance, Operation, Record, Sample, Size, Statistic, Term, in_order

_Slopes = dict[int, Fraction]
"""The coefficient of each statistic, by its place, of a record, and of a size that is private."""
_RECORD, _SIZE = -1, -2


def _is_own(node: Term) -> bool:
    """True if a leaf is private: of the table itself, and not of noisy records."""
    return isinstance(node, Statistic | Record | Size) and node.database.is_private(node)


def offset(term: Term, leaf: Leaf) -> Fraction:
    """The term where everything private is 0."""
    return evaluate(term, lambda node: Fraction(0) if _is_own(node) else leaf(node))


def unit(term: Term, leaf: Leaf, step: Fraction) -> Fraction | None:
    """The unit of a term's lattice, if statistics are multiples of `step`; None where the term is not linear."""
    slopes = _slopes(term, leaf)
    units = [abs(slope) * (1 if key == _SIZE else step) for key, slope in (slopes or {}).items() if slope]
    return functools.reduce(_common, units) if units else None


def only_statistic(term: Term, leaf: Leaf) -> tuple[int, int] | None:
    """The place of the one statistic that is all that is private in a term, and the sign that it has there."""
    slopes = {key: slope for key, slope in (_slopes(term, leaf) or {}).items() if slope}
    if len(slopes) != 1 or min(slopes) < 0:
        return None
    ((place, slope),) = slopes.items()
    return place, 1 if slope > 0 else -1


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The largest number that both are whole multiples of."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _slopes(root: Term, leaf: Leaf) -> _Slopes | None:
    """The coefficients of a term; empty where it holds no statistic, None where it is not linear in them."""
    known: dict[int, _Slopes | None] = {}
    for node in in_order(root):
        known[id(node)] = _slopes_of(node, leaf, known)
    return known[id(root)]


def _slopes_of(term: Term, leaf: Leaf, found: dict[int, _Slopes | None]) -> _Slopes | None:
    """Coefficients of private values in a term, given those of its operands."""
    if _is_own(term):
        key = term.index if isinstance(term, Statistic) else _SIZE if isinstance(term, Size) else _RECORD
        return {key: Fraction(1)}
    if not isinstance(term, Operation):
        return None if isinstance(term, Distance | Sample) else {}
    parts = [found[id(argument)] for argument in term.arguments]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if not any(known):
        return {}
    if term.name in ("+", "-"):
        return _sum(known[0], known[1], 1 if term.name == "+" else -1)
    if term.name == "*" and not all(known):
        place = 0 if known[0] else 1
        return _sum({}, known[place], evaluate(term.arguments[1 - place], leaf))
    if term.name == "/" and not known[1]:
        below = evaluate(term.arguments[1], leaf)
        return _sum({}, known[0], 1 / below if below else Fraction(0))
    return None


def _sum(a: _Slopes, b: _Slopes, factor: Fraction | int) -> _Slopes:
    return {key: a.get(key, Fraction(0)) + factor * b.get(key, Fraction(0)) for key in a.keys() | b.keys()}
