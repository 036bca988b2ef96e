"""The chain: whatever was written to a ledger by others is refused with a sentence, and nothing is charged."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noiseaware.custodian.ledger.hash_chain import Link, Total, digest, flaw
from noiseaware.custodian.ledger.ledger import Ledger
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
def ledger(store):
    """A ledger of ε = 9 with five entries that cost 1/7 each."""
    made = Ledger.create(store.place(), epsilon=9)
    for _ in range(5):
        made.charge(PRICE, WHAT)
    return made


FIELDS = "id || 'x', time, cost, kind, promised, what, hash from entry where number = 2"
EDITS = {
    "update entry set cost = '0' where number = 3": "entry 3 does not follow from entry 2",
    "update entry set cost = '0' where number = 1": "entry 1 does not follow from the total",
    "update entry set cost = '8/7' where number = 5": "entry 5 does not follow from entry 4",
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
    "update total set bound = '[\"replace\"]'": "the total was changed",
    "update total set bound = ''": "the total was changed",
    "delete from total": "it has 0 totals where there must be one",
    "insert into total select * from total": "it has 2 totals where there must be one",
    "drop table entry": "is damaged (",
    "drop table total": "is damaged (",
}
OWN_EDITS = {
    ("files", "update entry set cost = cast(cost as blob) where number = 3"): "entry 3 does not follow from entry 2",
    ("files", "update entry set cost = cast(x'ff' as text) where number = 3"): "is damaged (OperationalError)",
    ("files", "update sqlite_sequence set seq = 3"): "it has 5 entries where 3 were charged",
    ("files", "delete from sqlite_sequence"): "it has 5 entries where 0 were charged",
    ("schemas", "update total set entries = 3"): "it has 5 entries where 3 were charged",
    ("schemas", "update total set entries = 9"): "entry 6 is missing",
    ("schemas", "alter table total drop entries"): "is damaged (UndefinedColumn)",
    ("schemas", "alter table entry drop what"): "is damaged (UndefinedColumn)",
    ("schemas", "alter table entry alter what drop not null; update entry set what = null"): "entry 1 does not follow",
    ("schemas", "truncate entry"): "entry 1 is missing",
}
ALL_EDITS = {(store, edit): told for edit, told in EDITS.items() for store in ("files", "schemas")} | OWN_EDITS


@pytest.mark.parametrize(("store", "edit"), ALL_EDITS, indirect=["store"])
def test_an_edited_ledger_is_refused_and_not_charged(store, ledger, edit, request):
    store.edit(store.place(), edit)
    before = None if edit.startswith("drop table") else store.content(store.place())
    told = ALL_EDITS[request.node.callspec.params["store"], edit]
    start = f"ledger {ledger.path} must hold what was charged, but {told}"
    remedy = "; release nothing more, and put back a copy that has the entry of every release."
    for act in (
        lambda: Ledger(store.place()),
        ledger.verify,
        ledger.entries,
        lambda: ledger.afford(PRICE),
        lambda: ledger.charge(PRICE, WHAT),
    ):
        with pytest.raises(ValueError) as refusal:
            act()
        assert str(refusal.value).startswith(start)
        assert str(refusal.value).endswith(remedy)
    assert before is None or store.content(store.place()) == before


def _rewrite(store, first, **changes):
    """Give an entry other fields and the right hash; what follows keeps the hash of what was there."""
    before, link = store.links(store.place())[first - 2 : first]
    link = link._replace(**changes)
    store.edit(store.place(), f"delete from entry where number = {first}")
    store.add(store.place(), [link._replace(hash=digest(before.hash, *link[:-1]))])


def test_an_entry_with_a_new_hash_does_not_fit_the_next(store, ledger):
    _rewrite(store, 3, cost="0")
    with pytest.raises(ValueError, match="entry 4 does not follow from entry 3, so one of them was changed"):
        Ledger(store.place())


def test_a_total_with_a_new_hash_does_not_fit_the_first_entry(store, ledger):
    store.edit(store.place(), f"update total set identity = 'i', cost = '900', hash = '{digest('i', 'pure', '900')}'")
    with pytest.raises(ValueError, match="entry 1 does not follow from the total"):
        Ledger(store.place())


FORGED = ["-5", "-1/7", "nan", "1/0", "", "0.1", "1e9", "1;-5", "9" * 5000, "1/" + "9" * 5000, " 1", "١"]
FORGED_WORDS = ["", "null", "[]", "1", "{", "[" * 100_000]


def _forged(links, **changes):
    """An entry after others, with the right hash."""
    fields = links[-1]._replace(number=len(links) + 1, id="forged", **changes)[:-1]
    return Link(*fields, digest(links[-1].hash, *fields))


def test_an_entry_that_no_charge_writes_is_refused_whatever_its_hash(files, ledger_of_five):
    total, links = ledger_of_five
    assert flaw([total], [*links, _forged(links, cost="1/7")], 6, None) is None
    for field in ("cost", "promised"):
        for cost in FORGED:
            told = flaw([total], [*links, _forged(links, **{field: cost})], 6, None)
            assert told == "entry 6 has a cost that is no fraction of at least 0"
    for what in FORGED_WORDS:
        told = flaw([total], [*links, _forged(links, what=what)], 6, None)
        assert told == "entry 6 does not say in words what was released"


@pytest.fixture
def ledger_of_five(files):
    ledger = Ledger.create(files.place("five"), epsilon=9)
    for _ in range(5):
        ledger.charge(PRICE, WHAT)
    with ledger._transaction() as (_, total, links):
        return total, links


def test_a_negative_entry_gives_nothing_back(store):
    """By whoever may add entries, to a ledger of the first format, whose tables let it in."""
    place = store.old(store.place(), "replace")
    store.add(place, [_forged(store.links(place), cost="-5")])
    with pytest.raises(ValueError, match=r"entry 3 has a cost that is no fraction of at least 0; release nothing more"):
        Ledger(place)


@pytest.mark.parametrize("table", ["entry", "total"])
def test_a_negative_cost_is_not_let_in(store, ledger, table):
    with pytest.raises(Exception, match=r"CHECK constraint failed|violates check constraint"):
        store.edit(store.place(), f"update {table} set cost = '-5'")
    assert ledger.verify() == 5


def test_a_binding_is_hashed_with_the_total(store):
    """Even taking it away."""
    made = Ledger.create(store.place(), epsilon=1, neighbours="add_remove")
    for bound in ("", "[]", "{}", '["replace"]', '["add_remove", "pid"]'):
        store.edit(store.place(), f"update total set bound = '{bound}'")
        with pytest.raises(ValueError, match=r"but the total was changed; release nothing more"):
            made.charge(PRICE, WHAT)


def test_a_bound_ledger_is_none_of_the_first_format(files, schemas):
    for store, edit in (
        (files, "pragma user_version = 1"),
        (schemas, f"comment on schema {schemas.schema()} is 'noiseaware ledger 1'"),
    ):
        Ledger.create(store.place(), epsilon=1, neighbours="add_remove")
        store.edit(store.place(), edit)
        with pytest.raises(ValueError, match=r"but the total was changed; release nothing more"):
            Ledger(store.place())


def test_what_a_chain_cannot_show_is_still_seen_by_who_read_it_before(store, ledger):
    """The limits that the docstring admits: a chain that was rewritten to its end is a chain."""
    ledger.charge(PRICE, WHAT)
    _rewrite(store, 6, cost="0")
    assert Ledger(store.place()).spent == 5 * PRICE.epsilon
    with pytest.raises(ValueError, match="entry 6, read before, is gone"):
        ledger.charge(PRICE, WHAT)


def test_an_old_copy_put_back_is_seen_by_who_read_it_before(files):
    """And by nobody else, but for a release whose entry the ledger does not have."""
    ledger = Ledger.create(files.place(), epsilon=9)
    old = files.content(files.place())
    ledger.charge(PRICE, WHAT)
    files.place().write_bytes(old)
    assert Ledger(files.place()).verify() == 0
    with pytest.raises(ValueError, match="entry 1, read before, is gone"):
        ledger.charge(PRICE, WHAT)


def test_another_ledger_of_the_same_name_is_noticed(store):
    ledger = Ledger.create(store.place(), epsilon=9)
    store.remove(store.place())
    with pytest.raises(ValueError, match="must stay where it is, and is gone; put it back"):
        ledger.charge(PRICE, WHAT)
    Ledger.create(store.place(), epsilon=1)
    with pytest.raises(ValueError, match="it is not the ledger that was opened"):
        ledger.charge(PRICE, WHAT)


FUNCTION = """
create function f() returns trigger language plpgsql set search_path from current as $$ begin {}; end $$;
create {}trigger t {} for each row execute function f()
"""
REMOVE = "delete from entry where number = new.number; return null"
LATE = "after insert on entry deferrable initially deferred"
TRIGGERS = [
    ("files", "create trigger t before insert on entry begin select raise(ignore); end"),
    ("files", "create trigger t after insert on entry begin delete from entry where number = new.number; end"),
    ("files", "create trigger t after insert on entry begin update entry set cost = '0' where id = new.id; end"),
    ("schemas", "create rule r as on insert to entry do instead nothing"),
    ("schemas", "create rule r as on update to total do instead nothing"),
    ("schemas", FUNCTION.format("new.cost = '0'; return new", "", "before insert on entry")),
    ("schemas", FUNCTION.format("return null", "", "before insert on entry")),
    ("schemas", FUNCTION.format("return null", "", "before update on total")),
    ("schemas", FUNCTION.format(REMOVE, "", "after insert on entry")),
    ("schemas", FUNCTION.format(REMOVE, "constraint ", LATE)),
]


@pytest.mark.parametrize(("store", "trigger"), TRIGGERS, indirect=["store"])
def test_a_charge_that_the_ledger_does_not_keep_is_none(store, ledger, trigger):
    store.edit(store.place(), trigger)
    with pytest.raises(ValueError, match="must hold what is charged, but did not keep it"):
        ledger.charge(PRICE, WHAT)
    assert ledger.verify() == 5


def test_a_ledger_without_hashes_is_refused(files):
    path = files.place("old")
    files.edit(path, f"pragma application_id = {0x6E616C67}; create table total (kind text, cost text)")
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


CELLS = [("total", 0, name) for name in Total._fields]
CELLS += [("entry", number, name) for number in range(1, 6) for name in Link._fields[1:]]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])  # what is changed is put back
@given(cell=st.sampled_from(CELLS), place=st.integers(0, 2**16), other=st.characters(codec="ascii", min_codepoint=1))
def test_a_changed_character_in_postgresql_is_refused(schemas, charged, cell, place, other):
    table, number, name = cell
    where = f"where number = {number}" if number else ""
    with schemas.connected(schemas.place()) as database:
        ((text,),) = database.execute(f"select {name} from {table} {where}").fetchall()
        place %= len(text)
        change, changed = f"update {table} set {name} = %s {where}", text[:place] + other + text[place + 1 :]
        if changed == text or (name == "kind"):  # a kind that there is not, the table itself refuses
            return
        database.execute(change, (changed,))
        with pytest.raises(ValueError, match="must hold what was charged, but"):
            Ledger(schemas.place())
        database.execute(change, (text,))


@pytest.fixture
def charged(schemas):
    made = Ledger.create(schemas.place(), epsilon=9)
    for _ in range(5):
        made.charge(PRICE, WHAT)


@pytest.mark.parametrize("edit", ["entry alter number type text", "total alter entries type text"])
def test_another_type_is_refused_or_changes_nothing(schemas, edit):
    made = Ledger.create(schemas.place(), epsilon=9)
    entries = [made.charge(PRICE, WHAT) for _ in range(11)]
    schemas.edit(schemas.place(), f"alter table {edit}")
    sentence = _refusal(schemas.place(), made.total, entries)
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
