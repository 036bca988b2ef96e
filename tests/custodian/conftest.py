"""Where ledgers are kept: a test that asks for `store` runs over a SQLite file and over PostgreSQL."""

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from noiseaware.custodian.ledger.hash_chain import Link, digest

COLUMNS = ", ".join(Link._fields)
# The first format, which did not say for whom a ledger was made, and ledgers that version 795bd02 made in it.
OLD = json.loads(Path(__file__).with_name("old_ledgers.json").read_text(encoding="utf-8"))
OLD_TOTAL = """
    identity text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    cost text not null,
    hash text not null
"""
OLD_ENTRY = """
    id text not null unique,
    time text not null,
    cost text not null,
    kind text not null check (kind in ('pure', 'zcdp', 'approximate')),
    promised text not null,
    what text not null,
    hash text not null
"""


class _Store:
    def grow(self, place, count):
        """Repeat the last entry, all at once: each charge alone waits for the disk."""
        link, made = self.links(place)[-1], []
        for i in range(count):
            fields = link.number + 1, str(i), *link[2:-1]
            link = Link(*fields, digest(link.hash, *fields))
            made.append(link)
        self.add(place, made)


class Files(_Store):
    """Ledgers in files of a folder."""

    def __init__(self, folder):
        self.folder = folder

    def place(self, name="a"):
        return self.folder / f"{name}.ledger"

    def edit(self, place, statements):
        """Do to a ledger what no command of ours would."""
        with closing(sqlite3.connect(place)) as database:
            database.executescript(statements)

    def links(self, place):
        with closing(sqlite3.connect(place)) as database:
            return [Link(*row) for row in database.execute(f"select {COLUMNS} from entry order by number")]

    def add(self, place, links):
        with closing(sqlite3.connect(place)) as database:
            database.executemany("insert into entry values (?, ?, ?, ?, ?, ?, ?, ?)", links)
            database.commit()

    def old(self, place, name):
        """A ledger of the first format."""
        marks = f"pragma application_id = {0x6E616C67}; pragma user_version = 1;"
        number = "number integer primary key autoincrement"
        self.edit(place, f"{marks} create table total ({OLD_TOTAL}); create table entry ({number}, {OLD_ENTRY})")
        with closing(sqlite3.connect(place)) as database:
            database.execute("insert into total values (?, ?, ?, ?)", OLD[name]["total"])
            database.commit()
        self.add(place, OLD[name]["entries"])
        return place

    def content(self, place):
        return place.read_bytes()

    def remove(self, place):
        place.unlink()


class Schemas(_Store):
    """Ledgers in schemas of a PostgreSQL database."""

    def __init__(self, url):
        self.url, self.prefix = url, f"t{uuid.uuid4().hex[:8]}"

    def place(self, name="a"):
        return f"{self.url}?ledger={self.schema(name)}"

    def schema(self, name="a"):
        return f"{self.prefix}_{name}"

    def connected(self, place):
        import psycopg

        url, _, schema = place.partition("?ledger=")
        return psycopg.connect(url, options=f"-c search_path={schema}", autocommit=True)

    def edit(self, place, statements):
        with self.connected(place) as database:
            database.execute(statements)

    def links(self, place):
        with self.connected(place) as database:
            return [Link(*row) for row in database.execute(f"select {COLUMNS} from entry order by number")]

    def add(self, place, links):
        with self.connected(place) as database, database.cursor() as cursor:
            cursor.executemany(f"insert into entry ({COLUMNS}) values ({', '.join(['%s'] * 8)})", links)
            cursor.execute("update total set entries = (select max(number) from entry)")

    def old(self, place, name):
        """A ledger of the first format."""
        schema = place.partition("?ledger=")[2]
        with self.connected(place) as database:
            database.execute(f"create schema {schema}; comment on schema {schema} is 'noiseaware ledger 1'")
            database.execute(f"create table total ({OLD_TOTAL}, entries bigint not null)")
            database.execute(f"create table entry (number bigint primary key, {OLD_ENTRY})")
            database.execute("insert into total values (%s, %s, %s, %s, 0)", OLD[name]["total"])
        if OLD[name]["entries"]:
            self.add(place, OLD[name]["entries"])
        return place

    def content(self, place):
        with self.connected(place) as database:
            tables = (database.execute(f"select * from {table} order by 1").fetchall() for table in ("total", "entry"))
            return list(tables)

    def remove(self, place):
        self.edit(place, f"drop schema {place.partition('?ledger=')[2]} cascade")


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def schemas(postgres):
    return Schemas(postgres)


@pytest.fixture(params=["files", "schemas"])
def store(request):
    return request.getfixturevalue(request.param)
