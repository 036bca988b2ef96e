"""Figure 4 of the 2019 paper: the table, its splits, and coverage of predictions."""

import csv

import jax
import numpy as np
import pytest

from noiseaware.reproduce import figure4


def test_the_table_is_scaled_to_its_bounds():
    states = figure4.table()
    assert states.shape == (2, 46)
    np.testing.assert_array_equal(states.min(axis=1), 0)
    np.testing.assert_array_equal(states.max(axis=1), 1)


def test_a_split_parts_the_states():
    train, test = figure4.splits(jax.random.key(0), 3)
    assert train.shape == (3, 2, 36)
    assert test.shape == (3, 2, 10)
    for both in np.concatenate([train, test], axis=-1):
        assert sorted(map(tuple, both.T)) == sorted(map(tuple, figure4.table().T))


@pytest.mark.slow
def test_naive_predictions_hold_too_little():
    points = figure4.compute(20, [("nonprivate", "default"), ("naive", "default")], [0.1])
    right, naive = points
    assert abs(right.coverage(0.9) - 0.9) < 0.1
    assert naive.coverage(0.9) < 0.6
    rows = list(figure4.rows(points))
    assert all(len(row) == len(figure4.HEADER) and row[4] == 200 for row in rows)
    (picture,) = figure4.draw(points).values()
    assert len(picture.axes) == 1


@pytest.mark.slow
def test_the_shape_of_the_paper(tmp_path):
    """Ours holds at least what the non-private predictions hold, and as much where noise is small."""
    paths = figure4.reproduce(tmp_path, quick=True, seed=0)
    assert [p.name for p in paths] == ["figure4.csv", "figure4.png"]
    with paths[0].open() as file:
        held = {(r["method"], r["epsilon"]): float(r["coverage_90"]) for r in csv.DictReader(file)}
    assert abs(held["hmc", "10"] - held["nonprivate", "10"]) < 0.03
    assert held["hmc", "1"] > held["nonprivate", "1"] - 0.03
    assert held["naive", "0.1"] < 0.5 < held["hmc", "0.1"]
    assert held["naive", "1"] < held["hmc", "1"] - 0.1
