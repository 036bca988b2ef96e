"""The ledger: exact, never overspent whoever else is charging, and kind in its refusals."""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.privacy import Approximate, Pure, ZeroConcentrated

PRICE = Pure(Fraction(1, 7))
WHAT = {"family": "bernoulli", "columns": "smokes", "table": "clinic.csv", "neighbours": "replace"}


def test_a_thousand_thousandths_make_exactly_one(store):
    ledger = Ledger.create(store.place(), epsilon=1)
    ledger.charge(Pure(Fraction(1, 1000)), WHAT)
    store.grow(store.place(), 989)
    for _ in range(10):
        ledger.charge(Pure(Fraction(1, 1000)), WHAT)
    assert ledger.spent == 1
    assert ledger.remaining == 0
    with pytest.raises(LedgerRefusal):
        ledger.charge(Pure(Fraction(1, 10**30)), WHAT)
    assert len(ledger.entries()) == 1000


def test_refusal_says_what_was_asked_and_left_and_total(store):
    ledger = Ledger.create(store.place(), epsilon="1")
    ledger.charge(Pure(Fraction(3, 4)), WHAT)
    for refused in (ledger.afford, lambda guarantee: ledger.charge(guarantee, WHAT)):
        with pytest.raises(LedgerRefusal, match=r"^ledger must have ε = 0.5 left, has ε = 0.25 of ε = 1\.$"):
            refused(Pure(Fraction(1, 2)))
    ledger.afford(Pure(Fraction(1, 4)))
    assert ledger.spent == Fraction(3, 4)


def test_entries_survive_and_tell_what_was_charged(store):
    made = Ledger.create(store.place(), rho="1/3")
    first = made.charge(ZeroConcentrated(Fraction(1, 7)), WHAT)
    second = made.charge(Pure(Fraction(1, 2)), WHAT)
    opened = Ledger.open(str(store.place()))
    assert opened.total == ZeroConcentrated(Fraction(1, 3))
    assert opened.entries() == [first, second]
    assert first.id != second.id
    assert opened.spent == Fraction(1, 7) + Fraction(1, 8)  # a pure ε costs ε²/2
    assert second.guarantee == Pure(Fraction(1, 2))
    assert second.what == WHAT
    with pytest.raises(FrozenInstanceError):
        first.cost = Fraction(0)  # type: ignore[misc]


def test_rho_is_no_pure_epsilon(store):
    ledger = Ledger.create(store.place(), epsilon=10)
    with pytest.raises(ValueError, match="ask with epsilon"):
        ledger.afford(ZeroConcentrated(Fraction(1, 100)))
    with pytest.raises(ValueError, match="ask with epsilon"):
        ledger.charge(ZeroConcentrated(Fraction(1, 100)), WHAT)
    assert ledger.spent == 0


@pytest.mark.parametrize(
    "total",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"rho": "inf"},
        {"rho": "x"},
    ],
)
def test_bad_totals_leave_nothing(store, tmp_path, total):
    with pytest.raises(ValueError, match=r"^(give exactly one of epsilon|(epsilon|rho) must be)"):
        Ledger.create(store.place(), **total)
    with pytest.raises(ValueError, match="ledger must exist"):
        Ledger(store.place())
    assert list(tmp_path.iterdir()) == []


def test_create_refuses_an_existing_ledger_and_a_missing_folder(store, tmp_path):
    path = store.place()
    Ledger.create(path, epsilon=1).charge(Pure(Fraction(1)), WHAT)
    with pytest.raises(ValueError, match="exists already"):
        Ledger.create(path, epsilon=100)
    assert Ledger(path).remaining == 0
    with pytest.raises(ValueError, match="folder must exist"):
        Ledger.create(tmp_path / "no" / "a.ledger", epsilon=1)
    assert {file.name for file in tmp_path.iterdir()} <= {"a.ledger"}


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to look at" * 100, "sqlite", "cut"])
def test_what_is_not_a_ledger_is_refused(tmp_path, content):
    path = tmp_path / "a.ledger"
    if content == "sqlite":
        other = sqlite3.connect(path)
        other.execute("create table entry (cost text)")
        other.close()
    elif content == "cut":
        Ledger.create(path, epsilon=1)
        path.write_bytes(path.read_bytes()[:5000])
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^ledger must be a file made by|^ledger .* is damaged"):
        Ledger(path)


def test_a_missing_ledger_names_the_command(store, tmp_path):
    with pytest.raises(ValueError, match="noiseaware ledger create"):
        Ledger(store.place("none"))
    with pytest.raises(ValueError, match="noiseaware ledger create"):
        Ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _charge_until_refused(path, start, counts):
    ledger, paid = Ledger(path), 0
    start.wait()
    try:
        while True:
            ledger.charge(Pure(Fraction(1, 7)), WHAT)
            paid += 1
    except LedgerRefusal:
        counts.put(paid)


def test_processes_that_charge_at_once_never_overspend(store):
    path = store.place()
    Ledger.create(path, epsilon=10)
    spawn = multiprocessing.get_context("spawn")  # JAX has threads, so that forking is not safe
    start, counts = spawn.Barrier(3), spawn.Queue()
    workers = [spawn.Process(target=_charge_until_refused, args=(path, start, counts)) for _ in range(3)]
    for worker in workers:
        worker.start()
    paid = sum(counts.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    assert paid == 70
    assert Ledger(path).spent == 10


def test_a_locked_ledger_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("noiseaware.custodian.ledger.sqlite._BUSY_SECONDS", 0.05)
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("begin exclusive")
    with pytest.raises(ValueError, match=r"must not be locked; ask again when whoever holds it is done\.$"):
        ledger.charge(Pure(Fraction(1, 2)), WHAT)
    other.execute("rollback")
    other.close()
    assert ledger.spent == 0


def test_epsilon_and_delta_add_up_each_by_itself(store):
    ledger = Ledger.create(store.place(), epsilon=1, delta="1e-5")
    for _ in range(4):
        ledger.charge(Approximate(Fraction(1, 10), Fraction(1, 500_000)), {})
    ledger.charge(Pure(Fraction(1, 2)), {})
    assert (ledger.spent, ledger.spent_delta) == (Fraction(9, 10), Fraction(8, 10**6))
    assert (ledger.remaining, ledger.total) == (Fraction(1, 10), Approximate(Fraction(1), Fraction(1, 10**5)))
    again = Ledger(store.place())
    assert [entry.delta for entry in again.entries()] == [Fraction(1, 500_000)] * 4 + [0]
    assert again.entries()[0].guarantee == Approximate(Fraction(1, 10), Fraction(1, 500_000))
    with pytest.raises(LedgerRefusal, match=r"must have ε = 0\.2 left, has ε = 0\.1, δ = 2e-06 of ε = 1, δ = 1e-05"):
        ledger.charge(Pure(Fraction(1, 5)), {})
    with pytest.raises(LedgerRefusal, match=r"has ε = 0\.1, δ = 2e-06"):  # ε would do, δ would not
        ledger.charge(Approximate(Fraction(1, 100), Fraction(1, 10**5)), {})
    assert ledger.spent == Fraction(9, 10)


def test_what_has_a_delta_is_charged_where_there_is_one(store):
    pure, zcdp = (Ledger.create(store.place(name), **{name: 1}) for name in ("epsilon", "rho"))
    both = Ledger.create(store.place("both"), epsilon=1, delta=0.1)
    for ledger in (pure, zcdp):
        with pytest.raises(ValueError, match="delta cannot be charged to a ledger of"):
            ledger.charge(Approximate(Fraction(1, 10), Fraction(1, 100)), {})
    with pytest.raises(ValueError, match="rho cannot be charged to a ledger of ε and δ"):
        both.charge(ZeroConcentrated(Fraction(1, 10)), {})
    for bad in ({"rho": 1, "delta": 0.1}, {"delta": 0.1}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": -1}):
        with pytest.raises(ValueError, match=r"must be|exactly one of"):
            Ledger.create(store.place("bad"), **bad)
    with pytest.raises(ValueError, match="ledger must exist"):
        Ledger(store.place("bad"))


def test_a_clock_that_goes_backwards_does_not_matter(store, monkeypatch):
    class Clock:
        time = datetime(2024, 3, 31, tzinfo=UTC)

        @classmethod
        def now(cls, _):
            cls.time -= timedelta(days=100)
            return cls.time

    monkeypatch.setattr("noiseaware.custodian.ledger.ledger.datetime", Clock)
    ledger = Ledger.create(store.place(), epsilon="3/7")
    made = [ledger.charge(PRICE, WHAT) for _ in range(3)]
    assert [entry.time[:10] for entry in made] == ["2023-12-22", "2023-09-13", "2023-06-05"]
    assert Ledger(store.place()).entries() == made
    with pytest.raises(LedgerRefusal):
        ledger.charge(PRICE, WHAT)


@pytest.mark.parametrize("cost", [Fraction(-1), float("nan"), 0.5, float("inf")])
def test_a_cost_that_would_give_back_or_cannot_be_added_is_refused(store, cost):
    ledger = Ledger.create(store.place(), epsilon=1)
    for act in (ledger.afford, lambda guarantee: ledger.charge(guarantee, WHAT)):
        with pytest.raises(ValueError, match="guarantee must be of fractions that are not negative, got Pure"):
            act(Pure(cost))
    assert ledger.verify() == 0


class Spendthrift(Fraction):
    """A fraction that says of itself that it is never more than another, and is 100."""

    def __gt__(self, other):
        return False

    __lt__ = __le__ = __ge__ = __gt__

    def __sub__(self, other):
        return Fraction(0)

    __add__ = __radd__ = __rsub__ = __mul__ = __rmul__ = __sub__

    def __str__(self):
        return "0"


class Fickle(Fraction):
    """A fraction whose numerator is no plain whole number."""

    @property
    def numerator(self):
        return True


class Discount(Pure):
    """A promise that is another whenever it is read."""

    reads = 0

    def __getattribute__(self, name):
        if name != "epsilon":
            return super().__getattribute__(name)
        Discount.reads += 1
        return Fraction(1, 10) if Discount.reads == 1 else Fraction(100)


def test_a_cost_with_a_mind_of_its_own_is_taken_for_the_fraction_that_it_is(store):
    ledger = Ledger.create(store.place(), epsilon=1)
    for act in (ledger.afford, lambda guarantee: ledger.charge(guarantee, WHAT)):
        with pytest.raises(LedgerRefusal, match=r"^ledger must have ε = 100 left, has ε = 1 of ε = 1\.$"):
            act(Pure(Spendthrift(100)))
        with pytest.raises(ValueError, match="guarantee must be of fractions that are not negative"):
            act(Pure(Fickle(1, 2)))
        with pytest.raises(ValueError, match=r"guarantee must be one of noiseaware\.privacy, got str"):
            act("ε = 0")
    entry = ledger.charge(Pure(Spendthrift(1, 2)), WHAT)
    assert (type(entry.cost), entry.cost, ledger.spent) == (Fraction, Fraction(1, 2), Fraction(1, 2))
    assert (type(entry.guarantee), type(entry.guarantee.epsilon)) == (Pure, Fraction)
    Discount.reads = 0
    entry = ledger.charge(Discount(Fraction(100)), WHAT)
    assert entry == ledger.entries()[-1]
    assert (entry.cost, entry.guarantee, ledger.spent) == (Fraction(1, 10), Pure(Fraction(1, 10)), Fraction(6, 10))


class Gift(Pure):
    """A promise that says that it costs nothing."""

    def kept_by(self):
        return Pure(Fraction(0))


def test_the_cost_of_a_promise_is_not_what_it_says_of_itself(tmp_path):
    ledger = Ledger.create(tmp_path / "k.ledger", rho=1)
    assert ledger.cost(Gift(Fraction(1, 2))) == Pure(Fraction(1, 2))


def test_a_ledger_of_two_names_is_refused_and_heals_by_the_one_with_its_journal(tmp_path):
    """Killed in the middle of a write by one name; by the other, what is half-written would be the ledger."""
    path, other = tmp_path / "k.ledger", tmp_path / "h.ledger"
    Ledger.create(path, epsilon=9).charge(PRICE, WHAT)
    os.link(path, other)
    code = """if True:
        import os, sqlite3, sys
        database = sqlite3.connect(sys.argv[1], isolation_level=None)
        database.execute("pragma cache_size = 1")
        database.execute("begin immediate")
        database.execute("delete from entry")
        database.execute("create table filler (a)")
        database.executemany("insert into filler values (?)", [("x" * 4000,)] * 100)
        os.kill(os.getpid(), 9)
    """
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    assert (tmp_path / "k.ledger-journal").exists()
    for name in (path, other):
        with pytest.raises(
            ValueError, match=r"must be a file of one name, and has several; keep the one that has a -jou"
        ):
            Ledger(name)
    other.unlink()
    assert Ledger(path).verify() == 1


def test_what_costs_nothing_is_an_entry_too(store):
    ledger = Ledger.create(store.place(), epsilon=1)
    entry = ledger.charge(Pure(Fraction(0)), WHAT)
    assert (ledger.entries(), ledger.spent) == ([entry], 0)


def test_ten_thousand_entries_are_verified_in_less_than_a_second(store):
    ledger = Ledger.create(store.place(), epsilon=10)
    ledger.charge(Pure(Fraction(1, 1000)), WHAT)
    store.grow(store.place(), 9999)
    taken = []
    for _ in range(3):  # the best of them, in this thread: others in the process may be at work
        start = time.thread_time()
        assert ledger.verify() == 10_000
        taken.append(time.thread_time() - start)
    assert min(taken) < 1  # about 0.1 was measured
    assert ledger.remaining == 0
