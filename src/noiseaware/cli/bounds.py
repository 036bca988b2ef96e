"""`--bounds LOW HIGH` or `--bounds private`.

An option takes a fixed number of words, so the one word is doubled before the words are parsed.
"""

from collections.abc import Sequence

PRIVATE = "private"


def doubled(words: Sequence[str]) -> list[str]:
    """The words of a command, with `--bounds private` (or `--bounds=private`) as two words."""
    out: list[str] = []
    for word in words:
        is_value = bool(out) and out[-1] == "--bounds" and word == PRIVATE
        out += [word, PRIVATE] if is_value or word == f"--bounds={PRIVATE}" else [word]
    return out


def bounds(words: tuple[str, str] | None) -> tuple[float, float] | str | None:
    """Two numbers, or the word private."""
    if words is None:
        return None
    if words == (PRIVATE, PRIVATE):
        return PRIVATE
    try:
        low, high = (float(word) for word in words)
    except ValueError:
        raise ValueError(f"--bounds must be two numbers, or the word private, got {' '.join(words)}.") from None
    return low, high
