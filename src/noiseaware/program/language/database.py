"""Databases by what is public of them: the kind of a record, its levels or bounds, and who counts as a neighbour.

    replace       one of n records becomes another        n is public
    add_remove    one record comes or goes                n is as private as the records

What a program can ask of a database is its size, its counts, its sum or its moments, and `map`, which gives each record
to a mechanism. Each of these numbers is a statistic; a neighbour moves it by what one record adds, and by no more.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from noiseaware.check import whole
from noiseaware.privacy import Neighbours, Number, check_neighbours, plain
from noiseaware.program.language.escape import Escape, Guarded, here
from noiseaware.program.language.expression import Draw, Record, Size, Statistic, Term, constant, term
from noiseaware.program.language.frozen import frozen

if TYPE_CHECKING:
    from noiseaware.query import AbstractQuery

Level = str | int | bool
Bounds = tuple[Fraction, Fraction]
_MOST_COUNT = 2**30
"""The greatest count of a record: 2^31 records of it are summed in 64 bits."""
_MOST = 10**150
"""Bounds are at most so far from 0, and at least 1/_MOST apart, as a release has it."""
_NUMBER = ("column", "bounds")
_BELONGS = {
    "booleans": ("column", "levels"),
    "categories": ("column", "levels"),
    "reals": _NUMBER,
    "counts": _NUMBER,
    "rows": ("columns", "intervals"),
}
"""The public description of records of each kind, besides their number and neighbours."""
_NOTHING = {"column": None, "levels": (), "bounds": None, "columns": (), "intervals": ()}


@dataclass(frozen=True)
class Records:
    """The public side of a database: levels, bounds of a number (None: any number at all), or bounds of columns."""

    kind: str
    adjacency: Neighbours
    column: str | None = None
    levels: tuple[Level, ...] = ()
    bounds: Bounds | None = None
    size: int | None = None
    columns: tuple[str, ...] = ()
    intervals: tuple[Bounds, ...] = ()

    def __post_init__(self) -> None:
        for name in ("adjacency", "column", "size"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        for name in ("columns", "levels"):
            object.__setattr__(self, name, tuple(frozen(part) for part in getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Refuse what no table can be, such as numbers with levels, whose statistics would be taken for counts."""
        check_neighbours(self.adjacency, "adjacency")
        if self.size is not None and self.adjacency == "add_remove":
            raise ValueError(f"size must be left out under add_remove, where it is private, got {self.size}.")
        if self.size is not None:
            whole("size", self.size)
        if self.kind not in _BELONGS:
            raise ValueError(f"kind must be one of {', '.join(_BELONGS)}, got {self.kind!r}.")
        for name, nothing in _NOTHING.items():
            if name not in _BELONGS[self.kind] and getattr(self, name) != nothing:
                raise ValueError(f"{name} must be left out for {self.kind}, got {getattr(self, name)!r}.")
        if "levels" in _BELONGS[self.kind]:
            self._check_levels()
        for bounds in self.intervals if self.bounds is None else (self.bounds,):
            _check_bounds(bounds)
        if self.kind == "counts":
            self._check_counts()
        if self.kind == "rows" and not len(set(self.columns)) == len(self.columns) == len(self.intervals) > 0:
            raise ValueError(f"columns must each be given once, with bounds, got {self.columns}.")

    def _check_levels(self) -> None:
        if self.kind == "booleans" and (self.levels != (False, True) or {*map(type, self.levels)} != {bool}):
            raise ValueError(f"levels must be False and True for booleans, got {list(self.levels)}.")
        if any(type(level) not in (str, int, bool) for level in self.levels):
            raise ValueError(f"levels must be texts or whole numbers, got {list(self.levels)}.")
        if len(set(self.levels)) != len(self.levels) or len(self.levels) < 2:
            raise ValueError(f"levels must be at least two, each once, got {list(self.levels)}.")

    def _check_counts(self) -> None:
        told = "" if self.bounds is None else _shown(self.bounds)
        if self.bounds is not None and (self.bounds[0] < 0 or any(bound.denominator != 1 for bound in self.bounds)):
            raise ValueError(f"bounds must be whole numbers of at least 0 for counts, got {told}.")
        if self.bounds is not None and self.bounds[1] > _MOST_COUNT:
            raise ValueError(f"bounds must be at most 2**30 for counts, so that 64 bits hold their sum, got {told}.")

    @property
    def num_statistics(self) -> int:
        return len(self.moments) or len(self.levels) or 1

    @property
    def moments(self) -> tuple[tuple[int, ...], ...]:
        """The columns that each statistic of rows multiplies: each one, then each two."""
        d = range(len(self.columns))
        return (*((i,) for i in d), *((i, j) for i in d for j in d if i <= j))

    @property
    def query(self) -> "AbstractQuery":
        """The query that sums the records to the statistics of a program; of booleans, how many are true."""
        from noiseaware.query import Counts, Moments, Sum

        match self.kind:
            case "booleans":
                return Sum(self.column, is_yes_or_no=True)
            case "categories":
                return Counts(self.column, levels=list(self.levels))  # type: ignore[arg-type]
            case "rows":
                return Moments(self.columns, [(float(low), float(high)) for low, high in self.intervals])
        bounds = None if self.bounds is None else tuple(map(float, self.bounds))
        return Sum(self.column, bounds, is_whole=self.kind == "counts")

    def range_of(self, index: int) -> Bounds | None:
        """Between what one record's part of a statistic lies; None: it can be anything."""
        if self.columns:
            return Fraction(0 if self.moments[index] in {(i, i) for i in range(len(self.columns))} else -1), Fraction(1)
        return (Fraction(0), Fraction(1)) if self.levels else self.bounds

    def contribution(self, record: Any) -> tuple[Fraction, ...]:
        """Return one record's statistics; a level is given by its place, a row by numbers between −1 and 1."""
        if self.columns:
            return tuple(math.prod((record[i] for i in moment), start=Fraction(1)) for moment in self.moments)
        if not self.levels:
            return (Fraction(record),)
        return tuple(Fraction(place == record) for place in range(len(self.levels)))


def Booleans(column: str | None = None, *, adjacency: Neighbours, size: int | None = None) -> Records:
    """Records that are true or false."""
    return Records("booleans", adjacency, column, levels=(False, True), size=size)


def Categories(
    levels: Sequence[str] | Sequence[int], column: str | None = None, *, adjacency: Neighbours, size: int | None = None
) -> Records:
    """Records that are one of some public levels."""
    return Records("categories", adjacency, column, levels=tuple(levels), size=size)


def Reals(
    bounds: tuple[Number, Number] | None = None,
    column: str | None = None,
    *,
    adjacency: Neighbours,
    size: int | None = None,
) -> Records:
    """Records that are numbers, moved into public bounds where they lie outside; without bounds nothing is proved."""
    return Records("reals", adjacency, column, bounds=_bounds(bounds), size=size)


def Counts(
    bounds: tuple[Number, Number] | None = None,
    column: str | None = None,
    *,
    adjacency: Neighbours,
    size: int | None = None,
) -> Records:
    """Records that are whole numbers of at least 0, moved into public whole bounds where they lie outside."""
    return Records("counts", adjacency, column, bounds=_bounds(bounds), size=size)


def Rows(
    x: Sequence[str],
    y: str,
    *,
    bounds: Mapping[str, tuple[Number, Number]],
    adjacency: Neighbours,
    size: int | None = None,
) -> Records:
    """Records of several columns for a line y = a + b·x, each column within public bounds and scaled to ±1 by them."""
    columns = (*x, y)
    if set(bounds) != set(columns) or len(set(columns)) < len(columns):
        raise ValueError(f"bounds must be given for {', '.join(columns)}, each once, got {', '.join(bounds)}.")
    intervals = tuple(_bounds(bounds[column]) for column in columns)
    return Records("rows", adjacency, None, size=size, columns=columns, intervals=intervals)  # type: ignore[arg-type]


def _bounds(bounds: tuple[Number, Number] | None) -> tuple[Fraction, Fraction] | None:
    if bounds is None:
        return None
    try:
        low, high = (Fraction(str(bound)) for bound in bounds)
    except (TypeError, ValueError):
        advice = "write them in brackets, as in pp.Reals((0, 30), adjacency='replace')"
        raise ValueError(f"bounds must be two finite numbers (low, high), got {bounds}; {advice}.") from None
    _check_bounds((low, high))
    return low, high


def _shown(bounds: Bounds) -> str:
    return f"({plain(bounds[0])}, {plain(bounds[1])})"


def _check_bounds(bounds: Bounds) -> None:
    if type(bounds) is not tuple or [type(bound) for bound in bounds] != [Fraction, Fraction]:
        raise ValueError("bounds must be two fractions (low, high); give them as pp.Reals and pp.Counts take them.")
    low, high = bounds
    told = _shown(bounds)
    if low >= high:
        raise ValueError(f"bounds must have low < high, got {told}.")
    if max(-low, high) > _MOST or high - low < Fraction(1, _MOST):
        raise ValueError(f"bounds must be within ±1e150 and at least 1e-150 apart, got {told[:80]}.")


@dataclass(frozen=True, eq=False, repr=False)
class Database(Guarded):
    """The database as a program sees it: a symbol. After `map` it holds what mechanisms gave, and is public."""

    described: ClassVar[str] = "a database"  # type: ignore[misc]
    offers: ClassVar[tuple[str, ...]] = ("size", "count", "counts", "sum", "moments", "map")  # type: ignore[misc]
    _records: Records
    _mechanisms: Any
    _mapped: "Mapped | None" = None

    @property
    def size(self) -> Term:
        """The number of records: public under replace, private under add_remove."""
        known = self._records.size
        return Size(self) if known is None else term(known)

    def count(self) -> Term:
        """Count the records that are true."""
        if self._records.kind != "booleans":
            raise Escape("count is of Booleans; use counts of Categories, sum of numbers, moments of Rows.", here())
        return Statistic(self, 1)

    def counts(self) -> tuple[Term, ...]:
        """Count the records of each level, in the order of the levels."""
        if not self._records.levels:
            raise Escape("counts is of Categories and Booleans; use sum of numbers.", here())
        return tuple(Statistic(self, place) for place in range(len(self._records.levels)))

    def sum(self) -> Term:
        """The sum of the records, each within the bounds."""
        return self.count() if self._records.kind == "booleans" else self._total()

    def _total(self) -> Term:
        if self._records.levels or self._records.columns:
            raise Escape("sum is of numbers; use counts of Categories, moments of Rows.", here())
        return Statistic(self, 0)

    def moments(self) -> tuple[Term, ...]:
        """Sums of the columns of rows, scaled to ±1, and of the products of each two: what a line is fitted by."""
        if not self._records.columns:
            raise Escape("moments are of Rows; use sum of numbers, counts of Categories.", here())
        return tuple(Statistic(self, place) for place in range(self._records.num_statistics))

    def map(self, function: Callable[[Term], Any]) -> "Database":
        """Apply a function, through mechanisms of p, to each record: the result is a public database."""
        line, record = here(), Record(self)
        if self._records.columns:
            raise Escape("map is of records of one column; use moments of Rows.", line)
        if self._mapped is not None:
            raise Escape("map is of the database itself; use both mechanisms in one map, not one map on another.", line)
        with self._mechanisms.each_record(record) as mechanisms:
            result = function(record)
        if not isinstance(result, Draw) or not any(result.mechanism is own for own in mechanisms):
            raise Escape("map must be given a function that returns what a mechanism of p made of its record.", line)
        mapped = Mapped(self, record, tuple(mechanisms), result, line)
        self._mechanisms.maps.append(mapped)
        return Database(told(result.mechanism, self._records), self._mechanisms, mapped)

    def is_private(self, node: Term) -> bool:
        """True if a statistic, the size or a record may differ between neighbours."""
        if self._mapped is not None:
            return False
        return self._records.adjacency == "add_remove" if isinstance(node, Size) else True

    @property
    def mechanisms(self) -> Any:
        """The mechanisms of the program that it is traced for."""
        return self._mechanisms

    @property
    def records(self) -> Records:
        """The public side of this database."""
        return self._records

    @property
    def mapped(self) -> "Mapped | None":
        """The mechanism that this database comes from, if it is public."""
        return self._mapped


@dataclass(frozen=True, eq=False)
class Mapped:
    """Mechanisms run on each record, and which of their draws is kept."""

    source: Database
    record: Record
    mechanisms: tuple[Any, ...]
    result: Draw
    line: str


def told(mechanism: Any, records: Records) -> Records:
    """The public side of noisy records: levels if the candidates were the levels, else any number."""
    candidates = [constant(c) for c in getattr(mechanism, "candidates", ()) if isinstance(c, Term)]
    if candidates and records.levels and candidates == [Fraction(place) for place in range(len(records.levels))]:
        return records
    return Records("reals", records.adjacency, size=records.size)
