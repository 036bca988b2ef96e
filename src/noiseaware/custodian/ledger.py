"""What may be spent and what was: a SQLite file that is charged before any noise is drawn.

    spent = Σ cost of entries ≤ total        in exact fractions

Pure ε adds; zCDP ρ adds, and a pure ε costs ε²/2 of ρ (Bun & Steinke 2016, proposition 1.4). A charge is one
transaction that checks the total and writes the entry, on disk before it returns: a crash afterwards can waste
budget and never overspend it.
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

from noiseaware.privacy import Guarantee, Number, Pure, ZeroConcentrated, as_zcdp, exact, promised

_APPLICATION_ID = 0x6E616C67  # "nalg": how a ledger is told from other SQLite files
_BUSY_SECONDS = 30.0
_SCHEMA = """
create table total (kind text not null check (kind in ('pure', 'zcdp')), cost text not null);
create table entry (
    number integer primary key autoincrement,
    id text not null unique,
    time text not null,
    cost text not null,
    kind text not null check (kind in ('pure', 'zcdp')),
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
    guarantee: Guarantee
    what: Mapping[str, str]


class Ledger:
    """The budget of one confidential table, in ε or in ρ."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise ValueError(f"ledger must exist, got {self.path}; make one with `noiseaware ledger create`.")
        with self._transaction("deferred") as database:
            if database.execute("pragma application_id").fetchone() != (_APPLICATION_ID,):
                raise ValueError(f"ledger must be a file made by `noiseaware ledger create`, got {self.path}.")
            ((kind, cost),) = database.execute("select kind, cost from total").fetchall()
            self.total: Guarantee = _guarantee(kind, cost)

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Ledger":
        """The ledger that a file holds."""
        return cls(path)

    @classmethod
    def create(cls, path: str | os.PathLike, *, epsilon: Number | None = None, rho: Number | None = None) -> "Ledger":
        """A new ledger with a total of ε or of ρ, written whole or not at all."""
        total, path = promised(epsilon=epsilon, rho=rho), Path(path)
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
        """Everything charged so far."""
        with self._transaction("deferred") as database:
            return _spent(database)

    @property
    def remaining(self) -> Fraction:
        """What is left of the total."""
        return _cost(self.total) - self.spent

    def entries(self) -> list[Entry]:
        """Every charge, oldest first."""
        with self._transaction("deferred") as database:
            rows = database.execute("select id, time, cost, kind, promised, what from entry order by number").fetchall()
        return [
            Entry(entry_id, time, Fraction(cost), _guarantee(kind, promise), json.loads(what))
            for entry_id, time, cost, kind, promise, what in rows
        ]

    def afford(self, guarantee: Guarantee) -> None:
        """Refuse early what a charge would refuse."""
        with self._transaction("deferred") as database:
            self._check(guarantee, _spent(database))

    def charge(self, guarantee: Guarantee, what: Mapping[str, str]) -> Entry:
        """Pay for a release, or refuse; on disk before this returns."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction("immediate") as database:
            cost = self._check(guarantee, _spent(database))
            entry = Entry(uuid.uuid4().hex, now, cost, guarantee, dict(what))
            row = (entry.id, entry.time, str(cost), *_row(guarantee), json.dumps(entry.what, ensure_ascii=False))
            database.execute("insert into entry (id, time, cost, kind, promised, what) values (?, ?, ?, ?, ?, ?)", row)
        return entry

    def _check(self, guarantee: Guarantee, spent: Fraction) -> Fraction:
        """The cost of a guarantee, if the ledger can bear it."""
        if isinstance(self.total, Pure) and not isinstance(guarantee, Pure):
            raise ValueError("rho cannot be charged to a ledger of ε, since zCDP promises no pure ε; ask with epsilon.")
        price = guarantee if isinstance(self.total, Pure) else as_zcdp(guarantee)
        left = _cost(self.total) - spent
        if _cost(price) > left:
            kind = type(self.total)
            raise LedgerRefusal(f"ledger must have {price} left, has {kind(left)} of {self.total}.")
        return _cost(price)

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


def _spent(database: sqlite3.Connection) -> Fraction:
    return sum((Fraction(cost) for (cost,) in database.execute("select cost from entry")), Fraction(0))


def _cost(guarantee: Guarantee) -> Fraction:
    return guarantee.epsilon if isinstance(guarantee, Pure) else guarantee.rho


def _row(guarantee: Guarantee) -> tuple[str, str]:
    return "pure" if isinstance(guarantee, Pure) else "zcdp", str(_cost(guarantee))


def _guarantee(kind: str, cost: str) -> Guarantee:
    return (Pure if kind == "pure" else ZeroConcentrated)(exact("cost", cost))
