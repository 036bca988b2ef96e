"""The chain: whatever was written to the file by others is refused with a sentence, and nothing is charged."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseaware.custodian.chain import Link, digest
from noiseaware.custodian.ledger import Ledger
from noiseaware.privacy import Pure

PRICE = Pure(Fraction(1, 7))
WHAT = {"table": "clinic.csv"}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The bytes of a ledger, and what stands in them."""
    ledger = Ledger.create(tmp_path_factory.mktemp("image") / "a.ledger", epsilon=9)
    for _ in range(5):
        ledger.charge(PRICE, WHAT)
    return ledger.path.read_bytes(), ledger.total, ledger.entries()


@pytest.fixture
def ledger(tmp_path, image):
    """A ledger of ε = 9 with five entries that cost 1/7 each."""
    path = tmp_path / "a.ledger"
    path.write_bytes(image[0])
    return Ledger(path)


def _edit(path, statements):
    with closing(sqlite3.connect(path)) as database:
        database.executescript(statements)


FIELDS = "id || 'x', time, cost, kind, promised, what, hash from entry where number = 2"
EDITS = {
    "update entry set cost = '0' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set cost = '0' where number = 1": "entry 1 does not follow from the total",
    "update entry set cost = '-1' where number = 5": "entry 5 does not follow from entry 4",
    "update entry set cost = cast(cost as blob) where number = 3": "entry 3 does not follow from entry 2",
    "update entry set cost = cast(x'ff' as text) where number = 3": "is damaged (OperationalError)",
    "update entry set id = 'other' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set time = '1999' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set kind = 'zcdp' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set promised = '1/8' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set what = '{}' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set hash = hash || '0' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set number = 9 where number = 3": "entry 3 is missing",
    "delete from entry where number = 1": "entry 1 is missing",
    "delete from entry where number = 3": "entry 3 is missing",
    "delete from entry where number = 5": "entry 5 is missing",
    "delete from entry where number > 3": "entry 4 is missing",
    "delete from entry": "entry 1 is missing",
    "delete from entry where number = 3; update entry set number = number - 1 where number > 3": "entry 3 does not",
    "update entry set number = -number; update entry set number = 6 + number": "entry 1 does not follow from the total",
    f"insert into entry select 6, {FIELDS}": "entry 6 does not follow from entry 5",
    f"insert into entry select 0, {FIELDS}": "entry 0 was inserted",
    f"insert into entry select 8, {FIELDS}": "entry 6 is missing",
    "update total set cost = '900'": "the total was changed",
    "update total set kind = 'zcdp'": "the total was changed",
    "update total set identity = 'another'": "the total was changed",
    "update total set hash = '0'": "the total was changed",
    "delete from total": "it has 0 totals where there must be one",
    "insert into total select * from total": "it has 2 totals where there must be one",
    "update sqlite_sequence set seq = 3": "it has 5 entries where 3 were charged",
    "delete from sqlite_sequence": "it has 5 entries where 0 were charged",
    "drop table entry": "is damaged (SQLITE_ERROR)",
    "drop table total": "is damaged (SQLITE_ERROR)",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_refused_and_not_charged(ledger, edit):
    _edit(ledger.path, edit)
    before = ledger.path.read_bytes()
    start = f"ledger {ledger.path} must hold what was charged, but {EDITS[edit]}"
    remedy = "; release nothing more, and put back a copy that has the entry of every release."
    for act in (
        lambda: Ledger(ledger.path),
        ledger.verify,
        ledger.entries,
        lambda: ledger.afford(PRICE),
        lambda: ledger.charge(PRICE, WHAT),
    ):
        with pytest.raises(ValueError) as refusal:
            act()
        assert str(refusal.value).startswith(start)
        assert str(refusal.value).endswith(remedy)
    assert ledger.path.read_bytes() == before


def _rewrite(path, first, **changes):
    """Give an entry other fields and the right hash; what follows keeps the hash of what was there."""
    with closing(sqlite3.connect(path)) as database:
        find = f"select {', '.join(Link._fields)} from entry where number = ?"
        ((before,),) = database.execute("select hash from entry where number = ?", (first - 1,)).fetchall()
        link = Link(*database.execute(find, (first,)).fetchone())._replace(**changes)
        link = link._replace(hash=digest(before, *link[:-1]))
        database.execute("delete from entry where number = ?", (first,))
        database.execute("insert into entry values (?, ?, ?, ?, ?, ?, ?, ?)", link)
        database.commit()


def test_an_entry_with_a_new_hash_does_not_fit_the_next(ledger):
    _rewrite(ledger.path, 3, cost="0")
    with pytest.raises(ValueError, match="entry 4 does not follow from entry 3, so one of them was changed"):
        Ledger(ledger.path)


def test_a_total_with_a_new_hash_does_not_fit_the_first_entry(ledger):
    with closing(sqlite3.connect(ledger.path)) as database:
        ((identity,),) = database.execute("select identity from total").fetchall()
    _edit(ledger.path, f"update total set cost = '900', hash = '{digest(identity, 'pure', '900')}'")
    with pytest.raises(ValueError, match="entry 1 does not follow from the total"):
        Ledger(ledger.path)


def test_what_a_chain_cannot_show_is_still_seen_by_who_read_it_before(ledger, tmp_path):
    """The limits that the docstring admits: a chain that was rewritten to its end, or cut, is a chain."""
    old = tmp_path / "old"
    shutil.copy(ledger.path, old)
    ledger.charge(PRICE, WHAT)
    _rewrite(ledger.path, 6, cost="0")
    assert Ledger(ledger.path).spent == 5 * PRICE.epsilon
    with pytest.raises(ValueError, match="entry 6, read before, is gone"):
        ledger.charge(PRICE, WHAT)
    old.replace(ledger.path)
    assert Ledger(ledger.path).verify() == 5
    with pytest.raises(ValueError, match="entry 6, read before, is gone"):
        ledger.charge(PRICE, WHAT)


def test_another_ledger_of_the_same_name_is_noticed(tmp_path):
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=9)
    ledger.path.unlink()
    Ledger.create(ledger.path, epsilon=1)
    with pytest.raises(ValueError, match="it is not the ledger that was opened"):
        ledger.charge(PRICE, WHAT)


@pytest.mark.parametrize(
    "trigger",
    [
        "before insert on entry begin select raise(ignore); end",
        "after insert on entry begin delete from entry where number = new.number; end",
        "after insert on entry begin update entry set cost = '0' where number = new.number; end",
    ],
)
def test_a_charge_that_the_file_does_not_keep_is_none(ledger, trigger):
    _edit(ledger.path, f"create trigger t {trigger}")
    with pytest.raises(ValueError, match="must hold what is charged, but did not keep it"):
        ledger.charge(PRICE, WHAT)
    assert ledger.verify() == 5


def test_a_ledger_without_hashes_is_refused(tmp_path):
    path = tmp_path / "old.ledger"
    _edit(path, f"pragma application_id = {0x6E616C67}; create table total (kind text, cost text)")
    with pytest.raises(ValueError, match=r"must be of this version .* make a new one of what is left"):
        Ledger(path)


@settings(max_examples=150)
@given(place=st.integers(0, 2**16), flip=st.integers(1, 255))
def test_a_changed_byte_is_refused_or_changes_nothing(image, place, flip):
    content, *truth = bytearray(image[0]), *image[1:]
    used = [i for i, byte in enumerate(content) if byte]  # most of a page is empty
    content[used[place % len(used)]] ^= flip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.ledger")
        path.write_bytes(content)
        sentence = _refusal(path, *truth)
    assert sentence is None or sentence.startswith("ledger ")


def _refusal(path, total, entries):
    """The sentence that refuses a ledger or a charge to it; None if both were right."""
    try:
        ledger = Ledger(path)
        assert (ledger.total, ledger.entries()) == (total, entries)
        entry = ledger.charge(PRICE, WHAT)
        assert Ledger(path).entries() == [*entries, entry]
    except ValueError as error:
        return str(error)
