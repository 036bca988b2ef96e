"""The budget and its spending: a database that is charged before any noise is drawn.

    spent = Σ cost of entries ≤ total        in exact fractions

Pure ε adds; zCDP ρ adds, and a pure ε costs ε²/2 of ρ (Bun & Steinke 2016, proposition 1.4); ε and δ of approximate
guarantees add, each by itself. They add where they are about the same neighbours, so a ledger is bound to one relation
and one unit: those that it was made for, or those of its first charge. A promise about others is converted where k of
their steps always lead to a neighbour of the ledger's (privacy.py), and costs what k steps cost; all else is refused.

A charge is one transaction that checks the total and writes the entry, on disk before
it returns: a crash afterwards can waste budget and never overspend it. Entries are in the order of their numbers,
whatever the clock says, and each holds a hash of all before it, which whatever reads the ledger checks first. The
hashes have no secret: someone who rewrites them all, or puts back an old copy, is not found out (chain.py).

The rules are here; the rows are in a SQLite file (sqlite.py) or, by URL, in PostgreSQL (postgres.py).
"""

import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noiseaware.custodian.engine.connection import is_meant
from noiseaware.custodian.ledger.hash_chain import REMEDY, UNBOUND, Link, Mark, Total, digest, end, flaw
from noiseaware.custodian.ledger.sqlite import SQLite
from noiseaware.privacy import PROMISES, Neighbours, Number, Promise, Relation, frozen, promised, relation_of

if TYPE_CHECKING:
    from noiseaware.custodian.ledger.postgres import PostgreSQL


class LedgerRefusal(Exception):
    """The ledger has not enough left for what was asked."""


@dataclass(frozen=True)
class Entry:
    """One charge: its cost in the ledger's currency, what it promised, and what was released, in public words."""

    id: str
    time: str
    cost: Fraction
    guarantee: Promise
    what: Mapping[str, str]
    delta: Fraction = Fraction(0)

    @property
    def relation(self) -> Relation | None:
        """Who counts as a neighbour in what was promised; None where the entry does not say."""
        return _relation(self.what)


class Ledger:
    """The budget of one confidential table, in ε, in ρ, or in ε and δ: a file, or a URL postgresql://user@host/database.

    All that it adds up is about the same neighbours: `relation`. A database may hold several ledgers, each a schema of
    its own: postgresql://user@host/database?ledger=clinic.

    >>> ledger = na.Ledger.create("clinic.ledger", epsilon=2)
    >>> ledger.remaining
    Fraction(2, 1)
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self._store = _store(path)
        self._seen: Mark | None = None
        with self._transaction() as (_, total, _):
            self.total: Promise = _promise(total.kind, total.cost)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @property
    def path(self) -> Path | str:
        """The file of the ledger, or its URL without the password."""
        return self._store.path

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Ledger":
        """The ledger at a path or URL."""
        return cls(path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        neighbours: Neighbours | None = None,
        unit: str | None = None,
    ) -> "Ledger":
        """A new ledger with a total of ε, of ρ, or of ε and δ, written whole or not at all.

        neighbours, unit
            What the total is a promise about: "replace" or "add_remove" one record, or, with the column that tells
            whose a record is, a person with all records. Left out, the first charge decides.
        """
        bound = relation_of(neighbours, unit)
        row = _row(promised(epsilon=epsilon, rho=rho, delta=delta))
        pair = [] if bound is None else [bound.neighbours, bound.unit][: 1 if bound.unit is None else 2]
        total = Total(uuid.uuid4().hex, *row, json.dumps(pair), hash="")
        _store(path).create(total._replace(hash=total.digest))
        return cls(path)

    @property
    def relation(self) -> Relation | None:
        """Who counts as a neighbour in what the ledger adds up; None before the first charge of one made without."""
        with self._transaction() as (_, total, links):
            return _bound(total, links)

    @property
    def mixture(self) -> str | None:
        """The entry of an earlier version that is about other neighbours than the ledger, in words; None if none is."""
        with self._transaction() as (_, total, links):
            return _mixture(self.total, total, links)

    @property
    def spent(self) -> Fraction:
        """Everything charged so far, in ε or in ρ."""
        with self._transaction() as (_, _, links):
            return _spent(links)[0]

    @property
    def spent_delta(self) -> Fraction:
        """Everything charged so far, in δ."""
        with self._transaction() as (_, _, links):
            return _spent(links)[1]

    @property
    def remaining(self) -> Fraction:
        """The rest of the total, in ε or in ρ."""
        return self.total.amount - self.spent

    def entries(self) -> list[Entry]:
        """Every charge, in the order of charging."""
        with self._transaction() as (_, _, links):
            return [_entry(link) for link in links]

    def verify(self) -> int:
        """The number of entries, if every hash is right; whatever else reads the ledger checks the same.

        Hashes without a secret show an entry or a total that was changed, removed, moved or inserted; they cannot show
        a chain that was rewritten as a whole, nor an old copy that was put back.
        """
        with self._transaction() as (_, _, links):
            return len(links)

    def cost(self, promise: Promise) -> Promise:
        """Return the promise that a release is charged for: of (ε, δ) in a ledger of ρ, the ρ that its noise keeps."""
        return self.total.price_of(frozen(promise))

    def afford(self, guarantee: Promise, relation: Relation | None = None) -> None:
        """Refuse early what a charge would refuse."""
        self.afford_all([(guarantee, relation)])

    def afford_all(self, asked: Iterable[tuple[Promise, Relation | None]]) -> None:
        """Refuse early what charges one after another would refuse, as a whole."""
        with self._transaction() as (_, total, links):
            bound, prices, is_converted = self._bound(total, links), [], False
            for guarantee, relation in asked:
                bound = bound or relation
                prices.append(self._price(frozen(guarantee), relation, bound))
                is_converted |= not _is_same(relation, bound)
            self._check(prices, _spent(links), f" for {bound}" if is_converted else "")

    def charge(self, guarantee: Promise, what: Mapping[str, str]) -> Entry:
        """Pay for a release, or refuse; on disk before this returns.

        `what` says in public words what is released, and for which "neighbours" and "unit" (as in "patient_id, at most
        3 records"); where it says none, the promise is taken to be about the ledger's own.
        """
        guarantee, relation = frozen(guarantee), _relation(what)
        if relation is not None:
            relation_of(relation.neighbours, relation.unit)  # refuses what is none
        with self._transaction(writes=True) as (database, total, links):
            bound = self._bound(total, links) or relation
            price = self._price(guarantee, relation, bound)
            counted = "" if _is_same(relation, bound) else f" for {bound}"
            self._check([price], _spent(links), counted)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            told = dict(what) | ({"counted": f"as {price}{counted}"} if counted else {})
            cost, delta = price.cost
            entry = Entry(uuid.uuid4().hex, now, cost, guarantee, told, delta)
            link = _linked(end(total, links), entry)
            if not self._store.append(database, link):  # someone gave the table a trigger
                raise ValueError(f"ledger {self.path} must hold what is charged, but did not keep it; {REMEDY}.")
        self._seen = Mark(link.number, link.hash)
        return entry

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[tuple[Any, Total, list[Link]]]:
        """One transaction, with the total and the entries if the chain is whole: committed if the block ends."""
        seen = self._seen  # before anything is read, since another thread may charge meanwhile
        try:
            with self._store.transaction(writes=writes) as database:
                totals, links, count = self._store.rows(database)
                if wrong := flaw(totals, links, count, seen):
                    raise ValueError(f"ledger {self.path} must hold what was charged, but {wrong}; {REMEDY}.")
                self._seen = end(totals[0], links)
                yield database, totals[0], links
        except FileNotFoundError:
            if seen is None:
                make = "make one with `noiseaware ledger create`"
                raise ValueError(f"ledger must exist, got {self.path}; {make}.") from None
            remedy = "put it back, since a new one forgets what was spent"
            raise ValueError(f"ledger {self.path} must stay where it is, and is gone; {remedy}.") from None

    def _check(self, prices: Sequence[Promise], spent: "_Cost", counted: str) -> None:
        """Refuse what the ledger has not left; `counted` says for whom, where this is not what was promised."""
        costs = [price.cost for price in prices]
        asked = sum((cost for cost, _ in costs), Fraction(0)), sum((delta for _, delta in costs), Fraction(0))
        left = tuple(whole - used for whole, used in zip(self.total.cost, spent, strict=True))
        if any(wanted > has for wanted, has in zip(asked, left, strict=True)):
            has = self.total.of(*left)
            price = prices[0] if len(prices) == 1 else self.total.of(*asked)
            raise LedgerRefusal(f"ledger must have {price} left{counted}, has {has} of {self.total}.")

    def _price(self, guarantee: Promise, relation: Relation | None, bound: Relation | None) -> Promise:
        """Convert a guarantee to the ledger's currency and neighbours."""
        due = _due(self.total, guarantee, relation, bound)
        if due is None:
            make = "charge one of its own, which `noiseaware ledger create` makes"
            told = f"adds up promises for {bound} and must be charged for the same, got {guarantee} for {relation}"
            raise ValueError(f"ledger {self.path} {told}; {make}.")
        return due

    def _bound(self, total: Total, links: Sequence[Link]) -> Relation | None:
        """Who counts as a neighbour, unless entries of an earlier version are about different ones already."""
        if mixture := _mixture(self.total, total, links):
            make = "keep it, and pay for what comes from a new one (`noiseaware ledger create --neighbours`)"
            told = f"must add up promises about the same neighbours to be charged, but {mixture}"
            raise ValueError(f"ledger {self.path} {told}; {make}.")
        return _bound(total, links)


def check_place(path: str) -> None:
    """Refuse what was meant as a connection and is no URL: as a file, its name would hold a password."""
    if is_meant(path) and not _is_url(path):
        raise ValueError(
            "ledger must be a file or a URL postgresql://user@host/database, got another connection string."
        )


def _is_url(path: str) -> bool:
    return re.match(r"(?i)[a-z][\w+.-]+:/", path) is not None


def _store(path: str | os.PathLike) -> "SQLite | PostgreSQL":
    """The store of the rows: PostgreSQL if the path looks like a URL, else SQLite."""
    check_place(os.fspath(path))
    if not _is_url(os.fspath(path)):
        return SQLite(Path(path))
    from noiseaware.custodian.ledger.postgres import PostgreSQL

    return PostgreSQL(os.fspath(path))


def _relation(what: Mapping[str, str]) -> Relation | None:
    """Who counts as a neighbour, from the words of an entry; None where they do not say."""
    neighbours, unit = what.get("neighbours"), what.get("unit")
    if neighbours is None and unit is None:
        return None
    column = None if unit is None else re.sub(r", at most \d+ records\Z", "", str(unit))
    return Relation("add_remove" if neighbours is None else str(neighbours), column)


def _bound(total: Total, links: Sequence[Link]) -> Relation | None:
    """The neighbours that a ledger was made for, or else its first entry's."""
    if total.bound != UNBOUND:
        return Relation(*json.loads(total.bound))
    return next((found for link in links if (found := _relation(json.loads(link.what))) is not None), None)


def _is_same(relation: Relation | None, bound: Relation | None) -> bool:
    return relation in (None, bound)


def _due(whole: Promise, guarantee: Promise, relation: Relation | None, bound: Relation | None) -> Promise | None:
    """Convert a guarantee to the ledger's neighbours; None where no theorem does."""
    if relation is None or bound is None:
        return _priced(whole, guarantee)
    steps = relation.steps_to(bound)
    held = None if steps is None else guarantee.grouped(steps)
    return None if held is None else _priced(whole, held)


def _mixture(whole: Promise, total: Total, links: Sequence[Link]) -> str | None:
    """Which entry is about other neighbours than the ledger, and cost less than it is worth for them; None if none."""
    bound = _bound(total, links)
    first = {(link.kind, link.promised, link.cost, link.what): link for link in reversed(links)}
    for link in sorted(first.values()):
        entry = _entry(link)
        due = _due(whole, entry.guarantee, entry.relation, bound)
        if due is None or any(paid < owed for paid, owed in zip((entry.cost, entry.delta), due.cost, strict=True)):
            return f"entry {link.number} is for {entry.relation} among those for {bound}"
    return None


def _priced(whole: Promise, guarantee: Promise) -> Promise:
    """A guarantee in the currency of a ledger's total."""
    price = guarantee.implied(whole.kind)
    if price is None:
        told = f"{guarantee.argument} cannot be charged to a ledger of {whole.currency}, which it does not imply"
        raise ValueError(f"{told}; {guarantee.remedy}.")
    return price


def _entry(link: Link) -> Entry:
    cost, delta = _read(link.cost)
    return Entry(link.id, link.time, cost, _promise(link.kind, link.promised), json.loads(link.what), delta)


_Cost = tuple[Fraction, Fraction]
"""ε or ρ, and δ."""


def _spent(links: Sequence[Link]) -> _Cost:
    costs = [(*_read(text), times) for text, times in Counter(link.cost for link in links).items()]
    cost = sum((cost * times for cost, _, times in costs), Fraction(0))
    return cost, sum((delta * times for _, delta, times in costs), Fraction(0))


def _linked(before: Mark, entry: Entry) -> Link:
    """The row of an entry that follows the end of a chain."""
    cost, what = _written(entry.cost, entry.delta), json.dumps(entry.what)
    fields = before.number + 1, entry.id, entry.time, cost, *_row(entry.guarantee), what
    return Link(*fields, digest(before.hash, *fields))


def _written(cost: Fraction, delta: Fraction) -> str:
    return f"{cost};{delta}" if delta else str(cost)


def _read(text: str) -> _Cost:
    cost, _, delta = text.partition(";")
    return Fraction(cost), Fraction(delta or 0)


def _row(promise: Promise) -> tuple[str, str]:
    return promise.kind, _written(*promise.cost)


def _promise(kind: str, text: str) -> Promise:
    if kind not in PROMISES:
        raise ValueError(f"a ledger must add up promises of a kind in {', '.join(PROMISES)}, got {kind!r}; {REMEDY}.")
    return PROMISES[kind].of(*_read(text))
