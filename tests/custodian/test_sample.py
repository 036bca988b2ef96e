"""Which records of a person are summed: a uniform sample that depends on no other person, on every engine."""

import itertools
import math
import secrets

import duckdb
import pyarrow as pa
import pytest
from scipy import stats

from noiseaware import family
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.table import Table

ILL = family.Bernoulli("ill")
BOTH = family.LinearRegression(["wait"], "t", bounds={"wait": (-9, 48), "t": (-9, 9)})


@pytest.fixture(params=["polars", "duckdb", "ibis", "spark"])
def held(request):
    """Rows as an engine holds them, whose own random numbers begin at a known seed where it has one."""
    return request.getfixturevalue(f"by_{request.param}")


@pytest.fixture
def by_polars():
    return pytest.importorskip("polars").from_arrow


@pytest.fixture
def by_duckdb():
    own = duckdb.connect(config={"threads": 1})
    return lambda arrow: own.execute("SELECT setseed(0.1)").fetchall() and own.from_arrow(arrow)


@pytest.fixture
def by_spark(spark):
    return spark.createDataFrame


@pytest.fixture
def by_ibis(postgres):
    ibis, names = pytest.importorskip("ibis"), (f"sampled{i}" for i in itertools.count())
    backend = ibis.connect(postgres)

    def seeded(arrow: pa.Table):
        name = next(names)
        backend.create_table(name, arrow, temp=True)
        backend.con.execute("SELECT setseed(0.5)")
        return backend.table(name)

    yield seeded
    backend.disconnect()


def rows(persons: range) -> pa.Table:
    """Eight records of each person, and one of the first; with NULL, NaN and −0, and some that are alike."""
    made = [(p, k) for p in persons for k in range(8 if p else 1)]
    waits = [None, math.nan, -0.0, 0.0, 0.1 + 0.2, 40.0, 40.0, 1e300]
    return pa.table(
        {
            "pid": pa.array([None if p == 7 else f"p{p}" for p, _ in made]),
            "ill": pa.array([p * k % 3 == 1 for p, k in made]),
            "wait": pa.array([waits[k] for _, k in made], pa.float64()),
            "t": pa.array(
                [[None, "", "3", "3 ", "é", "1:2", "-4", "-"][(k * k + p) % 8] for p, k in made], pa.string()
            ),
        }
    )


def test_one_person_moves_nobody_elses_sample(held, monkeypatch):
    """A shift of 57 was seen where noise was made for 1: random() goes on from row to row."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: "5a" * size)
    monkeypatch.setattr(secrets, "token_bytes", lambda size: b"\x5a" * size)
    everyone, first, others = (rows(range(*ends)) for ends in ((0, 60), (0, 1), (1, 60)))
    tables = [everyone, first, others.take(list(range(others.num_rows))[::-1])]
    (whole, n), (one, of_one), (rest, of_rest) = (
        Table(held(a)).sums(BOTH.query, 20, unit=Unit("pid", 1)) for a in tables
    )
    assert (n, of_one, of_rest) == (59, 1, 58)
    assert whole == [a + b for a, b in zip(one, rest, strict=True)]


def test_each_record_of_a_person_is_as_likely(held):
    """Also where four of five are alike, and for three of five in the groups of another column."""
    persons = 3000
    arrow = pa.table(
        {
            "pid": [p for p in range(persons) for _ in range(5)],
            "ill": [k == 0 for _ in range(persons) for k in range(5)],
            "g": ["a" if k < 2 else "b" for _ in range(persons) for k in range(5)],
        }
    )
    table = Table(held(arrow))
    (drawn,), n = table.sums(ILL.query, 0, unit=Unit("pid", 1))
    assert n == persons
    assert stats.binomtest(drawn, persons, 1 / 5).pvalue > 1e-6
    (_, of_a), (_, of_b) = table.group_sums(ILL.query, 0, Groups(("g",), (("a", "b"),)), unit=Unit("pid", 3))
    assert of_a + of_b == 3 * persons
    variance = 3 * (2 / 5) * (3 / 5) * (2 / 4)  # hypergeometric
    assert abs(of_a - persons * 6 / 5) < 5 * math.sqrt(persons * variance)
