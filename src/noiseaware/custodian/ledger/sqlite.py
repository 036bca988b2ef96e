"""A ledger's rows in a SQLite file.

One transaction locks the file, and is on disk before it ends; a new ledger gets its name when it is whole.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from noiseaware.custodian.ledger.hash_chain import REMEDY, UNBOUND, Link, Total

_APPLICATION_ID = 0x6E616C67  # "nalg": how a ledger is told from other SQLite files
_FORMAT = 2  # SQLite's user_version; 1 did not say for which neighbours a ledger was made, 0 was without hashes
_FIRST_FORMAT = 1
_BUSY_SECONDS = 30.0
_SCHEMA = """
create table total (
    identity text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    cost text not null check (cost not glob '*-*'),
    bound text not null,
    hash text not null
);
create table entry (
    number integer primary key autoincrement,
    id text not null unique,
    time text not null,
    cost text not null check (cost not glob '*-*'),
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    promised text not null,
    what text not null,
    hash text not null
);
"""
_COLUMNS = ", ".join(Link._fields)


class SQLite:
    """The file of one ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, total: Total) -> None:
        """Make the file, whole or not at all."""
        path = self.path
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

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[sqlite3.Connection]:
        """One transaction on the file: committed if the block ends, rolled back if it does not."""
        if not os.path.isfile(self.path):
            raise FileNotFoundError
        self._check_name()
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
                database.execute("pragma synchronous = extra")  # full, and the journal's folder too
                database.execute("begin immediate" if writes else "begin deferred")
                self._check_format(database)
                yield database
                database.execute("commit")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter when SQLite's message quotes a damaged file
            if getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_DBMOVED" or not os.path.exists(self.path):
                raise FileNotFoundError from None
            raise ValueError(f"ledger {_sentence(self.path, error)}.") from None

    def rows(self, database: sqlite3.Connection) -> tuple[list[Total], list[Link], int]:
        """The totals, the entries in order, and how many there were ever."""
        bound = f"'{UNBOUND}'" if self._format(database) == _FIRST_FORMAT else "bound"
        totals = [Total(*row) for row in database.execute(f"select identity, kind, cost, {bound}, hash from total")]
        links = [Link(*row) for row in database.execute(f"select {_COLUMNS} from entry order by number")]
        ((count,),) = database.execute("select coalesce(max(cast(seq as integer)), 0) from sqlite_sequence")
        return totals, links, count

    def append(self, database: sqlite3.Connection, link: Link) -> bool:
        """Write an entry; whether it stands there as it was written."""
        database.execute(f"insert into entry ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)", link)
        return database.execute(f"select {_COLUMNS} from entry where number = ?", (link.number,)).fetchall() == [link]

    def _check_name(self) -> None:
        """Refuse a file of two names: a half-written charge is in the journal beside one of them, unseen by the other.

        Who charged by the other name would have that charge taken back when the ledger is next opened by the first.
        """
        if os.stat(self.path).st_nlink > 1:
            advice = "keep the one that has a -journal beside it, if one has, and remove the other hard links"
            raise ValueError(f"ledger {self.path} must be a file of one name, and has several; {advice}.")

    def _check_format(self, database: sqlite3.Connection) -> None:
        if database.execute("pragma application_id").fetchone() != (_APPLICATION_ID,):
            raise ValueError(f"ledger must be a file made by `noiseaware ledger create`, got {self.path}.")
        version = self._format(database)
        if version > _FORMAT:
            raise ValueError(f"ledger {self.path} must not be of a newer version of noiseaware; upgrade noiseaware.")
        if version < _FIRST_FORMAT:
            make = "make a new one of what is left with `noiseaware ledger create`"
            rule = "must be of this version of noiseaware, whose entries have hashes"
            raise ValueError(f"ledger {self.path} {rule}; {make}.")

    def _format(self, database: sqlite3.Connection) -> int:
        ((version,),) = database.execute("pragma user_version")
        return version


_FAILURES = {
    "SQLITE_BUSY": "must not be locked; ask again when whoever holds it is done",
    "SQLITE_READONLY": "and its folder must be writable",
    "SQLITE_CANTOPEN": "and its folder must be readable and writable",
    "SQLITE_FULL": "must have room on its disk",
    "SQLITE_IOERR": "must be on a disk that has room and works",
}


def _sentence(path: Path, error: Exception) -> str:
    """Translate an error of SQLite into the rule that the ledger breaks."""
    name = getattr(error, "sqlite_errorname", type(error).__name__)  # SQLite's, if it was not Python's sqlite3 itself
    if name == "SQLITE_NOTADB":
        return f"must be a file made by `noiseaware ledger create`, got {path}"
    for kind, rule in _FAILURES.items():
        if name.startswith(kind):
            return f"{path} {rule}"
    return f"{path} must hold what was charged, but is damaged ({name}); {REMEDY}"


def _draft(path: Path, total: Total) -> Path:
    """A new ledger's file."""
    try:
        with closing(sqlite3.connect(path)) as database:
            marks = f"pragma application_id = {_APPLICATION_ID}; pragma user_version = {_FORMAT};"
            database.executescript(f"{marks} {_SCHEMA}")
            database.execute("insert into total values (?, ?, ?, ?, ?)", total)
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
