"""The Release: the only thing that crosses from custodian to analyst.

It holds what an analyst needs, and nothing of the data that was not paid for: the family and its public bounds,
each noisy statistic as a number of grid steps, the law of its noise, n, and what was promised to whom. Its JSON
form is checked strictly on the way in, since a release file is untrusted.
"""

import functools
import hashlib
import importlib.resources
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Literal, cast

import numpy as np
from pydantic import ConfigDict, Field, FiniteFloat, ValidationError

from noiseaware.check import kind, shown, whole
from noiseaware.evidence import evidence
from noiseaware.evidence.count import AbstractCount, Private, Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.evidence.json import (
    MOST_STATISTICS,
    FamilyPart,
    GuaranteePart,
    NoisePart,
    Origin,
    OriginPart,
    QueryPart,
    StatisticPart,
    Strict,
    WithinPart,
    readers,
    warn_of_bias,
)
from noiseaware.family import BUILT_IN, AbstractFamily, built_in
from noiseaware.file import read_text, write_whole
from noiseaware.mechanism import AbstractMechanism
from noiseaware.privacy import Neighbours, Promise, check_neighbours
from noiseaware.query import AbstractQuery, AbstractQuestion

SCHEMA_VERSION = 6
"""The newest: 6 is of a query without a family; 5 has noise with settings, as a staircase; 4 says how cells were read;
3 has values of which an interval is known; 2 a noisy n; all else is 1."""
MOST_BYTES = 10_000_000
"""A release file is a few kilobytes; one that is larger is not read."""
_LONGEST = 1000  # characters of what is wrong with a file
_MOST_TOLD = 3  # statistics where a release is printed
_EXAMPLES = {
    "family": "Bernoulli()",
    "query": "Sum()",
    "mechanism": "Laplace(10)",
    "n_mechanism": "DiscreteLaplace(10)",
}
_EXAMPLES |= {"guarantee": "Pure(Fraction(1, 2))", "origin": 'Origin(tool="a hospital")'}
_MOST = 1e150  # of a value or a scale, so that squares stay finite
MOST_OF_N = 10**15  # a count that a float holds exactly, with room for sums


class Release:
    """Noisy statistics of a table, with all that is needed to reason from them.

    `values` counts grid steps: the statistic is values · grid, and the mechanism's scale counts grid steps too.
    With `n_mechanism`, n is private: a noisy whole number, which may be negative. With `within`, values were rounded,
    clamped, suppressed or coarsened after noise was added: for each of them the interval (low, high) of grid steps,
    ends included, that the noisy statistic is known to lie in, or None where it is the value itself.

    >>> noise = na.mechanism.Laplace(10.0)
    >>> release = na.Release(family=na.family.Bernoulli("ill"), values=[12], n=1000, mechanism=noise)
    >>> release.values, release.noise_scale
    (array([12.]), 10.0)
    """

    def __init__(
        self,
        *,
        family: AbstractFamily | None = None,
        query: AbstractQuery | None = None,
        values,
        n: int,
        mechanism: AbstractMechanism,
        n_mechanism: AbstractMechanism | None = None,
        within: Sequence[tuple[float, float] | None] | None = None,
        grid: float = 1.0,
        neighbours: Neighbours = "replace",
        guarantee: Promise | None = None,
        origin: Origin = Origin(),
    ) -> None:
        if family is not None or query is None:
            _check_kind("family", family, AbstractFamily, "noiseaware.family")
        _check_kind("mechanism", mechanism, AbstractMechanism, "noiseaware.mechanism")
        # None for a query alone: `infer` refuses that, so that no code of an analyst sees it.
        self.family: AbstractFamily = family  # type: ignore[assignment]
        self.query = _checked_query(query, family)
        self.steps = _checked_values(values, self.query, mechanism)
        self.mechanism = _checked_mechanism(mechanism, self.query)
        self.n_mechanism = _checked_n_mechanism(n_mechanism, mechanism)
        self.n = _checked_count(n, is_noisy=n_mechanism is not None)
        self.within = _checked_within(within, self.steps)
        self.grid = checked_grid(grid, mechanism)
        check_neighbours(neighbours)
        self.neighbours: Neighbours = neighbours
        if guarantee is not None:
            _check_kind("guarantee", guarantee, Promise, "noiseaware.privacy")
        self.guarantee = guarantee
        _check_kind("origin", origin, Origin, "noiseaware.evidence.json")
        self.origin = origin
        warn_of_bias(origin)

    @property
    def question(self) -> AbstractQuestion:
        """The family or, of a release that names none, the query."""
        return self.query if self.family is None else self.family

    @property
    def values(self) -> np.ndarray:
        """The noisy statistics in the units of the data."""
        return np.array([float(v) * self.grid for v in self.steps])

    @property
    def known(self) -> list[str]:
        """What is known of each noisy statistic besides its value, in words: the interval that it lay in, if any."""
        pairs = [None if w is None else (w[0] * self.grid, w[1] * self.grid) for w in self.within or ()]
        return [_interval_words(*pair) if pair else "" for pair in pairs] or [""] * len(self.steps)

    @property
    def count(self) -> AbstractCount:
        """The number of records as an analyst knows it: public, or private with the law of its noise."""
        return Public(self.n) if self.n_mechanism is None else Private(self.n, self.n_mechanism)

    @property
    def likely_n(self) -> int:
        """The number of records to reckon with where only one will do."""
        return max(1, self.n)

    def evidence(self) -> Evidence:
        """Return what the release says of its family's statistics, in the units of the data."""
        if self.family is None:
            told = f"name a family, one of {', '.join(readers(self.query))}, got {self.query.phrase} alone"
            raise ValueError(f"release must {told}; say family= (--family) to infer.")
        return self._evidence

    @functools.cached_property
    def _evidence(self) -> Evidence:
        return evidence.read(
            self.family,
            self.mechanism,
            self.values,
            self.count,
            grid=self.grid,
            within=self.within,
            has_private_bounds=self.origin.bounds == "private",
        )

    def under(self, family: AbstractFamily) -> "Release":
        """Return the release as one of another family, which asks the same of the table.

        Columns and bounds that the family leaves open are those of the release.
        """
        _check_kind("family", family, AbstractFamily, "noiseaware.family")
        return Release(
            family=family.reading(self.query),
            values=self.steps,
            n=self.n,
            mechanism=self.mechanism,
            n_mechanism=self.n_mechanism,
            within=self.within,
            grid=self.grid,
            neighbours=self.neighbours,
            guarantee=self.guarantee,
            origin=self.origin,
        )

    @property
    def noise_scale(self) -> float | np.ndarray:
        """The scale or standard deviation of the noise in the units of the data: one, or one for each statistic."""
        spread = self.mechanism.spread
        return (np.asarray(spread) if np.ndim(spread) else float(spread)) * self.grid  # type: ignore[arg-type]

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of what the release says, and of whom: the same from its file as in memory, on every machine.

        It covers the family with its columns and bounds, the group, the values with their intervals and grid, n, and
        the noise of both; not the promise, nor when and by what the release was made.
        """
        said = {
            "family" if self.family else "query": self.question.identity(),
            "group": dict(self.origin.group),
            "values": self.steps,
            "within": self.within or [None] * len(self.steps),
            "grid": self.grid,
            "noise": self.mechanism,
            "n": self.n,
            "noise of n": self.n_mechanism,
        }
        text = json.dumps(_canonical(said), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        promise = self.guarantee or "no stated guarantee"
        n = self.n if self.n_mechanism is None else f"{self.n} (noisy)"
        column = f" of {shown(', '.join(self.query.columns))}" if self.query.columns else ""
        pairs = list(zip(self.query.names, self.values, self.known, strict=True))
        told = [f"{shown(name)[1:-1]} = {value:.6g}{known}" for name, value, known in pairs[:_MOST_TOLD]]
        told += [f"{len(pairs) - _MOST_TOLD} more"] * (len(pairs) > _MOST_TOLD)
        told += [] if self.origin.missing is None else [f"missing {self._missing_words()}"]
        head = f"{self.question.name}{column}, n = {n}, {', '.join(told)}"
        return f"Release({head}, {self._noise_words()}, {promise})"

    def _missing_words(self) -> str:
        """What a missing cell counts as, in short."""
        counted = self.origin.missing
        if not isinstance(counted, tuple):
            return "left out" if counted == "leave_out" else "dropped"
        values = [shown(value)[1:-1] if isinstance(value, str) else f"{value:g}" for _, value in counted]
        return f"counted as {', '.join(values[:_MOST_TOLD])}{', …' * (len(values) > _MOST_TOLD)}"

    def _noise_words(self) -> str:
        if not self.mechanism.is_noisy:
            return "no noise"
        told = f"{self.mechanism.title} noise of {self.mechanism.spread_title}"
        return f"{told} {' or '.join(f'{value:.6g}' for value in np.unique(self.noise_scale))}"

    def to_json(self) -> str:
        """The release as JSON text."""
        return _Document.of(self).model_dump_json(indent=2, exclude_none=True) + "\n"

    def save(self, path: str | os.PathLike, *, force: bool = False) -> None:
        """Write the release as JSON, whole or not at all."""
        write_whole(path, self.to_json(), force=force)


def load(path: str | os.PathLike, *, families: Iterable[type[AbstractFamily]] = ()) -> Release:
    """Read a release file; `families` are those of your own that it may name.

    >>> noise = na.mechanism.Laplace(10.0)
    >>> release = na.Release(family=na.family.Bernoulli("ill"), values=[12], n=1000, mechanism=noise)
    >>> release.save("ill.json")
    >>> na.load("ill.json") == release
    True
    """
    path = Path(path)
    text = read_text(path, "release file", MOST_BYTES)
    return from_json(text, source=str(path), families=families)


def from_json(text: str, *, source: str = "release", families: Iterable[type[AbstractFamily]] = ()) -> Release:
    """The release that a JSON text holds; refused in one sentence if anything in it is off."""
    _refuse_newer(text, source)
    known = {cls.name: cls for cls in families} | {name: built_in(name) for name in BUILT_IN}
    try:
        return _Document.model_validate_json(text).release(known)
    except ValidationError as error:
        raise ValueError(f"{source}: {_sentence(error)}") from None
    except ValueError as error:
        told = str(error)  # whose names are the file's
        raise ValueError(f"{source}: {told if len(told) <= _LONGEST else told[: _LONGEST - 1] + '…'}") from None


def json_schema() -> dict:
    """The JSON Schema of a release file, as published with the package."""
    return json.loads(importlib.resources.files("noiseaware").joinpath("release.schema.json").read_text())


# ---- the JSON form, published as release.schema.json ---------------------------------------------------------


_Version = Literal[1, 2, 3, 4, 5, 6]


class _Document(Strict):
    """A noiseaware release: noisy statistics of one table."""

    model_config = ConfigDict(title="noiseaware release")

    schema_version: _Version
    family: FamilyPart | None = Field(default=None, description="The family that was released; up to schema version 5")
    query: QueryPart | None = Field(
        default=None, description="What was asked without a family; from schema version 6 on"
    )
    statistics: list[StatisticPart] = Field(max_length=MOST_STATISTICS)
    grid: FiniteFloat = Field(gt=0, description="The size of one grid step in the units of the data")
    noise: NoisePart
    n: int = Field(  # whose limits are checked where it is known whether it is noisy
        json_schema_extra={"minimum": -MOST_OF_N, "maximum": MOST_OF_N},
        description="Number of records: public and at least 1, or noisy where n_noise is given",
    )
    n_noise: NoisePart | None = Field(default=None, description="The noise of a private n; from schema version 2 on")
    neighbours: Literal["replace", "add_remove"]
    guarantee: GuaranteePart | None = None
    origin: OriginPart

    @classmethod
    def of(cls, release: Release) -> "_Document":
        names = release.query.names
        promise = release.guarantee
        private = release.n_mechanism
        known = [None if w is None else WithinPart.of(w) for w in release.within or [None] * len(names)]
        triples = zip(names, release.steps, known, strict=True)
        return cls(
            schema_version=_version(release),
            family=None if release.family is None else FamilyPart.of(release.family),
            query=None if release.family is not None else QueryPart.of(release.query),
            statistics=[StatisticPart(name=k, value=v, within=w) for k, v, w in triples],
            grid=release.grid,
            noise=NoisePart.of(release.mechanism),
            n=release.n,
            n_noise=None if private is None else NoisePart.of(private),
            neighbours=release.neighbours,
            guarantee=None if promise is None else GuaranteePart.of(promise),
            origin=OriginPart.of(release.origin),
        )

    def release(self, families: Mapping[str, Callable[..., AbstractFamily]]) -> Release:
        family, query = self._asked(families)
        question = query if family is None else family
        names = tuple(s.name for s in self.statistics)
        _check_names(names, question.query.names)
        if self.n_noise is not None and self.schema_version < 2:
            raise ValueError(f"schema_version must be 2 where n_noise is given, got {self.schema_version}.")
        known = [None if s.within is None else s.within.interval() for s in self.statistics]
        if any(known) and self.schema_version < 3:
            raise ValueError(f"schema_version must be 3 where statistics have within, got {self.schema_version}.")
        says_cells = self.origin.missing is not None or self.origin.true is not None
        if says_cells and self.schema_version < 4:
            told = "where origin says how cells were read"
            raise ValueError(f"schema_version must be 4 {told}, got {self.schema_version}.")
        self.origin.check_cells(question)
        mechanism, n_mechanism = self.noise.mechanism(), None if self.n_noise is None else self.n_noise.mechanism()
        for law in filter(None, (mechanism, n_mechanism)):
            if self.schema_version < law.since:
                told = f"where noise is of law {law.name}"
                raise ValueError(f"schema_version must be {law.since} {told}, got {self.schema_version}.")
        return Release(
            family=family,
            query=query,
            values=[s.value for s in self.statistics],
            within=known if any(known) else None,
            n=self.n,
            n_mechanism=n_mechanism,
            mechanism=mechanism,
            grid=self.grid,
            neighbours=self.neighbours,
            guarantee=None if self.guarantee is None else self.guarantee.guarantee(),
            origin=self.origin.origin(),
        )

    def _asked(self, families: Mapping[str, Callable[..., AbstractFamily]]) -> tuple:
        """Return the family and None, or None and the query."""
        name = "family" if self.schema_version < 6 else "query"
        for other, part in (("family", self.family), ("query", self.query)):
            if (part is None) == (other == name):
                rule = "given" if part is None else "null"
                raise ValueError(f"{other} must be {rule} in schema_version {self.schema_version}.")
        return self.family and self.family.family(families), self.query and self.query.query()


def _checked_query(query: AbstractQuery | None, family: AbstractFamily | None) -> AbstractQuery:
    """Return the query of a release; refuse one beside a family, which brings its own."""
    if family is None:
        _check_kind("query", query, AbstractQuery, "noiseaware.query")
        assert query is not None
        return query
    if query not in (None, family.query):
        raise ValueError(f"query must be left out beside a family, got {query}.")
    return family.query


def _check_names(names: Sequence[str], wanted: Sequence[str]) -> None:
    if len(names) != len(wanted):
        raise ValueError(f"statistics must be {len(wanted)} for this family, got {len(names)}.")
    for place, (name, right) in enumerate(zip(names, wanted, strict=True)):
        if name != right:
            raise ValueError(f"statistics.{place}.name must be {shown(right)} for this family, got {shown(name)}.")


def _version(release: Release) -> _Version:
    """Return the least schema version that can state all that a release states."""
    laws = [law.since for law in (release.mechanism, release.n_mechanism) if law is not None]
    return cast(_Version, max(_version_of_parts(release), *laws))


def _version_of_parts(release: Release) -> int:
    if release.family is None:
        return 6
    if release.origin.missing is not None or release.origin.true:
        return 4
    if release.within is not None:
        return 3
    return 1 if release.n_mechanism is None else 2


def _refuse_newer(text: str, source: str) -> None:
    try:
        version = json.loads(text)["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # the strict check says what is wrong
    if isinstance(version, int) and version > SCHEMA_VERSION:
        rule = f"schema_version must be at most {SCHEMA_VERSION}, got {shown(version)}"
        raise ValueError(f"{source}: {rule}; upgrade noiseaware.")


def _sentence(error: ValidationError) -> str:
    """What is wrong, as field, rule and value: of several forms that a field can take, the one that it is most like."""
    errors = error.errors(include_url=False, include_context=False)
    places = Counter(found["loc"][:-1] for found in errors)  # of two forms as deep, the one with less that is wrong
    first = max(errors, key=lambda found: (len(found["loc"]), -places[found["loc"][:-1]]))
    if first["type"] == "json_invalid":
        return f"file: must be JSON, as a release is: {first['msg'].removeprefix('Invalid JSON: ')}."
    parts = [str(part) for part in first["loc"] if str(part) not in ("float", "int") and "[" not in str(part)]
    got = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
    return f"{'.'.join(parts) or 'file'}: {first['msg']}{got}."


def _canonical(value: object) -> object:
    """The one way in which a part of a release is put as JSON: fields and keys by name, numbers to the last bit."""
    match value:
        case None | bool() | str() | int():
            return value
        case np.ndarray() | np.generic():
            return _canonical(value.tolist())
        case float():
            return int(value) if value.is_integer() else value.hex()
        case Mapping():
            return {str(key): _canonical(part) for key, part in value.items()}
        case Sequence():
            return [_canonical(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, {field.name: _canonical(getattr(value, field.name)) for field in fields(value)}]
    if hasattr(value, "__array__"):
        return _canonical(np.asarray(value))
    return type(value).__name__  # a part of somebody's own family that has no text which all machines agree on


def _check_kind(name: str, value: object, wanted: type | UnionType, home: str) -> None:
    """Refuse what is not of a kind: text, a class where one of its objects is wanted, a list."""
    if not isinstance(value, wanted) or isinstance(value, type):
        got = kind(value) if isinstance(value, type) else shown(value)
        raise ValueError(f"{name} must be one of {home}, such as {_EXAMPLES[name]}, got {got}.")


def _checked_values(values, query: AbstractQuery, mechanism: AbstractMechanism) -> tuple[int | float, ...]:
    given = [v.item() if isinstance(v, np.ndarray | np.generic) and v.ndim == 0 else v for v in _listed(values)]
    if strange := [v for v in given if isinstance(v, bool) or not isinstance(v, int | float | Fraction | Decimal)]:
        raise ValueError(f"values must be numbers, one for each statistic, got {shown(strange[0], 40)}.")
    steps = tuple(v if isinstance(v, int) else float(v) for v in given)
    if len(steps) != len(query.names):
        raise ValueError(f"values must have {len(query.names)} entries for this family, got {len(steps)}.")
    for v in steps:
        if not abs(v) <= _MOST:  # nor NaN
            raise ValueError(f"values must be finite, and at most {_MOST:g} in size, got {shown(v, 40)}.")
        if mechanism.is_discrete and v != math.floor(v):
            raise ValueError(f"values must be whole numbers under discrete noise, got {v}.")
    return tuple(int(v) for v in steps) if mechanism.is_discrete else steps


def _listed(values) -> list:
    """The entries of a list, tuple or vector; one number is a list of one."""
    if isinstance(values, Mapping | str | bytes):
        return [values]
    return list(values) if np.ndim(np.asarray(values, object)) else [values]


def _checked_within(
    within: Sequence[tuple[float, float] | None] | None, steps: tuple[int | float, ...]
) -> tuple[tuple[float, float] | None, ...] | None:
    if within is None:
        return None
    if isinstance(within, str) or not isinstance(within, Sequence | np.ndarray):
        raise ValueError(f"within must be a list of intervals, one for each value, got {shown(within)}.")
    if len(within) != len(steps):
        raise ValueError(f"within must have {len(steps)} entries, one for each value, got {len(within)}.")
    return tuple(None if pair is None else _checked_interval(pair, v) for pair, v in zip(within, steps, strict=True))


def _checked_interval(pair: object, value: int | float) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"within must be pairs of numbers (low, high), got {shown(pair)}.") from None
    if math.isinf(low) and math.isinf(high):
        raise ValueError(f"within must have a finite end, got ({low}, {high}).")
    if not low <= value <= high:
        raise ValueError(f"within must hold the value {value}, got ({low}, {high}).")
    return low, high


def _interval_words(low: float, high: float) -> str:
    if math.isinf(low):
        return f" (known to be at most {high:g})"
    return f" (known to be at least {low:g})" if math.isinf(high) else f" (known to be from {low:g} to {high:g})"


def _checked_mechanism(mechanism: AbstractMechanism, query: AbstractQuery) -> AbstractMechanism:
    shape, count = np.shape(mechanism.spread), len(query.names)
    if shape not in ((), (count,)):
        raise ValueError(f"noise must have one scale, or {count} for this family, got {math.prod(shape)}.")
    return mechanism


def _checked_n_mechanism(
    n_mechanism: AbstractMechanism | None, mechanism: AbstractMechanism
) -> AbstractMechanism | None:
    if n_mechanism is None:
        return None
    _check_kind("n_mechanism", n_mechanism, AbstractMechanism, "noiseaware.mechanism")
    if not (mechanism.is_noisy and n_mechanism.is_noisy):
        raise ValueError("n_mechanism must be left out where there is no noise: then n is known.")
    if np.ndim(n_mechanism.spread):
        raise ValueError(f"n_mechanism must have one scale, got {np.size(n_mechanism.spread)}.")
    return n_mechanism


def _checked_count(n: object, *, is_noisy: bool) -> int:
    return whole("n", n, -MOST_OF_N if is_noisy else 1, MOST_OF_N)


def checked_grid(grid: float, mechanism: AbstractMechanism) -> float:
    """A grid that a release can have, with this noise."""
    if isinstance(grid, bool) or not isinstance(grid, int | float):
        raise ValueError(f"grid must be a number, got {grid!r}.")
    scales = [float(spread) * grid for spread in np.atleast_1d(np.asarray(mechanism.spread))]
    if not 0 < grid <= _MOST or not all(scale == 0 or 1 / _MOST <= scale <= _MOST for scale in scales):
        raise ValueError(f"grid and noise scale must be from {1 / _MOST:g} to {_MOST:g}, got {grid} and {scales[0]}.")
    return grid
