"""Entries that cannot be edited one by one: each holds a hash of itself and of the hash before it.

    h₀ = SHA-256(identity, total)        hᵢ = SHA-256(hᵢ₋₁, number, id, time, cost, kind, promised, what)

The neighbours and the unit that a ledger was made for are hashed with its total; where it was made without, they are
those of the first entry whose `what` says some. The identity is random, so that no entry fits into another ledger.

A chain without a secret shows what was edited by hand, by another program or by a failing disk. It cannot show the work
of someone who recomputes every later hash, who cuts the end together with the count of entries, or who puts back an old
copy: all of these are valid chains.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

REMEDY = "release nothing more, and put back a copy that has the entry of every release"
_written = json.JSONEncoder(default=list).encode  # a blob becomes a list of bytes, which is never equal to a text


UNBOUND = "[]"
"""The neighbours of a total as JSON where the first charge decides; else [neighbours] or [neighbours, unit]."""
# A fraction as Python writes it, which holds no sign and no exponent, and is quick to read; and two, for ε and δ.
_FRACTION = r"[0-9]{1,4000}(?:/[1-9][0-9]{0,3999})?"
_COST = re.compile(f"{_FRACTION}(?:;{_FRACTION})?")


class Total(NamedTuple):
    """The total's row as it is stored."""

    identity: str
    kind: str
    cost: str
    bound: str
    hash: str

    @property
    def digest(self) -> str:
        """The hash that this row must have: bound to nothing, that of ledgers of the first format."""
        return digest(*self[: 3 if self.bound == UNBOUND else 4])


class Link(NamedTuple):
    """An entry's row as it is stored."""

    number: int
    id: str
    time: str
    cost: str
    kind: str
    promised: str
    what: str
    hash: str


class Mark(NamedTuple):
    """The place of a hash in a chain; the total's is 0."""

    number: int
    hash: str


def digest(*fields: object) -> str:
    """SHA-256 of the fields as a JSON list, which keeps them apart."""
    return hashlib.sha256(_written(fields).encode()).hexdigest()


def end(total: Total, links: Sequence[Link]) -> Mark:
    """The hash that the next entry continues."""
    return Mark(len(links), links[-1].hash if links else total.hash)


def flaw(totals: Sequence[Total], links: Sequence[Link], count: int, seen: Mark | None) -> str | None:
    """Name the first bad entry and its fault, or None; count links were made, in order, and one was seen before."""
    if len(totals) != 1:
        return f"it has {len(totals)} totals where there must be one"
    (total,) = totals
    if total.hash != total.digest:
        return "the total was changed"
    if not _is_cost(total.cost):
        return "the total is not of fractions of at least 0"
    if not _is_json(total.bound, list):
        return "it does not say for whom it was made"
    return _flaw_of_links(total, links) or _flaw_of_end(total, links, count, seen)


def _flaw_of_links(total: Total, links: Sequence[Link]) -> str | None:
    before = total.hash
    for number, link in enumerate(links, 1):
        if link.number < number:
            return f"entry {link.number} was inserted"
        if link.number > number:
            return f"entry {number} is missing"
        if link.hash != digest(before, *link[:-1]):
            former = "the total" if number == 1 else f"entry {number - 1}"
            return f"entry {number} does not follow from {former}, so one of them was changed, moved or inserted"
        before = link.hash
    return _flaw_of_content(links)


def _flaw_of_content(links: Sequence[Link]) -> str | None:
    """Name a fault that no charge writes, whatever its hash: a negative cost, or an entry without a cost or words."""
    wrong = {text for text in {text for link in links for text in (link.cost, link.promised)} if not _is_cost(text)}
    strange = {what for what in {link.what for link in links} if not _is_json(what, dict)}
    for link in links if wrong or strange else ():
        if link.cost in wrong or link.promised in wrong:
            return f"entry {link.number} has a cost that is no fraction of at least 0"
        if link.what in strange:
            return f"entry {link.number} does not say in words what was released"
    return None


def _is_cost(text: object) -> bool:
    return isinstance(text, str) and _COST.fullmatch(text) is not None


def _is_json(text: object, kind: type) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def _flaw_of_end(total: Total, links: Sequence[Link], count: int, seen: Mark | None) -> str | None:
    if len(links) < count:
        return f"entry {len(links) + 1} is missing"
    if len(links) > count:
        return f"it has {len(links)} entries where {count} were charged"
    if seen is not None and (len(links) < seen.number or end(total, links[: seen.number]).hash != seen.hash):
        return f"entry {seen.number}, read before, is gone" if seen.number else "it is not the ledger that was opened"
    return None
