"""`--bounds LOW HIGH` or `--bounds private`; of several columns, `--column-bounds "age=0:100, bmi=10:60"`.

An option takes a fixed number of words, so the one word is doubled before the words are parsed.
"""

import itertools
import re
from collections.abc import Sequence

PRIVATE = "private"
_OPTION = re.compile(r"-(?![\d.]|inf|nan)")  # and not a number that is negative
_COLUMN = re.compile(r"\s*(.+?)\s*=\s*([^,:=]+):([^,:=]+)(?:,|$)")  # a name may hold anything, = and commas too


def doubled(words: Sequence[str]) -> list[str]:
    """The words of a command, with `--bounds private` (or `--bounds=private`) as two words."""
    _check_two(words)
    out: list[str] = []
    for word in words:
        is_value = bool(out) and out[-1] == "--bounds" and word == PRIVATE
        out += [word, PRIVATE] if is_value or word == f"--bounds={PRIVATE}" else [word]
    return out


def _check_two(words: Sequence[str]) -> None:
    """Refuse `--bounds 0` and `--bounds=0,48`, of which the next option would be taken for the second number."""
    for at, word in enumerate(words):
        name, _, joined = word.partition("=")
        given = [joined] * bool(joined) + [*words[at + 1 :], "--"][: 2 - bool(joined)]
        numbers = list(itertools.takewhile(lambda word: not _OPTION.match(word), given))
        if name == "--bounds" and given[0] != PRIVATE and len(numbers) < len(given):
            got = " ".join(numbers) or "none"
            raise ValueError(f"--bounds must be two numbers, such as --bounds 0 48, got {got}.")


def bounds(words: tuple[str, str] | tuple[float, float] | None) -> tuple[float, float] | str | None:
    """Two numbers, or the word private."""
    if words is None:
        return None
    if words == (PRIVATE, PRIVATE):
        return PRIVATE
    try:
        low, high = (float(word) for word in words)
    except ValueError:
        got = " ".join(map(str, words))
        raise ValueError(f"--bounds must be two numbers, or the word private, got {got}.") from None
    return low, high


def column_bounds(texts: Sequence[str] | None) -> dict[str, tuple[float, float]] | None:
    """Bounds by column, from one or more texts such as age=0:100, bmi=10:60."""
    if not texts:
        return None
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        at = 0
        while at < len(text):
            item = _COLUMN.match(text, at)
            if item is None:
                raise ValueError(f'--column-bounds must look like "age=0:100, bmi=10:60", got {text!r}.')
            if item[1] in found:
                raise ValueError(f"--column-bounds must name each column once, got {item[1]!r} twice.")
            found[item[1]] = _pair(text, item[2], item[3])
            at = item.end()
    return found


def _pair(text: str, *words: str) -> tuple[float, float]:
    try:
        low, high = (float(word) for word in words)
    except ValueError:
        raise ValueError(f"--column-bounds must have two numbers for each column, got {text!r}.") from None
    return low, high


def agreed(words: tuple[str, str] | tuple[float, float] | None, texts: Sequence[str] | None):
    """Read --bounds or --column-bounds; refuse both."""
    if words is not None and texts:
        raise ValueError("--bounds and --column-bounds must not be given together.")
    return column_bounds(texts) if texts else bounds(words)


def columns(texts: Sequence[str] | None, what: str = "columns") -> list[str] | None:
    """Names of columns, or other names, between commas, from one or more texts."""
    if not texts:
        return None
    names = [name.strip() for text in texts for name in text.split(",")]
    if "" in names:
        raise ValueError(f"{what} must be names between commas, got {', '.join(texts)!r}.")
    return names
