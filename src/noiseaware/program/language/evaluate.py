"""Terms at numbers, in exact fractions: what a certified program computes, and what a counterexample is computed with.

`exp`, `log` and the Hellinger distance are rounded to floats. Nothing is proved of these but what holds of any function
of their arguments, or of a distance up to the steps that custodian/program/noise.py allows for.
"""

import functools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from noiseaware.program.language.distribution import Distribution, Posteriors
from noiseaware.program.language.expression import Constant, Distance, Operation, Term, in_order
from noiseaware.program.language.mechanism import Mechanism
from noiseaware.program.language.operation import LARGEST_EXPONENT, operations

Leaf = Callable[[Term], Fraction]
_ROUGH_LEAST, _ROUGH_MOST = Fraction(1, 10**12), 10**12  # where log Γ in floats errs by less than 1/10


def evaluate(root: Term, leaf: Leaf) -> Fraction:
    """A term, given its leaves."""
    known: dict[int, Fraction] = {}
    for node in in_order(root):
        known[id(node)] = _value(node, leaf, known)
    return known[id(root)]


def _value(node: Term, leaf: Leaf, known: dict[int, Fraction]) -> Fraction:
    """A term, given those that it is made of."""
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Operation):
        return EXACT[node.name](*(known[id(argument)] for argument in node.arguments))
    if isinstance(node, Distance):
        left, right = ([known[id(x)] for x in side.parameters] for side in (node.left, node.right))
        return _METRICS[node.metric](node.left.name, left, right)
    return leaf(node)


def natural_log(x: Fraction) -> float:
    """log x by its parts, which may be of any size."""
    return math.log(x.numerator) - math.log(x.denominator)


def rounded(x: Fraction) -> float:
    """The nearest float, infinite where there is none."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


EXACT = operations(
    lambda condition, value, otherwise: Fraction(value if condition else otherwise),
    exp=lambda x: Fraction(math.exp(x)),
    log=lambda x: Fraction(natural_log(x)),
)


def _l1(_: str, left: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((abs(a - b) for a, b in zip(left, right, strict=True)), Fraction(0))


def _hellinger(name: str, left: list[Fraction], right: list[Fraction]) -> Fraction:
    """√(1 − B((α+α')/2)/√(B(α)B(α'))) of beta and Dirichlet distributions, or of two normal ones.

    It is 1 where noise made a distribution that does not exist: nothing must fail for a value in the table.
    """
    if left == right:
        return Fraction(0)
    if min([left[1], right[1]] if name == "normal" else [*left, *right]) <= 0:
        return Fraction(1)
    if name == "normal":
        (m, v), (w, u) = left, right
        exponent = min((m - w) ** 2 / (4 * (v + u)), LARGEST_EXPONENT)
        overlap = float(4 * v * u / (v + u) ** 2) ** 0.25 * math.exp(-exponent)
        return Fraction(math.sqrt(max(0.0, 1 - overlap)))
    import mpmath

    middle = [(a + b) / 2 for a, b in zip(left, right, strict=True)]
    if _is_apart(left, middle, right):
        return Fraction(1)
    with mpmath.workprec(140 + int(sum(middle)).bit_length()):  # as many bits of log Γ come before the point
        log_overlap = _log_beta(middle) - (_log_beta(left) + _log_beta(right)) / 2
        distance: Any = mpmath.sqrt(max(0, -mpmath.expm1(log_overlap)))
        return Fraction(float(distance))


def _is_apart(left: list[Fraction], middle: list[Fraction], right: list[Fraction]) -> bool:
    """True if floats, which err by less than 1 here, tell that the overlap is below e^−60: H is 1 − 10^−26 or nearer.

    Of many candidates most are so far from the posterior, and 1 is what H is to the last place of a float.
    """
    if sum(middle) > _ROUGH_MOST or min(*left, *right) < _ROUGH_LEAST:
        return False
    sides = [[float(a) for a in side] for side in (left, middle, right)]
    before, between, after = (sum(map(math.lgamma, side)) - math.lgamma(sum(side)) for side in sides)
    return between - (before + after) / 2 < -60


def _log_beta(parameters: list[Fraction]) -> Any:
    import mpmath

    logs = [mpmath.loggamma(mpmath.mpf(a.numerator) / a.denominator) for a in (*parameters, sum(parameters))]
    return mpmath.fsum(logs[:-1]) - logs[-1]


def _kl(*_: object) -> Fraction:
    raise ValueError("kl must not be evaluated: no score that holds it is certified.")


_METRICS = {"l1": _l1, "hellinger": _hellinger, "kl": _kl}


def numbers_of(distribution: Distribution, leaf: Leaf) -> tuple[Fraction, ...]:
    """The parameters of a distribution."""
    return tuple(evaluate(parameter, leaf) for parameter in distribution.parameters)


def scores(mechanism: Mechanism, n: int, leaf: Leaf) -> Iterator[tuple[tuple[Fraction, ...], Fraction]]:
    """Each candidate of an exponential mechanism, as its numbers, and its score."""
    symbol = mechanism.candidate
    variables = symbol.parameters if isinstance(symbol, Distribution) else (symbol,)
    for candidate in _candidates(mechanism, n, leaf):
        bound = {id(variable): x for variable, x in zip(variables, candidate, strict=True)}
        yield candidate, evaluate(mechanism.values[0], functools.partial(_bound, bound, leaf))


def _bound(bound: dict[int, Fraction], leaf: Leaf, node: Term) -> Fraction:
    return bound[id(node)] if id(node) in bound else leaf(node)


def _candidates(mechanism: Mechanism, n: int, leaf: Leaf) -> Iterator[tuple[Fraction, ...]]:
    if isinstance(mechanism.candidates, Posteriors):
        yield from _posteriors(mechanism.candidates, n, leaf)
        return
    for candidate in mechanism.candidates:
        yield numbers_of(candidate, leaf) if isinstance(candidate, Distribution) else (evaluate(candidate, leaf),)


def _posteriors(posteriors: Posteriors, n: int, leaf: Leaf) -> Iterator[tuple[Fraction, ...]]:
    """The parameters of every posterior that n records could lead to."""
    prior = numbers_of(posteriors.prior, leaf)
    order = (1, 0) if posteriors.prior.name == "beta" else range(len(prior))  # a counts what is true, the second level
    for counts in _compositions(n, len(prior)):
        yield tuple(own + counts[place] for own, place in zip(prior, order, strict=True))


def _compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write n as a sum of so many counts."""
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in _compositions(n - first, parts - 1):
            yield (first, *rest)
