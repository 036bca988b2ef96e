"""Two runs at once: every term as a pair of z3 expressions, one for a database and one for its neighbour.

    replace       statistic = rest + what the left record adds | rest + what the right record adds       n the same
    add_remove    statistic = rest                             | rest + what the record adds           n | n + 1

Everything is a real number: counts too, which only lets in more pairs than there are. A draw is the same on both sides;
a function that z3 does not know is a fresh pair, equal where its arguments are.
"""

from fractions import Fraction
from typing import Any

import z3

from noiseaware.program.language.database import Database
from noiseaware.program.language.expression import (
    Constant,
    Distance,
    Draw,
    Operation,
    Record,
    Sample,
    Size,
    Statistic,
    Term,
    Variable,
    in_order,
    inputs,
    is_private,
)
from noiseaware.program.language.operation import TRANSCENDENTAL, operations

Expression = Any
Pair = tuple[Expression, Expression]


def number(value: Fraction | int) -> Expression:
    return z3.RealVal(str(Fraction(value)))


def fraction(value: Expression) -> Fraction | None:
    """The number that a z3 expression is, if it is one."""
    if z3.is_int_value(value):
        return Fraction(value.as_long())
    if not z3.is_rational_value(value):
        return None
    return Fraction(value.numerator_as_long(), value.denominator_as_long())


class Pairs:
    """Translates terms to pairs, and gathers what is known of their leaves."""

    def __init__(self, distances: dict[int, Fraction] | None = None) -> None:
        self.axioms: list[Expression] = []
        self.contributions: dict[tuple[int, int], tuple[Expression, Expression, Expression]] = {}
        self.sizes: dict[int, Expression] = {}
        self._databases: dict[int, Database] = {}
        self._distances = distances or {}
        self._known: dict[int, Pair] = {}
        self._kept: list[Term] = []
        self._fresh_names = 0

    def __call__(self, node: Term) -> Pair:
        for part in in_order(node) if id(node) not in self._known else ():
            if id(part) not in self._known:
                self._kept.append(part)
                self._known[id(part)] = self._pair(part)
        return self._known[id(node)]

    @property
    def known(self) -> list[Expression]:
        """All that is known of the leaves, once every term is translated."""
        return [*self.axioms, *(fact for key in self._databases for fact in self._together(key))]

    def _fresh(self, name: str) -> Expression:
        self._fresh_names += 1
        return z3.Real(f"{name}_{self._fresh_names}")

    def _pair(self, node: Term) -> Pair:
        if isinstance(node, Constant):
            return (number(node.value),) * 2
        if isinstance(node, Operation):
            return self._operation(node)
        if isinstance(node, Distance):
            return self._distance(node)
        if isinstance(node, Size | Statistic | Record) and not node.database.is_private(node):
            return self._size(node.database) if isinstance(node, Size) else (self._fresh("public"),) * 2
        if isinstance(node, Size):
            return self._size(node.database)
        if isinstance(node, Statistic):
            return self._statistic(node.database, node.index)
        if isinstance(node, Record):
            return tuple(self._record(node.database) for _ in range(2))  # type: ignore[return-value]
        if isinstance(node, Sample):
            return self._unknown("sample", [self(parameter) for parameter in inputs(node)])
        assert isinstance(node, Draw | Variable)
        return (self._fresh(type(node).__name__.lower()),) * 2

    # ---- the database ---------------------------------------------------------------------------------------------

    def _size(self, database: Database) -> Pair:
        key = id(database)
        if key not in self.sizes:
            self._databases[key], self.sizes[key] = database, self._fresh("n")
            known = database.records.size
            least = 1 if database.records.adjacency == "replace" else 0
            self.axioms.append(self.sizes[key] >= least if known is None else self.sizes[key] == known)
        n = self.sizes[key]
        is_fixed = database.records.adjacency == "replace" or database.mapped is not None
        return (n, n) if is_fixed else (n, n + 1)

    def _statistic(self, database: Database, index: int) -> Pair:
        key = (id(database), index)
        if key not in self.contributions:
            self._size(database)
            rest, left, right = (self._fresh(name) for name in ("rest", "left", "right"))
            self.contributions[key] = rest, left, right
            is_replaced = database.records.adjacency == "replace"
            added = [left, right] if is_replaced else [right]
            self.axioms += [self._is_one(database, index, x) for x in added] + ([] if is_replaced else [left == 0])
        rest, left, right = self.contributions[key]
        return rest + left, rest + right

    def _is_one(self, database: Database, index: int, x: Expression) -> Expression:
        """x is what one record can add to a statistic."""
        if database.records.levels:
            return z3.Or(x == 0, x == 1)
        between = database.records.range_of(index)
        if between is None:
            return z3.BoolVal(True)
        low, high = between
        return z3.And(x >= number(low), x <= number(high))

    def _together(self, key: int) -> list[Expression]:
        """Constraints that the statistics of one database keep together."""
        database, n = self._databases[key], self.sizes[key]
        used = [parts for (owner, _), parts in self.contributions.items() if owner == key]
        others = n - 1 if database.records.adjacency == "replace" else n
        if database.records.levels and used:
            is_all = len(used) == len(database.records.levels)
            rests, lefts, rights = (sum(side[1:], side[0]) for side in map(list, zip(*used, strict=True)))
            facts = [rest >= 0 for rest, _, _ in used] + [rests == others if is_all else rests <= others]
            sides = [rights] if database.records.adjacency == "add_remove" else [lefts, rights]
            return facts + [side == 1 if is_all else side <= 1 for side in sides]
        if database.records.bounds is not None:
            low, high = map(number, database.records.bounds)
            return [z3.And(rest >= low * others, rest <= high * others) for rest, _, _ in used]
        return []

    def _record(self, database: Database) -> Expression:
        x, records = self._fresh("record"), database.records
        if records.levels:
            self.axioms.append(z3.And(x >= 0, x <= len(records.levels) - 1))
        elif records.bounds is not None:
            self.axioms.append(z3.And(x >= number(records.bounds[0]), x <= number(records.bounds[1])))
        return x

    # ---- functions ------------------------------------------------------------------------------------------------

    def _operation(self, node: Operation) -> Pair:
        arguments = [self(argument) for argument in node.arguments]
        if node.name in TRANSCENDENTAL:
            return self._unknown(node.name, arguments)
        if node.name == "/" and not isinstance(node.arguments[1], Constant):
            left = self._quotient(arguments[0][0], arguments[1][0])
            return (left, self._quotient(arguments[0][1], arguments[1][1])) if is_private(node) else (left, left)
        left = _OPERATIONS[node.name](*(pair[0] for pair in arguments))
        return (left, _OPERATIONS[node.name](*(pair[1] for pair in arguments))) if is_private(node) else (left, left)

    def _quotient(self, above: Expression, below: Expression) -> Expression:
        """above/below, and 0 where below is 0, as an operation has it."""
        quotient = self._fresh("quotient")
        self.axioms.append(z3.If(below == 0, quotient == 0, quotient * below == above))
        return quotient

    def _unknown(self, name: str, arguments: list[Pair]) -> Pair:
        left, right = self._fresh(name), self._fresh(name)
        self.axioms.append(z3.Implies(z3.And(*(a == b for a, b in arguments)), left == right))
        return left, right

    def _distance(self, node: Distance) -> Pair:
        """A metric, by the triangle inequality: the pair differs by no more than the posteriors of neighbours."""
        left, right = self._unknown(node.metric, [self(parameter) for parameter in inputs(node)])
        if node.metric == "hellinger":
            self.axioms += [left >= 0, left <= 1, right >= 0, right <= 1]
        if id(node) in self._distances:
            apart = number(self._distances[id(node)])
            self.axioms += [left - right <= apart, right - left <= apart]
        return left, right


def _real(value: Any) -> Expression:
    """A number of z3's, of one of Python's or of z3's own."""
    return value if z3.is_expr(value) else number(Fraction(value))


_OPERATIONS = operations(lambda condition, value, otherwise: z3.If(condition, _real(value), _real(otherwise)))
