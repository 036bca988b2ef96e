"""Who counts as one, and how records are divided: a person with several records, and groups with public levels.

*A person.* With `unit`, records with the same value there are one person's. Of each person at most `max_records`
records are summed, drawn at random by a salt and the person's own records alone. So whatever the salt is, adding or
removing a person, with all records, leaves those of others that are summed as they were, and moves a sum by at most
that many times what one record can. Records without a unit are left out: they cannot be told apart.

*Groups.* A record is in one group at most, so adding or removing one changes one group's release: all groups together
cost what one costs. With `unit` a person may have records in several groups; then max_records bounds what a person
has in all of them together, and the groups' releases are one release of all their statistics, whose sensitivity is
the same: the costs of a person's records in different groups add up to that of max_records records in one.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noiseaware.check import check_levels, whole
from noiseaware.privacy import Neighbours, check_neighbours

Level = str | int
MOST_GROUPS = 10_000
_MOST_RECORDS_OF_ONE = 10**6


@dataclass(frozen=True)
class Unit:
    """The column that tells whose a record is, and how many records of one person are summed at most."""

    column: str
    max_records: int


@dataclass(frozen=True)
class Groups:
    """Columns that divide the records, and the public levels of each."""

    columns: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]

    @property
    def keys(self) -> list[tuple[Level, ...]]:
        """The levels of each group, the last column's changing fastest."""
        return list(itertools.product(*self.levels))


def unit_of(unit: object, max_records: object) -> Unit | None:
    """A unit from what a person wrote, or a refusal."""
    if unit is None:
        if max_records is not None:
            raise ValueError("max_records must be left out unless unit says whose a record is.")
        return None
    if not isinstance(unit, str) or not unit:
        raise ValueError(f"unit must name a column, got {unit!r}.")
    return Unit(unit, whole("max_records", max_records, 1, _MOST_RECORDS_OF_ONE))


def groups_of(by: object, levels: object) -> Groups | None:
    """Groups from what a person wrote, or a refusal: levels are given, never read from the table."""
    if by is None:
        if levels is not None:
            raise ValueError("levels must be left out unless by names the columns that they are of.")
        return None
    columns = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Sequence) else ()
    if not columns or not all(isinstance(c, str) and c for c in columns) or len(set(columns)) < len(columns):
        raise ValueError(f"by must name one or more columns, each once, got {by!r}.")
    if not isinstance(levels, Mapping) or set(levels) != set(columns):
        named = ", ".join(columns)
        raise ValueError(f"levels must give the public levels of {named}, and of nothing else, got {levels!r}.")
    found = Groups(columns, tuple(_checked_levels(column, levels[column]) for column in columns))
    if (count := math.prod(map(len, found.levels))) > MOST_GROUPS:
        raise ValueError(f"levels must make at most {MOST_GROUPS} groups, got {count}.")
    return found


def _checked_levels(column: str, levels: object) -> tuple[Level, ...]:
    listed = tuple(levels) if isinstance(levels, Sequence) and not isinstance(levels, str) else ()
    kinds = {type(level) for level in listed}
    if not listed or kinds not in ({str}, {int}) or len(set(listed)) < len(listed):
        raise ValueError(f"levels of {column} must be texts, or whole numbers, each once, got {levels!r}.")
    check_levels(listed)
    return listed


def neighbours_of(neighbours: str | None, unit: Unit | None, groups: Groups | None) -> Neighbours:
    """Who counts as a neighbour: where n cannot be public, only one who is added or removed."""
    if neighbours is None:
        return "replace" if unit is None and groups is None else "add_remove"
    check_neighbours(neighbours)
    if neighbours == "replace" and (unit or groups):
        which = "by" if unit is None else "unit"
        raise ValueError(f"neighbours must be 'add_remove' with {which}, which makes n private, got 'replace'.")
    return neighbours  # type: ignore[return-value]
