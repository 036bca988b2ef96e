"""The mechanisms of a program: the one way from a private value to a public one, each with its cost.

    Laplace        value + Lap(Δ/ε)                   costs ε·k/Δ for a value that neighbours move by k
    Gaussian       value + N(0, σ²Δ²), σ = √(2 ln(1.25/δ))/ε        costs (ε·k/Δ, δ), if ε·k/Δ < 1
    exponential    P(r) ∝ e^{ε·score(r)/2Δ}           costs ε·k/Δ for a score that neighbours move by k
    sample         one draw of a beta posterior within [low, high]   costs logit(high) − logit(low)

Δ is `sensitivity`, 1 if it is left out; if it is given, k ≤ Δ is an obligation.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from noiseaware.program.language.database import Mapped
from noiseaware.program.language.distribution import Distribution, Observation, Posteriors
from noiseaware.program.language.escape import Escape, Guarded, here
from noiseaware.program.language.expression import Draw, Record, Term, Variable, constant, term


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A mechanism with its input: what it costs is found by the check."""

    name: str
    values: tuple[Term, ...]
    epsilon: Term
    line: str
    delta: Fraction = Fraction(0)
    sensitivity: Term | None = None
    record: Record | None = None
    candidates: "tuple[Term | Distribution, ...] | Posteriors" = ()
    candidate: "Variable | Distribution | None" = None
    within: tuple[Fraction, Fraction] | None = None
    posterior: Distribution | None = None

    @property
    def listed(self) -> tuple[Term, ...]:
        """All that the candidates are made of."""
        if isinstance(self.candidates, Posteriors):
            return self.candidates.database.size, *self.candidates.prior.parameters
        parts = (c.parameters if isinstance(c, Distribution) else (c,) for c in self.candidates)
        return tuple(term for part in parts for term in part)

    @property
    def inputs(self) -> tuple[Term, ...]:
        """All that it is given."""
        posterior = () if self.posterior is None else self.posterior.parameters
        return *self.values, self.epsilon, self.width, *self.listed, *posterior

    @property
    def width(self) -> Term:
        """Δ, what the noise is made for."""
        return term(1) if self.sensitivity is None else self.sensitivity


@dataclass(eq=False, repr=False)
class Mechanisms(Guarded):
    """p, the first argument of a program: its mechanisms, in the order of use."""

    described: ClassVar[str] = "p"  # type: ignore[misc]
    offers: ClassVar[tuple[str, ...]] = ("laplace", "gaussian", "exponential", "sample")  # type: ignore[misc]
    drawn: list[Mechanism] = field(default_factory=list)
    maps: list[Mapped] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    open_record: Record | None = None

    def seal(self) -> None:
        """Copy what was used into lists of Python's own type: a list of another's could hide a mechanism."""
        self.drawn, self.maps, self.observations = list(self.drawn), list(self.maps), list(self.observations)

    def laplace(self, value: Any, *, epsilon: Any, sensitivity: Any = None) -> Any:
        """The value, or each of several, with Laplace noise of scale sensitivity/ε."""
        several = isinstance(value, list | tuple)
        mechanism = self._add("laplace", list(value) if several else [value], epsilon, sensitivity)
        draws = tuple(Draw(mechanism, place) for place in range(len(mechanism.values)))
        return draws if several else draws[0]

    def gaussian(self, value: Any, *, epsilon: Any, delta: Any, sensitivity: Any = None) -> Term:
        """The value with Gaussian noise of standard deviation sensitivity · √(2 ln(1.25/δ))/ε."""
        if isinstance(value, list | tuple):
            raise Escape("gaussian must be given one value; draw one for each of several.", here())
        given = constant(term(delta))
        if given is None or not 0 < given < 1:
            raise ValueError(f"{here()}: delta must be a number between 0 and 1, got {delta!r}.")
        return Draw(self._add("gaussian", [value], epsilon, sensitivity, delta=given))

    def exponential(
        self, candidates: Any, score: Callable[[Any], Any], *, epsilon: Any, sensitivity: Any = None
    ) -> Any:
        """One of the candidates r, with probability ∝ e^{ε·score(r)/2·sensitivity}."""
        listed = candidates if isinstance(candidates, Posteriors) else self._candidates(candidates)
        sample = listed.prior if isinstance(listed, Posteriors) else listed[0]
        candidate = _symbol(sample)
        given = {"candidates": listed, "candidate": candidate}
        mechanism = self._add("exponential", [score(candidate)], epsilon, sensitivity, **given)
        if isinstance(candidate, Distribution):
            count = len(candidate.parameters)
            return Distribution(candidate.name, tuple(Draw(mechanism, place) for place in range(count)))
        return Draw(mechanism)

    def sample(self, posterior: Distribution, *, within: tuple[Any, Any]) -> Term:
        """One draw from a beta posterior of Booleans, kept within (low, high): by itself a mechanism."""
        if not isinstance(posterior, Distribution) or posterior.name != "beta":
            raise Escape("sample must be given a beta posterior, as pp.infer gives it.", here())
        low, high = (constant(term(end)) for end in within)
        if low is None or high is None or not 0 < low < high < 1:
            raise ValueError(f"{here()}: within must be two numbers between 0 and 1 in order, got {within}.")
        return Draw(self._add("sample", [], 1, None, within=(low, high), posterior=posterior))

    def _add(self, name: str, values: list[Any], epsilon: Any, sensitivity: Any, **given: Any) -> Mechanism:
        price, width = term(epsilon), None if sensitivity is None else term(sensitivity)
        for what, number in (("epsilon", price), ("sensitivity", width)):
            known = None if number is None else constant(number)
            if known is not None and known <= 0:
                raise ValueError(f"{here()}: {what} must be positive, got {known}.")
        line, terms = here(), tuple(term(value) for value in values)
        made = Mechanism(name, terms, price, line, sensitivity=width, record=self.open_record, **given)
        self.drawn.append(made)
        return made

    def _candidates(self, candidates: Any) -> "tuple[Term | Distribution, ...]":
        if not isinstance(candidates, Sequence) or isinstance(candidates, str) or len(candidates) < 2:
            raise Escape("candidates must be a list of at least two, or pp.posteriors(…).", here())
        candidates = tuple(candidates)
        levels = () if self.open_record is None else self.open_record.database.records.levels
        if levels and all(candidate in levels for candidate in candidates if not isinstance(candidate, Guarded)):
            return tuple(term(levels.index(candidate)) for candidate in candidates)
        kinds = {(c.name, len(c.parameters)) if isinstance(c, Distribution) else None for c in candidates}
        if len(kinds) > 1:
            raise Escape("candidates must all be numbers, or distributions of one kind.", here())
        return tuple(c if isinstance(c, Distribution) else term(c) for c in candidates)

    @contextmanager
    def each_record(self, record: Record) -> Iterator[list[Mechanism]]:
        """Mechanisms that are used in here are run on each record."""
        if self.open_record is not None:
            raise Escape("map must not be used within map.", here())
        start, self.open_record = len(self.drawn), record
        inner: list[Mechanism] = []
        try:
            yield inner
            inner += self.drawn[start:]
        finally:
            del self.drawn[start:]
            self.open_record = None


@dataclass(frozen=True, eq=False)
class Applied:
    """A function of public values, called when nothing else is left to do: post-processing."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def apply(function: Callable[..., Any], *arguments: Any) -> Applied:
    """Any function at all of public values: an engine of the library, a plot, a decision. It costs nothing."""
    if not callable(function):
        raise Escape("apply must be given a function first.", here())
    return Applied(function, arguments)


def _symbol(sample: "Term | Distribution") -> "Variable | Distribution":
    """A placeholder for any candidate of one kind."""
    if isinstance(sample, Distribution):
        return Distribution(sample.name, tuple(Variable("candidate") for _ in sample.parameters))
    return Variable("candidate")
