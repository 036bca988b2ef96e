"""A program: a function of mechanisms and a database, with a budget. It is run once, on symbols, and never again."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from noiseaware.privacy import Number, exact
from noiseaware.program.database import Database, Records
from noiseaware.program.distribution import Distribution, Inferred
from noiseaware.program.escape import Escape
from noiseaware.program.mechanism import Applied, Mechanisms
from noiseaware.program.term import Term


@dataclass(frozen=True)
class Program:
    """A function that is yet to be checked, and the budget that it must keep to."""

    function: Callable[..., Any]
    epsilon: Fraction
    delta: Fraction
    records: Records

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def file(self) -> str:
        return Path(self.function.__code__.co_filename).name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise Escape(f"program {self.name} is not called; give it to pp.check, and run its certificate on a table.")


def program(*, epsilon: Number, delta: Number = 0) -> Callable[[Callable[..., Any]], Program]:
    """Make a program of a function `(p, db: pp.Booleans(…))` that must cost no more than (ε, δ)."""
    slack = Fraction(0) if str(delta).strip() in ("0", "0.0") else exact("delta", delta)
    budget = exact("epsilon", epsilon)
    if slack >= 1:
        raise ValueError(f"delta must be below 1, got {delta}.")

    def made(function: Callable[..., Any]) -> Program:
        return Program(function, budget, slack, _records(function))

    return made


def _records(function: Callable[..., Any]) -> Records:
    names = list(inspect.signature(function).parameters)
    if len(names) != 2:
        rule = "must have two parameters, p and a database such as db: pp.Booleans(adjacency='replace')"
        raise ValueError(f"program {function.__name__} {rule}, got {len(names)}.")
    records = inspect.get_annotations(function, eval_str=True).get(names[1])
    if not isinstance(records, Records):
        rule = f"must say what {names[1]} is, as in {names[1]}: pp.Booleans(adjacency='replace')"
        raise ValueError(f"program {function.__name__} {rule}, got {records!r}.")
    return records


@dataclass(frozen=True, eq=False)
class Trace:
    """What a program does: its database, its mechanisms in order, and what it returns."""

    program: Program
    database: Database
    mechanisms: Mechanisms
    result: Any


def trace(program: Program) -> Trace:
    """Run the function once, on symbols."""
    if not isinstance(program, Program):
        raise ValueError(f"check must be given a function made a program by @pp.program, got {type(program).__name__}.")
    mechanisms = Mechanisms()
    database = Database(program.records, mechanisms)
    result = kept(program.function(mechanisms, database))
    for part in parts(result):
        if type(part).__module__.startswith("noiseaware.program") and not isinstance(part, Term | Inferred):
            rule = "must return values, distributions, and lists and dicts of these"
            raise Escape(f"program {program.name} {rule}, got {type(part).__name__}.", program.file)
    return Trace(program, database, mechanisms, result)


def kept(result: Any) -> Any:
    """A result with lists and dicts of its own: what is changed after the check is not what was checked."""
    if isinstance(result, list | tuple):
        copied = [kept(part) for part in result]
        if hasattr(result, "_fields"):
            return type(result)(*copied)
        return copied if isinstance(result, list) else tuple(copied)
    if isinstance(result, dict):
        return {key: kept(part) for key, part in result.items()}
    if isinstance(result, Applied):
        return Applied(result.function, kept(result.arguments), result.line)
    return result


def parts(result: Any) -> Iterator[Any]:
    """The values that a result is made of: terms, posteriors without a formula, and plain Python values."""
    if isinstance(result, list | tuple):
        for part in result:
            yield from parts(part)
    elif isinstance(result, dict):
        for part in result.values():
            yield from parts(part)
    elif isinstance(result, Distribution):
        yield from result.parameters
    elif isinstance(result, Applied):
        for part in result.arguments:
            yield from parts(part)
    else:
        yield result


def terms(result: Any) -> list[Term]:
    """The terms in a result."""
    return [part for part in parts(result) if isinstance(part, Term)]


def inferred(result: Any) -> list[Inferred]:
    """The posteriors without a formula in a result."""
    return [part for part in parts(result) if isinstance(part, Inferred)]
