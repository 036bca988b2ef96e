"""A program: a function of mechanisms and a database, with a budget. It is run once, on symbols, and never again."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import Any

from noiseaware.privacy import Number, exact
from noiseaware.program.language.database import Database, Records
from noiseaware.program.language.escape import Escape
from noiseaware.program.language.frozen import frozen
from noiseaware.program.language.mechanism import Mechanisms
from noiseaware.program.language.sealed import sealed, sealed_settings
from noiseaware.program.proof.result import Stranger, kept


@dataclass(frozen=True)
class Program:
    """A function that is yet to be checked, and the budget that it must keep to."""

    function: Callable[..., Any]
    epsilon: Fraction
    delta: Fraction
    records: Records

    @property
    def name(self) -> str:
        return frozen(self.function.__name__)

    @property
    def file(self) -> str:
        return Path(frozen(self.function.__code__.co_filename)).name

    @property
    def line(self) -> str:
        """The place where the function begins: 'coin.py, line 7'."""
        return f"{self.file}, line {self.function.__code__.co_firstlineno}"

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise Escape(f"program {self.name} is not called; give it to pp.check, and run its certificate on a table.")


def program(*, epsilon: Number, delta: Number = 0) -> Callable[[Callable[..., Any]], Program]:
    """Make a program of a function `(p, db: pp.Booleans(…))` that must cost no more than (ε, δ)."""
    slack = Fraction(0) if str(delta).strip() in ("0", "0.0") else exact("delta", delta)
    budget = exact("epsilon", epsilon)
    if slack >= 1:
        raise ValueError(f"delta must be below 1, got {delta}.")

    def made(function: Callable[..., Any]) -> Program:
        _check_function(function)
        return Program(function, budget, slack, _records(function))

    return made


def _check_function(function: Callable[..., Any]) -> None:
    """Refuse what is no plain function: an object that is called could change, a generator is run too late."""
    if type(function) is not FunctionType:
        raise ValueError(f"program must be made of a function, def or lambda, got {type(function).__name__}.")
    late = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(is_late(function) for is_late in late):
        raise ValueError(f"program {function.__name__} must return its result, and not yield or await.")


def _records(function: Callable[..., Any]) -> Records:
    names = list(inspect.signature(function).parameters)
    if len(names) != 2:
        rule = "must have two parameters, p and a database such as db: pp.Booleans(adjacency='replace')"
        raise ValueError(f"program {function.__name__} {rule}, got {len(names)}.")
    records = inspect.get_annotations(function, eval_str=True).get(names[1])
    if type(records) is not Records:
        rule = f"must say what {names[1]} is, as in {names[1]}: pp.Booleans(adjacency='replace')"
        raise ValueError(f"program {function.__name__} {rule}, got {records!r}.")
    return records


@dataclass(frozen=True, eq=False)
class Trace:
    """The trace of a program: its database, its mechanisms in order, and its result."""

    program: Program
    database: Database
    mechanisms: Mechanisms
    result: Any


def trace(program: Program) -> Trace:
    """Run the function once, on symbols."""
    if type(program) is not Program:
        raise ValueError(f"check must be given a function made a program by @pp.program, got {type(program).__name__}.")
    program = _own(program)
    mechanisms = Mechanisms()
    (shown,) = sealed_settings(program.records)
    database = Database(shown, mechanisms)
    returned = program.function(mechanisms, database)
    try:
        result = kept(returned)
    except Stranger as stranger:
        rule = "must return values, distributions, numbers, text, and lists, tuples and dicts of these"
        advice = "make anything else in a function given to pp.apply"
        raise Escape(f"program {program.name} {rule}, got {stranger}; {advice}.", program.line) from None
    mechanisms.seal()
    try:
        return Trace(program, *sealed(database, mechanisms, result))
    except Stranger as stranger:
        raise _made_of(program, stranger) from None


def _own(program: Program) -> Program:
    """A copy that its own function cannot reach."""
    try:
        records, epsilon, delta = sealed_settings(program.records, program.epsilon, program.delta)
    except Stranger as stranger:
        raise _made_of(program, stranger) from None
    return Program(program.function, epsilon, delta, records)


def _made_of(program: Program, stranger: Stranger) -> Escape:
    rule = "must be made of numbers, and of what pp, p and the database give"
    return Escape(f"program {program.name} {rule}, got {stranger}.", program.line)
