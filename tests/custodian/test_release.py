"""The verb: from a table to a release, for every family, and never a charge for what could not be released."""

import json
import logging
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian.grid import finest_grid
from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.custodian.table import MOST_RECORDS
from noiseaware.evidence.release import from_json
from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace
from noiseaware.privacy import Agreement, Pure, ZeroConcentrated

FAMILIES = {
    "bernoulli": na.family.Bernoulli("smokes"),
    "binomial": na.family.Binomial("visits", trials=5),
    "categorical": na.family.Categorical("place", levels=["home", "ward", "street"]),
    "poisson": na.family.Poisson("visits", bounds=(0, 12)),
    "geometric": na.family.Geometric("visits", bounds=(0, 12), outside="drop"),
    "exponential": na.family.Exponential("wait", bounds=(0, 48)),
    "normal": na.family.Normal("change", bounds=(-3, 5), variance=2.0),
    "gamma": na.family.Gamma("wait", bounds=(0.5, 48), shape=2.0, outside="drop"),
}


@pytest.fixture
def clinic(seed):
    rng = np.random.default_rng(seed)
    n = 2000
    wait = rng.exponential(4.0, n)
    wait[:3] = [np.nan, np.inf, -1]
    return pd.DataFrame(
        {
            "smokes": rng.random(n) < 0.3,
            "visits": rng.poisson(2.0, n),
            "place": rng.choice(["home", "ward", "street", "abroad"], n),
            "wait": wait,
            "change": rng.normal(0.5, 2.0, n),
        }
    )


def truth(model, clinic) -> list[float]:
    """The statistics in floating point, by other means than the table's."""
    column = clinic[model.query.column]
    if model.name == "categorical":
        _, *rest = ((column == level).sum() for level in model.query.levels)
        return [len(column) - sum(rest), *rest]
    low, high = model.query.bounds
    x = column.astype(float)
    if model.query.outside == "drop":
        return [float(x[(x >= low) & (x <= high)].sum())]
    return [float(x.fillna(low).clip(low, high).sum())]


@pytest.mark.parametrize("promise", [{"epsilon": 0.5}, {"rho": "1/8"}])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_released(name, promise, clinic, tmp_path):
    model = FAMILIES[name]
    ledger = Ledger.create(tmp_path / "clinic.ledger", **dict.fromkeys(promise, 1))
    release = na.release(clinic, model, ledger=str(ledger.path), **promise)
    law, guarantee = (
        (DiscreteLaplace, Pure(Fraction(1, 2)))
        if "epsilon" in promise
        else (DiscreteGaussian, ZeroConcentrated(Fraction(1, 8)))
    )
    assert isinstance(release.mechanism, law)
    assert (release.n, release.guarantee, release.neighbours) == (2000, guarantee, "replace")
    assert all(type(step) is int for step in release.steps)
    # beyond 50 scales with chance below e^−50; flooring loses up to a grid step a record
    slack = 50 * release.noise_scale + 2000 * release.grid * (not model.query.is_whole)
    assert np.all(np.abs(release.values - truth(model, clinic)) <= slack)
    assert release.grid == 1.0 if model.query.is_whole else release.mechanism.spread >= 1000
    (entry,) = ledger.entries()
    assert release.origin.ledger_entry == entry.id
    assert entry.guarantee == guarantee
    assert entry.what == {
        "family": name,
        "columns": model.query.column,
        "table": "pandas frame",
        "neighbours": "replace",
    }
    assert from_json(release.to_json()) == release
    assert (release.origin.tool, release.origin.version, release.origin.bounds) == (
        "noiseaware",
        na.__version__,
        "public",
    )


def test_noise_is_fresh_and_of_the_stated_scale(clinic):
    """|noise| of Laplace has mean b and standard deviation b: 200 draws put their mean within 6 b/√200 of b."""
    model = FAMILIES["exponential"]
    exact = truth(model, clinic)[0]
    draws = [na.release(clinic, model, epsilon=2).values[0] - exact for _ in range(200)]
    assert len(set(draws)) == 200
    assert abs(np.mean(np.abs(draws)) - 24) < 6 * 24 / math.sqrt(200)


def test_the_file_name_is_all_that_the_ledger_says_of_the_path(clinic, tmp_path):
    clinic.to_csv(tmp_path / "clinic.csv", index=False)
    ledger = Ledger.create(tmp_path / "clinic.ledger", epsilon=1)
    release = na.release(str(tmp_path / "clinic.csv"), FAMILIES["bernoulli"], epsilon="0.25", ledger=ledger)
    assert ledger.entries()[0].what["table"] == "clinic.csv"
    assert str(tmp_path) not in release.to_json()
    assert ledger.remaining == Fraction(3, 4)


BAD = {
    "no promise": ({}, "exactly one of epsilon"),
    "two promises": ({"epsilon": 1, "rho": 1}, "exactly one of epsilon"),
    "epsilon 0": ({"epsilon": 0}, "epsilon must be positive, got 0"),
    "epsilon below 0": ({"epsilon": -1.0}, "epsilon must be positive, got -1.0"),
    "epsilon NaN": ({"epsilon": float("nan")}, "epsilon must be a positive number"),
    "epsilon infinite": ({"epsilon": float("inf")}, "epsilon must be a positive number"),
    "epsilon text": ({"epsilon": "much"}, "epsilon must be a positive number"),
    "epsilon tiny": ({"epsilon": 1e-320}, "epsilon must be from 1e-300"),
    "epsilon huge": ({"epsilon": 1e300}, "must be wider, or nearer to 0, for ε = 1e+300"),
    "neighbours": ({"epsilon": 0.1, "neighbours": "swap"}, "neighbours must be 'replace'"),
    "rho on an epsilon ledger": ({"rho": 0.1}, "rho cannot be charged"),
    "family": ({"epsilon": 0.1, "family": "exponential"}, "family must be one of noiseaware.family"),
    "no column": ({"epsilon": 0.1, "family": na.family.Exponential(bounds=(0, 1))}, "family must name one column"),
    "no bounds": ({"epsilon": 0.1, "family": na.family.Exponential("wait")}, "bounds must be given"),
    "missing column": (
        {"epsilon": 0.1, "family": na.family.Exponential("weight", bounds=(0, 1))},
        "must have one column 'weight'",
    ),
    "wrong type": (
        {"epsilon": 0.1, "family": na.family.Exponential("when", bounds=(0, 1))},
        "must hold numbers or text",
    ),
    "huge levels": (
        {"epsilon": 0.1, "family": na.family.Categorical("wait", levels=[1, 2**60])},
        "levels must be between -2**53",
    ),
    "counts too wide": (
        {"epsilon": 0.1, "family": na.family.Poisson("wait", bounds=(0, 2**40))},
        "must be narrower for ε = 0.1",
    ),
    "bounds too far out": (
        {"epsilon": 0.1, "family": na.family.Normal("wait", bounds=(1e12, 1e12 + 1), variance=1.0)},
        "must be wider, or nearer to 0",
    ),
    "empty table": ({"epsilon": 0.1, "table": pd.DataFrame({"wait": [], "when": []})}, "records, got 0"),
    "no table": ({"epsilon": 0.1, "table": 3}, "table must be a path of a CSV, Parquet or JSON file"),
    "missing file": ({"epsilon": 0.1, "table": "none.csv"}, "table file must exist"),
    "other file": ({"epsilon": 0.1, "table": "clinic.xlsx"}, "table file must end in one of"),
    "missing ledger": ({"epsilon": 0.1, "ledger": "none.ledger"}, "ledger must exist"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_costs_nothing(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changes, rule = BAD[case]
    ledger = Ledger.create("clinic.ledger", epsilon=1000)
    given = {
        "table": pd.DataFrame({"wait": [1.0, 77.125], "when": pd.to_datetime(["2020", "2021"])}),
        "family": na.family.Exponential("wait", bounds=(0, 48)),
        "ledger": "clinic.ledger",
        **changes,
    }
    table, model = given.pop("table"), given.pop("family")
    with pytest.raises(ValueError) as caught:
        na.release(table, model, **given)
    sentence = str(caught.value)
    assert rule in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "77.125" not in sentence
    assert ledger.spent == 0


def test_bad_arguments_are_refused_before_the_table_is_read(tmp_path):
    """A table that cannot be read at all is not reached."""
    (tmp_path / "t.parquet").write_text("nothing of the kind")
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    model = na.family.Exponential("wait", bounds=(0, 48))
    with pytest.raises(ValueError, match="n_share must be between"):
        na.release(tmp_path / "t.parquet", model, epsilon=1, ledger=ledger, neighbours="add_remove", n_share=1)
    with pytest.raises(LedgerRefusal, match="ε = 2 left, has ε = 1 of ε = 1"):
        na.release(tmp_path / "t.parquet", model, epsilon=2, ledger=ledger)


def test_a_refusal_leaves_the_ledger_as_it_was(clinic, tmp_path):
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    na.release(clinic, FAMILIES["poisson"], epsilon="0.7", ledger=ledger)
    with pytest.raises(LedgerRefusal):
        na.release(clinic, FAMILIES["poisson"], epsilon="0.4", ledger=ledger)
    assert ledger.spent == Fraction(7, 10)
    na.release(clinic, FAMILIES["poisson"], epsilon="0.3", ledger=ledger)
    assert ledger.remaining == 0


def test_budget_is_charged_before_noise_is_drawn(clinic, tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)

    def crash(*_, **__):
        raise RuntimeError("the machine went down")

    monkeypatch.setattr("noiseaware.custodian.grid.draw", crash)
    with pytest.raises(RuntimeError, match="went down"):
        na.release(clinic, FAMILIES["poisson"], epsilon=1, ledger=ledger)
    assert ledger.remaining == 0


@pytest.mark.parametrize(
    "cells", [[None] * 3, [np.nan] * 3, [np.inf, -np.inf, 1e308], ["x", "", "77.125"], [10**30, True, None]]
)
def test_cells_of_any_kind_change_nothing_visible(cells, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    table = pd.DataFrame({"wait": pd.Series(cells, dtype=object)})
    release = na.release(table, na.family.Exponential("wait", bounds=(0, 48)), epsilon=1)
    shown = json.loads(release.to_json())
    assert shown["origin"]["missing"] == {"wait": 0.0}
    del shown["statistics"], shown["origin"]
    assert shown == {
        "schema_version": 4,
        "family": {"name": "exponential", "column": "wait", "bounds": [0.0, 48.0], "outside": "clamp"},
        "grid": 2.0**-25,
        "noise": {"law": "discrete_laplace", "scale": 48 * 2.0**25},
        "n": 3,
        "neighbours": "replace",
        "guarantee": {"kind": "pure", "cost": "1"},
    }
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert "77.125" not in caplog.text


@pytest.mark.parametrize("epsilon", ["1e-4", "0.1", "50"])
@pytest.mark.parametrize(
    "bounds",
    [(0, 1), (0, 48), (-3, 5), (0, 1e12), (-1e-9, 1e-9), (1e5, 1e5 + 200), (0, 1e300), (-(2**31), 7), (-1 / 3, 2)],
)
def test_the_grid_leaves_room_and_is_fine_enough(bounds, epsilon):
    model = na.family.Normal("x", bounds=bounds, variance=1.0)
    grid = finest_grid(model.query, Agreement(Pure(Fraction(epsilon))))
    low, high = (math.floor(Fraction(b) * Fraction(2) ** grid.exponent) for b in model.query.bounds)
    assert grid.sensitivity == high - low, "so far apart are two records on the bounds, each floored"
    largest = max(abs(low), abs(high))
    assert MOST_RECORDS * largest + 64 * grid.mechanism.spread < 2**62
    assert grid.mechanism.spread >= 1000
    assert Fraction(grid.sensitivity) / Fraction(grid.mechanism.spread) <= Fraction(epsilon)
    coarser = 2 * (MOST_RECORDS * (largest + 1) + 64 * Fraction(grid.mechanism.spread))
    assert coarser >= 2**62 or grid.exponent == 1000, "the next finer grid must have been too fine"


@pytest.mark.slow
def test_a_missing_package_is_one_sentence():
    for package in ("duckdb", "narwhals", "opendp"):
        code = f"import sys; sys.modules[{package!r}] = None; import noiseaware; noiseaware.release"
        failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[-1].startswith("ImportError: releasing from a table needs")
        assert "install noiseaware[custodian]" in failed.stderr


@pytest.mark.parametrize(("total", "spent"), [({"epsilon": 2, "delta": "1e-5"}, Fraction(1)), ({"rho": 1}, None)])
def test_epsilon_and_delta_are_kept_by_normal_noise_and_charged_in_the_ledgers_currency(tmp_path, total, spent):
    ledger = na.Ledger.create(tmp_path / "l", **total)
    table = pd.DataFrame({"ill": [True, False] * 50})
    release = na.release(table, na.family.Bernoulli("ill"), epsilon=1, delta="1e-6", ledger=ledger)
    rho = release.guarantee.kept_by().rho
    assert isinstance(release.mechanism, na.mechanism.DiscreteGaussian)
    assert release.mechanism.stddev == pytest.approx((1 / (2 * rho)) ** 0.5, rel=1e-12)
    assert Fraction(1) / (2 * Fraction(release.mechanism.stddev) ** 2) <= rho
    assert str(release.guarantee) == "ε = 1, δ = 1e-06"
    assert ledger.spent == (rho if spent is None else spent)
    assert ledger.spent_delta == (0 if spent is None else Fraction(1, 10**6))
    release.save(tmp_path / "r.json")
    assert na.load(tmp_path / "r.json") == release
    pure = na.Ledger.create(tmp_path / "pure", epsilon=9)
    with pytest.raises(ValueError, match="delta cannot be charged to a ledger of ε"):
        na.release(table, na.family.Bernoulli("ill"), epsilon=1, delta="1e-6", ledger=pure)


@pytest.mark.parametrize(
    ("family", "options", "sentence"),
    [
        (na.family.Exponential("wait", bounds=(0, 1e-200)), {"epsilon": 1}, "^bounds, epsilon or rho must be nearer"),
        (na.family.Normal("wait", bounds=(-1e305, 1e305), variance=1.0), {"epsilon": 1}, "must be nearer to 1: grid"),
        (na.family.Bernoulli("smokes"), {"epsilon": "1e200"}, "must be nearer to 1: grid and noise scale"),
        (na.family.Normal("wait", variance=1e300), {"epsilon": 1, "bounds": "private"}, "must be nearer to 1: grid"),
        (na.family.Bernoulli("smokes"), {"epsilon": "1e-15", "neighbours": "add_remove"}, r"must stay below 1e\+15"),
        (na.family.Binomial("visits", trials=10**22), {"epsilon": 1}, "must be narrower for ε = 1: sums must fit"),
        (na.family.Bernoulli("smokes"), {"epsilon": "1e309"}, "^epsilon must be from 1e-300 to 1e300"),
        (na.family.Bernoulli("smokes"), {"epsilon": "1e-999999999"}, "^epsilon must be from 1e-300 to 1e300"),
        (na.family.Bernoulli("smokes"), {"epsilon": "1/" + "3" * 5000}, r"at most 1000 digits, got 1/3{38}…"),
        (na.family.Bernoulli("smokes"), {"epsilon": 1, "delta": "1e-400"}, "^delta must be from 1e-300"),
    ],
)
def test_what_no_release_can_tell_is_refused_before_the_charge(family, options, sentence, clinic, tmp_path):
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=10**250, delta="1/2")
    with pytest.raises(ValueError, match=sentence):
        na.release(clinic, family, ledger=ledger, **options)
    assert not ledger.entries()
