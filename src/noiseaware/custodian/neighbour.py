"""The worst neighbours that could be made up for a release, and what its tables would sum them to.

    a record         for another one, or for none, of those whose statistics differ most; where a record with a missing
                     cell is left out, such a one too
    a person         with one record more than are summed, all the furthest, in one group or in two, or not there
    private bounds   few or many records at few places, and one that goes from the lowest end to the highest, or comes:
                     of a list of such pairs, the one whose choices of bounds and sums after them are told apart best

Everything is summed as a release does it. Where bounds are chosen privately, the law of the choice is worked out from
the counts that the release would make; the choices that are likely are looked into, and all others are one event.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from noiseaware.custodian.grid import Grid
from noiseaware.custodian.private_bounds import Selection
from noiseaware.custodian.release import summed
from noiseaware.custodian.table import Table
from noiseaware.custodian.terms import Terms
from noiseaware.query import AbstractQuery

_FEW_COLUMNS = 2  # all rows of their ends and middles are tried in pairs; of more columns there are too many
_GROUPS = 2  # that a person is in, besides being in one
_CHOICES = 64  # of bounds that are looked into, the likeliest
_SIZES = (1, 20, 100, 400)  # of tables whose bounds are chosen
_OFF = (-0.1, -0.03, 0.0)  # from a quantile, in parts of all records: where about half of the choices are below


_NO_WORD = "-" * 101  # longer than a word that is yes may be
_SEEN = 0.2  # an event of choices is worth looking for if it is so likely


class Noisy(NamedTuple):
    """Numbers that get the noise of one grid, in its steps, for the one table and for the other."""

    grid: Grid
    totals: tuple[list[int], list[int]]


class Outcome(NamedTuple):
    """What a release may be before its noise, how likely it is for either table, and what is noised then."""

    shares: tuple[float, float]
    noisy: list[Noisy]

    @property
    def log_ratio(self) -> float:
        """How much likelier, in logs, it is for the first table."""
        return math.log(self.shares[0] / self.shares[1])


@dataclass(frozen=True)
class Pair:
    """Two neighbours: the records that differ, in words, and what each of them is before its noise."""

    rows: tuple[tuple, tuple]
    words: str
    outcomes: list[Outcome]


def worst(terms: Terms) -> Pair:
    """The neighbours that are told apart best."""
    if terms.selection is not None:
        return _of_choice(terms, terms.selection)
    rows = _furthest(terms)
    if terms.agreement.neighbours == "replace":
        tables = [_frame(terms, row, 1, 1) for row in rows]
        return Pair(rows, "one record for another", [Outcome((1.0, 1.0), _noisy(terms, tables))])
    copies = 1 if terms.unit is None else terms.agreement.max_records + 1
    groups = 1 if terms.groups is None or terms.unit is None else min(_GROUPS, len(terms.groups.keys))
    found = []
    for spread in range(1, groups + 1):
        there = _frame(terms, rows[1], copies, spread)
        found.append(_noisy(terms, [there.iloc[:0], there]))
    return Pair(rows, _words(copies, terms), [Outcome((1.0, 1.0), max(found, key=_apart))])


def _words(copies: int, terms: Terms) -> str:
    if terms.unit is None:
        return "one record more"
    return f"one person more, with {copies} records of whom {terms.agreement.max_records} count"


def _frame(terms: Terms, row: tuple, copies: int, groups: int) -> pd.DataFrame:
    """Copies of a record, all of one person, in each of so many groups."""
    columns = _cells(terms, row)
    keys = [()] if terms.groups is None else terms.groups.keys[:groups]
    named = () if terms.groups is None else terms.groups.columns
    person = {} if terms.unit is None or terms.unit.column in columns else {terms.unit.column: 1}
    frame = pd.DataFrame([columns | person | dict(zip(named, key, strict=True)) for key in keys])
    return frame.loc[frame.index.repeat(copies)].reset_index(drop=True)


def _cells(terms: Terms, row: Sequence[Any]) -> dict[str, Any]:
    """A record as its columns hold it: by words, where only some words are yes."""
    cells = dict(zip(terms.query.columns, row, strict=True))
    for column in terms.query.yes_or_no if terms.cells.true else ():
        if cells[column] is not None:
            cells[column] = terms.cells.true[0] if cells[column] >= 1 else _NO_WORD
    return cells


def _noisy(terms: Terms, tables: Sequence[pd.DataFrame]) -> list[Noisy]:
    """What is noised of two tables, of every group in which they differ."""
    n_grid = terms.n_grid
    sides = [summed(Table(table), terms) for table in tables]
    found = []
    for (first, n), (second, other) in zip(*sides, strict=True):
        if first != second:
            found.append(Noisy(_grid(terms), (first, second)))
        if n_grid is not None and n != other:
            found.append(Noisy(n_grid, ([n], [other])))
    return found


def _grid(terms: Terms) -> Grid:
    assert terms.grid is not None  # bounds are known by now
    return terms.grid


def _apart(noisy: Sequence[Noisy]) -> float:
    """The loss of the noise: |s − s'| in scales, or half its square in standard deviations."""
    total = 0.0
    for grid, totals in noisy:
        first, second = (np.array(side, dtype=float) for side in totals)
        total += float(grid.mechanism.exponent(first - second).sum())
    return total


# ---- one record ----------------------------------------------------------------------------------------------------


def _furthest(terms: Terms) -> tuple[tuple, tuple]:
    """Of records at the ends, the middle and outside of the bounds, and of one that is left out where some are, the two
    that are told apart best; or the empty table and the one record that is."""
    grid, rows = _grid(terms), _rows(terms.query)
    if terms.cells.leaves_out:
        rows.append((None,) * len(terms.query.columns))
    if terms.agreement.neighbours == "add_remove":
        rows.insert(0, ())
    totals = [np.array(_totals(terms, row), dtype=float) for row in rows]
    n_grid = terms.n_grid

    def told(pair: tuple[int, int]) -> float:
        moved = totals[pair[0]] - totals[pair[1]]
        of_n = 0.0 if n_grid is None else n_grid.mechanism.exponent(moved[-1])
        return grid.mechanism.exponent(moved[:-1]).sum() + of_n

    pairs = itertools.combinations(range(len(rows)), 2)
    pairs = pairs if terms.agreement.neighbours == "replace" else [(0, other) for other in range(1, len(rows))]
    first, second = max(pairs, key=told)
    return rows[first], rows[second]


def _rows(query: AbstractQuery) -> list[tuple]:
    """The records to try: of few columns, ends and middles in all ways; of more, those that proofs say are worst.

    Within ±1, the sums of d columns and of their products are moved furthest from (1, …, 1) to (−1, …, −1)/(d + 1) in
    all, and in squares to a corner that agrees with it in ⌊d/2⌋ columns; a record that comes or goes moves them
    furthest at (1, …, 1) (query/moments.py). Without the square of the last column, it is (0, …, 0, −1) in all.
    """
    if len(query.columns) <= _FEW_COLUMNS:
        return list(itertools.product(*_ends(query)))
    d, agree = len(query.columns), len(query.columns) // 2
    scaled = [[1.0] * d, [-1 / (d + 1)] * d, [1.0] * agree + [-1.0] * (d - agree), [0.0] * (d - 1) + [-1.0]]
    scaled += [[0.0] * d, [-1.0] * d, [3.0] * d]  # and the middle, the other end, and beyond
    intervals = query.intervals or ()
    pairs = [list(zip(row, intervals, strict=True)) for row in scaled]
    return [tuple((1 - u) / 2 * low + (1 + u) / 2 * high for u, (low, high) in row) for row in pairs]


def _ends(query: AbstractQuery) -> list[list[Any]]:
    """For each column, the records to try."""
    if query.levels is not None:
        return [list(query.levels)]
    intervals = query.intervals or ()
    d = len(intervals)
    parts = (0.0, 0.5, (1 - 1 / (d + 1)) / 2, (1 + 1 / (d + 1)) / 2, 1.0)
    ends = [[low + part * (high - low) for part in parts] for low, high in intervals]
    ends = [[*own, own[-1] + 1, own[0] - 1] for own in ends]
    return [sorted({math.floor(x) for x in own}) if query.is_whole else own for own in ends]


def _totals(terms: Terms, row: Sequence[Any]) -> list[int]:
    """The sums and n of a table of one record, or of none."""
    values = row or _rows(terms.query)[0]
    frame = pd.DataFrame({column: [value] for column, value in _cells(terms, values).items()})
    sums, n = Table(frame if row else frame[:0]).sums(terms.query, _grid(terms).exponent, least=0, cells=terms.cells)
    return [*sums, n]


# ---- bounds that are chosen ---------------------------------------------------------------------------------------


class _Made(NamedTuple):
    """A table of few places: records that both tables have, and of the one that differs, what it was and what it is."""

    values: tuple[float, ...]
    old: float | None
    new: float

    def sides(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The records of the one table and of the other; of a person, one record stands for all of them."""
        return (*self.values, *(() if self.old is None else (self.old,))), (*self.values, self.new)


def _of_choice(terms: Terms, selection: Selection) -> Pair:
    """The pair of tables whose choices of bounds, with the noise after them, are told apart best."""
    tried = [(made, *_promising(terms, selection, made)) for made in _tables(selection)]
    made, _, is_turned = max(tried, key=lambda one: one[1])
    frames = [_people(terms, side, is_new) for side, is_new in zip(made.sides(), (False, True), strict=True)]
    column = terms.query.columns[0]
    laws = []
    for frame in frames:
        counts = Table(frame).counts(column, selection.candidates, least=terms.agreement.least, unit=terms.unit)
        laws.append(selection.law(*counts))
    if is_turned:
        frames, laws = frames[::-1], laws[::-1]
    rows = tuple(() if x is None else (x,) for x in (made.old, made.new))
    words = f"{_choice_words(made, terms)} beside {len(made.values)} others, whose bounds are chosen"
    return Pair(rows, words, _outcomes(terms, frames, laws))  # type: ignore[arg-type]


def _choice_words(made: _Made, terms: Terms) -> str:
    return "one record for another" if made.old is not None else _words(terms.agreement.max_records + 1, terms)


def _outcomes(terms: Terms, frames: Sequence, laws: Sequence[dict]) -> list[Outcome]:
    """The likeliest bounds, each with what is noised within them, and all others together."""
    first, second = laws
    likely = sorted(first, key=lambda ends: first[ends] + second[ends], reverse=True)[:_CHOICES]
    found = [Outcome((first[ends], second[ends]), _noisy(terms.within(ends), frames)) for ends in likely]
    left = tuple(max(1 - sum(law[ends] for ends in likely), 0.0) for law in laws)
    return [*found, Outcome(left, [])] if min(left) > 1e-9 else found  # type: ignore[arg-type]


def _people(terms: Terms, values: tuple[float, ...], is_new: bool) -> pd.DataFrame:
    """A record for each, each of a person of its own; of whom is new, more records than count."""
    frame = pd.DataFrame({terms.query.columns[0]: np.array(values, dtype=float)})
    if terms.unit is None:
        return frame
    if terms.unit.column not in frame:
        frame[terms.unit.column] = np.arange(len(frame))
    last = len(frame) - 1
    places = [*range(last), *([last] * (terms.agreement.max_records + 1 if is_new else 1))] if len(frame) else []
    return frame.iloc[places].reset_index(drop=True)


def _tables(selection: Selection) -> list[_Made]:
    """Tables to try: records at two places, and one from end to end, or from one place to the other, or there."""
    candidates, is_replaced = selection.candidates, selection.neighbours == "replace"
    is_signed = len(selection.quantiles) > 1
    sizes = [c for c in candidates if c > 0]
    found = []
    for place, size in itertools.product((sizes[0], sizes[len(sizes) // 3], sizes[2 * len(sizes) // 3]), _SIZES):
        low, most = -place if is_signed else 0.0, size - 1
        shares = [0.0, 0.5, 1.0, *(float(q) + off for q in selection.quantiles for off in _OFF)]
        for below in sorted({min(max(round(share * most), 0), most) for share in shares}):
            values = (low,) * below + (place,) * (most - below)
            for old, new in ((candidates[0] - 1 if is_signed else 0.0, 2 * candidates[-1]), (low, place)):
                found += (
                    [_Made(values, old, new)] if is_replaced else [_Made(values, None, new), _Made(values, None, old)]
                )
    return found


def _promising(terms: Terms, selection: Selection, made: _Made) -> tuple[float, bool]:
    """What a likely event shows of ε, with the most that the noise loses, or the mean loss; and if D is the second."""
    times = [np.ones(len(side)) for side in made.sides()]
    times[1][-1] = terms.agreement.max_records
    sides = list(zip(map(np.array, made.sides()), times, strict=True))
    laws = []
    for x, count in sides:
        counts = [int(total) for total in (count[:, None] * (x[:, None] <= np.array(selection.candidates))).sum(axis=0)]
        laws.append(selection.law(counts, int(count.sum())))
    forth, back = (_loss(terms, sides, *pair) for pair in (laws, laws[::-1]))
    return max(forth, back), back > forth


def _loss(terms: Terms, sides: Sequence[tuple], first: dict, second: dict) -> float:
    likely = sorted(first, key=lambda ends: first[ends], reverse=True)[:_CHOICES]
    likely = [ends for ends in likely if min(first[ends], second[ends]) > 0]
    share = np.array([first[ends] for ends in likely])
    moved = np.array([_moved(terms, sides, ends) for ends in likely])
    noise, chosen = terms.agreement.of_statistics, np.log(share / [second[ends] for ends in likely])
    loss = chosen + noise.loss(moved)
    if not noise.is_worst_case:
        return float(share @ loss)
    order = np.argsort(-loss)
    seen = np.cumsum(share[order])
    return float(loss[order[np.searchsorted(seen, _SEEN)]]) if seen[-1] > _SEEN else 0.0


def _moved(terms: Terms, sides: Sequence[tuple], ends: tuple[float, float]) -> float:
    """How far the sum within these bounds is moved, as a part of how far it can be."""
    low, high = ends
    if terms.query.outside == "clamp":
        sums = [count @ np.clip(x, low, high) for x, count in sides]
    else:
        sums = [count @ np.where((x >= low) & (x <= high), x, 0.0) for x, count in sides]
        low, high = min(low, 0.0), max(high, 0.0)
    most = high - low if terms.agreement.neighbours == "replace" else max(abs(low), abs(high))
    return abs(sums[0] - sums[1]) / (terms.agreement.max_records * most)
