"""Second moments from a table to a release: noise of each statistic, the grid, and what is refused before it costs."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.custodian.grid import finest_grid
from noiseaware.custodian.ledger.ledger import Ledger
from noiseaware.custodian.noise import calibrated, draw
from noiseaware.custodian.table import MOST_RECORDS
from noiseaware.custodian.terms import terms_of
from noiseaware.evidence.release import from_json
from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace
from noiseaware.privacy import Agreement, Pure, ZeroConcentrated

BOUNDS = {"age": (0, 100), "bmi": (10, 60), "pressure": (60, 220)}
REGRESSION = na.family.LinearRegression(["age", "bmi"], "pressure", bounds=BOUNDS)
FAMILIES = {
    "normal": na.family.Normal("age", bounds=(0, 100)),
    "normal, dropped": na.family.Normal("age", bounds=(20, 60), outside="drop"),
    "gamma": na.family.Gamma("age", bounds=(0, 100)),
    "multivariate_normal": na.family.MultivariateNormal(["age", "bmi"], bounds={c: BOUNDS[c] for c in ("age", "bmi")}),
    "linear_regression": REGRESSION,
}
FALSE_ALARM = 1e-6


@pytest.fixture
def clinic(seed):
    rng = np.random.default_rng(seed)
    age, bmi = rng.uniform(-5, 105, 2000), rng.normal(26, 5, 2000)
    table = pd.DataFrame({"age": age, "bmi": bmi, "pressure": 80 + 0.5 * age + bmi + rng.normal(0, 8, 2000)})
    table.iloc[:3] = [[np.nan, np.inf, 100], [-np.inf, 20, np.nan], [50, 1e308, -1e308]]
    return table


def truth(model, clinic) -> np.ndarray:
    """The statistics in floating point, by other means than the table's."""
    columns = []
    for name, (low, high) in zip(model.query.columns, model.query.intervals, strict=True):
        x = clinic[name].to_numpy()
        u = (np.where(np.isnan(x), low, x).clip(low, high) - 0.5 * (low + high)) / (0.5 * (high - low))
        is_dropped = model.query.outside == "drop"
        columns.append(np.where((x >= low) & (x <= high), u, 0) if is_dropped else u)
    d = len(columns)
    return np.array([*map(np.sum, columns), *(columns[i] @ columns[j] for i in range(d) for j in range(i, d))])


@pytest.mark.parametrize("promise", [{"epsilon": 0.5}, {"rho": "1/8"}])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_of_moments_is_released(name, promise, clinic, tmp_path):
    model = FAMILIES[name]
    ledger = Ledger.create(tmp_path / "clinic.ledger", **dict.fromkeys(promise, 1))
    release = na.release(clinic, model, ledger=ledger, **promise)
    assert release.grid == 2.0**-30
    assert all(type(step) is int for step in release.steps)
    # beyond 50 scales with chance below e^−50; a record is rounded by half a step of 2^−15 at most
    slack = 50 * release.noise_scale + 2000 * 2.0**-15
    assert np.all(np.abs(release.values - truth(model, clinic)) <= slack)
    (entry,) = ledger.entries()
    assert (entry.guarantee, entry.what["columns"]) == (release.guarantee, ", ".join(model.query.columns))
    assert from_json(release.to_json()) == release
    assert from_json(release.to_json()).family == model


def test_a_csv_file_is_released_as_a_frame_is(clinic, tmp_path, monkeypatch):
    """Without noise, so that the numbers can be compared."""
    monkeypatch.setattr("noiseaware.custodian.grid.draw", lambda mechanism, values, **_: list(values))
    clinic.to_csv(tmp_path / "clinic.csv", index=False)
    assert (
        na.release(tmp_path / "clinic.csv", REGRESSION, epsilon=1).steps
        == na.release(clinic, REGRESSION, epsilon=1).steps
    )


# ---- noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", ["1/8", "0.3", "7"])
def test_products_of_two_columns_have_less_gaussian_noise(rho):
    """Σ_j Δ_j²/2σ_j² ≤ ρ for every move of the statistics that Δ₂² allows, in exact fractions."""
    exact = Fraction(rho)
    grid = finest_grid(REGRESSION.query, Agreement(ZeroConcentrated(exact)))
    stddevs = [Fraction(s) for s in grid.mechanism.stddev]
    assert len(stddevs) == len(REGRESSION.query.names) == len(grid.entries)
    square = Fraction(grid.sensitivity_squared) / (2 * exact)
    for s, m in zip(stddevs, grid.entries, strict=True):
        assert square / s**2 <= m
        assert float(s) <= math.sqrt(square / m) * (1 + 2**-47)


def test_laplace_noise_has_one_scale():
    grid = finest_grid(REGRESSION.query, Agreement(Pure(Fraction(1, 3))))
    assert isinstance(grid.mechanism, DiscreteLaplace)
    assert grid.sensitivity == math.ceil(Fraction(75, 8) * 4**15)
    assert Fraction(grid.sensitivity) / Fraction(grid.mechanism.scale) <= Fraction(1, 3)


def test_drawn_noise_has_the_law_of_each_statistic():
    """Kolmogorov–Smirnov against the normal, which the discrete law differs from by 1/σ at most, here 1e-4."""
    entries = (1, 2) * 5000
    squared = 4 * 10**8
    promise = {"sensitivity": 1, "sensitivity_squared": squared, "guarantee": ZeroConcentrated(Fraction(1, 2))}
    mechanism = calibrated(promise["guarantee"], 1, squared, entries)
    noise = np.array(draw(mechanism, [0] * len(entries), entries=entries, **promise))
    for count, own in ((1, noise[::2]), (2, noise[1::2])):
        stddev = math.sqrt(squared / count)
        assert stats.kstest(own, stats.norm(0, stddev).cdf).pvalue > FALSE_ALARM
        # the test has power: the other statistic's noise is told apart
        assert stats.kstest(own, stats.norm(0, math.sqrt(squared / (3 - count))).cdf).pvalue < FALSE_ALARM
    assert abs(np.corrcoef(noise[::2], noise[1::2])[0, 1]) < 5 / math.sqrt(5000)


def test_values_come_back_in_order():
    entries, values = (1, 2, 1, 2, 1), [10**12 * j for j in range(5)]
    promise = {"sensitivity": 1, "sensitivity_squared": 4, "guarantee": ZeroConcentrated(Fraction(1, 2))}
    mechanism = calibrated(promise["guarantee"], 1, 4, entries)
    noisy = draw(mechanism, values, entries=entries, **promise)
    assert all(type(v) is int for v in noisy)
    assert all(abs(a - b) < 100 for a, b in zip(noisy, values, strict=True))


def test_too_little_noise_on_any_statistic_is_not_drawn():
    promise = {"sensitivity": 2, "sensitivity_squared": 4, "guarantee": ZeroConcentrated(Fraction(1, 2))}
    right = calibrated(promise["guarantee"], 2, 4, (1, 2)).stddev
    draw(DiscreteGaussian(right), [0, 0], entries=(1, 2), **promise)
    draw(DiscreteGaussian(2.0), [0, 0], entries=(1, 2), **promise)
    for stddev in ([right[0], np.nextafter(right[1], 0)], [np.nextafter(right[0], 0), right[1]], right[::-1].copy()):
        with pytest.raises(RuntimeError, match="nothing was drawn"):
            draw(DiscreteGaussian(stddev), [0, 0], entries=(1, 2), **promise)
    with pytest.raises(RuntimeError, match="nothing was drawn"):
        draw(DiscreteGaussian(right), [0, 0], **promise)  # as if each stood for itself alone


# ---- the grid and the refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("promise", [Pure(Fraction(e)) for e in ("1e-12", "0.01", "1", "1000")])
def test_the_grid_leaves_room_and_is_the_finest(promise, d):
    model = na.family.MultivariateNormal([f"x{j}" for j in range(d)], bounds=(0, 1))
    grid = finest_grid(model.query, Agreement(promise))
    k = grid.exponent // 2
    assert grid.exponent == 2 * k
    assert MOST_RECORDS * 4**k + 64 * grid.mechanism.spread < 2**62
    assert grid.mechanism.spread >= 1000
    finer = MOST_RECORDS * 4 ** (k + 1) + 64 * 4 * grid.mechanism.spread
    assert finer >= 2**62, "the next finer grid must have been too fine"


BAD = {
    "epsilon tiny": ({"epsilon": "1e-25"}, "epsilon or rho must be nearer to 1"),
    "epsilon huge": ({"epsilon": "1e12"}, "epsilon or rho must be nearer to 1"),
    "rho huge": ({"rho": "1e40"}, "epsilon or rho must be nearer to 1"),
    "neighbours": ({"epsilon": 1, "neighbours": "beside"}, "neighbours must be 'replace'"),
    "private bounds": ({"epsilon": 1, "bounds": "private"}, "must be given for the linear_regression family"),
    "private bounds of a normal": (
        {"epsilon": 1, "bounds": "private", "family": na.family.Normal("age")},
        "must be given for the normal family",
    ),
    "no bounds": (
        {"epsilon": 1, "family": na.family.LinearRegression("age", "pressure")},
        "bounds must be given: without them",
    ),
    "no column": ({"epsilon": 1, "family": na.family.Normal(bounds=(0, 1))}, "family must name one column"),
    "missing column": (
        {"epsilon": 1, "family": na.family.LinearRegression("weight", "age", bounds=(0, 1))},
        "must have one column 'weight'",
    ),
    "wrong type": (
        {"epsilon": 1, "family": na.family.LinearRegression("day", "age", bounds=(0, 1))},
        "must hold numbers or text",
    ),
    "bounds too wide": (
        {"epsilon": 1, "family": na.family.Normal("age", bounds=(-1.7e308, 1.7e308))},
        "that floats hold",
    ),
    "bounds too far out": (
        {"epsilon": 1, "family": na.family.Normal("age", bounds=(1.6e308, 1.7e308))},
        "that floats hold",
    ),
    "bounds too narrow": (
        {"epsilon": 1, "family": na.family.Normal("age", bounds=(0, 5e-324))},
        "at least 1e-300 wide",
    ),
    "empty table": ({"epsilon": 1, "table": pd.DataFrame({"age": [], "bmi": [], "pressure": []})}, "records, got 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_costs_nothing(case, tmp_path):
    changes, rule = BAD[case]
    kind = "rho" if "rho" in changes else "epsilon"
    ledger = Ledger.create(tmp_path / "clinic.ledger", **{kind: "1e50"})
    table = pd.DataFrame({"age": [77.125], "bmi": [1.0], "pressure": [2.0], "day": pd.to_datetime(["2020"])})
    given = {"table": table, "family": REGRESSION, "ledger": ledger, **changes}
    with pytest.raises(ValueError) as caught:
        na.release(given.pop("table"), given.pop("family"), **given)
    sentence = str(caught.value)
    assert rule in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "77.125" not in sentence
    assert ledger.spent == 0


@pytest.mark.parametrize("cells", [[5.0] * 4, [None] * 4, [1e300, -1e300, np.inf, np.nan], ["x", "", "3", None]])
def test_a_constant_column_and_cells_of_any_kind_change_nothing_visible(cells, capfd):
    table = pd.DataFrame({"age": pd.Series(cells, dtype=object), "pressure": [100.0, 500.0, -3.0, np.nan]})
    model = na.family.LinearRegression("age", "pressure", bounds={"age": (0, 100), "pressure": (60, 220)})
    shown = json.loads(na.release(table, model, rho=1).to_json())
    names = [statistic["name"] for statistic in shown.pop("statistics")]
    assert names == ["sum[age]", "sum[pressure]", "sum[age·age]", "sum[age·pressure]", "sum[pressure·pressure]"]
    assert shown.pop("origin")["missing"] == {"age": 0.0, "pressure": 60.0}
    sigma, product = math.sqrt(12 / 2) * 2**30, math.sqrt(6 / 2) * 2**30
    assert shown.pop("noise") == {
        "law": "discrete_gaussian",
        "scale": pytest.approx([sigma, sigma, sigma, product, sigma], rel=1e-14),
    }
    assert shown == {
        "schema_version": 4,
        "family": {
            "name": "linear_regression",
            "x": ["age"],
            "y": "pressure",
            "bounds": [[0.0, 100.0], [60.0, 220.0]],
        },
        "grid": 2.0**-30,
        "n": 4,
        "neighbours": "replace",
        "guarantee": {"kind": "zcdp", "cost": "1"},
    }
    assert capfd.readouterr() == ("", "")


# ---- the file ------------------------------------------------------------------------------------------------------

DOCUMENT = json.loads(
    na.Release(family=REGRESSION, values=range(9), n=10, mechanism=DiscreteGaussian([2.0] * 9)).to_json()
)
REFUSED = [
    ("family", {"bounds": [[0, 1], [0, 1]]}, "bounds must be"),
    ("family", {"bounds": ["a", "b"]}, "family.bounds.0: Input should be a valid number"),
    ("family", {"bounds": [[0, 1], [0, 1], [1]]}, "family.bounds.2.1: Field required"),
    ("family", {"bounds": [[0, 1], [0, 1], [1, 0]]}, "low < high"),
    ("family", {"x": None}, "family.x must be given for the linear_regression family"),
    ("family", {"y": None}, "family.y must be given for the linear_regression family"),
    ("family", {"x": "age"}, "family.x: Input should be a valid array"),
    ("family", {"x": ["age", 3]}, "family.x.1: Input should be a valid string"),
    ("family", {"x": []}, "x must name one or more columns"),
    ("family", {"y": "age"}, "must name each column once"),
    ("family", {"columns": ["a"]}, "family.columns must be null for the linear_regression family"),
    ("family", {"outside": "drop"}, "family.outside must be null"),
    ("family", {"name": "multivariate_normal"}, "family.x must be null for the multivariate_normal family"),
    ("family", {"name": "multivariate_normal", "x": None, "y": None}, "family.columns must be given"),
    ("family", {"intervals": []}, "family.intervals: Extra inputs are not permitted"),
    ("noise", {"scale": [1.0, 2.0]}, "noise must have one scale, or 9 for this family, got 2"),
    ("noise", {"scale": [1.0] * 8 + [0.0]}, "stddev must be positive and finite"),
    ("noise", {"scale": [1.0] * 8 + ["wide"]}, "noise.scale.8: Input should be a valid number"),
    ("noise", {"scale": []}, "stddev must be positive and finite"),
]


@pytest.mark.parametrize(("part", "change", "rule"), REFUSED)
def test_a_file_that_is_off_is_refused_in_a_sentence(part, change, rule):
    document = DOCUMENT | {part: DOCUMENT[part] | change}
    with pytest.raises(ValueError) as caught:
        from_json(json.dumps(document))
    assert rule in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_files_of_moments_fit_the_published_schema():
    import jsonschema

    from noiseaware.evidence.release import json_schema

    jsonschema.validate(DOCUMENT, json_schema())
    for model in (na.family.MultivariateNormal(["a", "b"]), na.family.Normal("a", bounds=(0, 1))):
        release = na.Release(
            family=model, values=[1.0] * len(model.query.names), n=3, mechanism=na.mechanism.Laplace(2.0)
        )
        jsonschema.validate(json.loads(release.to_json()), json_schema())
        assert from_json(release.to_json()) == release
        assert from_json(release.to_json()).family == model
    assert from_json(json.dumps(DOCUMENT)).noise_scale.tolist() == [2.0] * 9


@pytest.mark.parametrize("bounds", [(-1.7e308, 1.7e308), (1e308, 1.1e308), (0, 1e-301)])
def test_bounds_that_floats_cannot_scale_by_are_refused_by_the_rule(bounds):
    with pytest.raises(ValueError, match="at least 1e-300 wide, with a width and a sum that floats hold, got"):
        terms_of(na.family.Normal("x", bounds=bounds), epsilon=1)
    for wide in ((-8e307, 8e307), (0, 1e-299)):
        assert terms_of(na.family.Normal("x", bounds=wide), epsilon=1).agreement.of_n is None
