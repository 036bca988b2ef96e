"""What a missing cell of a table counts as, and which words are yes.

A cell is missing when it holds no value of its column's kind: where a number is wanted, NULL, NaN and text that is no
number, such as "> 60", "3,5" or a date; where a yes or a no is wanted, what is neither of them and no number; where a
level is wanted, whatever is no level. It counts as a public value, or its record is left out.

*Leaving out.* A record with a missing cell adds 0 to every sum, and to the number n of readable records, which is
released with noise of its own. Of two neighbours under "replace" one record may be readable and the other not. Then a
sum moves as if the record were removed; else it moves as if it were replaced, or not at all. So its sensitivity is the
greater of those of "replace" and of "add_remove": for bounds (10, 48) not 38 but 48. n moves by 1 at most, and by
max_records at most where a person has several records. Sums and n share the promise, whose costs add up.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from noiseaware.check import shown
from noiseaware.custodian.division import Level
from noiseaware.custodian.parser import NO, YES, folded
from noiseaware.evidence.json import Counted
from noiseaware.query import AbstractQuery, AbstractQuestion

LEAVE_OUT: Literal["leave_out"] = "leave_out"
_MOST_WORDS, _LONGEST_WORD = 100, 100


@dataclass(frozen=True)
class Cells:
    """What a missing cell of each column counts as, and the only words that are yes, where these were given.

    With `missing` None a missing cell is at the lower bound, dropped where records outside the bounds are, no, or the
    first level.
    """

    missing: tuple[float | Level, ...] | Literal["leave_out"] | None = None
    true: tuple[str, ...] = ()

    @property
    def leaves_out(self) -> bool:
        """True if records with a missing cell are left out."""
        return self.missing == LEAVE_OUT

    def values(self, query: AbstractQuery) -> Sequence[float | Level | None]:
        """Return the public value of a missing cell in each column; None where the rule of the query holds."""
        return [None] * len(query.columns) if self.missing is None or self.leaves_out else self.missing  # type: ignore[return-value]

    def counted(self, query: AbstractQuery) -> Counted | None:
        """Return what a missing cell counts as, with the rule of the query written out; None without columns."""
        if not query.columns:
            return None
        if self.leaves_out:
            return LEAVE_OUT
        if self.missing is None and query.outside == "drop":
            return "drop"
        return tuple(zip(query.columns, query.counted if self.missing is None else self.missing, strict=True))  # type: ignore[arg-type]

    def words(self, query: AbstractQuery) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the words that are yes, and those that are no; no words of no where all others are."""
        if not query.yes_or_no:
            return (), ()
        return (self.true, ()) if self.true else (YES, NO)


def cells_of(question: AbstractQuestion, missing: object, true: object) -> Cells:
    """Return how cells are read, from what a person wrote, or refuse it; nothing of the table is needed."""
    return Cells(_missing(question.query, missing), _true(question, true))


def _missing(query: AbstractQuery, missing: object) -> tuple[float | Level, ...] | Literal["leave_out"] | None:
    if missing is None:
        return None
    columns = query.columns
    if isinstance(missing, str) and missing == LEAVE_OUT:
        if LEAVE_OUT in (query.levels or ()):
            raise ValueError("levels must not hold 'leave_out' where missing='leave_out': name that level otherwise.")
        return LEAVE_OUT
    if not isinstance(missing, Mapping) and len(columns) > 1:
        each = ", ".join(f"{column!r}: …" for column in columns)
        raise ValueError(f"missing must be 'leave_out', or a value for each column {{{each}}}, got {shown(missing)}.")
    values: dict[Any, object] = dict(missing if isinstance(missing, Mapping) else dict.fromkeys(columns, missing))
    if set(values) != set(columns):
        told = shown(list(values))
        raise ValueError(f"missing must name each of {', '.join(columns)}, and nothing else, got {told}.")
    return tuple(_value(query, column, values[column]) for column in columns)


def _value(query: AbstractQuery, column: str, value: object) -> float | Level:
    """Return a value that a cell of the column could have."""
    if (levels := query.levels) is not None:
        if isinstance(value, bool) or value not in levels:
            told = shown(list(levels))
            raise ValueError(f"missing must be 'leave_out' or one of the levels {told}, got {shown(value)}.")
        return levels[levels.index(value)]
    if column in query.yes_or_no:
        word = folded(value) if isinstance(value, str) else value
        if word not in (*YES, *NO, 0, 1):
            raise ValueError(f"missing must be 'leave_out', yes or no for {column}, got {shown(value)}.")
        return 1 if word in (*YES, 1) else 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"missing must be 'leave_out' or a finite number for {column}, got {shown(value)}.")
    return float(value)


def _true(question: AbstractQuestion, true: object) -> tuple[str, ...]:
    if true is None:
        return ()
    if not question.query.yes_or_no:
        raise ValueError(f"true must be left out for {question.phrase}, which has no column of yes or no.")
    words = (true,) if isinstance(true, str) else tuple(true) if isinstance(true, Sequence) else ()
    if not 0 < len(words) <= _MOST_WORDS or not all(isinstance(word, str) and folded(word) for word in words):
        raise ValueError(f"true must be words that are yes, at most {_MOST_WORDS}, got {shown(true)}.")
    for word in words:
        if len(word) > _LONGEST_WORD or not word.isprintable():
            raise ValueError(f"true must be words of at most {_LONGEST_WORD} printable letters, got {shown(word)}.")
    return words
