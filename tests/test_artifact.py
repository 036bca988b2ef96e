"""A release made from numbers: what is no number, family or mechanism is refused in one sentence.

And a file of each schema version, which loads and says what it always said: tests/golden holds them as once written.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import noiseaware as na
from noiseaware.evidence.release import SCHEMA_VERSION, from_json
from noiseaware.report.release_words import facts

GIVEN = {"family": na.family.Bernoulli(), "values": [3], "n": 10, "mechanism": na.mechanism.Laplace(1.0)}
WRONG = [
    ({"values": None}, "values must be numbers, one for each statistic, got None."),
    ({"values": ["3"]}, "values must be numbers, one for each statistic, got '3'."),
    ({"values": "3"}, "values must be numbers, one for each statistic, got '3'."),
    ({"values": [True]}, "values must be numbers, one for each statistic, got True."),
    ({"values": [[3]]}, r"values must be numbers, one for each statistic, got \[3\]."),
    ({"values": [3, 4]}, "values must have 1 entries for this family, got 2."),
    ({"family": "bernoulli"}, "family must be one of noiseaware.family, such as .*, got 'bernoulli'."),
    ({"family": na.family.Bernoulli}, "family must be .*, got the class Bernoulli."),
    ({"mechanism": None}, "mechanism must be one of noiseaware.mechanism, such as .*, got None."),
    ({"mechanism": [na.mechanism.Laplace(1.0)]}, "mechanism must be one of noiseaware.mechanism, such as"),
    ({"n_mechanism": 3.0}, "n_mechanism must be one of noiseaware.mechanism, such as .*, got 3.0."),
    ({"guarantee": "pure"}, "guarantee must be one of noiseaware.privacy, such as .*, got 'pure'."),
    ({"origin": 3}, "origin must be one of noiseaware.evidence.json, such as .*, got 3."),
    ({"within": 3}, "within must be a list of intervals, one for each value, got 3."),
    ({"grid": "fine"}, "grid must be a number, got 'fine'."),
    ({"n": 10.0}, "n must be a whole number from 1 to 1,000,000,000,000,000, got 10.0."),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(change)[:40] for change, _ in WRONG])
def test_what_a_release_is_not_made_of(change, message):
    with pytest.raises(ValueError, match=message):
        na.Release(**GIVEN | change)


@pytest.mark.parametrize(
    ("mechanism", "told"),
    [
        (na.mechanism.Gaussian(2.0), "Gaussian noise of standard deviation 2, no stated guarantee)"),
        (na.mechanism.Identity(), "sum = 3, no noise, no stated guarantee)"),
    ],
)
def test_a_release_tells_its_noise(mechanism, told):
    assert repr(na.Release(**GIVEN | {"mechanism": mechanism})).endswith(told)


def test_numbers_of_numpy_are_numbers():
    plain = na.Release(**GIVEN)
    assert plain == na.Release(**GIVEN | {"values": np.array([3])}) == na.Release(**GIVEN | {"values": np.int64(3)})
    assert plain == na.Release(**GIVEN | {"n": np.int32(10), "values": [np.int32(3)]})
    assert na.family.Binomial(trials=np.int64(3)) == na.family.Binomial(trials=3)


def test_what_is_known_of_values_is_told_in_words():
    levels = na.family.Categorical(levels=["a", "b", "c", "d"])
    within = [(-np.inf, 4), None, (6, np.inf), (7.5, 12.5)]
    noise = na.mechanism.DiscreteLaplace(20.0)
    release = na.Release(family=levels, values=[4, 5, 6, 10], n=99, mechanism=noise, within=within, grid=0.5)
    known = ["at most 2", None, "at least 3", "from 3.75 to 6.25"]
    assert release.known == [f" (known to be {words})" if words else "" for words in known]
    assert "count[b] = 2.5, count[c] = 3 (known to be at least 3)" in repr(release)
    assert na.Release(**GIVEN).known == [""]


def test_a_noisy_number_of_records_is_reckoned_with_as_one_or_more():
    noisy = GIVEN | {"n_mechanism": na.mechanism.Laplace(4.0)}
    assert [na.Release(**noisy | {"n": n}).likely_n for n in (-3, 0, 12)] == [1, 1, 12]
    assert na.Release(**GIVEN).likely_n == 10


@pytest.mark.parametrize("scale", ["1", True, None, np.nan, [1.0, "2"], [1.0, True]])
def test_what_a_scale_is_not(scale):
    with pytest.raises(ValueError, match="scale must be"):
        na.mechanism.Laplace(scale)


@pytest.mark.parametrize("concentration", [3, "ab", [1, None], [[1, 2]], [True, 1], np.ones((2, 2))])
def test_what_concentrations_are_not(concentration):
    with pytest.raises(ValueError, match="concentration must be a list of numbers, one for each level"):
        na.prior.Dirichlet(concentration)


def test_what_infer_does_not_take():
    release = na.Release(**GIVEN)
    with pytest.raises(ValueError, match=r"release must be one release or a list of them, got None."):
        na.infer(None, na.prior.Beta(1, 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"prior must have one number as its a for the bernoulli family, got"):
        na.infer(release, na.prior.Beta([1, 2], 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"prior must be a Beta for the bernoulli family, got the class Beta\."):
        na.infer(release, na.prior.Beta)  # type: ignore[arg-type]


# ---- files that ask for much -----------------------------------------------------------------------------------------

FILE = json.loads(na.Release(**GIVEN).to_json())
HUGE = 10**400
ASKING = [
    ({"family": {"name": "multivariate_normal", "columns": [f"c{i}" for i in range(201)]}}, "family.columns: .* 200"),
    ({"family": {"name": "multivariate_normal", "columns": [f"c{i}" for i in range(200)]}}, "must be 20300 .* got 1"),
    ({"family": {"name": "linear_regression", "x": [f"c{i}" for i in range(10**5)], "y": "y"}}, "family.x: .* 200"),
    ({"family": {"name": "categorical", "levels": [f"c{i}" for i in range(10**5 + 1)]}}, "family.levels: .* 100000"),
    ({"family": {"name": "categorical", "levels": ["c" * 10**6, "d"]}}, "levels must be texts of at most 32768 bytes"),
    ({"statistics": [{"name": "s" * 10**6, "value": 3}]}, "statistics.0.name must be 'sum' for this family, got 's"),
    ({"family": {"name": "s" * 10**6}}, "family.name must be one of .* got 'sss"),
    ({"statistics": FILE["statistics"] * 10**5 + FILE["statistics"]}, "statistics: .* 100000 items"),
    ({"family": {"name": "binomial", "column": "x", "trials": HUGE}}, "family.trials: .* less than or equal to"),
    ({"family": {"name": "binomial", "column": "x", "trials": 0}}, "family.trials: .* greater than or equal to 1"),
    ({"family": {"name": "categorical", "levels": [1, HUGE]}}, "family.levels.1: .* less than or equal to"),
    ({"n": HUGE}, "n must be a whole number from 1 to"),
    ({"n": -HUGE}, "n must be a whole number from 1 to"),
    ({"schema_version": HUGE}, "schema_version must be at most 6"),
    ({"origin": {"bounds": "public", "unit": "pid", "max_records": HUGE}}, "origin.max_records: .* less than or"),
    (
        {"origin": {"bounds": "private", "bounds_quantiles": ["0.1"] * 10**5}},
        "bounds_quantiles must be one or two in order",
    ),
    ({"noise": {"law": "laplace", "scale": [1.0] * (10**5 + 1)}}, "noise.scale: .* got"),
]


@pytest.mark.parametrize(("change", "rule"), ASKING, ids=[str(change)[:40] for change, _ in ASKING])
def test_a_file_that_asks_for_much_is_refused_in_a_short_sentence(change, rule):
    with pytest.raises(ValueError, match=rule) as told:
        from_json(json.dumps(FILE | change))
    assert len(str(told.value)) <= 1100
    assert "\n" not in str(told.value)


def test_a_file_of_many_columns_takes_no_memory():
    """35 kB of JSON took 1.6 GB."""
    family = {"name": "multivariate_normal", "columns": [f"c{i}" for i in range(4000)]}
    code = "import resource, sys; from noiseaware.evidence.release import from_json\n"
    code += "before = resource.getrusage(0).ru_maxrss\n"
    code += "try: from_json(sys.stdin.read())\nexcept ValueError: print(resource.getrusage(0).ru_maxrss - before)"
    text = json.dumps(FILE | {"family": family})
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50_000  # kB


def test_a_family_of_too_many_columns_or_levels_is_none():
    with pytest.raises(ValueError, match="columns must name at most 200 columns, got 201"):
        na.family.MultivariateNormal([f"c{i}" for i in range(201)])
    with pytest.raises(ValueError, match="levels must name at most 100,000 levels, got 100,001"):
        na.family.Categorical("x", levels=range(100_001))


# ---- files -----------------------------------------------------------------------------------------------------------

GOLDEN = {
    1: ("Bounds", "levels a, b, c; any other record counts as the first"),
    2: ("Records", "-4, itself noisy (discrete Laplace, scale 8), waiting times (exponential)"),
    3: ("Released", "sum = 0 (known to be at most 0)"),
    4: ("Missing cells", "a cell that is empty leaves its record out of the sums and of n"),
    5: ("Noise", "staircase, scale 8"),
    6: ("Bounds", "0 to 1, which every record keeps (set in public)"),
}


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_file_of_every_version_loads_and_is_written_as_it_was(version):
    path = Path(__file__).parent / "golden" / f"release_{version}.json"
    release, (label, told) = na.load(path), GOLDEN[version]
    assert release.to_json() == path.read_text(encoding="utf-8")
    assert json.loads(release.to_json())["schema_version"] == version
    assert dict(facts(release))[label] == told
    assert ("Missing cells" in dict(facts(release))) == (version in (4, 6))


def read(family: na.family.AbstractFamily, version: int = 4, **origin: object) -> na.Release:
    """A release whose file says this of its cells."""
    count = len(family.query.names)
    document = json.loads(na.Release(**GIVEN | {"family": family, "values": [3] * count}).to_json())
    return from_json(json.dumps(document | {"schema_version": version, "origin": document["origin"] | origin}))


WAIT, SEX = na.family.Exponential("x", bounds=(0, 9)), na.family.Bernoulli("x")
LEVELS = na.family.Categorical("x", levels=["a", "b"])


@pytest.mark.parametrize(
    ("family", "changes", "sentence"),
    [
        (WAIT, {"version": 3, "missing": {"x": 0}}, "schema_version must be 4 where origin says how cells were read"),
        (SEX, {"version": 1, "true": ["F"]}, "schema_version must be 4 where origin says how cells were read, got 1."),
        (WAIT, {"missing": {"y": 0}}, r"origin.missing must name the columns \['x'\], got \['y'\]\."),
        (WAIT, {"missing": {"x": "a"}}, "origin.missing must be a number for 'x', got 'a'"),
        (WAIT, {"missing": "drop"}, "origin.missing must be drop only where records outside the bounds are dropped"),
        (WAIT, {"missing": "left"}, r"origin\.missing.*: Input should be"),
        (WAIT, {"missing": {"x": True}}, r"origin\.missing.*: Input should be"),
        (WAIT, {"missing": {"x": [1]}}, r"origin\.missing.*: Input should be"),
        (WAIT, {"true": ["F"]}, "origin.true must be null for the exponential family"),
        (SEX, {"missing": {"x": 0.5}}, "origin.missing must be 0 or 1 for 'x', got 0.5"),
        (SEX, {"true": []}, "origin.true: List should have at least 1 item"),
        (SEX, {"true": ["F"] * 101}, "origin.true: List should have at most 100 items"),
        (SEX, {"true": ["F" * 10**6]}, "origin.true.0: String should have at most 100 characters"),
        (SEX, {"true": "F"}, "origin.true: Input should be a valid array"),
        (SEX, {"false": ["M"]}, "origin.false must go with origin.true, got"),
        (LEVELS, {"missing": {"x": "c"}}, "origin.missing must be one of the levels, got 'c'"),
        (LEVELS, {"missing": {"x": "c" * 10**6}}, "origin.missing must be one of the levels, got 'ccc"),
    ],
)
def test_cells_that_cannot_have_been_read_so_are_refused(family, changes, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        read(family, **changes)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_a_release_tells_what_missing_cells_count_as():
    pair = na.family.LinearRegression("x", "y", bounds=(0, 9))
    assert "sum = 3, missing counted as 0, Laplace" in repr(read(WAIT, missing={"x": 0.0}))
    assert "missing counted as b" in repr(read(LEVELS, missing={"x": "b"}))
    assert "missing counted as 1, 2.5" in repr(read(pair, missing={"x": 1, "y": 2.5}))
    assert "missing left out" in repr(read(WAIT, missing="leave_out"))
