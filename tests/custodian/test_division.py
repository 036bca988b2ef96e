"""Private n, groups and persons with several records: what is summed, what noise it gets, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine.duckdb import connection
from noiseaware.custodian.table import Table
from noiseaware.custodian.terms import terms_of

WAIT = na.family.Exponential("wait", bounds=(0, 8))
EVERY = {
    "exponential": WAIT,
    "bernoulli": na.family.Bernoulli("ill"),
    "categorical": na.family.Categorical("place", levels=["home", "ward"]),
    "regression": na.family.LinearRegression(["wait"], "cost", bounds={"wait": (0, 8), "cost": (-5, 5)}),
}
REGIONS = {"region": ["north", "süd", "nowhere"]}


@pytest.fixture
def clinic(seed):
    rng = np.random.default_rng(seed)
    n = 500
    return pd.DataFrame(
        {
            "patient": [None if x < 4 else f"p{x}" for x in rng.integers(0, 120, n)],
            "region": rng.choice(["north", "süd", "east"], n),
            "year": rng.choice([2020, 2021, 2022], n),
            "wait": np.where(rng.random(n) < 0.1, np.nan, rng.exponential(3.0, n)),
            "ill": rng.integers(0, 2, n),
            "place": rng.choice(["home", "ward", "street"], n),
            "cost": rng.normal(0, 3, n),
        }
    )


@pytest.fixture(params=["pandas", "polars", "arrow", "csv", "parquet", "json"])
def anywhere(clinic, request, tmp_path):
    if request.param == "polars":
        return pytest.importorskip("polars").from_pandas(clinic)
    if request.param == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(clinic)
    if request.param == "pandas":
        return clinic
    path = tmp_path / f"clinic.{request.param}"
    if request.param == "csv":
        clinic.to_csv(path, index=False)
    elif request.param == "parquet":
        clinic.to_parquet(path)
    else:
        clinic.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("name", EVERY)
def test_a_group_is_summed_as_if_it_were_a_table(name, anywhere, clinic):
    groups = Groups(("region", "year"), (("north", "süd", "nowhere"), (2022, 2020)))
    found = Table(anywhere).group_sums(EVERY[name].query, 8, groups)
    assert len(found) == 6
    for (region, year), (totals, n) in zip(groups.keys, found, strict=True):
        part = clinic[(clinic.region == region) & (clinic.year == year)]
        assert n == len(part)
        expected = Table(part).sums(EVERY[name].query, 8, least=0)[0] if n else [0] * len(totals)
        assert totals == expected


def test_a_person_has_at_most_so_many_records(anywhere, clinic):
    """As many as there are where there are fewer; nobody without a unit; and not always the same ones."""
    counts = clinic.dropna(subset=["patient"]).groupby("patient").size()
    table = Table(anywhere)
    sums = set()
    for _ in range(6):
        totals, n = table.sums(WAIT.query, 20, unit=Unit("patient", 2))
        assert n == counts.clip(upper=2).sum()
        sums.add(totals[0])
    assert len(sums) > 1
    everyone, n = table.sums(WAIT.query, 20, unit=Unit("patient", 1000))
    assert n == counts.sum()
    assert everyone == Table(clinic.dropna(subset=["patient"])).sums(WAIT.query, 20)[0]


def test_the_cap_holds_over_all_groups_of_a_person(clinic):
    groups = Groups(("region",), (("north", "süd", "east"),))
    found = Table(clinic).group_sums(WAIT.query, 8, groups, unit=Unit("patient", 3))
    counts = clinic.dropna(subset=["patient"]).groupby("patient").size()
    assert sum(n for _, n in found) == counts.clip(upper=3).sum()


def test_units_that_are_not_numbers_are_nobody():
    """NaN is what pandas makes of a missing whole number; a day, a UUID or a number may be a unit."""
    frame = pd.DataFrame({"id": [1.0, 1.0, np.nan, np.nan, 2.0], "x": [1, 1, 1, 1, 0]})
    assert Table(frame).sums(na.family.Bernoulli("x").query, 0, unit=Unit("id", 5)) == ([2], 3)
    frame = pd.DataFrame({"id": pd.to_datetime(["2020-01-01"] * 3), "x": [1, 1, 1]})
    assert Table(frame).sums(na.family.Bernoulli("x").query, 0, unit=Unit("id", 2)) == ([2], 2)


@pytest.mark.parametrize("neighbour", ["none", "one"])
def test_an_empty_table_and_one_of_one_record_are_both_released(neighbour):
    frame = pd.DataFrame({"ill": [1][: neighbour == "one"]}, dtype="int64")
    release = na.release(frame, na.family.Bernoulli("ill"), epsilon=1, neighbours="add_remove")
    assert release.n_mechanism.scale == 4.0
    assert release.mechanism.scale == pytest.approx(4 / 3)
    assert release.neighbours == "add_remove"
    assert na.infer(release, na.prior.Beta(1, 1), seed=0).is_exact


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_no_record_of_a_json_file_decides_whether_it_is_released(name, tmp_path):
    """A key that a record lacks is NULL, so that the neighbours of a file are read as it is; and so is an empty one."""
    for records, totals in ((['{"ill": 1}', '{"y": 2}'], ([1], 2)), (['{"y": 2}'], ([0], 1)), ([], ([0], 0))):
        (tmp_path / name).write_text("\n".join(records) if name == "t.jsonl" else f"[{', '.join(records)}]")
        model = na.family.Bernoulli("ill")
        assert Table(tmp_path / name).sums(model.query, 0, least=0) == totals
        assert na.release(tmp_path / name, model, epsilon=1, neighbours="add_remove").n_mechanism.scale == 4.0


def test_what_a_private_n_costs_comes_out_of_the_promise():
    """Shares of ε, or of ρ, add up; private bounds are paid first."""
    private = {"bounds": "private", "bounds_share": "0.2", "neighbours": "add_remove"}
    terms = terms_of(na.family.Exponential("wait"), epsilon=1, **private)
    each, rest, n = terms.selection.each, terms.agreement.of_statistics, terms.agreement.of_n
    assert (each.epsilon, rest.epsilon, n.epsilon) == pytest.approx((0.2, 0.6, 0.2))
    terms = terms_of(WAIT, rho=2, neighbours="add_remove", n_share="0.1")
    assert (terms.agreement.of_statistics.rho, terms.agreement.of_n.rho) == pytest.approx((1.8, 0.2))


@pytest.mark.parametrize("promise", [{"epsilon": 1}, {"rho": 1}], ids=str)
@pytest.mark.parametrize(("share", "sentence"), [("1e-700", "^n_share must be from"), ("1e-40", "must be larger: n")])
def test_a_share_that_leaves_n_no_room_is_refused_before_the_charge(share, sentence, promise, clinic, tmp_path):
    ledger = na.Ledger.create(tmp_path / "a.ledger", **promise)
    with pytest.raises(ValueError, match=sentence):
        na.release(clinic, WAIT, **promise, neighbours="add_remove", n_share=share, ledger=ledger)
    assert ledger.spent == 0


def test_persons_lift_the_limit_on_memory_for_their_scan_only(clinic):
    """The limit is that of all scans of the process, one that overlaps with another too."""

    def limit():
        return connection().execute("SELECT current_setting('memory_limit')").fetchall()

    before, table, unit = limit(), Table(clinic), Unit("patient", 2)
    with table._scan(unit):
        table.sums(WAIT.query, 8, unit=unit)
        assert limit() != before
    assert limit() == before


def test_noise_grows_with_the_records_of_a_person(clinic):
    one, five = (na.release(clinic, WAIT, epsilon=1, unit="patient", max_records=k, n_share="1/2") for k in (1, 5))
    assert five.noise_scale == pytest.approx(5 * one.noise_scale, rel=1e-6)
    assert (one.n_mechanism.scale, five.n_mechanism.scale) == pytest.approx((2, 10))
    assert (five.origin.unit, five.origin.max_records) == ("patient", 5)
    assert five.neighbours == "add_remove"


def test_gaussian_noise_grows_as_fast_with_the_records_of_a_person():
    """ρ goes as the square of what a person moves, and the deviation as that itself."""
    one, five = (terms_of(WAIT, rho=1, unit="patient", max_records=k).grid for k in (1, 5))
    scales = [grid.mechanism.spread / 2.0**grid.exponent for grid in (one, five)]
    assert scales[1] == pytest.approx(5 * scales[0], rel=1e-6)


def test_a_private_n_is_released_with_noise():
    """Of scale 400: that three draws are the same happens once in a million times."""
    frame = pd.DataFrame({"wait": [1.0, 2.0]})
    assert len({na.release(frame, WAIT, epsilon="0.01", neighbours="add_remove").count.value for _ in range(3)}) > 1


def test_groups_cost_what_one_costs_and_say_which_they_are(clinic, tmp_path):
    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon=1)
    made = na.release(clinic, WAIT, epsilon="0.5", by="region", levels=REGIONS, ledger=ledger)
    assert list(made) == REGIONS["region"]
    assert made["süd"].origin.group == (("region", "süd"),)
    assert float(ledger.spent) == 0.5
    assert len({release.origin.ledger_entry for release in made.values()}) == 1
    path = tmp_path / "south.json"
    made["süd"].save(path)
    assert na.load(path) == made["süd"]
    assert "region (3 groups)" in str(ledger.entries()[0])


def test_several_columns_of_groups_are_keyed_by_all_levels(clinic):
    made = na.release(clinic, WAIT, rho=1, by=["region", "year"], levels={"region": ["north"], "year": [2020, 2021]})
    assert list(made) == [("north", 2020), ("north", 2021)]
    groups = Groups(("region", "year"), (("north", "süd"), (2020, 2021, 2022)))  # another number of each
    found = [n for _, n in Table(clinic).group_sums(EVERY["bernoulli"].query, 0, groups)]
    assert found == [((clinic.region == region) & (clinic.year == year)).sum() for region, year in groups.keys]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "region"}, "levels must give the public levels of region"),
        ({"levels": REGIONS}, "levels must be left out unless by"),
        ({"by": "region", "levels": {"region": []}}, "must be texts, or whole numbers"),
        ({"by": "region", "levels": {"region": ["a", 1]}}, "must be texts, or whole numbers"),
        ({"by": "region", "levels": {"region": ["\ud800"]}}, "levels must be texts that UTF-8 can hold, got '.ud800'"),
        ({"by": "region", "levels": {"region": ["é" * 20_000]}}, "levels must be texts of at most 32768 bytes"),
        ({"by": "region", "levels": REGIONS, "neighbours": "replace"}, "neighbours must be 'add_remove' with by"),
        ({"unit": "patient", "max_records": 2, "neighbours": "replace"}, "neighbours must be 'add_remove' with unit"),
        ({"unit": "patient"}, "max_records must be a whole number"),
        ({"unit": "patient", "max_records": 0}, "max_records must be a whole number"),
        ({"max_records": 2}, "max_records must be left out"),
        ({"unit": "person", "max_records": 2}, "must have one column 'person'"),
        ({"n_share": "0.5"}, "n_share must be left out"),
        ({"n_share": "1", "neighbours": "add_remove"}, "n_share must be between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence_and_costs_nothing(options, sentence, clinic, tmp_path):
    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon=1)
    with pytest.raises(ValueError, match=sentence):
        na.release(clinic, WAIT, epsilon=1, ledger=ledger, **options)
    assert ledger.spent == 0


def test_too_many_groups_are_refused_without_listing_them(monkeypatch):
    monkeypatch.setattr(Groups, "keys", property(lambda self: pytest.fail("the groups were listed")))
    levels = {f"c{j}": list(range(100)) for j in range(10)}
    with pytest.raises(ValueError, match=f"at most 10000 groups, got {100**10}"):
        terms_of(WAIT, epsilon=1, by=list(levels), levels=levels)


def test_too_many_records_are_refused_without_telling_a_private_number(clinic, monkeypatch):
    monkeypatch.setattr("noiseaware.custodian.table.MOST_RECORDS", 100)
    with pytest.raises(ValueError, match="records, got 500"):
        na.release(clinic, WAIT, epsilon=1)
    with pytest.raises(ValueError, match=r"records\.$"):
        na.release(clinic, WAIT, epsilon=1, neighbours="add_remove")
