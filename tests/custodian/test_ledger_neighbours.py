"""A ledger adds up promises about the same neighbours: one relation, one unit, whoever charges and whenever."""

import itertools
import json
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.custodian.conftest import OLD
from typer.testing import CliRunner

import noiseaware as na
import noiseaware.program as pp
from noiseaware.cli import app
from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.custodian.table import Table
from noiseaware.privacy import Approximate, Pure, Relation, ZeroConcentrated

ILL = na.family.Bernoulli("ill")
RECORDS = pd.DataFrame({"ill": [1, 0, 0, 1], "pid": [1, 1, 2, 3], "hid": [1, 1, 1, 2]})
HALF = Pure(Fraction(1, 2))
REPLACE, ADD_REMOVE = {"neighbours": "replace"}, {"neighbours": "add_remove"}
PID, HID = ({"neighbours": "add_remove", "unit": f"{name}, at most 2 records"} for name in ("pid", "hid"))
ALL = {"replace": REPLACE, "add_remove": ADD_REMOVE, "pid": PID, "hid": HID}
CONVERTED = {("replace", "add_remove")}  # a ledger of the first takes a charge of the second, for two steps
UNLIKE = r"adds up promises for .* and must be charged for the same, got ε = 0\.5 for .*; charge one of its own, "


def program(adjacency):
    """A certified count at ε = 1/2."""

    def count(p, db):
        return p.laplace(db.count(), epsilon="1/2")

    count.__annotations__["db"] = pp.Booleans("ill", adjacency=adjacency)
    return pp.check(pp.program(epsilon=1)(count))


def read_nothing(monkeypatch):
    for method in ("sums", "group_sums", "counts", "records"):
        monkeypatch.setattr(Table, method, lambda *_, **__: pytest.fail("the table was read"))


# ---- which charges add up --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "other"), list(itertools.product(ALL, ALL)))
@pytest.mark.parametrize("when", ["created", "charged"])
def test_what_is_about_other_neighbours_is_refused_or_counted_as_two_steps(files, bound, other, when):
    given = {"neighbours": ALL[bound]["neighbours"], "unit": bound if bound.endswith("id") else None}
    ledger = Ledger.create(files.place(), epsilon=2, **(given if when == "created" else {}))
    if when == "charged":
        ledger.charge(Pure(Fraction(0)), ALL[bound])
    assert ledger.relation == Ledger(files.place()).relation == Relation(**given)
    relation = Relation(ALL[other]["neighbours"], other if other.endswith("id") else None)
    if bound == other or (bound, other) in CONVERTED:
        ledger.afford(HALF, relation)
        entry = ledger.charge(HALF, ALL[other])
        assert (entry.cost, entry.guarantee) == (Fraction(1, 2) if bound == other else 1, HALF)
        assert entry == ledger.entries()[-1]
        assert entry.relation == relation
        assert entry.what.get("counted") == (None if bound == other else "as ε = 1 for replacing one record")
    else:
        for act in (lambda: ledger.afford(HALF, relation), lambda: ledger.charge(HALF, ALL[other])):
            with pytest.raises(ValueError, match=UNLIKE):
                act()
        assert ledger.spent == 0
    assert ledger.relation == Relation(**given)
    assert ledger.mixture is None


def test_a_bound_ledger_and_its_first_charge_are_alike_in_both_stores(store):
    ledger = Ledger.create(store.place(), epsilon=2)
    assert ledger.relation is None
    ledger.charge(HALF, PID)
    assert Ledger(store.place()).relation == Relation("add_remove", "pid")
    made = Ledger.create(store.place("b"), epsilon=2, unit="pid")
    assert Ledger(store.place("b")).relation == Relation("add_remove", "pid")
    for each in (ledger, made):
        with pytest.raises(ValueError, match=UNLIKE):
            each.charge(HALF, REPLACE)
        each.charge(HALF, PID)


def test_a_person_is_the_same_however_many_records_are_summed(files):
    ledger = Ledger.create(files.place(), epsilon=2)
    for most in (1, 2, 1000):
        ledger.charge(Pure(Fraction(1, 4)), {"unit": f"pid, at most {most} records"})
    assert ledger.relation == Relation("add_remove", "pid")
    ledger = Ledger.create(files.place("odd"), epsilon=2)
    ledger.charge(HALF, {"unit": "pid, at most 3 records, at most 2 records"})
    assert ledger.relation == Relation("add_remove", "pid, at most 3 records")


def test_a_charge_that_does_not_say_is_for_the_neighbours_of_the_ledger(files):
    ledger = Ledger.create(files.place(), epsilon=2)
    ledger.charge(HALF, {"survey": "by hand"})
    assert ledger.relation is None
    ledger.charge(HALF, ADD_REMOVE)
    ledger.charge(HALF, {"survey": "by hand"})
    assert (ledger.relation, ledger.spent) == (Relation("add_remove"), Fraction(3, 2))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"neighbours": "either"}, "neighbours must be 'replace' or 'add_remove', got 'either'"),
        ({"neighbours": "replace", "unit": "pid"}, "neighbours must be 'add_remove' with unit"),
        ({"unit": ""}, "unit must name a column, got ''"),
        ({"unit": 3}, "unit must name a column, got 3"),
    ],
)
def test_neighbours_that_are_none_are_refused(files, tmp_path, given, rule):
    with pytest.raises(ValueError, match=rule):
        Ledger.create(files.place(), epsilon=1, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_charge_for_neighbours_that_are_none_is_refused(files):
    ledger = Ledger.create(files.place(), epsilon=1)
    with pytest.raises(ValueError, match="neighbours must be 'replace' or 'add_remove', got 'either'"):
        ledger.charge(HALF, {"neighbours": "either"})
    assert ledger.verify() == 0


# ---- the theorem -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_two_steps_of_adding_or_removing_are_one_replacing(epsilon):
    """Enumerated: a noisy count of scale 1/ε moves by 2 where −1 is replaced by 1, and its loss is 2ε, never more."""
    k = np.arange(-400, 401)

    def log_probability(count):
        return -epsilon * np.abs(k - count)

    def loss(one, other):
        return np.max(np.abs(log_probability(one) - log_probability(other)))

    sums = [sum(records) for records in itertools.product([-1, 1], repeat=3)]
    assert max(loss(a, a + x) for a in sums for x in (-1, 1)) == pytest.approx(epsilon)
    claim = Pure(Fraction(epsilon)).grouped(Relation("add_remove").steps_to(Relation("replace")))
    assert max(loss(a, a + 2) for a in sums) == pytest.approx(float(claim.epsilon))


@pytest.mark.parametrize("alpha", [1.01, 2.0, 50.0])
def test_two_steps_of_zcdp_cost_four_times_as_much(alpha):
    """The Rényi divergence of two normal laws whose means differ by two sensitivities."""
    rho = 0.3
    claim = ZeroConcentrated(Fraction(rho)).grouped(2)
    divergence = alpha * 2**2 * rho  # α Δ²/2σ², Δ twice as large
    assert divergence == pytest.approx(alpha * float(claim.rho))


def test_what_two_steps_cost_is_exact_in_each_currency(files):
    rho, both = Ledger.create(files.place("rho"), rho=9), Ledger.create(files.place("both"), epsilon=9, delta="1e-3")
    for ledger in (rho, both):
        ledger.charge(Pure(Fraction(0)), REPLACE)
    assert rho.charge(ZeroConcentrated(Fraction(1, 3)), ADD_REMOVE).cost == Fraction(4, 3)
    assert rho.charge(Pure(Fraction(1, 3)), ADD_REMOVE).cost == Fraction(2, 9)  # (2ε)²/2
    assert both.charge(Pure(Fraction(1, 3)), ADD_REMOVE).cost == Fraction(2, 3)
    with pytest.raises(ValueError, match=r"must be charged for the same, got ε = 1, δ = 1e-06 for adding or removing"):
        both.charge(Approximate(Fraction(1), Fraction(1, 10**6)), ADD_REMOVE)  # (1 + e^ε)δ is no fraction


def test_two_steps_that_are_not_left_are_refused_for_whom_they_are_counted(files):
    ledger = Ledger.create(files.place(), epsilon=1, neighbours="replace")
    with pytest.raises(LedgerRefusal, match=r"^ledger must have ε = 1.2 left for replacing one record, has ε = 1 of ε"):
        ledger.charge(Pure(Fraction(6, 10)), ADD_REMOVE)
    assert ledger.verify() == 0


# ---- whoever charges -------------------------------------------------------------------------------------------------


def test_a_release_is_refused_before_the_table_is_read(files, monkeypatch):
    ledger = Ledger.create(files.place(), epsilon=1)
    na.release(RECORDS, ILL, epsilon="0.999999999", neighbours="add_remove", ledger=ledger)
    read_nothing(monkeypatch)
    for terms in ({}, {"unit": "pid", "max_records": 1}, {"bounds": None}):
        with pytest.raises(ValueError, match=r"adds up promises for adding or removing one record and must be charged"):
            na.release(RECORDS, ILL, epsilon="1e-9", ledger=ledger, **terms)
    assert ledger.verify() == 1


def test_a_release_for_persons_and_one_for_records_do_not_add_up(files):
    for name, first, second in (
        ("a", {"unit": "pid", "max_records": 1}, {}),
        ("b", {"unit": "pid", "max_records": 1}, {"neighbours": "add_remove"}),
        ("c", {"unit": "pid", "max_records": 1}, {"unit": "hid", "max_records": 1}),
        ("d", {}, {"unit": "pid", "max_records": 1}),
    ):
        ledger = Ledger.create(files.place(name), epsilon=9)
        na.release(RECORDS, ILL, epsilon=1, ledger=ledger, **first)
        with pytest.raises(ValueError, match="must be charged for the same"):
            na.release(RECORDS, ILL, epsilon=1, ledger=ledger, **second)
        na.release(RECORDS, ILL, epsilon=1, ledger=ledger, **first)
        assert ledger.spent == 2


def test_a_private_n_is_paid_twice_where_replacing_is_added_up(files):
    ledger = Ledger.create(files.place(), epsilon=1)
    na.release(RECORDS, ILL, epsilon="1/10", ledger=ledger)
    release = na.release(RECORDS, ILL, epsilon="1/5", neighbours="add_remove", ledger=ledger)
    assert (ledger.spent, release.guarantee) == (Fraction(1, 2), Pure(Fraction(1, 5)))


@pytest.mark.parametrize("first", ["release", "program"])
def test_a_program_that_gives_n_out_is_refused_before_the_table_is_read(files, first, monkeypatch):
    ledger = Ledger.create(files.place(), epsilon=2)
    if first == "release":
        na.release(RECORDS, ILL, epsilon=1, neighbours="add_remove", ledger=ledger)
    else:
        program("add_remove").run(RECORDS, ledger=ledger)
    read_nothing(monkeypatch)
    spent = ledger.spent
    with pytest.raises(ValueError, match=UNLIKE):
        program("replace").run(RECORDS, ledger=ledger)
    assert ledger.spent == spent


def test_a_program_is_counted_as_a_release_is(files):
    ledger = Ledger.create(files.place(), epsilon=2)
    program("replace").run(RECORDS, ledger=ledger)
    program("add_remove").run(RECORDS, ledger=ledger)
    assert [entry.cost for entry in ledger.entries()] == [Fraction(1, 2), 1]
    with pytest.raises(LedgerRefusal, match="for replacing one record"):
        program("add_remove").run(RECORDS, ledger=ledger)


def test_a_plan_whose_releases_do_not_add_up_is_refused_before_any_is_charged(files, tmp_path):
    RECORDS.to_csv(tmp_path / "t.csv", index=False)
    entry = '[[release]]\nfamily = "bernoulli"\ncolumn = "ill"\nepsilon = "0.3"\noutput = "{}.json"\n{}\n'
    private, public = entry.format("a", 'neighbours = "add_remove"'), entry.format("b", "")
    ledger = Ledger.create(files.place(), epsilon=1)
    for releases, status in ((private + public, 2), (public + private + private.replace("a.json", "c.json"), 3)):
        (tmp_path / "p.toml").write_text(f'table = "t.csv"\nledger = "a.ledger"\n{releases}')
        done = CliRunner().invoke(app, ["release", "--plan", str(tmp_path / "p.toml")])
        assert done.exit_code == status
        assert (ledger.verify(), list(tmp_path.glob("*.json"))) == (0, [])
    (tmp_path / "p.toml").write_text(f'table = "t.csv"\nledger = "a.ledger"\n{public + private}')
    done = CliRunner().invoke(app, ["release", "--plan", str(tmp_path / "p.toml")])
    assert done.exit_code == 0, done.stderr
    assert ledger.spent == Fraction(9, 10)


@pytest.mark.parametrize("place", ["files", "schemas"])
def test_of_two_first_charges_at_once_one_decides(place, request):
    """Whoever is first: in the end no entry is about others than the first, or costs less than two steps."""
    store = request.getfixturevalue(place)
    for number in range(4):
        path, barrier, refused = store.place(f"race{number}"), threading.Barrier(2), []
        Ledger.create(path, epsilon=9)

        def charge(what, path=path, barrier=barrier, refused=refused):
            ledger = Ledger(path)
            barrier.wait()
            try:
                ledger.charge(HALF, what)
            except ValueError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=charge, args=[what]) for what in (PID, ADD_REMOVE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ledger = Ledger(path)
        assert (ledger.verify(), len(refused), ledger.mixture) == (1, 1, None)


# ---- ledgers of before -----------------------------------------------------------------------------------------------


def test_old_ledgers_are_read_and_bound_by_what_they_hold(store):
    for name, rows in OLD.items():
        ledger = Ledger(store.old(store.place(name), name))
        assert ledger.verify() == len(rows["entries"])
        assert [entry.id for entry in ledger.entries()] == [row[1] for row in rows["entries"]]
        expected = {"replace": Relation("replace"), "delta": Relation("replace"), "add_remove": Relation("add_remove")}
        expected |= {"person": Relation("add_remove", "pid"), "empty": None, "own_words": None}
        if name.startswith("mixed"):
            continue
        assert (ledger.relation, ledger.mixture) == (expected[name], None)
        words = {"pid": PID}.get(expected[name] and expected[name].unit, REPLACE)
        if name == "add_remove":
            with pytest.raises(ValueError, match=UNLIKE):
                ledger.charge(HALF, REPLACE)
            words = ADD_REMOVE
        ledger.charge(HALF, words)
        assert Ledger(store.place(name)).verify() == len(rows["entries"]) + 1


@pytest.mark.parametrize("name", ["mixed", "mixed_units", "mixed_program"])
def test_an_old_ledger_that_is_about_several_neighbours_is_read_and_not_charged(store, name):
    ledger = Ledger(store.old(store.place(), name))
    assert (ledger.verify(), len(ledger.entries())) == (2, 2)
    assert ledger.mixture.startswith("entry 2 is for ")
    for what in ALL.values():
        for act in (ledger.charge, lambda guarantee, _: ledger.afford(guarantee)):
            with pytest.raises(
                ValueError, match=r"same neighbours to be charged, but entry 2 .*; keep it, and pay for"
            ):
                act(HALF, what)
    assert ledger.verify() == 2


def test_the_command_shows_what_a_ledger_is_about(files, tmp_path):
    def shown(path, *more):
        done = CliRunner().invoke(app, ["ledger", "show", str(path), *more])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    made = tmp_path / "made.ledger"
    done = CliRunner().invoke(app, ["ledger", "create", str(made), "--epsilon", "1", "--unit", "patient_id"])
    assert done.exit_code == 0, done.stderr
    assert "for adding or removing all records of one patient_id\n" in shown(made)
    assert json.loads(shown(made, "--json"))["unit"] == "patient_id"
    free = Ledger.create(files.place(), epsilon=1)
    assert json.loads(shown(free.path, "--json"))["neighbours"] is None
    free.charge(HALF, REPLACE)
    assert "for replacing one record\n" in shown(free.path)
    free.charge(Pure(Fraction(1, 4)), ADD_REMOVE)
    told = json.loads(shown(free.path, "--json"))
    assert told["entries"][1]["what"]["counted"] == "as ε = 0.5 for replacing one record"
    assert (told["neighbours"], told["unit"], "mixture" in told) == ("replace", None, False)
    mixed = files.old(files.place("mixed"), "mixed")
    assert "no total: entry 2 is for replacing one record among those for adding or removing" in shown(mixed)
    assert json.loads(shown(mixed, "--json"))["mixture"].startswith("entry 2")
