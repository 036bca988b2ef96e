"""What may be spent and what was: a SQLite file that is charged before any noise is drawn.

    spent = Σ cost of entries ≤ total        in exact fractions

Pure ε adds; zCDP ρ adds, and a pure ε costs ε²/2 of ρ (Bun & Steinke 2016, proposition 1.4); ε and δ of approximate
guarantees add, each by itself. A charge is one transaction that checks the total and writes the entry, on disk before
it returns: a crash afterwards can waste budget and never overspend it. Entries are in the order of their numbers,
whatever the clock says, and each holds a hash of all before it, which whatever reads the file checks first. The hashes
have no secret: someone who rewrites them all, or puts back an old copy, is not found out (chain.py).
"""

import json
import os
import sqlite3
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

from noiseaware.custodian.chain import Link, Mark, Total, digest, end, flaw
from noiseaware.privacy import (
    Approximate,
    Number,
    Promise,
    Pure,
    ZeroConcentrated,
    as_zcdp,
    promised,
)

_APPLICATION_ID = 0x6E616C67  # "nalg": how a ledger is told from other SQLite files
_FORMAT = 1  # SQLite's user_version; 0 was without hashes
_BUSY_SECONDS = 30.0
_SCHEMA = """
create table total (
    identity text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    cost text not null,
    hash text not null
);
create table entry (
    number integer primary key autoincrement,
    id text not null unique,
    time text not null,
    cost text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    promised text not null,
    what text not null,
    hash text not null
);
"""
_COLUMNS = ", ".join(Link._fields)
_REMEDY = "release nothing more, and put back a copy that has the entry of every release"


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
        self._seen: Mark | None = None
        if not os.path.isfile(self.path):
            raise ValueError(f"ledger must exist, got {self.path}; make one with `noiseaware ledger create`.")
        with self._transaction("deferred") as database:
            total, _ = self._verified(database)
        self.total: Promise = _promise(total.kind, total.cost)

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
        try:
            if not path.parent.is_dir():
                raise ValueError(f"ledger folder must exist, got {path.parent}.")
            if path.exists():
                raise FileExistsError
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
                _place(_draft(Path(folder, "draft"), total), path)
        except FileExistsError:
            raise ValueError(f"ledger {path} exists already; give another name.") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"ledger folder must be writable and have room, got {path.parent}: {reason}.") from None
        return cls(path)

    @property
    def spent(self) -> Fraction:
        """Everything charged so far, in ε or in ρ."""
        with self._transaction("deferred") as database:
            return _spent(self._verified(database)[1])[0]

    @property
    def spent_delta(self) -> Fraction:
        """Everything charged so far, in δ."""
        with self._transaction("deferred") as database:
            return _spent(self._verified(database)[1])[1]

    @property
    def remaining(self) -> Fraction:
        """What is left of the total, in ε or in ρ."""
        return _cost(self.total)[0] - self.spent

    def entries(self) -> list[Entry]:
        """Every charge, in the order of charging."""
        with self._transaction("deferred") as database:
            _, links = self._verified(database)
        return [
            Entry(link.id, link.time, cost, _promise(link.kind, link.promised), json.loads(link.what), delta)
            for link, (cost, delta) in ((link, _read(link.cost)) for link in links)
        ]

    def verify(self) -> int:
        """The number of entries, if every hash is right; whatever else reads the ledger checks the same.

        Hashes without a secret show an entry or a total that was changed, removed, moved or inserted; they cannot show
        a chain that was rewritten as a whole, nor an old copy that was put back.
        """
        with self._transaction("deferred") as database:
            return len(self._verified(database)[1])

    def afford(self, guarantee: Promise) -> None:
        """Refuse early what a charge would refuse."""
        with self._transaction("deferred") as database:
            self._check(guarantee, _spent(self._verified(database)[1]))

    def charge(self, guarantee: Promise, what: Mapping[str, str]) -> Entry:
        """Pay for a release, or refuse; on disk before this returns."""
        with self._transaction("immediate") as database:
            total, links = self._verified(database)
            cost, delta = self._check(guarantee, _spent(links))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry = Entry(uuid.uuid4().hex, now, cost, guarantee, dict(what), delta)
            link = _linked(end(total, links), entry)
            database.execute(f"insert into entry ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)", link)
            kept = database.execute(f"select {_COLUMNS} from entry where number = ?", (link.number,)).fetchall()
            if kept != [link]:  # someone gave the table a trigger
                raise ValueError(f"ledger {self.path} must hold what is charged, but did not keep it; {_REMEDY}.")
        self._seen = Mark(link.number, link.hash)
        return entry

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

    def _verified(self, database: sqlite3.Connection) -> tuple[Total, list[Link]]:
        """The total and the entries, if the file is a ledger and its chain whole."""
        seen = self._seen  # before the file is read, since another thread may charge meanwhile
        _check_format(self.path, database)
        totals = [Total(*row) for row in database.execute("select identity, kind, cost, hash from total")]
        links = [Link(*row) for row in database.execute(f"select {_COLUMNS} from entry order by number")]
        ((count,),) = database.execute("select coalesce(max(cast(seq as integer)), 0) from sqlite_sequence")
        if wrong := flaw(totals, links, count, seen):
            raise ValueError(f"ledger {self.path} must hold what was charged, but {wrong}; {_REMEDY}.")
        self._seen = end(totals[0], links)
        return totals[0], links

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
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter when SQLite's message quotes a damaged file
            raise ValueError(f"ledger {_sentence(self.path, error)}.") from None


_FAILURES = {
    "SQLITE_BUSY": "must not be locked; ask again when whoever holds it is done",
    "SQLITE_READONLY": "and its folder must be writable",
    "SQLITE_CANTOPEN": "and its folder must be readable and writable",
    "SQLITE_FULL": "must have room on its disk",
    "SQLITE_IOERR": "must be on a disk that has room and works",
}


def _sentence(path: Path, error: Exception) -> str:
    """What must be true of a ledger, where SQLite says that something is not."""
    name = getattr(error, "sqlite_errorname", type(error).__name__)  # SQLite's, if it was not Python's sqlite3 itself
    if name == "SQLITE_READONLY_DBMOVED" or not os.path.exists(path):
        return f"{path} must stay where it is, and is gone; put it back, since a new one forgets what was spent"
    if name == "SQLITE_NOTADB":
        return f"must be a file made by `noiseaware ledger create`, got {path}"
    for kind, rule in _FAILURES.items():
        if name.startswith(kind):
            return f"{path} {rule}"
    return f"{path} must hold what was charged, but is damaged ({name}); {_REMEDY}"


def _check_format(path: Path, database: sqlite3.Connection) -> None:
    if database.execute("pragma application_id").fetchone() != (_APPLICATION_ID,):
        raise ValueError(f"ledger must be a file made by `noiseaware ledger create`, got {path}.")
    if database.execute("pragma user_version").fetchone() != (_FORMAT,):
        make = "make a new one of what is left with `noiseaware ledger create`"
        raise ValueError(f"ledger {path} must be of this version of noiseaware, whose entries have hashes; {make}.")


def _draft(path: Path, total: Promise) -> Path:
    """A new ledger's file."""
    fields = uuid.uuid4().hex, *_row(total)
    try:
        with closing(sqlite3.connect(path)) as database:
            marks = f"pragma application_id = {_APPLICATION_ID}; pragma user_version = {_FORMAT};"
            database.executescript(f"{marks} {_SCHEMA}")
            database.execute("insert into total values (?, ?, ?, ?)", (*fields, digest(*fields)))
            database.commit()
    except sqlite3.Error as error:
        raise OSError(str(error)) from None
    return path


def _place(draft: Path, path: Path) -> None:
    """Give a finished file its name, unless someone else has taken it."""
    try:
        os.link(draft, path)  # unlike a rename, this never replaces a file
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with path.open("xb") as file:
            _fill(file, draft.read_bytes())


def _fill(file: BinaryIO, content: bytes) -> None:
    """Write a file whole, or remove it."""
    try:
        file.write(content)
        file.flush()
    except OSError:
        os.unlink(file.name)
        raise


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
