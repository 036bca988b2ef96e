"""The laws of every query: its sensitivity against brute force, its statistic on every array, its form as JSON."""

import itertools
import json
import math
from fractions import Fraction

import jax.numpy as jnp
import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian.table import Table
from noiseaware.evidence.json import QueryPart
from noiseaware.query import AbstractMoments, AbstractQuery

Q = na.query
# name: (query, records that hold those that are furthest apart)
LINE = [-9.0, -2.0, -0.5, 0.0, 0.25, 1.0, 3.0, 5.0, 11.0]
QUERIES: dict[str, tuple[AbstractQuery, list]] = {
    "sum": (Q.Sum("x", (-2, 5)), LINE),
    "dropped": (Q.Sum("x", (1, 5), "drop"), LINE),
    "below 0": (Q.Sum("x", (-9, -2)), LINE),
    "whole": (Q.Sum("x", (-2, 5), is_whole=True), [-9, -2, 0, 1, 5, 11]),
    "yes or no": (Q.Sum("x", is_yes_or_no=True), [0, 1]),
    "counts": (Q.Counts("x", levels=["a", "b", "c"]), [0, 1, 2]),
    "powers": (Q.PowerSums("x", (-1, 3)), np.linspace(-3, 5, 65).tolist()),
    "dropped powers": (Q.PowerSums("x", (-1, 3), "drop"), np.linspace(-3, 5, 65).tolist()),
    "moments": (
        Q.Moments(["x", "y"], {"x": (-1, 1), "y": (0, 4)}),
        list(itertools.product(np.linspace(-1, 1, 13), np.linspace(0, 4, 13))),
    ),
    "of a regression": (
        Q.Moments(["x", "y"], {"x": (-1, 1), "y": (0, 1)}, pairs=[(0, 0), (0, 1)], yes_or_no=["y"]),
        list(itertools.product(np.linspace(-1, 1, 13), [0.0, 1.0])),
    ),
}
every_query = pytest.mark.parametrize("name", QUERIES)


def contributions(query: AbstractQuery, records: list) -> np.ndarray:
    """What each record adds to the statistics, a row a record."""
    x = jnp.asarray(np.array(records, dtype=float).T)
    return np.stack([np.asarray(t, dtype=float) for t in query.alter(x)], axis=-1)


def furthest(t: np.ndarray, entries, neighbours: str, norm: int) -> float:
    """The greatest distance by enumeration of pairs, or of one record and none."""
    others = t[None] if neighbours == "replace" else np.zeros((1, 1, t.shape[1]))
    return (np.broadcast_to(entries, t.shape[1]) ** (norm - 1) * np.abs(t[:, None] - others) ** norm).sum(-1).max()


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@every_query
def test_no_neighbours_are_further_apart_than_the_sensitivity(name, neighbours, norm, x64):
    query, records = QUERIES[name]
    found = furthest(contributions(query, records), query.entries, neighbours, norm)
    stated = query.sensitivity(neighbours, norm)
    assert isinstance(stated, Fraction)
    assert found <= float(stated) * (1 + 1e-12)
    if name != "of a regression":  # whose y² is not summed: its bound is that of all products
        assert found == pytest.approx(float(stated), rel=0.01)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@every_query
def test_records_on_the_grid_stay_within_the_sensitivity_in_steps(name, neighbours):
    """Tables of one record each, summed by the engine itself, on a fine and on a coarse grid."""
    query, records = QUERIES[name]
    exponents = list(query.exponents(2**31))
    for exponent in (exponents[0], exponents[-1] if len(exponents) < 100 else 3):
        rows = records[:: max(1, len(records) // 12)] + records[-1:]
        steps = np.array([_steps(query, row, exponent) for row in rows], dtype=object)
        whole = query.whole(exponent, neighbours)
        assert abs(steps).max() <= whole.largest
        for norm, most in ((1, whole.sensitivity), (2, whole.sensitivity_squared)):
            assert furthest(steps, query.entries, neighbours, norm) <= most
        assert whole.sensitivity == math.ceil(query.sensitivity(neighbours) * 2**exponent)


def _steps(query: AbstractQuery, row, exponent: int) -> list[int]:
    cells = row if isinstance(row, tuple) else (row,)
    values = [query.levels[cell] if query.levels else cell for cell in cells]
    table = pd.DataFrame({column: [value] for column, value in zip(query.columns, values, strict=True)})
    return Table(table).sums(query, exponent)[0]


@every_query
def test_the_statistic_is_the_same_of_arrays_and_of_a_frame(name, x64):
    """Plain operators only: JAX, NumPy and an engine's columns give the same numbers."""
    query, records = QUERIES[name]
    x = np.array(records, dtype=float).T
    of_numpy = [np.asarray(t, dtype=float) for t in query.statistic(x)]
    for one, other in zip(of_numpy, query.statistic(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(one, np.asarray(other, dtype=float), rtol=1e-12)
    columns = [f"c{j}" for j in range(len(query.columns))]
    frame = nw.from_native(pd.DataFrame(dict(zip(columns, np.atleast_2d(x), strict=True))))
    given = [nw.col(column) for column in columns]
    is_several = isinstance(query, Q.Moments)
    named = [t.alias(f"t{j}") for j, t in enumerate(query.statistic(given if is_several else given[0]))]
    of_frame = frame.select(*named).to_numpy().astype(float)
    np.testing.assert_allclose(of_frame.T, of_numpy, rtol=1e-12)
    assert len(of_numpy) == len(query.names)


@every_query
def test_each_record_lies_within_the_ranges(name, x64):
    query, records = QUERIES[name]
    low, high = np.array(query.ranges).T
    t = contributions(query, records)
    assert (low <= t.min(0) + 1e-12).all()
    assert (t.max(0) <= high + 1e-12).all()


@every_query
def test_a_query_is_the_same_from_its_json(name):
    query, _ = QUERIES[name]
    text = QueryPart.of(query).model_dump_json(exclude_none=True)
    again = QueryPart.model_validate_json(text).query()
    assert again == query
    assert again.identity() == query.identity()
    assert hash(again) == hash(query)
    assert json.loads(text)["kind"] == query.name


@every_query
def test_a_query_is_released_and_its_release_is_the_same_from_its_file(name, tmp_path):
    query, records = QUERIES[name]
    rows = [record if isinstance(record, tuple) else (record,) for record in records] * 40
    cells = [[query.levels[value] if query.levels else value for value in row] for row in rows]
    table = pd.DataFrame(cells, columns=list(query.columns))
    release = na.release(table, query, rho=50)
    assert release.family is None
    assert release.query == query
    true = 40 * contributions(query, records).sum(0)
    np.testing.assert_allclose(release.values, true, atol=10 * np.max(release.noise_scale) + 1e-3)
    release.save(tmp_path / "a.json")
    assert na.load(tmp_path / "a.json") == release
    assert json.loads(release.to_json())["schema_version"] == 6


@every_query
def test_without_bounds_nothing_is_released(name):
    query, _ = QUERIES[name]
    if query.levels or query.yes_or_no:
        return
    open_ended = type(query)(query.columns if isinstance(query, Q.Moments) else "x")
    with pytest.raises(ValueError, match="bounds must be given"):
        open_ended.sensitivity()
    with pytest.raises(ValueError, match="bounds must be given"):
        na.release(pd.DataFrame({"x": [1.0], "y": [1.0]}), open_ended, epsilon=1)


def test_moments_are_scaled_by_their_bounds():
    query = QUERIES["moments"][0]
    assert isinstance(query, AbstractMoments)
    assert query.degrees == (1, 1, 2, 2, 2)
    assert query.entries == (1, 1, 1, 2, 1)
    np.testing.assert_allclose(query.centre, [0, 2])
    np.testing.assert_allclose(query.half, [1, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Q.Sum("x", (3, 1)), "bounds must have low < high"),
        (lambda: Q.Sum("x", (0, 1.5), is_whole=True), "bounds must be whole numbers"),
        (lambda: Q.Sum("x", (0, 2), is_yes_or_no=True), r"bounds must be \(0, 1\), or left out"),
        (lambda: Q.Sum("x", (0, 2), support=(2, 0)), r"support must have low < high, got \(2\.0, 0\.0\)"),
        (lambda: Q.Sum("x", (0, 2), support=(math.nan, 1)), "support must have low < high"),
        (lambda: Q.Sum("x", (0, 2), support=("low", "high")), "support must be two numbers"),  # pyright: ignore
        (lambda: Q.Sum("x", (0, 2), "cut"), "outside must be 'clamp' or 'drop'"),
        (lambda: Q.Moments(["x", "y"], (0, 1), pairs=[(1, 0)]), "pairs must be of columns"),
        (lambda: Q.Moments(["x", "y"], (0, 1), yes_or_no=["z"]), "yes_or_no must name columns among"),
        (lambda: na.Release(query=Q.Sum("x"), values=[1, 2], n=1, mechanism=na.mechanism.Laplace(1)), "1 entries"),
        (lambda: na.Release(values=[1], n=1, mechanism=na.mechanism.Laplace(1)), "family must be one of"),
        (lambda: na.release(pd.DataFrame({"x": [1]}), "sum", epsilon=1), "family must be one of noiseaware.family, or"),
    ],
)
def test_what_is_no_query_is_refused_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
