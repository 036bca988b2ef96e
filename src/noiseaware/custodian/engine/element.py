"""JSON records, one a line or as the elements of one array, as DuckDB reads them safely, whatever one record holds.

An array's elements are told apart by its strings and brackets alone, and each becomes a line. DuckDB reads around a
line that is no JSON. Half a pair of surrogates, which a string may hold, becomes U+FFFD, and so do bytes that are no
UTF-8. A record that is longer than DuckDB can read is one without any value.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from noiseaware.custodian.engine import octets

_EMPTY = b"null"
_DEPTH = 6  # of brackets that are matched at once; others are counted


def _balanced(depth: int) -> bytes:
    """A pattern of a bracket and all that it holds, up to a depth, of whichever kinds."""
    inner = b"|" + _balanced(depth - 1) if depth > 1 else b""
    return rb'[{\[](?:[^{}\[\]"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"%b)*+[}\]]' % inner


_AFTER = rb"[ \t\r\n]*+"
_ONE = re.compile(rb"%b(?=%b[,\]])" % (_balanced(_DEPTH), _AFTER), re.DOTALL)
_MANY = re.compile(rb"(?:%b%b,%b)*+" % (_balanced(_DEPTH), _AFTER, _AFTER), re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*+")
_PART = re.compile(rb'[^"{}\[\],]++|%b|[{}\[\],"]' % _balanced(_DEPTH), re.DOTALL)
_PART_OF_TEXT = re.compile(rb'[^"\\]++|\\.|"', re.DOTALL)
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


def is_plain(path: Path) -> bool:
    """True if DuckDB reads each line of a file of lines, and none of them loses a value to a single character."""
    with path.open("rb") as file:
        is_marked = file.read(len(octets.MARK)) == octets.MARK
        file.seek(0)
        return not is_marked and all(
            is_kept and _HALVES.search(some) is None and octets.is_utf8(some) for some, is_kept in _lines(file)
        )


def lines(path: Path) -> Iterator[bytes]:
    """Yield a file of one record a line, in pieces of whole lines."""
    with path.open("rb") as file:
        if file.read(len(octets.MARK)) != octets.MARK:
            file.seek(0)
        for some, _ in _lines(file):
            yield _harmless(some)


def is_array(path: Path) -> bool:
    """True if the file is one array, as far as its strings and brackets tell."""
    with path.open("rb") as file:
        return _is_array(file)


def is_lines(path: Path) -> bool:
    """True of a file that is no array if its first line is no beginning of one: then it is one record a line."""
    with path.open("rb") as file:
        start = file.read(octets.LONGEST_RECORD).removeprefix(octets.MARK).lstrip()
    line = start.partition(b"\n")[0]
    return not line.startswith(b"[") or _is_array(io.BytesIO(line))


def _is_array(file: BinaryIO) -> bool:
    try:
        for _ in _elements(file, only_last=True):
            pass
    except ValueError:
        return False
    return True


def array_lines(path: Path) -> Iterator[bytes]:
    """Yield the elements of a file of one array, in pieces of whole lines; ValueError if it is none."""
    with path.open("rb") as file:
        for one in _elements(file):
            yield _harmless(one.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines, as many at once as a block has, and whether they are as the file has them."""
    rest, is_kept = b"", True
    while block := file.read(octets.BLOCK):
        line, feed, others = block.partition(b"\n")
        is_kept = is_kept and _is_short(len(rest) + len(line))
        rest = rest + line if is_kept else _EMPTY
        if feed:
            whole, _, after = others.rpartition(b"\n")
            yield rest + feed + (whole + feed if whole else b""), is_kept
            rest, is_kept = after, True
    if rest:
        yield rest + b"\n", is_kept


def _harmless(text: bytes) -> bytes:
    if _HALVES.search(text) is not None:
        text = _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)
    return octets.mended(text)


def _is_short(size: int) -> bool:
    return octets.fits(size, octets.LONGEST_RECORD)


def _elements(file: BinaryIO, *, only_last: bool = False) -> Iterator[bytes]:
    """Yield the elements of an array, or only the last of those that can be passed over at once."""
    text = _Text(file)
    is_one = text.solid() == b"["
    text.place += 1
    if text.solid() == b"]":
        text.place += 1
    else:
        separator = b"," if is_one else b""
        while separator == b",":
            if only_last:
                text.pass_over()
            yield text.element()
            separator = text.solid()
            text.place += 1
    if not is_one or text.solid():
        raise ValueError("a file of a JSON array must hold one array and nothing else.")


class _Text:
    """A file of JSON text, read a block at a time, and a place in it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._data, self.place = file, file.read(octets.BLOCK), 0
        if self._data.startswith(octets.MARK):
            self.place = len(octets.MARK)

    def solid(self) -> bytes:
        """Go to the next character that is no space, and return it; nothing at the end of the file."""
        while True:
            self.place = octets.past(_SPACE, self._data, self.place)
            if self.place < len(self._data) or not self._more():
                return self._data[self.place : self.place + 1]

    def pass_over(self) -> None:
        """Go past all the elements that are whole in this block, but for the last one."""
        self.solid()
        self.place = octets.past(_MANY, self._data, self.place)

    def element(self) -> bytes:
        """Return the element that begins here, or nothing's text for one that is too long, and go past it."""
        self.solid()
        if (one := _ONE.match(self._data, self.place)) is not None:
            self.place = one.end()
            return one[0] if _is_short(len(one[0])) else _EMPTY
        parts, size = [], 0
        for part in self._parts():
            size += len(part)
            if _is_short(size):
                parts.append(part)
        if not b"".join(parts).strip():
            raise ValueError("a JSON array must have an element between two commas.")
        return b"".join(parts) if _is_short(size) else _EMPTY

    def _parts(self) -> Iterator[bytes]:
        """Yield what an element is made of, up to the comma or the bracket that ends it."""
        depth, is_text = 0, False
        while True:
            found = (_PART_OF_TEXT if is_text else _PART).match(self._data, self.place)
            if found is None:
                if not self._more():
                    raise ValueError("a JSON array must end.")
                continue
            part = found[0]
            if not is_text and depth == 0 and part in (b",", b"]"):
                return
            is_text ^= part == b'"'
            depth += 0 if is_text else (part in (b"{", b"[")) - (part in (b"}", b"]"))
            self.place = found.end()
            yield part

    def _more(self) -> bool:
        """Read on, and forget what lies before the place; False at the end of the file."""
        block = self._file.read(octets.BLOCK)
        self._data, self.place = self._data[self.place :] + block, 0
        return bool(block)
