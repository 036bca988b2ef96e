"""Rows of a CSV file, and the file as DuckDB reads it safely, whatever bytes one record holds.

A row ends at a line feed outside quotes; carriage returns before it belong to the end. A cell is quoted if it begins
with a quote, doubles each quote within, and closes with a quote before a delimiter or the end of the row, but for
spaces; in any other cell quotes and carriage returns are characters like all others. DuckDB takes a lone carriage
return for the end of a row, a quote that is never closed for one that goes on, and a quoted cell after spaces, or past
the last column, for another than it is; and it holds cells in memory by the thousand. So rows with any of these, or
with a cell too long to be a number or a level, are rewritten with each cell in quotes; all others stay as they are.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.engine import octets

_PEEK = 2**12
_SPACES, _RETURNS = rb" {0,1000}+", rb"\r{0,1000}+"  # about a quoted cell; with more of them it is none
_OPENING, _QUOTES = re.compile(_SPACES + rb'"'), re.compile(rb'"++')


@dataclass(frozen=True)
class Header:
    """The names in the first row, the delimiter that splits its first line most, and where the records begin."""

    names: list[str]
    delimiter: str
    end: int
    has_return: bool
    """True if a carriage return stands alone in it: then it may end the rows, and they cannot be told apart."""


def header(path: Path) -> Header:
    """Return the header row of a file; ValueError where it is longer than a megabyte."""
    with path.open("rb") as file:
        start = file.read(octets.BLOCK)
        line = start.partition(b"\n")[0]
        delimiter = max(",;\t|", key=lambda one: line.count(one.encode()))
        rows = _Rows(file.fileno(), delimiter, columns=len(start))
        cells, end = rows.cells(len(octets.MARK) if start.startswith(octets.MARK) else 0, most=len(start))
        has_return = not rows.is_kept(start) and any(b"\r" in (cell or b"") for cell in cells)
    if end > octets.BLOCK:
        raise ValueError("the header row must end within a megabyte.")
    return Header([(cell or b"").decode("utf-8", "replace") for cell in cells], delimiter, end, has_return)


def is_plain(path: Path, first: Header) -> bool:
    """True if each row is UTF-8 and one that `safe` leaves as it is; then DuckDB can read the file itself."""
    if _is_simple(path, len(first.names)):
        return True
    with path.open("rb") as file:
        if file.read(len(octets.MARK)) == octets.MARK:
            return False
        pieces = _Rows(file.fileno(), first.delimiter, len(first.names)).pieces(0)
        return all(is_kept and octets.is_utf8(piece) for piece, is_kept in pieces)


def safe(path: Path, first: Header) -> Iterator[bytes]:
    """Yield a header row and the records, in pieces of whole rows, as UTF-8 that DuckDB reads as defined here."""
    yield first.delimiter.join(f"c{place}" for place in range(len(first.names))).encode() + b"\n"
    with path.open("rb") as file:
        for piece, _ in _Rows(file.fileno(), first.delimiter, len(first.names)).pieces(first.end):
            yield octets.mended(piece)


def _is_simple(path: Path, columns: int) -> bool:
    """True of UTF-8 without a quote, a lone carriage return or a long line, which is seen ten times as fast as rows."""
    with path.open("rb") as file:
        rest = b""
        while block := file.read(octets.BLOCK):
            whole, feed, after = (rest + block).rpartition(b"\n")
            ends = 0 if columns == 1 else whole.count(b"\r\n") + whole.endswith(b"\r")
            if (not feed and len(rest) > 0) or b'"' in block or whole.count(b"\r") > ends or not octets.is_utf8(whole):
                return False
            if _longest_line(whole) > LONGEST_CELL:
                return False
            rest = after
    return b"\r" not in rest and len(rest) <= LONGEST_CELL and octets.is_utf8(rest)


def _longest_line(rows: bytes) -> int:
    feeds = np.flatnonzero(np.frombuffer(rows, np.uint8) == ord("\n"))
    return int(np.diff(feeds, prepend=-1, append=len(rows)).max())


class _Rows:
    """An open file as rows of so many cells, found by where they begin."""

    def __init__(self, file: int, delimiter: str, columns: int) -> None:
        self._file, self._delimiter, self._columns = file, delimiter.encode(), columns
        one = re.escape(self._delimiter)
        content, plain = rb'[^"]*+(?:""[^"]*+)*+', rb' *+(?:[^%b\n\r" ][^%b\n\r]*+)?+' % (one, one)
        kept = rb'(?:"%b"|%b)' % (content, plain)
        row = rb"(?:%b%b){0,%d}+%b\r?+\n" % (kept, one, columns - 1, kept)
        self._kept, self._kept_row = re.compile(rb"(?:%b)*+" % row), re.compile(row)
        self._quoted = re.compile(rb'%b"(%b)"%b(?:(%b)|%b\n)' % (_SPACES, content, _SPACES, one, _RETURNS))
        self._undecided = re.compile(rb'%b"%b(?:"%b%b)?+\Z' % (_SPACES, content, _SPACES, _RETURNS))
        self._plain = re.compile(rb"([^%b\n]*+)(?:(%b)|\n)" % (one, one))
        self._end = re.compile(rb"[%b\n]" % one)
        self._special = re.compile(rb'["\n]')
        self._closed = re.compile(rb"%b(?=%b|%b\n)" % (_SPACES, one, _RETURNS))
        self._closed_at_last = re.compile(rb"%b(?=%b|%b(?:\n|\Z))" % (_SPACES, one, _RETURNS))

    def is_kept(self, start: bytes) -> bool:
        """True if a row that begins some bytes stays as it is."""
        return octets.past(self._kept, start) > 0

    def pieces(self, at: int) -> Iterator[tuple[bytes, bool]]:
        """Yield the rows from a place on: those that stay as they are, together, or one that does not; and which."""
        data, place = os.pread(self._file, octets.BLOCK, at), 0
        while data:
            end = octets.past(self._kept, data, place)
            if end > place:
                yield from self._alike(data[place:end], at + place)
                place = end
            elif place < len(data):
                cells, after = self._row(data, at, place)
                if self._columns == 1 or data[place:after].strip(b"\r\n"):  # else it is no record
                    yield self._rewritten(cells), False
                place = after
            if place > octets.BLOCK // 2 or place >= len(data):
                data, at, place = os.pread(self._file, octets.BLOCK, at + place), at + place, 0

    def _alike(self, rows: bytes, at: int) -> Iterator[tuple[bytes, bool]]:
        """Yield rows that DuckDB reads; in a file of one column it needs all to end alike, or it counts empty ones."""
        has_quote = b'"' in rows
        if self._columns == 1 and b"\r" in rows:
            if not has_quote and _longest_line(rows) <= LONGEST_CELL:
                yield rows.replace(b"\r\n", b"\n"), False
            else:
                yield from self._one_by_one(rows, at, longest=-1)
        elif has_quote or _longest_line(rows) > LONGEST_CELL:
            yield from self._one_by_one(rows, at, longest=LONGEST_CELL)
        else:
            yield rows, True

    def _one_by_one(self, rows: bytes, at: int, longest: int) -> Iterator[tuple[bytes, bool]]:
        """Yield rows that are short enough as they are, as many at once as there are, and rewrite the others.

        All of them match the pattern of a row that is kept.
        """
        start = place = 0
        while place < len(rows):
            after = octets.past(self._kept_row, rows, place)
            if after - place > longest:
                if place > start:
                    yield rows[start:place], True
                cells, start = self._row(rows, at, place)
                yield self._rewritten(cells), False
            place = after
        if place > start:
            yield rows[start:place], True

    def _rewritten(self, cells: list[bytes | None]) -> bytes:
        """Return a row that is read as these cells, whatever they hold; of one that is too long nothing is kept."""
        short = (cell if cell is not None and len(cell) <= LONGEST_CELL else b"" for cell in cells)
        return self._delimiter.join(b'"' + cell.replace(b'"', b'""') + b'"' for cell in short) + b"\n"

    def _row(self, data: bytes, at: int, place: int) -> tuple[list[bytes | None], int]:
        """Return the cells of the row at a place in what was read from a place of the file on, and its end there."""
        near = self._near(data, place)
        if near is not None:
            return near
        cells, after = self.cells(at + place, self._columns)
        return cells, after - at

    def _near(self, data: bytes, place: int) -> tuple[list[bytes | None], int] | None:
        """Return what `cells` returns, for a row that is whole in what was read; None where that is not sure."""
        found: list[bytes | None] = []
        is_last = False
        while not is_last:
            cell = self._quoted.match(data, place)
            if cell is None:
                cell = self._plain.match(data, place)
                if cell is None or self._undecided.match(data, place) is not None:
                    return None
            content, is_last = cell[1], cell[2] is None
            if cell.re is self._quoted:
                content = content.replace(b'""', b'"')
            elif is_last:
                content = content.rstrip(b"\r")
            if len(found) < self._columns:
                found.append(content)
            place = cell.end()
        return found, place

    def cells(self, at: int, most: int) -> tuple[list[bytes | None], int]:
        """Return the first cells of the row that begins at a place of the file, and where the next row begins.

        A cell that does not fit is None.
        """
        found, room, is_last = [], octets.LONGEST_RECORD - octets.GROWTH * most, False
        while not is_last:
            if len(found) == most:
                at = self._past_plain(at)
            content, at, is_last = self._far_cell(at, room)
            if len(found) < most:
                found.append(content)
                room -= 0 if content is None else octets.GROWTH * len(content)
        return found, at

    def _far_cell(self, at: int, room: int) -> tuple[bytes | None, int, bool]:
        """Return a cell's content, None where it is too long, the place after it, and whether it ends its row."""
        opening = _OPENING.match(os.pread(self._file, _PEEK, at))
        closing = None if opening is None else self._closing(at + opening.end())
        if opening is None or closing is None:
            end = self._ending(at)
            content = self._content(at, end, room)
        else:
            end = self._ending(closing + 1)
            content = self._content(at + opening.end(), closing, room)
            content = None if content is None else content.replace(b'""', b'"')
        is_last = os.pread(self._file, 1, end) in (b"", b"\n")
        if is_last and content is not None and closing is None:
            content = content.rstrip(b"\r")
        return content, end + 1, is_last

    def _content(self, start: int, end: int, room: int) -> bytes | None:
        return os.pread(self._file, end - start, start) if octets.fits(end - start, room) else None

    def _ending(self, at: int) -> int:
        """Return where a cell that is at its unquoted part ends: at a delimiter, a line feed, or with the file."""
        size = _PEEK
        while data := os.pread(self._file, size, at):
            if (found := self._end.search(data)) is not None:
                return at + found.start()
            at, size = at + len(data), octets.BLOCK
        return at

    def _past_plain(self, at: int) -> int:
        """Return where the last cell begins before the next quote or line feed: those between hold neither."""
        size, begins = _PEEK, at
        while data := os.pread(self._file, size, at):
            found = self._special.search(data)
            last = data.rfind(self._delimiter, 0, len(data) if found is None else found.start())
            begins = begins if last < 0 else at + last + 1
            if found is not None:
                break
            at, size = at + len(data), octets.BLOCK
        return begins

    def _closing(self, at: int) -> int | None:
        """Return where the quote stands that closes a cell whose content begins at a place; None if none does.

        It is the first that is not doubled, and a delimiter or the row's end must follow.
        """
        size = _PEEK
        while data := os.pread(self._file, size, at):
            place = 0
            while (quotes := _QUOTES.search(data, place)) is not None:
                # More quotes may follow in the next block.
                if quotes.end() == len(data) == size:
                    break
                place = quotes.end()
                if (place - quotes.start()) % 2 == 1:
                    return at + place - 1 if self._is_closed(at + place) else None
            if quotes is None:
                at += len(data)
            else:
                at += quotes.start() if quotes.start() > 0 else size
            size = octets.BLOCK
        return None

    def _is_closed(self, at: int) -> bool:
        data = os.pread(self._file, _PEEK, at)
        closed = self._closed_at_last if len(data) < _PEEK else self._closed
        return closed.match(data) is not None
