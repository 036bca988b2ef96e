"""The terms of a program: what its function leaves when it is run once on symbols.

A term is a number that is not there yet. Its leaves are constants, statistics of the database and draws of mechanisms;
a term is *private* if a statistic or a record reaches it other than through a draw. Terms are compared as objects: the
same draw used twice is one draw.

Leaves know the database, distribution or mechanism that they come from. These are made of terms, so that their classes
stand above this file, and no type is named for them here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from noiseaware.program.language.escape import Escape, Guarded, here
from noiseaware.program.language.frozen import frozen
from noiseaware.program.language.operation import operations


class Term(Guarded):
    """A number that is known when the program runs."""

    @property
    def described(self) -> str:  # type: ignore[override]
        return "a private value" if is_private(self) else "a value that is known only when the program runs"

    def __add__(self, other: Any) -> "Term":
        return operation("+", self, other)

    def __radd__(self, other: Any) -> "Term":
        return operation("+", other, self)

    def __sub__(self, other: Any) -> "Term":
        return operation("-", self, other)

    def __rsub__(self, other: Any) -> "Term":
        return operation("-", other, self)

    def __mul__(self, other: Any) -> "Term":
        return operation("*", self, other)

    def __rmul__(self, other: Any) -> "Term":
        return operation("*", other, self)

    def __truediv__(self, other: Any) -> "Term":
        return operation("/", self, other)

    def __rtruediv__(self, other: Any) -> "Term":
        return operation("/", other, self)

    def __neg__(self) -> "Term":
        return operation("-", 0, self)

    def __pos__(self) -> "Term":
        return self

    def __abs__(self) -> "Term":
        return operation("abs", self)

    def __pow__(self, power: Any) -> "Term":
        if isinstance(power, bool) or not isinstance(power, int) or not 1 <= power <= 8:
            raise Escape(f"{self.described} can be raised to a whole power from 1 to 8 only.", here())
        found = self
        for _ in range(power - 1):
            found = found * self
        return found

    def __lt__(self, other: Any) -> "Term":
        return operation("<", self, other)

    def __le__(self, other: Any) -> "Term":
        return operation("<=", self, other)

    def __gt__(self, other: Any) -> "Term":
        return operation("<", other, self)

    def __ge__(self, other: Any) -> "Term":
        return operation("<=", other, self)

    def __eq__(self, other: Any) -> "Term":  # type: ignore[override]
        return operation("==", self, other)

    def __ne__(self, other: Any) -> "Term":  # type: ignore[override]
        return 1 - operation("==", self, other)

    __hash__ = Guarded.__hash__  # type: ignore[assignment] # defining __eq__ would drop it

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        advice = "leave the brackets out, as in db.size"
        raise Escape(f"{self.described} is a number and cannot be called; {advice}.", here())

    def __repr__(self) -> str:
        return f"<{self.described}>"


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Term):
    """A number that is known now, exactly."""

    value: Fraction


@dataclass(frozen=True, eq=False, repr=False)
class Size(Term):
    """The number of records."""

    database: Any

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise Escape("size is an attribute of the database: write db.size, without brackets.", here())


@dataclass(frozen=True, eq=False, repr=False)
class Statistic(Term):
    """A sum over the records, by its place among those of the database."""

    database: Any
    index: int


@dataclass(frozen=True, eq=False, repr=False)
class Record(Term):
    """One record, within `map` or `observe`; of a level or a Boolean, its place among the levels."""

    database: Any


@dataclass(frozen=True, eq=False, repr=False)
class Variable(Term):
    """A placeholder for any candidate of an exponential mechanism, or for the parameter of a model."""

    name: str


@dataclass(frozen=True, eq=False, repr=False)
class Operation(Term):
    """A function of terms."""

    name: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Draw(Term):
    """The output of a mechanism: the one way from a private value to a public one."""

    mechanism: Any
    index: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Term):
    """The distance of two distributions."""

    metric: str
    left: Any
    right: Any


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Term):
    """One draw from a distribution, made when the program runs."""

    distribution: Any


TERMS = frozenset({Constant, Size, Statistic, Record, Variable, Operation, Draw, Distance, Sample})
"""Every kind of term. A subclass is none: it could answer the check one thing, and the run another."""


def term(value: Any) -> Term:
    """A number, or a text that spells one, as an exact constant: 0.1 is one tenth."""
    if isinstance(value, Term):
        return value
    try:
        known = frozen(value)
        return Constant(Fraction(str(int(known) if isinstance(known, bool) else known)))
    except (ValueError, ZeroDivisionError, TypeError):
        raise Escape(f"a value in a program must be a number, got {type(value).__name__}.", here()) from None


_RATIONAL = operations(lambda condition, value, otherwise: Fraction(value if condition else otherwise))


def operation(name: str, *arguments: Any) -> Term:
    """A function of terms, worked out at once where all of them are known."""
    is_comparison = name in ("==", "<", "<=")
    levels = next((a.database.records.levels for a in arguments if is_comparison and isinstance(a, Record)), ())
    terms = tuple(_place(argument, levels) for argument in arguments)
    values = [t.value for t in terms if isinstance(t, Constant)]
    if name == "/" and constant(terms[1]) == 0:
        raise Escape("nothing can be divided by 0.", here())
    if len(values) == len(terms) and name in _RATIONAL:
        return Constant(_RATIONAL[name](*values))
    return Operation(name, terms)


def _place(value: Any, levels: Sequence) -> Term:
    """A level by its place, where it is compared with a record of levels; else a number."""
    return term(levels.index(value) if not isinstance(value, Term) and value in levels else value)


def exp(x: Any) -> Term:
    """e^x, of which nothing is known but that equal arguments give equal results."""
    return operation("exp", x)


def log(x: Any) -> Term:
    """The natural logarithm, −10⁶ of what is not positive; no more is known of it than of `exp`."""
    return operation("log", x)


def minimum(x: Any, y: Any) -> Term:
    """The lesser of two values."""
    return operation("min", x, y)


def maximum(x: Any, y: Any) -> Term:
    """The greater of two values."""
    return operation("max", x, y)


def clip(x: Any, low: Any, high: Any) -> Term:
    """x, moved to low or high where it lies outside."""
    return minimum(maximum(x, low), high)


# ---- walking ---------------------------------------------------------------------------------------------------


def inputs(node: Any) -> tuple[Term, ...]:
    """The terms that a term is made of; a draw is made of nothing."""
    if isinstance(node, Operation):
        return node.arguments
    if isinstance(node, Distance):
        return node.left.parameters + node.right.parameters
    if isinstance(node, Sample):
        return node.distribution.parameters
    return ()


def walk(roots: Sequence[Term]) -> Iterator[Term]:
    """Every term under the roots, each once."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(inputs(node))


def in_order(root: Term) -> Iterator[Term]:
    """Every term under a root, and it, each once and after those that it is made of; however deep it is."""
    seen: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in inputs(node))


def is_private(*roots: Term) -> bool:
    """True if a statistic or a record reaches a term other than through a draw."""
    return any(isinstance(node, Size | Statistic | Record) and node.database.is_private(node) for node in walk(roots))


def constant(node: Term) -> Fraction | None:
    """The number that a term is, where it is known before the program runs."""
    return node.value if isinstance(node, Constant) else None
