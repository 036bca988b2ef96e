"""Runs a certified program on a table: the terms that were traced, never the function again.

What can be refused is refused before the table is read, or for its public size alone; the ledger is charged with the
certified cost; then noise is drawn (drawn.py), and everything after it is post-processing. Functions of public values,
which a person wrote, are called by the certificate when this run and all that it read are gone.
"""

import contextlib
import functools
import math
import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from noiseaware.custodian.ledger.ledger import Entry, Ledger
from noiseaware.custodian.missing import Cells
from noiseaware.custodian.program.noise import Drawn, Noisy, check_drawable, chosen, flat, noised, sampled
from noiseaware.custodian.table import MOST_RECORDS, Table
from noiseaware.evidence.release import Origin, Release
from noiseaware.file import __version__
from noiseaware.mechanism import AbstractMechanism
from noiseaware.privacy import Relation
from noiseaware.program.language.database import Database, Records
from noiseaware.program.language.distribution import Distribution, Inferred, Posteriors
from noiseaware.program.language.evaluate import Leaf, evaluate, numbers_of, rounded
from noiseaware.program.language.expression import TERMS, Draw, Record, Sample, Size, Statistic, Term
from noiseaware.program.language.known import known
from noiseaware.program.language.mechanism import Applied, Mechanism
from noiseaware.program.language.question import question_of
from noiseaware.program.proof import lattice
from noiseaware.program.proof.certificate import AbstractCertificate
from noiseaware.program.proof.scope import used
from noiseaware.query import AbstractQuery, AbstractQuestion

_COLUMN = "record"
_MOST_CANDIDATES = 200_000


def execute(
    certificate: AbstractCertificate, table: Any, *, ledger: str | os.PathLike | Ledger | None = None
) -> dict[int, Any]:
    """The public value of each part of what a certified program returns for a table, by the part's id."""
    program, source = certificate.program, _table(table, certificate.program.records)
    exponent = _exponent(program.records)
    query = _query(program.records, exponent)
    if isinstance(ledger, str | os.PathLike):
        ledger = Ledger(ledger)
    if ledger is not None:
        ledger.afford(certificate.guarantee, Relation(program.records.adjacency))
    totals, n = source.sums(query, exponent, least=1 if program.records.adjacency == "replace" else 0)
    step = Fraction(2) ** -exponent
    _check_size(certificate, n)
    _check_noise(certificate, 1 if program.records.adjacency == "add_remove" else n, step)
    records = source.records(query, exponent) if certificate.trace.mechanisms.maps else []
    if certificate.trace.mechanisms.maps and len(records) != n:
        raise ValueError(f"table {source.name} must not change while it is read.")
    entry = None
    if ledger is not None:
        what = {"program": program.name, "table": source.name, "neighbours": program.records.adjacency}
        entry = ledger.charge(certificate.guarantee, what)
    whole = [n - totals[0], totals[0]] if program.records.kind == "booleans" else totals
    run = _Run(certificate, [total * step for total in whole], n, [x * step for x in records], step, entry)
    return run.settled(certificate.trace.result)


def _table(table: Any, records: Records) -> Table:
    """A table; a plain list or array of records is the program's column, of objects: a list has no type of its own."""
    if isinstance(table, Table):
        return table
    if isinstance(table, list | tuple | np.ndarray | pd.Series):
        table = pd.DataFrame({records.column or _COLUMN: pd.Series(list(table), dtype=object)})
    return Table(table)


def _query(records: Records, exponent: int) -> AbstractQuery:
    """Return the query of a program, with bounds of numbers moved inward to its grid, so that floor stays within."""
    query = records.query if records.columns else replace(records, column=records.column or _COLUMN).query
    if records.bounds is None:
        return query
    low, high, step = *records.bounds, Fraction(2) ** -exponent
    inner = float(math.ceil(low / step) * step), float(math.floor(high / step) * step)
    if not inner[0] < inner[1]:
        told = f"64-bit sums have steps of {float(step):g} there"
        raise ValueError(f"bounds ({float(low)}, {float(high)}) must be wider, or nearer to 0: {told}.")
    return query.within(inner).query


def _exponent(records: Records) -> int:
    """The finest grid 2^−k on which MOST_RECORDS records within the bounds can be summed in 62 bits."""
    if records.kind == "rows":
        return 30  # products of two numbers within ±2^15
    if records.bounds is None or records.kind == "counts":
        return 0
    largest = max(abs(bound) for bound in records.bounds)
    return math.floor(math.log2(2**61 // MOST_RECORDS) - math.log2(largest))


def _check_size(certificate: AbstractCertificate, n: int) -> None:
    """Refuse a size that is not the declared one, or that has too many posteriors: both are public."""
    declared = certificate.program.records.size
    if declared is not None and n != declared:
        raise ValueError(f"table must hold the {declared} records that the program declares, got {n}.")
    for mechanism in certificate.trace.mechanisms.drawn:
        if isinstance(mechanism.candidates, Posteriors):
            parts = len(mechanism.candidates.prior.parameters)
            if math.comb(n + parts - 1, parts - 1) > _MOST_CANDIDATES:
                raise ValueError(f"candidates must be at most {_MOST_CANDIDATES}; {n} records lead to more posteriors.")


def _check_noise(certificate: AbstractCertificate, n: int, step: Fraction) -> None:
    """Refuse noise that cannot be drawn, by a made-up table of n records, all alike, and made-up draws."""
    records = certificate.program.records
    first = Fraction(0) if records.bounds is None else records.bounds[0]

    def leaf(node: Term) -> Fraction:
        if isinstance(node, Size):
            return Fraction(n)
        if isinstance(node, Statistic):
            return Fraction(n if node.index == 0 else 0) if records.levels else n * first
        return first if isinstance(node, Record) else Fraction(1)

    for mechanism in used(certificate.trace):
        check_drawable(mechanism, certificate.moves, leaf, step)


@dataclass
class _Run:
    """One run: the private statistics, and what has been drawn from them."""

    certificate: AbstractCertificate
    statistics: Sequence[Fraction]
    n: int
    records: Sequence[Fraction]
    step: Fraction
    entry: Entry | None
    drawn: dict[int, Drawn] = field(default_factory=dict)
    mapped: dict[int, list[Fraction]] = field(default_factory=dict)
    sampled: dict[int, Fraction] = field(default_factory=dict)

    def __call__(self, node: Term) -> Fraction:
        return evaluate(node, self.leaf)

    def leaf(self, node: Term) -> Fraction:
        if isinstance(node, Size):
            return Fraction(self.n)
        if isinstance(node, Statistic):
            return self._statistic(node)
        if isinstance(node, Draw):
            return flat(self.draws(node.mechanism)[node.index])
        assert isinstance(node, Sample)
        if id(node) not in self.sampled:
            self.sampled[id(node)] = _one_draw(node.distribution.name, numbers_of(node.distribution, self.leaf))
        return self.sampled[id(node)]

    def _statistic(self, node: Statistic) -> Fraction:
        if node.database.mapped is None:
            return self.statistics[node.index]
        each = (node.database.records.contribution(x)[node.index] for x in self._noisy(node.database))
        return sum(each, Fraction(0))

    def _noisy(self, database: Database) -> list[Fraction]:
        """The noisy records, in order of size: the order of the table is not told."""
        mapped = database.mapped
        assert mapped is not None
        if id(mapped) not in self.mapped:
            self.mapped[id(mapped)] = sorted(_Each(self, mapped.record, x).leaf(mapped.result) for x in self.records)
        return self.mapped[id(mapped)]

    def draws(self, mechanism: Mechanism) -> Drawn:
        """What a mechanism gave: drawn once."""
        if id(mechanism) not in self.drawn:
            self.drawn[id(mechanism)] = self.fresh(mechanism, self.leaf)
        return self.drawn[id(mechanism)]

    def fresh(self, mechanism: Mechanism, leaf: Leaf) -> Drawn:
        """What a mechanism gives, drawn now."""
        moves = self.certificate.moves
        if mechanism.name == "exponential":
            return chosen(mechanism, moves[id(mechanism), 0], leaf, self.n)
        if mechanism.name == "sample":
            return [sampled(mechanism, leaf, int(self.statistics[1]), self.n)]
        places = range(len(mechanism.values))
        return [noised(mechanism, place, moves[id(mechanism), place], leaf, self.step) for place in places]

    # ---- results ----------------------------------------------------------------------------------------------------

    def settled(self, result: Any) -> dict[int, Any]:
        """The public value of each part of a result, by its id: releases, numbers, distributions and draws.

        Lists, tuples and dicts are looked through, and no function is called: that is left for when this run is gone.
        """
        if type(result) is list or type(result) is tuple:
            is_several = self.certificate.program.records.kind in ("categories", "rows")
            release = self._release(result) if is_several else None
            return self._each_settled(result) if release is None else {id(result): release}
        if type(result) is dict:
            return self._each_settled(result.values())
        if type(result) is Applied:
            return self._each_settled(result.arguments)
        if type(result) is Distribution:
            return {id(result): known(result.name, [self._told(own, rounded) for own in result.parameters])}
        if type(result) is Inferred:
            return {id(result): self._drawn_from(result)}
        if type(result) in TERMS:
            release = self._release([result])
            return {id(result): self._told(result, _number) if release is None else release}
        return {}

    def _each_settled(self, parts: Iterable[Any]) -> dict[int, Any]:
        return {place: value for part in parts for place, value in self.settled(part).items()}

    def _drawn_from(self, posterior: Inferred) -> dict[str, np.ndarray]:
        from noiseaware.program.language.nuts import draws

        records = [rounded(x) for x in self._noisy(posterior.origin.database)]
        return draws(posterior.origin, records, lambda node: rounded(self(node)))

    def _told(self, node: Term, written: Callable[[Fraction], Any]) -> Any:
        """A value as it is written, or none where noise left nothing to draw it from: all else was paid for too."""
        try:
            return written(self(node))
        except _Impossible as impossible:
            warnings.warn(f"{impossible} What rests on it is nan.", RuntimeWarning, stacklevel=2)
            return math.nan

    def _release(self, result: Sequence[Any]) -> Release | None:
        """Return noisy statistics as a release, where one mechanism gave them and they are all that the query has."""
        asked, question = self._asked(result), self._question
        if asked is None or question is None:
            return None
        found = self.draws(result[0].mechanism)
        steps = [noisy.steps for noisy in found if isinstance(noisy, Noisy) and noisy.is_lattice]
        if len(steps) < len(found):
            return None  # too wide for the steps of the statistic
        values = [sign * step for (_, sign), step in zip(asked, steps, strict=True)]
        if self.certificate.program.records.kind == "booleans" and asked[0][0] == 0:
            values = [self.n - value for value in values]  # what is not false is true
        with contextlib.suppress(ValueError):  # what was drawn, or its scale, is too large to be told by a release
            return Release(
                family=question.family,
                query=question.query,
                values=values,
                n=self.n,
                mechanism=_one_law([noisy.law for noisy in found if isinstance(noisy, Noisy)]),
                grid=float(self.step),
                guarantee=self.certificate.guarantee,
                origin=self._origin(question.query),
            )
        return None

    def _asked(self, result: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Return the place and the sign of each statistic that a release would hold; None where it would not be one."""
        records = self.certificate.program.records
        if records.adjacency != "replace" or not _is_of_one_mechanism(result):  # a release tells n
            return None
        found = [lattice.only_statistic(value, self.leaf) for value in result[0].mechanism.values]
        asked = [own for own in found if own is not None]
        is_several = records.kind in ("categories", "rows")
        wanted = range(records.num_statistics) if is_several else [place for place, _ in asked[:1]]
        is_whole = len(result) >= len(found) == len(asked)
        return asked if is_whole and [place for place, _ in asked] == list(wanted) else None

    @functools.cached_property
    def _question(self) -> AbstractQuestion | None:
        """The family of the program's model of the table."""
        trace = self.certificate.trace  # whose variances are public, and perhaps impossible
        observations = trace.mechanisms.observations
        return question_of(self.certificate.program.records, observations, lambda node: rounded(self(node)))

    def _origin(self, query: AbstractQuery) -> Origin:
        true, false = Cells().words(query)
        return Origin(
            tool="noiseaware",
            version=__version__,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            ledger_entry=None if self.entry is None else self.entry.id,
            missing=Cells().counted(query),
            true=true,
            false=false,
        )


def _is_of_one_mechanism(result: Sequence[Any]) -> bool:
    """Return True for noisy values, in order, of one mechanism of Laplace or Gaussian noise."""
    if not result or not all(type(part) is Draw for part in result):
        return False
    mechanism = result[0].mechanism
    in_order = all(part.mechanism is mechanism and part.index == place for place, part in enumerate(result))
    return in_order and mechanism.name in ("laplace", "gaussian")


def _one_law(laws: Sequence[AbstractMechanism]) -> AbstractMechanism:
    """Return the laws of several values as one."""
    spreads = [float(law.spread) for law in laws]  # type: ignore[arg-type]
    return laws[0] if len(set(spreads)) == 1 else type(laws[0])(spreads)  # type: ignore[call-arg]


@dataclass
class _Each:
    """The mechanisms of a map on one record."""

    run: _Run
    record: Record
    value: Fraction
    drawn: dict[int, Drawn] = field(default_factory=dict)

    def leaf(self, node: Term) -> Fraction:
        if isinstance(node, Record):
            return self.value
        if isinstance(node, Draw) and node.mechanism.record is self.record:
            if id(node.mechanism) not in self.drawn:
                self.drawn[id(node.mechanism)] = self.run.fresh(node.mechanism, self.leaf)
            return flat(self.drawn[id(node.mechanism)][node.index])
        return self.run.leaf(node)


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else rounded(value)


class _Impossible(ValueError):
    """A draw from a distribution that noise has made impossible."""


def _one_draw(name: str, parameters: tuple[Fraction, ...]) -> Fraction:
    """A draw from a distribution of public parameters: post-processing, so any generator will do."""
    rng = np.random.default_rng(secrets.randbits(128))
    draws = {
        "beta": rng.beta,
        "bernoulli": lambda p: rng.random() < p,
        "gamma": lambda shape, rate: rng.gamma(shape, 1 / rate),
        "normal": lambda mean, variance: rng.normal(mean, math.sqrt(variance)),
        "poisson": rng.poisson,
    }
    try:
        return Fraction(float(draws[name](*map(rounded, parameters))))
    except (ValueError, ZeroDivisionError, OverflowError):
        told = ", ".join(f"{rounded(x):g}" for x in parameters)
        raise _Impossible(f"ran must be given a distribution that exists; noise made it {name}({told}).") from None
