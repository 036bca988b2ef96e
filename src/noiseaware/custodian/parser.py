"""A column of text, as SQL for DuckDB: what is a number, and which level is it.

There is this one parser, DuckDB's cast to DOUBLE, with `true` for 1 and `false` for 0 in any case. What comes from
another engine comes as bytes: bytes that are no UTF-8 are no number and no level, and as text they would be an error.
"""

from collections.abc import Sequence

from noiseaware.given import LONGEST_CELL

_CASTABLE = ("boolean", "float", "double", "tinyint", "smallint", "integer", "bigint")
_CASTABLE += ("utinyint", "usmallint", "uinteger", "ubigint")
LARGEST_LEVEL = 2**53
"""Levels that are numbers are compared as doubles, exact up to here."""


def number(column: str, kind: str) -> str:
    """SQL for the column, of a DuckDB type, as DOUBLE; NULL where it is no number."""
    if kind in _CASTABLE:
        return f"CAST({quoted(column)} AS DOUBLE)"
    text = _text(column, kind)
    word = f"CASE lower(trim({text})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
    return f"COALESCE(TRY_CAST({text} AS DOUBLE), {word})"


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


def _text(column: str, kind: str) -> str:
    """SQL for the column as VARCHAR, NULL where it is too long; a JSON string without its quotes."""
    if kind == "blob":
        return f"CASE WHEN octet_length({quoted(column)}) <= {LONGEST_CELL} THEN TRY(decode({quoted(column)})) END"
    text = f"({quoted(column)} ->> '$')" if kind == "json" else f"CAST({quoted(column)} AS VARCHAR)"
    return f"CASE WHEN strlen({text}) <= {LONGEST_CELL} THEN {text} END" if kind in ("varchar", "json") else text


def quoted(column: str) -> str:
    """A name as SQL takes it."""
    return '"' + column.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL takes it."""
    return "'" + text.replace("'", "''") + "'"
