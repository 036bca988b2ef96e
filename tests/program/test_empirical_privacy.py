"""The example programs, run on neighbours: what is seen to be lost never passes the certificate.

    ε ≥ log (P(E) − δ)/P'(E)        E chosen on one half of the runs, its probabilities bounded on the other

by the intervals of Clopper and Pearson (1934). A program that keeps its promise fails once in a thousand times at the
very most, and in fact far less often, as both probabilities must be off at once. The last tests show that a promise
which is not kept is found.
"""

import functools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaincinv
from tests.program.conftest import FOLDER, ReadOnce, programs_of

import noiseaware as na
import noiseaware.program as pp

CONFIDENCE = 0.999
FEW, MANY = 120, 4000

ONE, TWO, FIVE = ([False], [True]), ([False, True], [True, True]), ([False] * 5, [False] * 4 + [True])
LOW, HIGH = [pd.DataFrame({"age": [age], "pressure": [pressure]}) for age, pressure in ((40, 120), (80, 200))]
# neighbours that differ as much as they can; of a line, (−1/3, −1/3) and (1, 1) in the scale of its columns
NEIGHBOURS = {
    "any_model": [([1.0, 0.0], [1.0, 1.0])],
    "coin_aware": [ONE, FIVE],
    "coin_exponential": [ONE, FIVE],
    "coin_hellinger": [ONE, TWO],
    "coin_input": [ONE, FIVE],
    "coin_laplace": [ONE, TWO],
    "coin_public_size": [ONE, FIVE],
    "coin_sample": [FIVE],
    "coin_unknown_size": [([False], [False, True]), ([True], [True, False])],
    "dirichlet_laplace": [(["one"], ["two"])],
    "line_aware": [(LOW, HIGH)],
    "normal_input": [([0.0], [1.0])],
    "normal_mean": [([0.0], [24.0]), ([12.0, -5.0], [12.0, 1e9])],
    "rate_laplace": [([0], [20]), ([3, 0, 3], [3, 999, 3])],
}
CASES = [(name, pair) for name, pairs in NEIGHBOURS.items() for pair in pairs]
SLOW = {"coin_sample": 10}  # by how much fewer runs there are of what takes 20 ms


@functools.cache
def certificate(name: str) -> pp.Certified:
    verdict = pp.check(programs_of(FOLDER / f"{name}.py")[name])
    assert verdict.is_certified
    return verdict


@pytest.fixture(autouse=True)
def no_inference(monkeypatch):
    """Inference is left out: the noisy values themselves tell more than what is made of them."""
    monkeypatch.setattr(na, "infer", lambda release, prior: release, raising=False)
    monkeypatch.setattr("noiseaware.program.language.nuts.draws", lambda model, records, public: records)


def numbers(result) -> list[float]:
    """All numbers in a result."""
    if isinstance(result, dict):
        return [x for part in result.values() for x in numbers(part)]
    if isinstance(result, list | tuple):
        return [x for part in result for x in numbers(part)]
    if isinstance(result, na.Release):
        return list(result.values)
    return numbers(result.parameters) if hasattr(result, "parameters") else [float(result)]


def observed(certified, table, num_runs) -> np.ndarray:
    """The numbers of each run, a row of them, with their sum and differences: a record can move several."""
    read = ReadOnce(table if isinstance(table, pd.DataFrame) else pd.DataFrame({"record": table}))
    rows = np.array([numbers(certified.run(read)) for _ in range(num_runs)])
    differences = [rows[:, i] - rows[:, j] for i in range(rows.shape[1]) for j in range(i)]
    return np.column_stack([rows, rows.sum(1), *differences])


def bounds(hits: int, total: int) -> tuple[float, float]:
    """Between these the probability lies: each alone fails with (1 − CONFIDENCE)/2."""
    miss = (1 - CONFIDENCE) / 2
    low = betaincinv(hits, total - hits + 1, miss) if hits else 0.0
    high = betaincinv(hits + 1, total - hits, 1 - miss) if hits < total else 1.0
    return float(low), float(high)


def shown_by(event, left, right, delta) -> float:
    """ε that an event shows: a column beyond a threshold, on one side of it."""
    column, threshold, sign = event
    hits = [int((sign * rows[:, column] >= sign * threshold).sum()) for rows in (left, right)]
    low, high = bounds(hits[0], len(left))[0], bounds(hits[1], len(right))[1]
    return math.log((low - delta) / high) if low > delta else -math.inf


def shown(left, right, delta) -> float:
    """ε that the runs on neighbours show, in one order of these or the other."""
    half, found = len(left) // 2, []
    for first, second in ((left, right), (right, left)):
        columns = range(first.shape[1])
        thresholds = [np.quantile(first[:half, j], np.linspace(0, 1, 21), method="nearest") for j in columns]
        events = [(j, threshold, sign) for j in columns for threshold in np.unique(thresholds[j]) for sign in (-1, 1)]
        ranked = [shown_by(event, first[:half], second[:half], delta) for event in events]
        found.append(shown_by(events[int(np.argmax(ranked))], first[half:], second[half:], delta))
    return max(found)


def audited(certified, pair, num_runs) -> float:
    left, right = (observed(certified, table, num_runs) for table in pair)
    return shown(left, right, float(certified.delta))


def test_every_example_is_audited():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(NEIGHBOURS)


@pytest.mark.parametrize("num_runs", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "pair"), CASES, ids=[f"{name}-{len(pair[1])}" for name, pair in CASES])
def test_no_more_is_lost_than_certified(name, pair, num_runs):
    certified = certificate(name)
    assert audited(certified, pair, max(num_runs // SLOW.get(name, 1), 60)) <= certified.epsilon


@pytest.mark.slow
def test_rounding_of_scores_loses_nothing():
    """A score that moves by one step of 2^−30, from a half of one to another."""

    def halves(p, db: pp.Booleans(adjacency="replace")):
        return p.exponential([-10, 10], lambda r: -abs(db.count() + Fraction(1, 2) - r) / 2**30, epsilon=3 * 2**30)

    certified = pp.check(pp.program(epsilon=3)(halves))
    assert certified.is_certified
    assert audited(certified, ONE, 1600) <= certified.epsilon


@pytest.mark.slow
def test_understated_noise_is_found():
    """Noise of ε = 1 that is said to be of 1/4: 1000 runs on each side show it, but for once in 10⁸ times."""
    assert 1 / 4 < audited(certificate("coin_public_size"), ONE, 2000) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coin_exponential", "coin_laplace", "coin_unknown_size"])
def test_understated_noise_is_found_in_others(name):
    assert 1 / 2 < audited(certificate(name), NEIGHBOURS[name][0], 8000) <= certificate(name).epsilon


def test_what_is_shown_is_right_where_the_loss_is_known(seed):
    rng = np.random.default_rng(seed)
    left, right, far = (rng.laplace(centre, 1.0, (20_000, 1)) for centre in (0, 1, 100))
    assert 0.8 < shown(left, right, 0) <= 1
    assert shown(left, left[::-1], 0) <= 0
    assert shown(left, far, 0) > 6  # nothing in common: as much as 10 000 runs can show
    assert shown(left, far, 0.999) < 0  # but all of it may be δ
