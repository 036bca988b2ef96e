"""Text files as bytes: how many are read at once, how many a record may have, and those that are no UTF-8."""

import re

BLOCK = 2**20
"""Bytes that are read at once; even, so that quotes that fill it close nothing."""
MARK = b"\xef\xbb\xbf"
"""The byte-order mark that a file of UTF-8 may begin with."""
GROWTH = 3
"""Bytes that one byte can become: half of two quotes, or U+FFFD for what is no UTF-8."""
LONGEST_RECORD = 2**24
"""The most bytes that DuckDB is given in one record, of CSV or JSON, which is as many as it reads of one.

A text may have LONGEST_CELL at most to be a number or a level (check.py): others in its record are read all the same.
"""


def past(pattern: re.Pattern[bytes], data: bytes, place: int = 0) -> int:
    """Return where a match at a place ends, of a pattern that always has one there, if only of nothing."""
    found = pattern.match(data, place)
    assert found is not None
    return found.end()


def fits(size: int, room: int) -> bool:
    """True if so many bytes of a file cannot become more than there is room for."""
    return GROWTH * size <= room


def is_utf8(piece: bytes) -> bool:
    """True if the bytes are UTF-8."""
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def mended(piece: bytes) -> bytes:
    """Return the bytes as UTF-8, with U+FFFD for what is none."""
    return piece if is_utf8(piece) else piece.decode("utf-8", "replace").encode()
