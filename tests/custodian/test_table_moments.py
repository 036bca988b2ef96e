"""Second moments of several columns: the same integers on every engine, however its cells are held.

The oracle rounds records in Python floats, which every engine must match to the bit, and sums Python integers.
"""

import math
import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.custodian.tables import ENGINES, WITH_SCHEMA, held, number

from noiseaware import family
from noiseaware.custodian.table import Table

SPECIAL = [None, math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -0.0, 0.1, -1.3, 2.1]
WORDS = ["", "abc", "null", "1e400", "inf", "nan", " 1.5 ", "true", "-2", "é", '"']
BOUNDS = {"a": (-1.3, 2.1), "b": (0.0, 100.0), "c": (1e5, 1e5 + 0.7), "d": (-7.0, -2.0)}


def record(cell, interval, k, outside="clamp") -> int:
    """U of one cell."""
    (low, high), x = interval, number(cell)
    if outside == "drop" and not (x is not None and low <= x <= high):
        return 0
    x = low if x is None else min(max(x, low), high)
    centre, half = (low + high) / 2, 0.5 * (high - low)
    return min(max(math.floor((x - centre) * (2**k / half) + 0.5), -(2**k)), 2**k)


def oracle(columns, k, outside="clamp") -> list[int]:
    whole = [[record(cell, BOUNDS[name], k, outside) for cell in cells] for name, cells in columns.items()]
    pairs = [(i, j) for i in range(len(whole)) for j in range(i, len(whole))]
    products = [sum(a * b for a, b in zip(whole[i], whole[j], strict=True)) for i, j in pairs]
    return [*(2**k * sum(column) for column in whole), *products]


def cells(seed, n) -> dict:
    """Floats, whole numbers, text and floats again, each with what is no number."""
    rng = random.Random(seed)
    return {
        "a": [rng.choice([rng.gauss(0, 2), *SPECIAL]) for _ in range(n)],
        "b": [rng.choice([rng.randint(-5, 120), 2**53 + 1, None]) for _ in range(n)],
        "c": [rng.choice([repr(1e5 + rng.random()), *WORDS, None]) for _ in range(n)],
        "d": [rng.choice([rng.uniform(-8, -1), *SPECIAL]) for _ in range(n)],
    }


KINDS = {"a": pa.float64(), "b": pa.int64(), "c": pa.string(), "d": pa.float64()}


def source(engine, columns, folder):
    return held(engine, columns, KINDS, folder)


@pytest.mark.parametrize("names", ["a", "ad", "ab", "abcd"])
def test_moments_are_the_same_bits_on_every_engine(names, tmp_path, seed):
    """With and without a column of text, which sends all of them through the one parser."""
    n, k = 20_000, 15
    columns = cells(seed, n)
    model = family.MultivariateNormal(list(names), bounds={name: BOUNDS[name] for name in names})
    expected = oracle({name: columns[name] for name in names}, k)
    for engine in ENGINES:
        assert Table(source(engine, columns, tmp_path)).sums(model.query, 2 * k) == (expected, n), engine


@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_mean_and_variance_are_the_same_path(outside, tmp_path, seed):
    n, k = 5_000, 11
    columns = cells(seed, n)
    for name in "abc":
        model = family.Normal(name, bounds=BOUNDS[name], outside=outside)
        expected = oracle({name: columns[name]}, k, outside)
        for engine in ENGINES:
            assert Table(source(engine, columns, tmp_path)).sums(model.query, 2 * k) == (expected, n), (engine, name)


def test_a_regression_has_the_response_last(tmp_path, seed):
    columns = cells(seed, 500)
    model = family.LinearRegression(["d", "a"], "c", bounds={name: BOUNDS[name] for name in "acd"})
    expected = oracle({name: columns[name] for name in "dac"}, 15)
    assert Table(source("csv", columns, tmp_path)).sums(model.query, 30) == (expected, 500)


def test_records_are_rounded_to_the_nearest_step():
    """A floor would put 1000 records of 0.3 steps above the centre at 0, and 0.3 below at −1000."""
    for x, whole in ((0.3, 0), (0.7, 1), (-0.3, 0), (-0.7, -1), (8.0, 8), (7.9, 8), (-8.0, -8)):
        frame = pd.DataFrame({"x": [x] * 1000})
        assert Table(frame).sums(family.Normal("x", bounds=(-8, 8)).query, 6) == ([8000 * whole, 1000 * whole**2], 1000)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_that_differ_by_case_alone_are_refused(frame):
    """To DuckDB they would be one column, and its moments would look like those of two."""
    model = family.MultivariateNormal(["x", "X"], bounds=(0, 9))
    with pytest.raises(ValueError, match="must differ by more than upper and lower case"):
        Table(frame({"x": [1.0], "X": [2.0]})).sums(model.query, 6)


@pytest.mark.parametrize("engine", WITH_SCHEMA)
def test_every_column_must_be_there(engine, tmp_path, seed):
    model = family.MultivariateNormal(["a", "z"], bounds=(0, 9))
    with pytest.raises(ValueError, match=r"must have one column 'z', got 0\.$"):
        Table(source(engine, cells(seed, 5), tmp_path)).sums(model.query, 6)


def test_every_column_must_hold_numbers_or_text():
    frame = pd.DataFrame({"a": [1.0], "day": pd.to_datetime(["2020"])})
    with pytest.raises(ValueError, match="column 'day' must hold numbers or text, got type"):
        Table(frame).sums(family.MultivariateNormal(["a", "day"], bounds=(0, 9)).query, 6)


def test_an_object_that_cannot_be_text_is_a_missing_number_and_no_error():
    class Unprintable:
        def __str__(self):
            raise RuntimeError("s3cr3t")

    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([Unprintable(), "s3cr3t"], dtype=object)})
    model = family.MultivariateNormal(["a", "b"], bounds=(0, 9))
    assert Table(frame).sums(model.query, 6) == Table(frame.assign(b=[None, None])).sums(model.query, 6)


def test_records_between_two_steps_go_the_same_way_everywhere(tmp_path):
    """Where the last bit decides: dividing by `half` and multiplying by its inverse part ways for some of these."""
    (low, high), k = BOUNDS["a"], 15
    centre, half = (low + high) / 2, 0.5 * (high - low)
    columns = {"a": [centre + (m + 0.5) * half / 2**k for m in range(-(2**k), 2**k)]}
    expected = oracle(columns, k)
    whole = [math.floor((x - centre) / half * 2**k + 0.5) for x in columns["a"]]
    assert sum(whole) * 2**k != expected[0], "the test would have no power"
    model = family.Normal("a", bounds=BOUNDS["a"])
    for engine in ENGINES:
        assert Table(source(engine, columns, tmp_path)).sums(model.query, 2 * k)[0] == expected, engine
