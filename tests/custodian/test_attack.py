"""Attacks on a release by way of its records: whatever one of them is, it moves the sums no further than was said,
and nothing but the sums shows that it was there.

The attacks on the noise are in test_noise.py (low bits, law, empirical ε) and test_audit.py; those on messages in
test_secret.py; those on the ledger in test_chain.py, test_ledger_fire.py and test_postgres_fire.py.
"""

import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian.grid import finest_grid
from noiseaware.custodian.table import Table
from noiseaware.privacy import Agreement, Pure

B = (-3.7, 5.9)
FAMILIES = {
    "bernoulli": na.family.Bernoulli("x"),
    "binomial": na.family.Binomial("x", trials=5),
    "categorical": na.family.Categorical("x", levels=["0", "a", "nan", "1e308"]),
    "whole levels": na.family.Categorical("x", levels=[0, -3, 2**53]),
    "linear_regression": na.family.LinearRegression(["x"], "y", bounds={"x": B, "y": (1e6, 1e6 + 3)}),
    "multivariate_normal": na.family.MultivariateNormal(["x", "y"], bounds=B),
}
for _outside in ("clamp", "drop"):
    FAMILIES |= {
        f"poisson {_outside}": na.family.Poisson("x", bounds=(2, 12), outside=_outside),
        f"geometric {_outside}": na.family.Geometric("x", bounds=(0, 12), outside=_outside),
        f"exponential {_outside}": na.family.Exponential("x", bounds=(0.3, 48.1), outside=_outside),
        f"normal {_outside}": na.family.Normal("x", bounds=B, variance=2.0, outside=_outside),
        f"mean_variance {_outside}": na.family.Normal("x", bounds=B, outside=_outside),
        f"gamma {_outside}": na.family.Gamma("x", bounds=(0.5, 48), shape=2.0, outside=_outside),
    }
WORST = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 2.0**53, -(2.0**63), 1e6, 1e6 + 3]
TEXTS = ["", "x", "nan", "-inf", "1e999", "0x10", "true", "é\x00", "9" * 400, "1,5", "a", "'; drop table t"]


def _records(model, rng):
    """Values where a bound, a rounding or a cast might go wrong, for each column of the family."""
    intervals = model.query.intervals or [(0, 1)]
    for low, high in intervals:
        middle, ends = (low + high) / 2, (float(low), float(high))
        near = [math.nextafter(end, side) for end in ends for side in (-math.inf, math.inf)]
        inside = [rng.uniform(low, high) for _ in range(4)]
        yield [*WORST, *ends, *near, middle, *inside, rng.gauss(middle, 10 * (high - low))]


def _totals(model, rows, exponent):
    frame = pd.DataFrame(rows, columns=[*model.query.columns], dtype=float)
    return np.array(Table(frame).sums(model.query, exponent)[0], dtype=object)


SAMPLE = [pytest.param(16, id="16 records"), pytest.param(100, marks=pytest.mark.slow, id="100 records")]


@pytest.mark.parametrize("size", SAMPLE)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_two_records_are_further_apart_than_stated(name, size, seed):
    """Through the table's own reading and rounding, for all pairs of records of the sample."""
    rng, model = random.Random(seed), FAMILIES[name]
    grid = finest_grid(model.query, Agreement(Pure(Fraction(1, 2))))
    every = list(itertools.product(*_records(model, rng)))
    if name == "categorical":
        rows = [(text,) for text in TEXTS]
        sums = [
            np.array(Table(pd.DataFrame({"x": [t]})).sums(model.query, grid.exponent)[0], dtype=object) for t in TEXTS
        ]
    else:
        rows = rng.sample(every, min(len(every), size))
        sums = [_totals(model, [row], grid.exponent) for row in rows]
    weights = np.broadcast_to(np.array(grid.entries, dtype=object), sums[0].shape)
    moved = [abs(here - there) for here, there in itertools.combinations(sums, 2)]
    assert max(int(move.sum()) for move in moved) <= grid.sensitivity
    assert max(int((weights * move**2).sum()) for move in moved) <= grid.sensitivity_squared
    assert any(move.any() for move in moved)
    if name != "categorical":  # the sum of a table is the sum over its records: nothing depends on the others
        assert list(_totals(model, rows, grid.exponent)) == list(sum(sums))


def _visible(table, model):
    """All of a release but the noisy numbers, the time and the entry."""
    shown = json.loads(na.release(table, model, epsilon=1).to_json())
    for statistic in shown["statistics"]:
        statistic["value"] = type(statistic["value"])
    del shown["origin"]
    return shown


def _written(frame, kind, folder):
    """The frame as a table of some kind; cells of several types go where the kind has room for them."""
    path = folder / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "json":
        path.write_text(json.dumps([{k: _plain(v) for k, v in row.items()} for row in frame.to_dict("records")]))
    else:
        return frame
    return path


def _plain(value):
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.mark.parametrize("kind", ["frame", "csv", "json"])
@pytest.mark.parametrize("name", ["bernoulli", "categorical", "poisson drop", "exponential clamp", "linear_regression"])
def test_a_bad_record_is_seen_in_nothing_but_the_sums(name, kind, tmp_path, capfd, recwarn):
    model = FAMILIES[name]
    rows = [dict.fromkeys(model.query.columns, "1" if kind == "frame" else 1) for _ in range(4)]
    common = _visible(_written(pd.DataFrame(rows, dtype=object), kind, tmp_path), model)
    for worst in [*WORST, *TEXTS, 10**30, True]:
        neighbour = [dict.fromkeys(model.query.columns, worst), *rows[1:]]
        assert _visible(_written(pd.DataFrame(neighbour, dtype=object), kind, tmp_path), model) == common, repr(worst)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


@pytest.mark.parametrize("before", [b"", b"\xc3", b"\xf0\x9f"], ids=["alone", "after one", "after two"])
def test_no_byte_of_a_csv_file_is_an_error_or_changes_another_record(before, tmp_path):
    """Not in a cell of the column, nor beside it: 1, é and what has the byte. A line feed and a comma are no part of a
    cell here, and come where a program wrote them (test_row.py)."""
    yes = na.family.Bernoulli("x")
    place = na.family.Categorical("p", levels=["other", "é"])
    path = tmp_path / "t.csv"
    cells = [before + bytes([byte]) for byte in sorted(set(range(256)) - set(b"\n,"))]
    path.write_bytes(b"x,p\n1,\xc3\xa9\n" + b"".join(cell + b"," + cell + b"\n" for cell in cells) + b"0,\xc3\xa9\n")
    n, ones, levels = len(cells) + 2, sum(cell in b"123456789tTyY" for cell in cells), cells.count(b"\xc3\xa9")
    assert Table(path).sums(yes.query, 0) == ([1 + ones], n)
    assert Table(path).sums(place.query, 0) == ([n - 2 - levels, 2 + levels], n)
