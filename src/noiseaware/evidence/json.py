"""The parts of a release file: what may stand in it, and what it means.

Checked strictly on the way in, since a release file is untrusted; release.py puts the parts together.
"""

import inspect
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from noiseaware.check import shown
from noiseaware.family import BUILT_IN, AbstractFamily
from noiseaware.mechanism import LAWS, AbstractMechanism, Identity
from noiseaware.privacy import PROMISES, Promise, exact, plain, proper
from noiseaware.query import (
    LINE,
    MOST_COLUMNS,
    MOST_LEVELS,
    AbstractQuery,
    AbstractQuestion,
    Counts,
    Moments,
    PowerSums,
    Sum,
)
from noiseaware.query.moments import all_pairs

_QUERIES: dict[str, type[AbstractQuery]] = {cls.name: cls for cls in (Sum, Counts, Moments, PowerSums)}
Counted = Literal["leave_out", "drop"] | tuple[tuple[str, float | int | str], ...]
"""What a missing cell counts as: its record is left out; it adds 0 to the sum and is one of n; or for each column the
value that it counts as."""


@dataclass(frozen=True)
class Origin:
    """Where a release comes from: tool, time, the ledger's entry that paid for it, and how its bounds were chosen.

    Private bounds were chosen near quantiles, for a share of the guarantee; one quantile: the upper bound alone was.
    """

    tool: str | None = None
    version: str | None = None
    created: str | None = None
    ledger_entry: str | None = None
    bounds: Literal["public", "private"] = "public"
    bounds_share: Fraction | None = None
    bounds_quantiles: tuple[Fraction, ...] = ()
    group: tuple[tuple[str, str | int], ...] = ()
    """The column and level of each that the records had, where the table was released by groups."""
    unit: str | None = None
    """The column that tells whose a record is, where a person may have several."""
    max_records: int | None = None
    """The most records of one person that were summed."""
    missing: Counted | None = None
    """What a cell counted as that holds no value of its column's kind; None where nobody said."""
    true: tuple[str, ...] = ()
    """The words that counted as yes, where a column is of yes and no."""
    false: tuple[str, ...] = ()
    """The words that counted as no; where there are none, whatever is not yes did."""


_MOST_TRIALS = 2**32  # sums of records of so many do not fit 64-bit integers, so that no release has them
MOST_STATISTICS = max(MOST_LEVELS, MOST_COLUMNS + MOST_COLUMNS * (MOST_COLUMNS + 1) // 2)
_MOST_DIGITS, _MOST_EXPONENT = 1000, 3  # of a number that is written as text: its length, and digits of its exponent
# The first and the last OpenDP whose integer samplers were biased.
_BIASED = (0, 9, 0), (0, 14, 1)


def warn_of_bias(origin: Origin) -> None:
    """Say so if a release was made by an OpenDP whose integer noise did not have the law that it should have."""
    if origin.tool is None or origin.version is None or "opendp" not in origin.tool.lower():
        return
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", origin.version)
    if numbers and _BIASED[0] <= tuple(int(part or 0) for part in numbers.groups()) <= _BIASED[1]:
        told = f"origin.version: OpenDP {origin.version[:20]} drew biased integer noise, as 0.9.0 to 0.14.1 all did; "
        warnings.warn(told + "the posterior is only as good as the stated law.", RuntimeWarning, stacklevel=3)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


_Pair = tuple[FiniteFloat, FiniteFloat]
_Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class FamilyPart(Strict):
    """A family by name, with the fields that it has; the rest stay null."""

    name: str = Field(description="One of: " + ", ".join(sorted(BUILT_IN)))
    column: str | None = None
    columns: list[str] | None = Field(default=None, max_length=MOST_COLUMNS)
    x: list[str] | None = Field(default=None, max_length=MOST_COLUMNS)
    y: str | None = None
    bounds: _Pair | Annotated[list[_Pair], Field(max_length=MOST_COLUMNS)] | None = Field(
        default=None, description="Of the column; of several, a pair for each of them in order"
    )
    outside: Literal["clamp", "drop"] | None = None
    trials: int | None = Field(default=None, ge=1, le=_MOST_TRIALS)
    levels: list[str] | list[_Whole] | None = Field(default=None, max_length=MOST_LEVELS)
    variance: FiniteFloat | None = None
    shape: FiniteFloat | None = None

    @classmethod
    def of(cls, family: AbstractFamily) -> "FamilyPart":
        named = _listed(family.settings())
        if surplus := sorted(set(named) - set(cls.model_fields)):
            raise ValueError(f"a {family.name} family must have no field of its own to be written, got {surplus[0]!r}.")
        return cls(name=family.name, **named)

    def family(self, families: Mapping[str, Callable[..., AbstractFamily]]) -> AbstractFamily:
        if self.name not in families:
            raise ValueError(f"family.name must be one of {', '.join(sorted(families))}, got {shown(self.name)}.")
        cls = families[self.name]
        given = {k: v for k, v in self.model_dump(exclude={"name"}).items() if v is not None}
        known = set(inspect.signature(cls).parameters)
        if surplus := sorted(set(given) - known):
            raise ValueError(
                f"family.{surplus[0]} must be null for the {self.name} family, got {shown(given[surplus[0]])}."
            )
        missing = sorted({"trials", "levels", "columns", "x", "y"} & known - set(given))
        if missing:
            raise ValueError(f"family.{missing[0]} must be given for the {self.name} family, got null.")
        return cls(**given)


def _listed(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with lists where JSON has several: names, levels, and bounds of several columns."""
    several = {"levels", "columns", "x", "pairs", "yes_or_no"}
    several |= {"bounds"} if {"columns", "x"} & set(settings) else set()
    return {name: list(value) if name in several and value is not None else value for name, value in settings.items()}


class WithinPart(Strict):
    """An interval, ends included, in grid steps; an end that is left out is infinite."""

    low: FiniteFloat | None = None
    high: FiniteFloat | None = None

    @classmethod
    def of(cls, interval: tuple[float, float]) -> "WithinPart":
        low, high = (end if math.isfinite(end) else None for end in interval)
        return cls(low=low, high=high)

    def interval(self) -> tuple[float, float]:
        return (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)


class QueryPart(Strict):
    """A query by its kind, with the fields that it has; the rest stay null."""

    kind: Literal["sum", "counts", "moments", "power_sums"]
    column: str | None = None
    columns: list[str] | None = Field(default=None, max_length=MOST_COLUMNS)
    bounds: _Pair | Annotated[list[_Pair], Field(max_length=MOST_COLUMNS)] | None = None
    outside: Literal["clamp", "drop"] | None = None
    is_whole: bool | None = Field(default=None, description="Whole numbers are summed")
    is_yes_or_no: bool | None = Field(default=None, description="A column of yes and no is summed")
    support: WithinPart | None = Field(default=None, description="The values that a record can have")
    levels: list[str] | list[_Whole] | None = Field(default=None, max_length=MOST_LEVELS)
    pairs: list[tuple[int, int]] | None = Field(
        default=None, max_length=MOST_STATISTICS, description="Columns whose products are summed; null for all of them"
    )
    yes_or_no: list[str] | None = Field(default=None, description="Columns of yes and no")

    @classmethod
    def of(cls, query: AbstractQuery) -> "QueryPart":
        if query.name not in _QUERIES:
            raise ValueError(f"a query must be one of {', '.join(_QUERIES)} to be written, got {query}.")
        said = query.settings()
        match query:
            case Sum():
                said |= {"is_whole": query.is_whole or None, "is_yes_or_no": query.is_yes_or_no or None}
                said["support"] = None if query.support == LINE else WithinPart.of(query.support)
            case Moments():
                said["pairs"] = None if query.pairs == all_pairs(query.dimension) else query.pairs
                said["yes_or_no"] = query.yes_or_no or None
        return cls(kind=query.name, **_listed(said))  # type: ignore[arg-type]

    def query(self) -> AbstractQuery:
        given = {name: value for name, value in vars(self).items() if name != "kind" and value is not None}
        kind = _QUERIES[self.kind]
        if surplus := sorted(set(given) - set(inspect.signature(kind).parameters)):
            raise ValueError(f"query.{surplus[0]} must be null for {self.kind}, got {shown(given[surplus[0]])}.")
        if missing := sorted({"levels", "columns"} & set(inspect.signature(kind).parameters) - set(given)):
            raise ValueError(f"query.{missing[0]} must be given for {self.kind}, got null.")
        if self.support is not None:
            given["support"] = self.support.interval()
        return kind(**given)


class StatisticPart(Strict):
    name: str
    value: int | FiniteFloat = Field(description="The noisy statistic in grid steps")
    within: WithinPart | None = Field(
        default=None,
        description="Where the noisy statistic was rounded, clamped, suppressed or coarsened after noise was added: "
        "the interval that it is known to lie in, of which `value` is a point; from schema version 3 on",
    )


if TYPE_CHECKING:
    _Law = str
else:
    _Law = Literal[tuple(LAWS)]


class NoisePart(Strict):
    law: _Law
    scale: FiniteFloat | Annotated[list[FiniteFloat], Field(max_length=MOST_STATISTICS)] | None = Field(
        default=None,
        description="Scale (Laplace) or standard deviation (Gaussian) in grid steps: of all statistics, or of each",
    )
    settings: dict[str, FiniteFloat] | None = Field(
        default=None,
        description="The other numbers of a law that has some, by name: width and step of a staircase, in grid steps; "
        "from schema version 5 on",
    )

    @classmethod
    def of(cls, mechanism: AbstractMechanism) -> "NoisePart":
        if LAWS.get(mechanism.name) is not type(mechanism):
            raise ValueError(f"mechanism must be a built-in law to be written, got {type(mechanism).__name__}.")
        scale = np.asarray(mechanism.spread).tolist() if mechanism.is_noisy else None
        settings = {name: float(getattr(mechanism, name)) for name in mechanism.settings}
        return cls(law=mechanism.name, scale=scale, settings=settings or None)

    def mechanism(self) -> AbstractMechanism:
        law, settings = LAWS[self.law], self.settings or {}
        if not law.is_noisy:
            return Identity()
        if self.scale is None:
            raise ValueError(f"noise.scale must be given for {self.law} noise, got null.")
        if set(settings) != set(law.settings):
            rule = f"be {' and '.join(law.settings)}" if law.settings else "be null"
            raise ValueError(f"noise.settings must {rule} for {self.law} noise, got {shown(sorted(settings))}.")
        return law.of(self.scale, **settings)


class GuaranteePart(Strict):
    kind: Literal["pure", "zcdp", "approximate"]
    cost: str = Field(description="ε or ρ as an exact decimal or fraction")
    delta: str | None = Field(default=None, description="δ of an approximate guarantee, likewise")

    @classmethod
    def of(cls, promise: Promise) -> "GuaranteePart":
        cost, delta = promise.cost
        return cls.model_validate({"kind": promise.kind, "cost": plain(cost), "delta": plain(delta) if delta else None})

    def guarantee(self) -> Promise:
        cost = _number("guarantee.cost", self.cost)
        if (self.delta is None) == (self.kind == "approximate"):
            rule = "given for an approximate guarantee" if self.delta is None else f"null for a {self.kind} guarantee"
            raise ValueError(f"guarantee.delta must be {rule}, got {shown(self.delta) if self.delta else 'null'}.")
        delta = Fraction(0) if self.delta is None else _proper("guarantee.delta", self.delta)
        return PROMISES[self.kind].of(cost, delta)


_Word = Annotated[str, Field(min_length=1, max_length=100)]
_Words = Annotated[list[_Word], Field(min_length=1, max_length=100)]
_Value = int | FiniteFloat | str


class OriginPart(Strict):
    tool: str | None = None
    version: str | None = None
    created: str | None = None
    ledger_entry: str | None = None
    bounds: Literal["public", "private"]
    bounds_share: str | None = Field(
        default=None, description="Part of the guarantee's cost that the choice of private bounds took"
    )
    bounds_quantiles: list[str] | None = Field(
        default=None,
        description="Quantiles near which private bounds were chosen; one: that of the upper bound alone",
    )
    group: dict[str, str | int] | None = Field(
        default=None, description="Column and level of each record, of a table released by groups"
    )
    unit: str | None = Field(default=None, description="Column that tells whose a record is")
    max_records: int | None = Field(
        default=None, ge=1, le=10**6, description="The most records of one unit that were summed"
    )
    missing: Literal["leave_out", "drop"] | dict[str, _Value] | None = Field(
        default=None,
        description="What a cell counted as that holds no value of its column's kind: its record was left out of sums "
        "and n, or dropped from the sum alone, or for each column a value; from schema version 4 on",
    )
    true: _Words | None = Field(
        default=None, description="Words that counted as yes in a column of yes and no; from schema version 4 on"
    )
    false: _Words | None = Field(
        default=None, description="Words that counted as no; with `true` alone, all other words did"
    )

    @classmethod
    def of(cls, origin: Origin) -> "OriginPart":
        share, quantiles = origin.bounds_share, [plain(q) for q in origin.bounds_quantiles]
        named = vars(origin) | {
            "bounds_share": None if share is None else plain(share),
            "bounds_quantiles": quantiles or None,
            "group": dict(origin.group) or None,
            "missing": dict(origin.missing) if isinstance(origin.missing, tuple) else origin.missing,
            "true": list(origin.true) or None,
            "false": list(origin.false) or None,
        }
        return cls(**named)  # type: ignore[arg-type]

    def origin(self) -> Origin:
        if self.bounds == "public" and (self.bounds_share or self.bounds_quantiles):
            raise ValueError("origin.bounds must be private where it has a share or quantiles, got public.")
        share = None if self.bounds_share is None else _proper("origin.bounds_share", self.bounds_share)
        quantiles = tuple(_proper("origin.bounds_quantiles", q) for q in self.bounds_quantiles or ())
        if len(quantiles) > 2 or sorted(quantiles) != list(quantiles):
            raise ValueError(
                f"origin.bounds_quantiles must be one or two in order, got {shown(self.bounds_quantiles)}."
            )
        if (self.unit is None) != (self.max_records is None):
            raise ValueError(
                f"origin.max_records must go with origin.unit, got {self.max_records} and {shown(self.unit)}."
            )
        if self.false is not None and self.true is None:
            raise ValueError(f"origin.false must go with origin.true, got {shown(self.false)} alone.")
        read = {
            "bounds_share": share,
            "bounds_quantiles": quantiles,
            "group": tuple((self.group or {}).items()),
            "missing": tuple(self.missing.items()) if isinstance(self.missing, dict) else self.missing,
            "true": tuple(self.true or ()),
            "false": tuple(self.false or ()),
        }
        return Origin(**self.model_dump() | read)

    def check_cells(self, question: AbstractQuestion) -> None:
        """Refuse a way of reading cells that these columns cannot have been read by."""
        query = question.query
        if self.true is not None and not query.yes_or_no:
            raise ValueError(f"origin.true must be null for {question.phrase}, got {shown(self.true)}.")
        if self.missing == "drop" and query.outside != "drop":
            raise ValueError("origin.missing must be drop only where records outside the bounds are dropped.")
        if not isinstance(self.missing, dict):
            return
        if set(self.missing) != set(query.columns):
            got = shown(list(self.missing))
            raise ValueError(f"origin.missing must name the columns {shown(list(query.columns))}, got {got}.")
        levels = query.levels
        for column, value in self.missing.items():
            if levels is not None and value not in levels:
                raise ValueError(f"origin.missing must be one of the levels, got {shown(value)}.")
            if levels is None and isinstance(value, str):
                raise ValueError(f"origin.missing must be a number for {shown(column)}, got {shown(value)}.")
            if column in query.yes_or_no and value not in (0, 1):
                raise ValueError(f"origin.missing must be 0 or 1 for {shown(column)}, got {shown(value)}.")


def _number(name: str, text: str) -> Fraction:
    """A positive fraction; not one of millions of digits, which could be written as an exponent."""
    exponent = re.search(r"[eE][+-]?[0_]*([\d_]*)", text)
    if len(text) > _MOST_DIGITS or (exponent and len(exponent[1]) > _MOST_EXPONENT):
        raise ValueError(f"{name} must have at most {_MOST_DIGITS} characters and a small exponent, got {shown(text)}.")
    return exact(name, text)


def _proper(name: str, text: str) -> Fraction:
    """A fraction between 0 and 1."""
    _number(name, text)
    return proper(name, text)


def readers(query: AbstractQuery) -> list[str]:
    """Return the names of the families of queries of this kind, those that were defined outside too."""
    found, classes = set(), [AbstractFamily]
    while classes:
        one = classes.pop()
        classes += one.__subclasses__()
        if {"query": type(query)}.items() <= {field.name: field.type for field in fields(one)}.items():
            found.add(one.name.title().replace("_", ""))
    return sorted(found)
