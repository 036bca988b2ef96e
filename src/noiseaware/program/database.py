"""Databases by what is public of them: the kind of a record, its levels or bounds, and who counts as a neighbour.

    replace       one of n records becomes another        n is public
    add_remove    one record comes or goes                n is as private as the records

What a program can ask of a database is its size, its counts or its sum, and `map`, which gives each record to a
mechanism. Each counted level, or the sum, is a statistic; a neighbour moves it by what one record adds, and by no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from noiseaware.privacy import Neighbours, Number, check_neighbours
from noiseaware.program.escape import Escape, Guarded, here
from noiseaware.program.term import Draw, Record, Size, Statistic, Term, constant, term

if TYPE_CHECKING:
    from noiseaware.program.mechanism import Mechanism, Mechanisms

Level = str | int | bool


@dataclass(frozen=True)
class Records:
    """What is public of a database: levels, or bounds of a number (None: any number at all)."""

    kind: str
    adjacency: Neighbours
    column: str | None = None
    levels: tuple[Level, ...] = ()
    bounds: tuple[Fraction, Fraction] | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.adjacency)
        if self.size is not None and self.adjacency == "add_remove":
            raise ValueError(f"size must be left out under add_remove, where it is private, got {self.size}.")
        if self.size is not None and (isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1):
            raise ValueError(f"size must be a whole number of at least 1, got {self.size}.")

    @property
    def num_statistics(self) -> int:
        return len(self.levels) or 1

    def contribution(self, record: Any) -> tuple[Fraction, ...]:
        """What one record adds to the statistics; a record of levels is given by its place."""
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
    if len(set(levels)) != len(levels) or len(levels) < 2:
        raise ValueError(f"levels must be at least two, each once, got {list(levels)}.")
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
    whole = _bounds(bounds)
    if whole is not None and (whole[0] < 0 or any(bound.denominator != 1 for bound in whole)):
        raise ValueError(f"bounds must be whole numbers of at least 0 for counts, got {bounds}.")
    return Records("counts", adjacency, column, bounds=whole, size=size)


def _bounds(bounds: tuple[Number, Number] | None) -> tuple[Fraction, Fraction] | None:
    if bounds is None:
        return None
    try:
        low, high = (Fraction(str(bound)) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be two finite numbers (low, high), got {bounds}.") from None
    if low >= high:
        raise ValueError(f"bounds must have low < high, got {bounds}.")
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Database(Guarded):
    """The database as a program sees it: a symbol. After `map` it holds what mechanisms gave, and is public."""

    described: ClassVar[str] = "a database"  # type: ignore[misc]
    offers: ClassVar[tuple[str, ...]] = ("size", "count", "counts", "sum", "map")  # type: ignore[misc]
    _records: Records
    _mechanisms: "Mechanisms"
    _mapped: "Mapped | None" = None

    @property
    def size(self) -> Term:
        """The number of records: public under replace, private under add_remove."""
        known = self._records.size
        return Size(self) if known is None else term(known)

    def count(self) -> Term:
        """How many records are true."""
        if self._records.kind != "booleans":
            raise Escape("count is of Booleans; use counts of Categories, or sum of numbers.", here())
        return Statistic(self, 1)

    def counts(self) -> tuple[Term, ...]:
        """How many records there are of each level, in the order of the levels."""
        if not self._records.levels:
            raise Escape("counts is of Categories and Booleans; use sum of numbers.", here())
        return tuple(Statistic(self, place) for place in range(len(self._records.levels)))

    def sum(self) -> Term:
        """The sum of the records, each within the bounds."""
        return self.count() if self._records.kind == "booleans" else self._total()

    def _total(self) -> Term:
        if self._records.levels:
            raise Escape("sum is of numbers; use counts of Categories.", here())
        return Statistic(self, 0)

    def map(self, function: Callable[[Term], Any]) -> "Database":
        """What a function, through mechanisms of p, makes of each record: a database that is public."""
        line, record = here(), Record(self)
        with self._mechanisms.each_record(record) as mechanisms:
            result = function(record)
        if not isinstance(result, Draw) or not any(result.mechanism is own for own in mechanisms):
            raise Escape("map must be given a function that returns what a mechanism of p made of its record.", line)
        mapped = Mapped(self, record, tuple(mechanisms), result, line)
        self._mechanisms.maps.append(mapped)
        return Database(_told(result.mechanism, self._records), self._mechanisms, mapped)

    def is_private(self, node: Term) -> bool:
        """Whether a statistic, the size or a record may differ between neighbours."""
        if self._mapped is not None:
            return False
        return self._records.adjacency == "add_remove" if isinstance(node, Size) else True

    @property
    def mechanisms(self) -> "Mechanisms":
        """The mechanisms of the program that it is traced for."""
        return self._mechanisms

    @property
    def records(self) -> Records:
        """What is public of it."""
        return self._records

    @property
    def mapped(self) -> "Mapped | None":
        """Where it comes from, if it is public."""
        return self._mapped


@dataclass(frozen=True, eq=False)
class Mapped:
    """Mechanisms run on each record, and which of their draws is kept."""

    source: Database
    record: Record
    mechanisms: "tuple[Mechanism, ...]"
    result: Draw
    line: str = field(default="")


def _told(mechanism: "Mechanism", records: Records) -> Records:
    """What is public of the noisy records: levels if the candidates were the levels, else any number."""
    candidates = [constant(c) for c in getattr(mechanism, "candidates", ()) if isinstance(c, Term)]
    if candidates and records.levels and candidates == [Fraction(place) for place in range(len(records.levels))]:
        return records
    return Records("reals", records.adjacency, size=records.size)
