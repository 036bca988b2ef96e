"""What each loader makes of what a tool publishes, and what it refuses."""

import inspect
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import noiseaware as na
from noiseaware import interop
from noiseaware.evidence.release import from_json, json_schema

ATOM = {"__function__": "atom_domain", "__module__": "domains", "__kwargs__": {"T": "i64"}, "__version__": "0.16.0"}


def measurement(function="make_laplace", version="0.16.0", domain=ATOM, **arguments) -> str:
    arguments = {"input_domain": domain, "scale": 3.5, "k": None} | arguments
    return json.dumps({"__function__": function, "__kwargs__": arguments, "__version__": version})


def serialized(build) -> str:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    from opendp.mod import serialize

    return serialize(build(dp))


def test_every_loader_is_on_the_reference_page_and_documented():
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    loaders = [name for name, value in vars(interop).items() if inspect.isfunction(value)]
    assert len(loaders) == 10
    for name in loaders:
        assert f"noiseaware.interop.{name}\n" in page
        assert getattr(interop, name).__doc__


# ---- OpenDP ------------------------------------------------------------------------------------------------------


def test_a_chain_that_opendp_serialised():
    chain = serialized(
        lambda dp: (
            (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
            >> dp.t.then_count(TO="i64")
            >> dp.m.then_laplace(2.0)
        )
    )
    release = interop.opendp(chain, 17)
    assert (release.steps, release.mechanism, release.within) == ((17,), na.mechanism.DiscreteLaplace(2.0), None)
    assert (release.origin.tool, release.origin.version) == ("OpenDP", "0.16.0")


def test_floats_have_continuous_noise_and_a_granularity_is_a_grid():
    chain = serialized(
        lambda dp: (
            (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=10), dp.symmetric_distance())
            >> dp.t.then_clamp((0.0, 1.0))
            >> dp.t.then_sum()
            >> dp.m.then_gaussian(2.0)
        )
    )
    family = na.family.Exponential(bounds=(0, 1))
    assert interop.opendp(chain, 3.25, family=family, n=10).mechanism == na.mechanism.Gaussian(2.0)
    domain = ATOM | {"__kwargs__": {"T": "f64"}}
    release = interop.opendp(measurement(domain=domain, k=-3), 1.5, family=family, n=10)
    assert (release.grid, release.steps, release.mechanism) == (0.125, (12,), na.mechanism.DiscreteLaplace(28.0))


def test_bounds_of_the_geometric_mechanism_clamp():
    clamped = serialized(
        lambda dp: dp.m.make_geometric(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), 3.5, bounds=(0, 100))
    )
    assert interop.opendp(clamped, 0).within == ((-math.inf, 0.0),)
    assert interop.opendp(clamped, 100).within == ((100.0, math.inf),)
    assert interop.opendp(clamped, 30).within is None
    with pytest.raises(ValueError, match="value must be from 0 to 100 where it is clamped, got -1"):
        interop.opendp(clamped, -1)


def test_a_vector_of_counts():
    domain = {"__kwargs__": {"atom_domain": ATOM, "size": None}}
    levels = na.family.Categorical(levels=["a", "b"])
    release = interop.opendp(measurement(domain=domain), [3, 9], family=levels, n=12)
    assert release.steps == (3, 9)


@pytest.mark.parametrize("version", ["0.9.0", "0.12.1", "0.14.1", "0.10.0-nightly"])
def test_an_opendp_of_biased_integers_is_warned_of(version):
    with pytest.warns(RuntimeWarning, match="0.9.0 to 0.14.1"):
        release = interop.opendp(measurement(version=version), 4)
    with pytest.warns(RuntimeWarning, match="biased integer noise"):
        from_json(release.to_json())


@pytest.mark.parametrize("version", ["0.8.0", "0.14.2", "0.16.0", "1.0", "odd"])
def test_others_are_not(version):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interop.opendp(measurement(version=version), 4)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{}", "must be a serialised OpenDP measurement"),
        ("x" * 60, "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ("9" * 10_000, "must be JSON"),
        ("x" * 10_000_000, "at most 1,000,000 characters"),
        (measurement("make_user_measurement"), "must end in one of make_laplace"),
        (measurement(scale=-1.0), "scale must be a positive number"),
        (measurement(scale=10**400), "scale must be a positive number"),
        (measurement(scale=math.inf), "scale must be a positive number"),
        (measurement(domain={}), "must tell the type of the numbers"),
        (measurement(domain=ATOM | {"__kwargs__": {"T": "f64"}}, k=10**9), "k must be a whole number"),
        (measurement("make_geometric", bounds=[0]), "bounds must be two numbers"),
        (7, "must be the text"),
    ],
)
def test_what_is_no_measurement_is_refused_in_a_sentence(text, rule):
    with pytest.raises(ValueError, match=rule) as refusal:
        interop.opendp(text, 4)
    assert len(str(refusal.value)) < 300
    assert "\n" not in str(refusal.value)


# ---- tables ------------------------------------------------------------------------------------------------------

ROWS = [{"place": "north", "count": 4}, {"place": "south", "count": 0}]


@pytest.mark.parametrize("frame", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist], ids=lambda f: f.__name__)
def test_frames_of_any_kind(frame):
    north, south = interop.smartnoise(frame(ROWS), scale=2.0, clamp_counts=True)
    assert north.origin.group == (("place", "north"),)
    assert (north.within, south.within) == (((4.0, 5.0),), ((-math.inf, 1.0),))


def test_truncation_goes_toward_zero():
    rows = [["persons"], [3], [0], [-2]]
    within = [r.within for r in interop.smartnoise(rows, scale=2.0, column="persons")]
    assert within == [((3.0, 4.0),), ((-1.0, 1.0),), ((-3.0, -2.0),)]


def test_groups_that_were_left_out():
    summary = [{"column": "count", "aggregate": "Frame Length", "distribution": "Integer Laplace", "scale": 2.0}]
    keys = [{"place": "north"}, {"place": "west"}]
    with pytest.raises(ValueError, match="keys must be in the frame where the summary has no threshold"):
        interop.opendp_polars(ROWS, summary, column="count", keys=keys)
    summary[0]["threshold"] = 5
    *_, west = interop.opendp_polars([{"place": "north", "count": 6}], summary, column="count", keys=keys)
    assert (west.origin.group, west.steps, west.within) == ((("place", "west"),), (5,), ((-math.inf, 5.0),))
    with pytest.raises(ValueError, match="threshold must be given"):
        interop.smartnoise(ROWS, scale=2.0, keys=keys)
    with pytest.raises(ValueError, match="epsilon and threshold must be given"):
        interop.wikimedia([{"place": "n", "count_eps": 1, "count_release_thresh": 3, "editors": 4}], keys=keys)
    with pytest.raises(ValueError, match=r"keys must name the columns \['place'\]"):
        interop.smartnoise(ROWS, scale=2.0, threshold=3, keys=[{"town": "north"}])
    numbered = [["place", "count"], ["7", 4]]  # as a file has it
    assert len(interop.smartnoise(numbered, scale=2.0, threshold=3, keys=[{"place": 7}])) == 1


def test_a_column_of_sums_is_not_clamped():
    summary = [{"column": "count", "aggregate": "Sum", "distribution": "Integer Gaussian", "scale": 2.0}]
    release = interop.opendp_polars(ROWS, summary, column="count")[1]
    assert (release.mechanism, release.within) == (na.mechanism.DiscreteGaussian(2.0), None)


def test_what_no_tool_publishes_is_refused_in_a_sentence():
    no_number = {"count": "x", "count_noise_stddev": 1}
    for rows in ([("north", 3)], ["north"], [("north", {"count": 3})], [("north", no_number)]):
        with pytest.raises(ValueError, match="row 1"):
            interop.pipelinedp(rows)
    with pytest.raises(ValueError, match="noise must be 'laplace' or 'gaussian', got 'cauchy'"):
        interop.pipelinedp([], noise="cauchy")
    with pytest.raises(ValueError, match="scale must be positive, got -1"):
        interop.pydp([3], scale=-1.0)
    with pytest.raises(ValueError, match="scale must be a number, got 'wide'"):
        interop.smartnoise(ROWS, scale="wide")
    with pytest.raises(ValueError, match=r"family must be one of noiseaware\.family"):
        interop.smartnoise(ROWS, scale=1.0, family="poisson")


def test_tumult_tells_a_scale_or_a_variance():
    laws = {
        "GEOMETRIC": na.mechanism.DiscreteLaplace(9.0),
        "LAPLACE": na.mechanism.Laplace(9.0),
        "DISCRETE_GAUSSIAN": na.mechanism.DiscreteGaussian(3.0),
        "GAUSSIAN": na.mechanism.Gaussian(3.0),
    }
    for name, law in laws.items():
        told = {"noise_mechanism": name, "noise_parameter": 9}
        assert interop.tumult(ROWS, told)[0].mechanism == law
    with pytest.raises(ValueError, match="noise_mechanism must be one of GEOMETRIC"):
        interop.tumult(ROWS, {"noise_mechanism": "CAUCHY", "noise_parameter": 9})


def test_google_counts_are_rounded_and_sums_of_floats_are_not():
    assert interop.pydp({"north": 4}, scale=2.0)[0].within == ((3.5, 4.5),)
    release = interop.pydp([4.25], scale=2.0, is_integer=False, noise="gaussian")[0]
    assert (release.within, release.mechanism) == (None, na.mechanism.Gaussian(2.0))
    with pytest.raises(ValueError, match="row 1: value must be a whole number"):
        interop.pydp([4.25], scale=2.0)


def test_noise_that_pydp_draws_is_rounded_laplace(tool):
    """Chi-square of 20 000 real draws at the 1e-6 point; the discrete Laplace law of that scale is far off."""
    from scipy import stats

    found = tool("python-dp", "pydp", counts=[20] * 20_000, epsilon=1.25)["values"]
    k = np.arange(-4, 5)
    seen = np.array([np.sum(np.clip(np.array(found) - 20, -4, 4) == j) for j in k])
    b = 0.8
    rounded = np.where(k == 0, 1 - np.exp(-0.5 / b), np.sinh(0.5 / b) * np.exp(-np.abs(k) / b))
    rounded[[0, -1]] = 0.5 * np.exp(-3.5 / b)  # and all beyond
    discrete = np.tanh(0.5 / b) * np.exp(-np.abs(k) / b)
    discrete[[0, -1]] /= 1 - np.exp(-1 / b)
    distance = [float((((seen - 20_000 * p) ** 2) / (20_000 * p)).sum()) for p in (rounded, discrete)]
    assert distance[0] < stats.chi2.isf(1e-6, 8) < distance[1] / 3


# ---- files -------------------------------------------------------------------------------------------------------


def test_published_census_estimates(tmp_path: Path):
    path = tmp_path / "estimates.csv"
    path.write_text("geocode|query|estimate|std_dev\n01001020100|P0010001|1773.9018|1.6418\n")
    (release,) = interop.census_estimates(path)
    assert release.mechanism == na.mechanism.Gaussian(1.6418)
    assert dict(release.origin.group) == {"geocode": "01001020100", "query": "P0010001"}
    posterior = na.infer(release, na.prior.Gamma(1, 1e-4), seed=0)
    assert abs(posterior.draws["theta"].mean() - 1773.9) < 5  # of a Poisson mean, with sd 42
    assert 38 < posterior.draws["theta"].std() < 46


def test_census_measurements_of_several_cells():
    rows = [
        {"geocode": "1", "query_name": "hispanic_dpq", "value": [5, -3], "variance": 16.0},
        {"geocode": "1", "query_name": "total_con", "value": [9], "variance": 0.0},
    ]
    first, second = interop.census_measurements(rows)
    assert (second.steps, second.mechanism) == ((-3,), na.mechanism.DiscreteGaussian(4.0))
    assert dict(first.origin.group) == {"geocode": "1", "query_name": "hispanic_dpq", "cell": 0}


def test_a_month_of_wikimedia_has_no_header(tmp_path: Path):
    path = tmp_path / "2024-01.tsv"
    path.write_text("ocwiki\toc.wikipedia\tFrance\tFR\t1 to 4\t1.1\t1.1\t9\t41\t99\t2024-01\n")
    key = {"wiki_db": "ocwiki", "project": "oc.wikipedia", "country": "Spain", "country_code": "ES"}
    key |= {"activity_level": "1 to 4", "month": "2024-01"}
    shown, hidden = interop.wikimedia(path, keys=[key], epsilon=1.1, threshold=9)
    assert (shown.steps, shown.mechanism, shown.within) == ((41,), na.mechanism.DiscreteLaplace(1 / 1.1), None)
    assert (hidden.steps, hidden.within) == ((8,), ((-math.inf, 8.0),))
    assert dict(hidden.origin.group)["country"] == "Spain"
    path.write_text(path.read_text().replace("41", "4"))
    with pytest.raises(ValueError, match="row 1: editors must be at least count_release_thresh 9, got 4"):
        interop.wikimedia(path)


def test_a_table_of_ones_own(tmp_path: Path):
    path = tmp_path / "counts.csv"
    path.write_text(
        "place,value,family,scale,rounded_to,truncated,clamped_at,low,high,n\n"
        "a,12,laplace,2,,,,,,\n"
        "b,0,discrete_gaussian,3,,,0,,,\n"
        "c,10,none,,5,,,,,\n"
        "d,7,gaussian,2,,yes,0,,,3\n"
        "e,,none,,,,,,9,\n"
    )
    a, b, c, d, e = interop.table(path)
    within = [r.within and r.within[0] for r in (a, b, c, d, e)]
    assert within == [None, (-math.inf, 0), (7.5, 12.5), (7, 8), (-math.inf, 9)]
    assert (a.mechanism, d.mechanism, d.n) == (na.mechanism.Laplace(2.0), na.mechanism.Gaussian(2.0), 3)
    assert (e.steps, e.origin.group) == ((9,), (("place", "e"),))


def test_a_table_may_start_with_a_byte_order_mark(tmp_path: Path):
    (tmp_path / "t.csv").write_text("value,family,scale\n3,laplace,2\n", encoding="utf-8-sig")
    (found,) = interop.table(tmp_path / "t.csv")
    assert found.mechanism == na.mechanism.Laplace(2.0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("value,family\n3,laplace\n", "columns must include 'scale'"),
        ("value,family,scale\n", "rows must be at least one"),
        ("value,family,scale\n3,laplace\n", "row 1 must have 3 cells, got 2"),
        ("value,family,scale\nmany,laplace,2\n", "row 1: value must be a number, got 'many'"),
        ("value,family,scale\n1e999,laplace,2\n", "row 1: value must be finite"),
        ("value,family,scale\n1e300,laplace,2\n", "values must be finite, and at most"),
        ("value,family,scale\n" + "9" * 100_000 + ",laplace,2\n", "row 1: value must be a number"),
        ("value,family,scale\n3,laplace,-2\n", "row 1: scale must be positive, got -2"),
        ("value,family,scale\n3,cauchy,2\n", "row 1: family must be one of laplace"),
        ("value,family,scale\n3.5,none,\n", "row 1: value must be a whole number without noise"),
        ("value,family,scale\n3,none,2\n", "row 1: scale must be empty"),
        ("value,family,scale,low,rounded_to\n3,laplace,2,1,5\n", "row 1: low must be empty where rounded_to"),
        ("value,family,scale,truncated\n3,laplace,2,perhaps\n", "row 1: truncated must be yes or no"),
        ("value,family,scale,low,high\n3,laplace,2,5,9\n", "within must hold the value 3"),
        ("x" * 10_000_000, "columns must include|must be a readable UTF-8 table|at least one"),
        ("\x00\xff" * 100_000, "columns must include|must be a readable UTF-8 table|at least one"),
    ],
)
def test_a_file_that_is_off_is_refused_in_a_sentence(tmp_path: Path, text, rule):
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rule) as refusal:
        interop.table(path)
    assert len(str(refusal.value)) < 300
    assert "\n" not in str(refusal.value)


def test_no_file_and_no_table(tmp_path: Path):
    with pytest.raises(ValueError, match="file must exist"):
        interop.table(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="must be a readable UTF-8 table"):
        interop.table(tmp_path)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00" * 1000)
    with pytest.raises(ValueError, match="must be a readable UTF-8 table"):
        interop.table(tmp_path / "bytes.csv")
    for source in (7, [], [1, 2], [["a"], [1, 2]]):
        with pytest.raises(ValueError, match="row"):
            interop.table(source)


# ---- the release file --------------------------------------------------------------------------------------------


def test_an_interval_goes_through_the_file_and_its_schema():
    import jsonschema

    release = interop.smartnoise(ROWS, scale=2.0, clamp_counts=True)[1]
    document = json.loads(release.to_json())
    assert (document["schema_version"], document["statistics"][0]["within"]) == (3, {"high": 1.0})
    jsonschema.validate(document, json_schema())
    assert from_json(release.to_json()) == release
    plain = interop.tumult(ROWS, {"noise_mechanism": "LAPLACE", "noise_parameter": 1})[0]
    assert json.loads(plain.to_json())["schema_version"] == 1


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"schema_version": 2}, "schema_version must be 3 where statistics have within"),
        ({"within": {}}, "within must have a finite end"),
        ({"within": {"low": 2.0, "high": 3.0}}, "within must hold the value 0"),
        ({"within": {"low": "x"}}, "within.low"),
        ({"within": {"lo": 1.0}}, "within.lo"),
        ({"value": 10**400}, "values must be finite"),
        ({"n": 10**400}, "n must be a whole number from 1 to 1,000,000,000,000,000"),
        ({"grid": 1e308}, "grid and noise scale must be"),
        ({"guarantee": {"kind": "pure", "cost": "1e999999999"}}, "small exponent"),
        ({"guarantee": {"kind": "pure", "cost": "1e1_000_000_000"}}, "small exponent"),
        ({"family": {"name": "x" * 1_000_000}}, "family.name must be one of"),
    ],
)
def test_an_untrusted_file_is_refused_in_a_sentence(change, rule):
    document = json.loads(interop.smartnoise(ROWS, scale=2.0, clamp_counts=True)[1].to_json())
    inner = {key: change.pop(key) for key in ("within", "value") if key in change}
    document["statistics"][0] |= inner
    with pytest.raises(ValueError, match=rule) as refusal:
        from_json(json.dumps(document | change))
    assert len(str(refusal.value)) < 400
    assert "\n" not in str(refusal.value)


def test_junk_is_not_read(tmp_path: Path):
    path = tmp_path / "junk.json"
    for junk in ("[" * 100_000, '{"a":' * 100_000, "x" * 1_000_000, '"' + "x" * 9_000_000 + '"'):
        path.write_text(junk)
        with pytest.raises(ValueError, match=r"junk\.json: file: ") as refusal:
            na.load(path)
        assert len(str(refusal.value)) < 300
    path.write_text("x" * 10_000_001)
    with pytest.raises(ValueError, match="release file must have at most 10,000,000 bytes"):
        na.load(path)
