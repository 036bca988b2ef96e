"""What may be spent and what was: a SQLite file that is charged before any noise is drawn.

    spent = Σ cost of entries ≤ total        in exact fractions

Pure ε adds; zCDP ρ adds, and a pure ε costs ε²/2 of ρ (Bun & Steinke 2016, proposition 1.4); ε and δ of approximate
guarantees add, each by itself. A charge is one transaction that checks the total and writes the entry, on disk before
it returns: a crash afterwards can waste budget and never overspend it.
"""

import json
import os
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from noiseaware.privacy import (
    Approximate,
    Number,
    Promise,
    Pure,
    ZeroConcentrated,
    as_zcdp,
    exact,
    promised,
)

_APPLICATION_ID = 0x6E616C67  # "nalg": how a ledger is told from other SQLite files
_BUSY_SECONDS = 30.0
_SCHEMA = """
create table total (kind text not null check (kind in ('pure', 'zcdp', 'approximate')), cost text not null);
create table entry (
    number integer primary key autoincrement,
    id text not null unique,
    time text not null,
    cost text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    promised text not null,
    what text not null
);
"""


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
    """The budget of one confidential table, in ε, in ρ, or in ε and δ."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise ValueError(f"ledger must exist, got {self.path}; make one with `noiseaware ledger create`.")
        with self._transaction("deferred") as database:
            if database.execute("pragma application_id").fetchone() != (_APPLICATION_ID,):
                raise ValueError(f"ledger must be a file made by `noiseaware ledger create`, got {self.path}.")
            ((kind, cost),) = database.execute("select kind, cost from total").fetchall()
            self.total: Promise = _promise(kind, cost)

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Ledger":
        """The ledger that a file holds."""
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
        total, path = promised(epsilon=epsilon, rho=rho, delta=delta), Path(path)
        if not path.parent.is_dir():
            raise ValueError(f"ledger folder must exist, got {path.parent}.")
        if path.exists():
            raise ValueError(f"ledger {path} exists already; give another name.")
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            draft = Path(folder, "draft")
            with closing(sqlite3.connect(draft)) as database:
                database.executescript(f"pragma application_id = {_APPLICATION_ID}; {_SCHEMA}")
                database.execute("insert into total values (?, ?)", _row(total))
                database.commit()
            _place(draft, path)
        return cls(path)

    @property
    def spent(self) -> Fraction:
        """Everything charged so far, in ε or in ρ."""
        with self._transaction("deferred") as database:
            return _spent(database)[0]

    @property
    def spent_delta(self) -> Fraction:
        """Everything charged so far, in δ."""
        with self._transaction("deferred") as database:
            return _spent(database)[1]

    @property
    def remaining(self) -> Fraction:
        """What is left of the total, in ε or in ρ."""
        return _cost(self.total)[0] - self.spent

    def entries(self) -> list[Entry]:
        """Every charge, oldest first."""
        with self._transaction("deferred") as database:
            rows = database.execute("select id, time, cost, kind, promised, what from entry order by number").fetchall()
        return [
            Entry(entry_id, time, _read(cost)[0], _promise(kind, promise), json.loads(what), _read(cost)[1])
            for entry_id, time, cost, kind, promise, what in rows
        ]

    def afford(self, guarantee: Promise) -> None:
        """Refuse early what a charge would refuse."""
        with self._transaction("deferred") as database:
            self._check(guarantee, _spent(database))

    def charge(self, guarantee: Promise, what: Mapping[str, str]) -> Entry:
        """Pay for a release, or refuse; on disk before this returns."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction("immediate") as database:
            cost, delta = self._check(guarantee, _spent(database))
            entry = Entry(uuid.uuid4().hex, now, cost, guarantee, dict(what), delta)
            told = json.dumps(entry.what, ensure_ascii=False)
            row = (entry.id, entry.time, _written(cost, delta), *_row(guarantee), told)
            database.execute("insert into entry (id, time, cost, kind, promised, what) values (?, ?, ?, ?, ?, ?)", row)
        return entry

    def _check(self, guarantee: Promise, spent: "_Cost") -> "_Cost":
        """The cost of a guarantee in the ledger's currency, if the ledger can bear it."""
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

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        """One transaction on the file: committed if the block ends, rolled back if it does not."""
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
                database.execute("pragma synchronous = extra")  # full, and the journal's folder too
                database.execute(f"begin {kind}")
                yield database
                database.execute("commit")
        except sqlite3.OperationalError as error:
            raise ValueError(f"ledger {self.path} must be readable, writable and not locked: {error}.") from None
        except sqlite3.DatabaseError:
            raise ValueError(f"ledger must be a file made by `noiseaware ledger create`, got {self.path}.") from None


def _place(draft: Path, path: Path) -> None:
    """Give a finished file its name, unless someone else has taken it."""
    try:
        os.link(draft, path)  # unlike a rename, this never replaces a file
    except FileExistsError:
        raise ValueError(f"ledger {path} exists already; give another name.") from None
    except OSError:  # a file system without hard links
        with path.open("xb") as file:
            file.write(draft.read_bytes())


_Cost = tuple[Fraction, Fraction]
"""ε or ρ, and δ."""


def _spent(database: sqlite3.Connection) -> _Cost:
    costs = [_read(cost) for (cost,) in database.execute("select cost from entry")]
    return sum((cost for cost, _ in costs), Fraction(0)), sum((delta for _, delta in costs), Fraction(0))


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
        return Approximate(exact("cost", cost), exact("delta", delta))
    return (Pure if kind == "pure" else ZeroConcentrated)(exact("cost", cost))


def _told(kind: type, cost: Fraction, delta: Fraction) -> Promise:
    return kind(cost, delta) if kind is Approximate else kind(cost)
