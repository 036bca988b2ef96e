"""Entries that cannot be edited one by one: each holds a hash of itself and of the hash before it.

    h₀ = SHA-256(identity, total)        hᵢ = SHA-256(hᵢ₋₁, number, id, time, cost, kind, promised, what)

The identity is random, so that no entry fits into another ledger. A chain without a secret shows what was edited by
hand, by another program or by a failing disk. It cannot show the work of someone who recomputes every later hash, who
cuts the end together with the count of entries, or who puts back an old copy: all of these are valid chains.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

REMEDY = "release nothing more, and put back a copy that has the entry of every release"
_written = json.JSONEncoder(default=list).encode  # a blob becomes a list of bytes, which is never equal to a text


class Total(NamedTuple):
    """The total's row as it is stored."""

    identity: str
    kind: str
    cost: str
    hash: str


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
    """Where the next entry goes on."""
    return Mark(len(links), links[-1].hash if links else total.hash)


def flaw(totals: Sequence[Total], links: Sequence[Link], count: int, seen: Mark | None) -> str | None:
    """What is wrong with which entry, or None: links are in order, count of them were made, one was seen before."""
    if len(totals) != 1:
        return f"it has {len(totals)} totals where there must be one"
    (total,) = totals
    if total.hash != digest(*total[:-1]):
        return "the total was changed"
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
    return None


def _flaw_of_end(total: Total, links: Sequence[Link], count: int, seen: Mark | None) -> str | None:
    if len(links) < count:
        return f"entry {len(links) + 1} is missing"
    if len(links) > count:
        return f"it has {len(links)} entries where {count} were charged"
    if seen is not None and (len(links) < seen.number or end(total, links[: seen.number]).hash != seen.hash):
        return f"entry {seen.number}, read before, is gone" if seen.number else "it is not the ledger that was opened"
    return None
