"""A column of text, as SQL for DuckDB: what is a number, what is yes or no, and which level is it.

There is this one parser, DuckDB's cast to DOUBLE, with `true` for 1 and `false` for 0 in any case; where a yes or a no
is wanted there are more words for them. What comes from another engine comes as bytes: bytes that are no UTF-8 are no
number and no level, and as text they would be an error.
"""

import string
from collections.abc import Sequence

from noiseaware.check import LONGEST_CELL

YES = ("true", "t", "yes", "y", "1", "on")
NO = ("false", "f", "no", "n", "0", "off")

_FLOATING = ("float", "double")
_CASTABLE = ("boolean", *_FLOATING, "tinyint", "smallint", "integer", "bigint")
_CASTABLE += ("utinyint", "usmallint", "uinteger", "ubigint")
LARGEST_LEVEL = 2**53
"""Levels that are numbers are compared as doubles, exact up to here."""


def number(column: str, kind: str) -> str:
    """SQL for the column, of a DuckDB type, as DOUBLE; NULL where it is no number."""
    if kind in _CASTABLE:
        return f"CAST({_unseen(column, kind)} AS DOUBLE)"
    return _number(_text(column, kind))


def is_person(column: str, kind: str) -> str:
    """SQL for whether a cell says whose a record is: NULL and NaN do not."""
    there = f"{quoted(column)} IS NOT NULL"
    return f"{there} AND NOT isnan({_unseen(column, kind)})" if kind in _FLOATING else there


def _unseen(column: str, kind: str) -> str:
    """SQL for a column as it is, whose values are not told by its file.

    DuckDB answers a comparison, a cast and isnan of floats from the least and greatest value in a Parquet file's
    statistics, in which there is no NaN, so that one record decides of all. It does not see through `greatest`.
    """
    if kind not in _FLOATING:
        return quoted(column)
    return f"CASE WHEN {quoted(column)} IS NOT NULL THEN greatest({quoted(column)}, '-infinity'::{kind.upper()}) END"


def yes_or_no(column: str, kind: str, true: Sequence[str] = ()) -> str:
    """SQL for the column as DOUBLE: 1 and 0 for words, and numbers as they are; NULL where it is neither.

    With words that are `true`, 1 for these, and for the numbers that they are; NULL for nothing, spaces and NaN; and 0
    for all else.
    """
    if not true:
        if kind in _CASTABLE:
            return number(column, kind)
        text = _text(column, kind)
        return f"COALESCE({_number(text)}, CASE WHEN {_among(text, YES)} THEN 1 WHEN {_among(text, NO)} THEN 0 END)"
    text, value = _text(column, kind), number(column, kind)
    same = ", ".join(_number(literal(word)) for word in true)
    is_missing = f"{text} IS NULL OR {_folded(text)} = '' OR COALESCE(isnan({value}), FALSE)"
    return (
        f"CASE WHEN {is_missing} THEN NULL WHEN {_among(text, true)} OR {value} IN ({same}) THEN 1 ELSE 0 END::DOUBLE"
    )


def position(column: str, kind: str, places: Sequence[tuple[int, str | float]], other: int = 0) -> str:
    """SQL for the position of the column's level, as BIGINT, given positions and the texts or numbers that are there.

    What is not a level is at the first, or elsewhere.
    """
    if places and isinstance(places[0][1], str):
        values, cell = ", ".join(literal(str(text)) for _, text in places), _text(column, kind)
    else:
        values, cell = ", ".join(f"{value!r}::DOUBLE" for _, value in places), number(column, kind)
    found = f"{[place for place, _ in places]}[list_position([{values}], {cell})]"
    return f"CAST(COALESCE({found}, {other}) AS BIGINT)"


def level_number(level: str) -> float | None:
    """The number that a level is in a column of numbers; None if it is none, or too large to be told from others."""
    try:
        value = float(level)
    except ValueError:
        return None
    return value if abs(value) < LARGEST_LEVEL else None


def level_flag(level: str) -> int | None:
    """The value that a level is in a column of true and false, which an engine may have made of words in any case."""
    return {"true": 1, "false": 0}.get(level.strip().lower())


def folded(word: str) -> str:
    """A word as it is compared: without spaces around it, and with its ASCII letters in lower case."""
    return word.strip(string.whitespace).translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))


def _folded(text: str) -> str:
    """SQL for a text as it is compared; other letters keep their case, also where they come as bytes of Latin-1."""
    spaces = " || ".join(f"chr({ord(space)})" for space in string.whitespace)
    return f"translate(trim({text}, {spaces}), '{string.ascii_uppercase}', '{string.ascii_lowercase}')"


def _among(text: str, words: Sequence[str]) -> str:
    return f"{_folded(text)} IN ({', '.join(literal(folded(word)) for word in words)})"


def _number(text: str) -> str:
    """SQL for a text as DOUBLE; NULL where it is no number."""
    word = f"CASE lower(trim({text})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
    return f"COALESCE(TRY_CAST({text} AS DOUBLE), {word})"


def _text(column: str, kind: str) -> str:
    """SQL for the column as VARCHAR, NULL where it is too long; a JSON string without its quotes."""
    if kind == "blob":
        return f"CASE WHEN octet_length({quoted(column)}) <= {LONGEST_CELL} THEN TRY(decode({quoted(column)})) END"
    text = f"({quoted(column)} ->> '$')" if kind == "json" else f"CAST({_unseen(column, kind)} AS VARCHAR)"
    return f"CASE WHEN strlen({text}) <= {LONGEST_CELL} THEN {text} END" if kind in ("varchar", "json") else text


def quoted(column: str) -> str:
    """A name as SQL takes it."""
    return '"' + column.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL takes it."""
    return "'" + text.replace("'", "''") + "'"
