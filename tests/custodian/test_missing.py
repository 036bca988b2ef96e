"""How cells are read: what counts as yes, and what a missing cell counts as, on every engine and in every release.

The oracles are pure Python: what each cell stands for, and the posterior by enumeration of n.
"""

import functools
import itertools
import json
import math
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import special, stats
from tests.custodian.tables import ENGINES, held, number, yes_or_no

import noiseaware as na
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.grid import finest_grid
from noiseaware.custodian.ledger.ledger import Ledger
from noiseaware.custodian.missing import Cells, cells_of
from noiseaware.custodian.table import Table
from noiseaware.custodian.terms import terms_of
from noiseaware.evidence.count import Private
from noiseaware.evidence.release import from_json
from noiseaware.posterior.posterior import Posterior
from noiseaware.privacy import Agreement, Pure, ZeroConcentrated
from noiseaware.study import calibration

F = na.family
LEFT_OUT = Cells("leave_out")
NUMBERS = ["1.5", " 3 ", "1e3", "-2", "inf", "-inf", "true"]
UNREADABLE = [
    None,
    "",
    " ",
    "> 60",
    "3,5",
    "2024-01-31",
    "2024-01-31T12:00",
    "unknown",
    "nan",
    "NaN",
    "1 000",
    "é",
    "yes",
]
FLAGS = [
    "true",
    "T",
    " yes ",
    "YES",
    "y",
    "1",
    "on",
    "On",
    "false",
    "F",
    "no",
    " N",
    "0",
    "off",
    "0.5",
    "2",
    "1.0",
    "-1",
]
NEITHER = [None, "", "  ", "M", "maybe", "nan", "ja", "yes!", "2024-01-31", "é", "y e s"]


def drawn(pool, seed, n=400) -> list:
    rng = random.Random(seed)
    return [rng.choice(pool) for _ in range(n)]


def steps(x, bounds, outside, k) -> int:
    """⌊x · 2^k⌋ after bounds."""
    low, high = bounds
    kept = min(max(x, low), high) if outside == "clamp" else x if low <= x <= high else 0.0
    return math.floor(kept * 2**k)


# ---- sums ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "float", "whole"])
@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_a_missing_number_is_a_public_value_or_left_out_on_every_engine(kind, outside, tmp_path, seed):
    pool = {
        "text": [*NUMBERS, *UNREADABLE],
        "float": [0.25, 7.0, 1e300, math.inf, math.nan, None],
        "whole": [3, 9, None],
    }
    types = {"text": pa.string(), "float": pa.float64(), "whole": pa.int64()}
    cells, bounds, k = drawn(pool[kind], seed), (1.0, 8.0), 10
    values = list(map(number, cells))
    known = [x for x in values if x is not None]
    model = F.Normal("x", bounds=bounds, variance=1.0, outside=outside)
    for engine in ENGINES:
        table = Table(held(engine, {"x": cells}, {"x": types[kind]}, tmp_path))
        for value in (2.5, -3.0):
            total = sum(steps(value if x is None else x, bounds, outside, k) for x in values)
            assert table.sums(model.query, k, cells=Cells((value,))) == ([total], len(cells)), (engine, value)
        total = sum(steps(x, bounds, outside, k) for x in known)
        assert table.sums(model.query, k, cells=LEFT_OUT) == ([total], len(known)), engine


@pytest.mark.parametrize("true", [(), ("F", " é"), ("2", "no")])
@pytest.mark.parametrize("kind", ["text", "float", "whole", "flag"])
def test_yes_is_yes_on_every_engine(kind, true, tmp_path, seed):
    """With words that are yes all others are no, and only what is empty is missing; 2 and 2.0 are one number."""
    pool = {"text": [*FLAGS, *NEITHER, "f ", "É", "2.0"], "float": [0.0, 1.0, 2.0, 0.5, math.nan, None]}
    pool |= {"whole": [0, 1, 2, None], "flag": [True, False, None]}
    types = {"text": pa.string(), "float": pa.float64(), "whole": pa.int64(), "flag": pa.bool_()}
    cells = drawn(pool[kind], seed)
    values = [yes_or_no(cell, true) for cell in cells]
    counts = {
        value: sum(x is None for x in values) * value + sum(x is not None and x >= 1 for x in values)
        for value in (0, 1)
    }
    for engine in ENGINES:
        table = Table(held(engine, {"x": cells}, {"x": types[kind]}, tmp_path))
        model = F.Bernoulli("x")
        assert table.sums(model.query, 0, cells=Cells(None, true)) == ([counts[0]], len(cells)), engine
        assert table.sums(model.query, 0, cells=Cells((1,), true)) == ([counts[1]], len(cells)), engine
        known = len(cells) - values.count(None)
        assert table.sums(model.query, 0, cells=Cells("leave_out", true)) == ([counts[0]], known), engine


@pytest.mark.parametrize("levels", [["a", "é", "other"], [3, 7, -1]])
def test_what_is_no_level_is_another_one_or_left_out_on_every_engine(levels, tmp_path, seed):
    cells = drawn([*map(str, levels), "z", "", " a", None, "2024-01-31", "7.5"], seed)
    counts = [sum(cell == str(level) for cell in cells) for level in levels]
    model = F.Categorical("x", levels=levels)
    for engine in ENGINES:
        table = Table(held(engine, {"x": cells}, {"x": pa.string()}, tmp_path))
        assert table.sums(model.query, 0, cells=LEFT_OUT) == (counts, sum(counts)), engine
        filled = [*counts[:2], len(cells) - sum(counts[:2])]
        assert table.sums(model.query, 0, cells=Cells((levels[2],))) == (filled, len(cells)), engine


def test_a_record_with_any_missing_cell_is_left_out_on_every_engine(tmp_path, seed):
    rng = random.Random(seed)
    columns = {
        "a": [rng.choice([rng.gauss(4, 2), math.nan, None]) for _ in range(300)],
        "b": [rng.choice([*NUMBERS, *UNREADABLE]) for _ in range(300)],
        "y": [rng.choice([*FLAGS, *NEITHER]) for _ in range(300)],
    }
    kinds = {"a": pa.float64(), "b": pa.string(), "y": pa.string()}
    line = F.LinearRegression(["a"], "b", bounds={"a": (1, 8), "b": (0, 48)})
    logistic = F.LogisticRegression(["a", "b"], "y", bounds={"a": (1, 8), "b": (0, 48)})
    known = [number(a) is not None and number(b) is not None for a, b in zip(columns["a"], columns["b"], strict=True)]
    flags = [yes_or_no(y) for y in columns["y"]]
    both = [k and y is not None for k, y in zip(known, flags, strict=True)]
    plain = pd.DataFrame({"a": columns["a"], "b": list(map(number, columns["b"])), "y": flags})
    filled = plain.fillna({"a": 3.0, "b": 20.0, "y": 1.0})
    for engine in ENGINES:
        table = Table(held(engine, columns, kinds, tmp_path))
        assert table.sums(line.query, 30, cells=LEFT_OUT) == Table(plain[known]).sums(line.query, 30), engine
        assert table.sums(logistic.query, 30, cells=LEFT_OUT) == Table(plain[both]).sums(logistic.query, 30), engine
        assert table.sums(logistic.query, 30, cells=Cells((3.0, 20.0, 1))) == Table(filled).sums(logistic.query, 30), (
            engine
        )
    assert 0 < sum(both) < sum(known) < 300


def test_groups_and_persons_are_summed_over_readable_records(seed):
    rng = random.Random(seed)
    frame = pd.DataFrame({"x": drawn([*NUMBERS, *UNREADABLE], seed), "w": drawn(["n", "s", None], seed + 1)})
    frame["id"] = [rng.randint(0, 60) for _ in range(len(frame))]
    model, known = F.Exponential("x", bounds=(0, 48)), frame.x.map(number).notna()
    found = Table(frame).group_sums(model.query, 8, Groups(("w",), (("n", "s"),)), cells=LEFT_OUT)
    assert found == [Table(frame[known & (frame.w == w)]).sums(model.query, 8) for w in "ns"]
    everyone = Table(frame).sums(model.query, 8, unit=Unit("id", 1000), cells=LEFT_OUT)
    assert everyone == Table(frame[known]).sums(model.query, 8)
    assert Table(frame).sums(model.query, 8, unit=Unit("id", 1), cells=LEFT_OUT)[1] <= frame.id.nunique()


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table])
def test_candidates_for_bounds_know_the_value_of_a_missing_cell(made):
    table = Table(made({"x": ["1", None, "> 60", "9"]}))
    assert table.counts("x", [0.0, 2.0, 5.0], missing=4.0) == ([0, 1, 3], 4)
    assert table.counts("x", [0.0, 2.0, 5.0]) == ([2, 3, 3], 4)


# ---- privacy: leaving out --------------------------------------------------------------------------------------------

EVERY = {
    "bernoulli": F.Bernoulli("x"),
    "binomial": F.Binomial("x", trials=5),
    "categorical": F.Categorical("x", levels=["a", "b", "c"]),
    "poisson": F.Poisson("x", bounds=(10, 48)),
    "dropped": F.Poisson("x", bounds=(10, 48), outside="drop"),
    "exponential": F.Exponential("x", bounds=(10, 48)),
    "below 0": F.Normal("x", bounds=(-48, -10), variance=1.0),
    "normal": F.Normal("x", bounds=(10, 48)),
    "normal, dropped": F.Normal("x", bounds=(10, 48), outside="drop"),
    "gamma": F.Gamma("x", bounds=(0, 48)),
    "joint": F.MultivariateNormal(["x", "y"], bounds=(10, 48)),
    "linear": F.LinearRegression(["x"], "y", bounds=(10, 48)),
    "logistic": F.LogisticRegression(["x"], "y", bounds=(10, 48)),
    "poisson regression": F.PoissonRegression(["x"], "y", bounds=(10, 48)),
}


def records(model) -> list[tuple]:
    """Records at the ends, within and outside of the bounds, and one that is missing."""
    if model.name == "categorical":
        return [("a",), ("b",), ("c",), (None,)]
    ends = {"bernoulli": (0, 1), "binomial": (0, 5)}.get(model.name, (0.0, 10, 23.375, 29, 37.9, 48, 1e9, -10, -48))
    return [*itertools.product([*ends, None], repeat=len(model.query.columns))]


@pytest.mark.parametrize("promise", [Pure(1), ZeroConcentrated(1)], ids=["all", "squares"])  # type: ignore[arg-type]
@pytest.mark.parametrize("name", EVERY)
def test_no_two_records_are_further_apart_than_stated_where_one_may_be_left_out(name, promise):
    """Every pair of records, of which one may be missing, moves the sums by no more than the noise is made for."""
    model = EVERY[name]
    grid = finest_grid(model.query, Agreement(promise), leaves_out=True)
    rows = records(model)
    frame = pd.DataFrame(rows, columns=list(model.query.columns), dtype=object).assign(row=range(len(rows)))
    groups = Groups(("row",), (tuple(range(len(rows))),))
    found = Table(frame).group_sums(model.query, grid.exponent, groups, cells=LEFT_OUT)
    totals, sizes = np.array([sums for sums, _ in found], dtype=object), {n for _, n in found}
    moved = abs(totals[:, None] - totals[None])
    is_all = isinstance(promise, Pure)
    apart = moved.sum(-1) if is_all else (moved**2 * np.array(model.query.entries)).sum(-1)
    limit = grid.sensitivity if is_all else grid.sensitivity_squared
    assert apart.max() <= limit
    if len(model.query.columns) == 1:
        assert apart.max() >= 0.98 * limit
    assert sizes == {0, 1}


def test_leaving_out_moves_a_sum_as_far_as_replacing_or_removing_does():
    """Of bounds (10, 48) a record that is replaced moves the sum by 38, and one that is left out by 48."""
    model = F.Exponential("x", bounds=(10, 48))
    terms = {missing: terms_of(model, epsilon=1, missing=missing) for missing in (None, 3, "leave_out")}
    scales = [t.grid.mechanism.spread / 2.0**t.grid.exponent for t in terms.values()]
    assert scales == pytest.approx([38, 38, 48 * 4 / 3], rel=1e-6)
    assert terms["leave_out"].n_grid.mechanism.scale == 4.0
    levels = F.Categorical("x", levels=["a", "b"])
    assert terms_of(levels, epsilon=1, missing="leave_out").grid.mechanism.scale == pytest.approx(8 / 3)


@pytest.mark.parametrize("options", [{"neighbours": "add_remove"}, {"unit": "id", "max_records": 3}])
def test_where_n_is_private_anyway_leaving_out_is_free(options):
    model = F.Exponential("x", bounds=(10, 48))
    plain, left = (terms_of(model, epsilon=1, **options, missing=missing) for missing in (None, "leave_out"))
    assert left.grid == plain.grid
    assert left.n_grid == plain.n_grid


@pytest.mark.parametrize("cells", [[None, "x"], ["3", "x"], ["3", "4"]])
def test_how_many_records_are_readable_is_told_by_noise_alone(cells, capfd):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    release = na.release(frame, F.Exponential("x", bounds=(0, 8)), epsilon=1, missing="leave_out")
    shown = json.loads(release.to_json())
    assert shown["origin"]["missing"] == "leave_out"
    del shown["statistics"], shown["origin"], shown["n"]
    assert shown == {
        "schema_version": 4,
        "family": {"name": "exponential", "column": "x", "bounds": [0.0, 8.0], "outside": "clamp"},
        "grid": 2.0**-27,
        "noise": {"law": "discrete_laplace", "scale": pytest.approx(8 * 4 / 3 * 2.0**27)},
        "n_noise": {"law": "discrete_laplace", "scale": 4.0},
        "neighbours": "replace",
        "guarantee": {"kind": "pure", "cost": "1"},
    }
    assert capfd.readouterr() == ("", "")


def test_a_table_without_records_is_refused_where_their_number_is_public():
    frame = pd.DataFrame({"x": pd.Series([], dtype=float)})
    with pytest.raises(ValueError, match="table must hold 1 to"):
        na.release(frame, F.Exponential("x", bounds=(0, 8)), epsilon=1, missing="leave_out")


def test_the_share_of_a_private_n_can_be_chosen_and_the_whole_is_charged(tmp_path):
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    frame = pd.DataFrame({"ill": ["yes", "no", "", "M"]})
    release = na.release(frame, F.Bernoulli("ill"), epsilon="0.5", missing="leave_out", n_share="0.2", ledger=ledger)
    assert (release.n_mechanism.scale, release.mechanism.scale) == (10.0, 2.5)
    assert float(ledger.spent) == 0.5
    assert "left out" in str(ledger.entries()[0])
    with pytest.raises(ValueError, match="n_share must be left out unless neighbours='add_remove' or missing='leave_o"):
        na.release(frame, F.Bernoulli("ill"), epsilon=1, n_share="0.2", missing=True)


# ---- the posterior ---------------------------------------------------------------------------------------------------


COUNTS = np.arange(101)


def discrete_laplace(k, scale):
    return np.log(np.tanh(0.5 / scale)) - np.abs(k) / scale


def bernoulli_cdf(release, grid, a, b):
    """The posterior's CDF on a grid of θ, by enumeration over every n and every s."""
    of_s = discrete_laplace(release.steps[0] - COUNTS, release.mechanism.scale)
    of_n = discrete_laplace(release.n - COUNTS, release.n_mechanism.scale)
    chances = binomials(tuple(grid))
    log_likelihood = np.log(np.einsum("tsn,s,n->t", chances, np.exp(of_s - of_s.max()), np.exp(of_n - of_n.max())))
    return _cdf(log_likelihood + stats.beta.logpdf(grid, a, b))


@functools.cache
def binomials(grid):
    """P(s | θ, n) for each θ, s and n."""
    return stats.binom.pmf(COUNTS[:, None], COUNTS, np.array(grid)[:, None, None])


def normal_cdf(release, grid, mean, sd):
    """The posterior's CDF of a normal of variance 1 that nothing clamps: N(nθ, n) and Laplace noise, in closed form."""
    n, y, b = np.arange(1, 400.0), release.values[0], release.noise_scale
    of_n = discrete_laplace(release.n - n, release.n_mechanism.scale)
    z, root = y - np.outer(grid, n), np.sqrt(n)
    sides = [special.log_ndtr((side * z - n / b) / root) - side * z / b for side in (1, -1)]
    log_likelihood = special.logsumexp(np.logaddexp(*sides) + n / (2 * b**2) + of_n, axis=1)
    return _cdf(log_likelihood + stats.norm.logpdf(grid, mean, sd))


def _cdf(log_density):
    density = np.exp(log_density - log_density.max())
    cdf = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return cdf / cdf[-1]


def ranks(released, truths, grid, cdf):
    """Where the truth lies in the posterior of each release."""
    return [np.interp(truth, grid, cdf(release)) for release, truth in zip(released, truths, strict=True)]


def check_drawn(posterior, name, grid, cdf):
    """Draws against the CDF at five levels."""
    draws = posterior.draws[name]
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    shares = [(draws <= np.interp(level, cdf, grid)).mean() for level in levels]
    assert np.all(np.abs(shares - levels) < 4.5 * np.sqrt(levels * (1 - levels) / len(draws)))


def test_a_yes_no_column_with_missing_cells_is_inferred_rightly(seed):
    """A third of the cells missing; n is at most 60, and what is released of it is noisy under replace."""
    rng, grid, model = np.random.default_rng(seed), np.linspace(1e-4, 1 - 1e-4, 201), F.Bernoulli("ill")
    truths, released = rng.beta(2, 5, 40), []
    for theta in truths:
        answers = np.where(rng.random(60) < theta, "yes", "no")
        cells = np.where(rng.random(60) < 1 / 3, rng.choice(["", "M", "?"], 60), answers)
        released.append(na.release(pd.DataFrame({"ill": cells}), model, epsilon=4, missing="leave_out"))
    found = ranks(released, truths, grid, lambda release: bernoulli_cdf(release, grid, 2, 5))
    assert stats.kstest(found, "uniform").pvalue > 1e-4
    posterior = na.infer(released[0], na.prior.Beta(2, 5), num_draws=10_000, seed=seed)
    assert posterior.is_exact
    check_drawn(posterior, "theta", grid, bernoulli_cdf(released[0], grid, 2, 5))


@pytest.mark.slow
def test_a_measurement_with_missing_cells_is_inferred_rightly(seed):
    rng, grid = np.random.default_rng(seed), np.linspace(2, 12, 1001)
    model, truths, released = F.Normal("x", bounds=(0, 14), variance=1.0), rng.normal(7, 1.0, 200), []
    for mean in truths:
        x = pd.Series(rng.normal(mean, 1.0, 90)).astype(object).where(rng.random(90) < 0.7, "> 60")
        released.append(na.release(pd.DataFrame({"x": x}), model, epsilon=2, missing="leave_out"))
    found = ranks(released, truths, grid, lambda release: normal_cdf(release, grid, 7, 1.0))
    assert stats.kstest(found, "uniform").pvalue > 1e-4
    for release in released[:3]:
        posterior = na.infer(release, na.prior.Normal(7.0, 1.0), num_draws=10_000, seed=seed)
        check_drawn(posterior, "mean", grid, normal_cdf(release, grid, 7, 1.0))


def left_out(model, epsilon) -> na.Release:
    frame = pd.DataFrame({"x": [1.0, 0.0, None, 1.0] * 25})
    return na.release(frame, model, epsilon=epsilon, missing="leave_out")


def test_a_release_is_calibrated_with_the_noise_of_its_n(monkeypatch):
    """Which it has though one record is replaced by another."""
    release = left_out(F.Bernoulli("x"), 1)
    monkeypatch.setattr(calibration, "_calibrated", lambda *arguments: arguments)
    posterior = Posterior({"theta": np.full(4, 0.5)}, release, na.prior.Beta(1, 1), "exact", None, 0)
    assert (release.neighbours, na.calibrate(posterior)[0].count) == ("replace", release.count)
    assert isinstance(release.count, Private)


@pytest.mark.slow
def test_a_release_without_unreadable_records_is_calibrated(seed):
    posterior = na.infer(left_out(F.Bernoulli("x"), 4), na.prior.Beta(2, 5), seed=0)
    check = na.calibrate(posterior, num_trials=250, seed=seed)
    assert check.ks < check.critical(0.9999)


# ---- what is said ----------------------------------------------------------------------------------------------------

YES_OR_NO = {"true": ["true", "t", "yes", "y", "1", "on"], "false": ["false", "f", "no", "n", "0", "off"]}


@pytest.mark.filterwarnings("ignore:private bounds were chosen")  # of a few records, where the rule is what counts
@pytest.mark.parametrize(
    ("model", "options", "origin"),
    [
        (F.Exponential("x", bounds=(1, 9)), {}, {"missing": {"x": 1.0}}),
        (F.Exponential("x", bounds=(1, 9)), {"missing": 4}, {"missing": {"x": 4.0}}),
        (F.Exponential("x", bounds=(1, 9), outside="drop"), {}, {"missing": "drop"}),
        (F.Exponential("x", bounds=(1, 9)), {"missing": "leave_out", "by": "w", "levels": {"w": ["a"]}}, {}),
        (F.Bernoulli("w"), {}, {"missing": {"w": 0}, **YES_OR_NO}),
        (F.Bernoulli("w"), {"true": ["a", "b"], "missing": "yes"}, {"missing": {"w": 1}, "true": ["a", "b"]}),
        (F.Categorical("w", levels=["b", "a"]), {}, {"missing": {"w": "b"}}),
        (F.Categorical("w", levels=["b", "a"]), {"missing": "a"}, {"missing": {"w": "a"}}),
        (F.Categorical("x", levels=[1, 2]), {"missing": 2.0}, {"missing": {"x": 2}}),
        (F.LinearRegression("x", "v", bounds=(1, 9)), {}, {"missing": {"x": 1.0, "v": 1.0}}),
        (F.LinearRegression("x", "v", bounds=(1, 9)), {"missing": {"v": 2, "x": 3}}, {"missing": {"x": 3.0, "v": 2.0}}),
        (F.LogisticRegression("x", "w", bounds=(1, 9)), {}, {"missing": {"x": 1.0, "w": 0}, **YES_OR_NO}),
    ],
)
def test_a_release_says_how_cells_were_read(model, options, origin):
    frame = pd.DataFrame({"x": ["2", "", "1"], "v": [1.0, 2.0, None], "w": ["a", "b", None]})
    release = na.release(frame, model, epsilon=1, **options)
    release = release["a"] if isinstance(release, dict) else release
    document = json.loads(release.to_json())
    assert document["schema_version"] == 4
    found = {name: document["origin"][name] for name in ("missing", "true", "false") if name in document["origin"]}
    assert found == (origin or {"missing": "leave_out"})
    assert from_json(release.to_json()) == release
    assert "missing" in repr(release)


def test_private_bounds_are_chosen_with_the_value_of_missing_cells():
    """Of 4 where four cells in five are missing: the bound lies near it, and not near 0."""
    frame = pd.DataFrame({"x": ["1", "", "> 60", None, "2024-01-31"] * 2000})
    release = na.release(frame, F.Exponential("x"), epsilon=20, bounds="private", missing=4)
    assert release.origin.missing == (("x", 4.0),)
    assert 2 <= release.query.bounds[1] <= 8


WAIT, SEX = F.Exponential("x", bounds=(0, 9)), F.Bernoulli("x")
LINE, LEVELS = F.LinearRegression("x", "y", bounds=(0, 9)), F.Categorical("x", levels=["a", "b"])
NUMBER = "missing must be 'leave_out' or a finite number for x, got"
FLAG, WORD = "missing must be 'leave_out', yes or no for x, got", "true must be words that are yes, at most 100, got"


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        (WAIT, {"missing": "drop"}, f"{NUMBER} 'drop'."),
        (WAIT, {"missing": math.nan}, f"{NUMBER} nan."),
        (WAIT, {"missing": True}, f"{NUMBER} True."),
        (WAIT, {"missing": {"y": 1}}, "missing must name each of x, and nothing else, got ['y']."),
        (WAIT, {"true": ["a"]}, "true must be left out for the exponential family, which has no column of yes or no."),
        (
            F.Exponential("x"),
            {"bounds": "private", "missing": "leave_out"},
            "bounds must be given where missing='leave",
        ),
        (SEX, {"missing": "perhaps"}, f"{FLAG} 'perhaps'."),
        (SEX, {"missing": 0.5}, f"{FLAG} 0.5."),
        (SEX, {"missing": [1]}, f"{FLAG} [1]."),
        (SEX, {"true": []}, f"{WORD} []."),
        (SEX, {"true": [1]}, f"{WORD} [1]."),
        (SEX, {"true": [" "]}, f"{WORD} [' ']."),
        (SEX, {"true": True}, f"{WORD} True."),
        (SEX, {"true": ["a" * 101]}, "true must be words of at most 100 printable letters, got 'aaa"),
        (SEX, {"true": ["a\0"]}, "true must be words of at most 100 printable letters, got 'a\\x00'."),
        (LEVELS, {"missing": "c"}, "missing must be 'leave_out' or one of the levels ['a', 'b'], got 'c'."),
        (F.Categorical("x", levels=["a", "leave_out"]), {"missing": "leave_out"}, "levels must not hold 'leave_out'"),
        (F.Categorical("x", levels=[0, 1]), {"missing": True}, "one of the levels [0, 1], got True."),
        (LINE, {"missing": 3}, "missing must be 'leave_out', or a value for each column {'x': …, 'y': …}, got 3."),
        (LINE, {"missing": {"x": 3}}, "missing must name each of x, y, and nothing else, got ['x']."),
    ],
)
def test_what_cells_cannot_count_as_is_refused_before_the_table_is_read(model, options, sentence, tmp_path):
    (tmp_path / "t.parquet").write_text("nothing of the kind")
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    with pytest.raises(ValueError, match=r"\.$") as caught:
        na.release(tmp_path / "t.parquet", model, epsilon=1, ledger=ledger, **options)
    assert sentence in str(caught.value)
    assert ledger.spent == 0


def test_what_was_wrong_is_right():
    """A column of yes and no was counted as all no, and one of dates as the lower bound without a word."""
    answers = pd.DataFrame({"ill": ["yes", "no", "Yes", " YES ", "n", None], "day": ["2024-01-31"] * 6})
    assert Table(answers).sums(F.Bernoulli("ill").query, 0) == ([3], 6)
    release = na.release(answers, F.Exponential("day", bounds=(1, 9)), epsilon=1)
    assert release.origin.missing == (("day", 1.0),)
    assert cells_of(F.Bernoulli("sex"), None, "F") == Cells(None, ("F",))
