"""What may be spent and what was: a database that is charged before any noise is drawn.

    spent = Σ cost of entries ≤ total        in exact fractions

Pure ε adds; zCDP ρ adds, and a pure ε costs ε²/2 of ρ (Bun & Steinke 2016, proposition 1.4); ε and δ of approximate
guarantees add, each by itself. A charge is one transaction that checks the total and writes the entry, on disk before
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noiseaware.custodian.chain import REMEDY, Link, Mark, Total, digest, end, flaw
from noiseaware.custodian.sqlite import SQLite
from noiseaware.privacy import (
    Approximate,
    Number,
    Promise,
    Pure,
    ZeroConcentrated,
    as_zcdp,
    promised,
)

if TYPE_CHECKING:
    from noiseaware.custodian.postgres import PostgreSQL


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


class Ledger:
    """The budget of one confidential table, in ε, in ρ, or in ε and δ: a file, or a URL postgresql://user@host/database.

    A database may hold several ledgers, each a schema of its own: postgresql://user@host/database?ledger=clinic.
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
        """Where the ledger is: the file, or the URL without its password."""
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
    ) -> "Ledger":
        """A new ledger with a total of ε, of ρ, or of ε and δ, written whole or not at all."""
        fields = uuid.uuid4().hex, *_row(promised(epsilon=epsilon, rho=rho, delta=delta))
        _store(path).create(Total(*fields, digest(*fields)))
        return cls(path)

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
        """What is left of the total, in ε or in ρ."""
        return _cost(self.total)[0] - self.spent

    def entries(self) -> list[Entry]:
        """Every charge, in the order of charging."""
        with self._transaction() as (_, _, links):
            return [
                Entry(link.id, link.time, cost, _promise(link.kind, link.promised), json.loads(link.what), delta)
                for link, (cost, delta) in ((link, _read(link.cost)) for link in links)
            ]

    def verify(self) -> int:
        """The number of entries, if every hash is right; whatever else reads the ledger checks the same.

        Hashes without a secret show an entry or a total that was changed, removed, moved or inserted; they cannot show
        a chain that was rewritten as a whole, nor an old copy that was put back.
        """
        with self._transaction() as (_, _, links):
            return len(links)

    def afford(self, guarantee: Promise) -> None:
        """Refuse early what a charge would refuse."""
        with self._transaction() as (_, _, links):
            self._check(guarantee, _spent(links))

    def charge(self, guarantee: Promise, what: Mapping[str, str]) -> Entry:
        """Pay for a release, or refuse; on disk before this returns."""
        with self._transaction(writes=True) as (database, total, links):
            cost, delta = self._check(guarantee, _spent(links))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry = Entry(uuid.uuid4().hex, now, cost, guarantee, dict(what), delta)
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

    def _check(self, guarantee: Promise, spent: "_Cost") -> "_Cost":
        """The cost of a guarantee in the ledger's currency, if the ledger can bear it."""
        if not all(isinstance(part, int | Fraction) and part >= 0 for part in _cost(guarantee)):
            raise ValueError(f"guarantee must be of fractions that are not negative, got {guarantee!r}.")
        price = self._price(guarantee)
        left = tuple(whole - used for whole, used in zip(_cost(self.total), spent, strict=True))
        if any(asked > has for asked, has in zip(_cost(price), left, strict=True)):
            has = _told(type(self.total), *left)
            raise LedgerRefusal(f"ledger must have {price} left, has {has} of {self.total}.")
        return _cost(price)

    def _price(self, guarantee: Promise) -> Promise:
        if isinstance(self.total, Pure) and isinstance(guarantee, ZeroConcentrated):
            raise ValueError("rho cannot be charged to a ledger of ε, since zCDP promises no pure ε; ask with epsilon.")
        if isinstance(self.total, Approximate):
            if isinstance(guarantee, ZeroConcentrated):
                raise ValueError("rho cannot be charged to a ledger of ε and δ; ask with epsilon.")
            return guarantee
        if isinstance(guarantee, Approximate):
            raise ValueError(f"delta cannot be charged to a ledger of {self.total}; make one with epsilon and delta.")
        return guarantee if isinstance(self.total, Pure) else as_zcdp(guarantee)


def _store(path: str | os.PathLike) -> "SQLite | PostgreSQL":
    """Where the rows are: in PostgreSQL if the path looks like a URL."""
    if not re.match(r"(?i)[a-z][\w+.-]+:/", os.fspath(path)):
        return SQLite(Path(path))
    from noiseaware.custodian.postgres import PostgreSQL

    return PostgreSQL(os.fspath(path))


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


def _cost(promise: Promise) -> _Cost:
    if isinstance(promise, Approximate):
        return promise.epsilon, promise.delta
    return (promise.epsilon if isinstance(promise, Pure) else promise.rho), Fraction(0)


def _written(cost: Fraction, delta: Fraction) -> str:
    return f"{cost};{delta}" if delta else str(cost)


def _read(text: str) -> _Cost:
    cost, _, delta = text.partition(";")
    return Fraction(cost), Fraction(delta or 0)


_KINDS: dict[type, str] = {Pure: "pure", ZeroConcentrated: "zcdp", Approximate: "approximate"}


def _row(promise: Promise) -> tuple[str, str]:
    return _KINDS[type(promise)], _written(*_cost(promise))


def _promise(kind: str, text: str) -> Promise:
    cost, delta = _read(text)
    if kind == "approximate":
        return Approximate(cost, delta)
    return (Pure if kind == "pure" else ZeroConcentrated)(cost)


def _told(kind: type, cost: Fraction, delta: Fraction) -> Promise:
    return kind(cost, delta) if kind is Approximate else kind(cost)
