"""The law of an engine: one table, and the same sums, groups, persons and missing cells wherever it lives.

The oracle is pure Python: what each cell stands for. An engine passes by one line in HELD.
"""

import importlib.util
import math
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.custodian.tables import ENGINES, held, number, yes_or_no

from noiseaware import family
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine import source as registry
from noiseaware.custodian.engine._engine import Given
from noiseaware.custodian.missing import Cells
from noiseaware.custodian.table import Table

SKELETON = Path(__file__).parents[3] / "docs" / "developer" / "skeletons" / "engine.py"
KINDS = {"wait": pa.float64(), "age": pa.int64(), "ill": pa.bool_(), "ward": pa.string(), "said": pa.string()}
KINDS["person"] = pa.string()
TYPES = {pa.float64(): "float8", pa.int64(): "bigint", pa.bool_(): "boolean", pa.string(): "text"}
POOL = {
    "wait": [None, math.nan, math.inf, -math.inf, -3.5, 0.0, 0.5, 7.25, 1e300],
    "age": [None, -4, 0, 1, 30, 2**62],
    "ill": [None, True, False],
    "ward": [None, "", "north", "south", "é", " north", "NORTH", "O'Neil"],
    "said": [None, "", "yes", " NO ", "true", "1", "0.5", "2,5", "nan", "abc", "1e400"],
    "person": [None, "a", "b", "c", "A", "é"],
}
N = 400
WARDS = ("north", "south", "é")


def _cells():
    rng = random.Random(20)
    return {name: [rng.choice(pool) for _ in range(N)] for name, pool in POOL.items()}


CELLS = _cells()


def _parquet(folder):
    pq.write_table(
        pa.table({name: pa.array(cells, KINDS[name]) for name, cells in CELLS.items()}), folder / "t.parquet"
    )
    return folder / "t.parquet"


def _in_postgresql(request):
    psycopg = pytest.importorskip("psycopg")

    url = request.getfixturevalue("postgres")
    with psycopg.connect(url) as own:
        own.execute("DROP TABLE IF EXISTS law")
        own.execute(f"CREATE TABLE law ({', '.join(f'{name} {TYPES[kind]}' for name, kind in KINDS.items())})")
        with own.cursor().copy("COPY law FROM STDIN") as copy:
            for row in zip(*CELLS.values(), strict=True):
                copy.write_row(row)
    return url


def _by_ibis(request):
    ibis = pytest.importorskip("ibis")

    backend = ibis.connect(_in_postgresql(request))
    request.addfinalizer(backend.disconnect)
    return Table(backend.table("law"))


def _skeleton():
    spec = importlib.util.spec_from_file_location("skeleton_of_an_engine", SKELETON)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.NumPy


def _by_skeleton():
    kinds = {name: "f8" if kind == pa.float64() else object for name, kind in KINDS.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "ENGINES", (*registry.ENGINES, _skeleton()))
        return Table(np.array(list(zip(*CELLS.values(), strict=True)), dtype=list(kinds.items())))


HELD = {
    **{engine: lambda request, folder, engine=engine: Table(held(engine, CELLS, KINDS, folder)) for engine in ENGINES},
    "postgresql": lambda request, folder: Table(_in_postgresql(request), "law"),
    "ibis": lambda request, folder: _by_ibis(request),
    "spark": lambda request, folder: Table(request.getfixturevalue("spark").read.parquet(str(_parquet(folder)))),
    "spark, parquet": lambda request, folder: request.getfixturevalue("spark") and Table(_parquet(folder), spark=True),
    "spark, csv": lambda request, folder: (
        request.getfixturevalue("spark") and Table(held("csv", CELLS, KINDS, folder), spark=True)
    ),
    "skeleton": lambda request, folder: _by_skeleton(),
}


SLOW = ("spark, parquet",)  # which takes the ways of two others


@pytest.fixture(scope="module", params=[pytest.param(e, marks=pytest.mark.slow) if e in SLOW else e for e in HELD])
def table(request, tmp_path_factory):
    """The cells as an engine holds them."""
    return HELD[request.param](request, tmp_path_factory.mktemp("law"))


def clamped(cell, low, high) -> int:
    """⌊x⌋ of a cell after its bounds; what is missing is at the lower one."""
    return low if number(cell) is None else math.floor(min(max(number(cell), low), high))


def flag(cell) -> int:
    """1 of a yes, or of a number that is 1 or more; else 0."""
    return int(max(yes_or_no(cell) or 0, 0) >= 1)


@pytest.mark.parametrize(("column", "low", "high"), [("wait", 0, 48), ("age", -2, 40), ("said", 0, 9), ("ill", 0, 1)])
def test_sums_are_those_of_the_cells(column, low, high, table):
    wait = family.Normal(column, bounds=(low, high), variance=1.0)
    assert table.sums(wait.query, 0) == ([sum(clamped(cell, low, high) for cell in CELLS[column])], N)


def test_levels_are_counted(table):
    counts = [CELLS["ward"].count(ward) for ward in WARDS[1:]]
    assert table.sums(family.Categorical("ward", levels=list(WARDS)).query, 0) == ([N - sum(counts), *counts], N)


@pytest.mark.parametrize("column", ["ill", "said"])
def test_flags_are_read_by_words(column, table):
    assert table.sums(family.Bernoulli(column).query, 0) == ([sum(map(flag, CELLS[column]))], N)


def test_groups_are_summed_apart(table):
    rows = list(zip(CELLS["ward"], CELLS["age"], strict=True))
    expected = [(sum(clamped(x, 0, 9) for w, x in rows if w == ward), CELLS["ward"].count(ward)) for ward in WARDS]
    found = table.group_sums(family.Poisson("age", bounds=(0, 9)).query, 0, Groups(("ward",), (WARDS,)))
    assert [(total, n) for (total,), n in found] == expected


def test_a_person_has_at_most_so_many_records(table):
    """All of them where the cap is high, but for those of nobody, which a CSV file writes as an empty text."""
    mine = Counter(person or "" for person in CELLS["person"])
    total, n = table.sums(family.Bernoulli("ill").query, 0, unit=Unit("person", N))
    nobody = mine.pop("")
    assert n in (N - nobody, N)
    people = [True] * N if n == N else [person is not None for person in CELLS["person"]]
    assert total == [sum(flag(ill) for ill, is_there in zip(CELLS["ill"], people, strict=True) if is_there)]
    for most in (1, 3):
        total, n = table.sums(family.Bernoulli("ill").query, 0, unit=Unit("person", most))
        assert (0 <= total[0] <= n, n in (most * len(mine), most * (len(mine) + 1))) == (True, True)


@pytest.mark.parametrize("column", ["wait", "age", "said"])
def test_missing_cells_are_left_out_or_count_as_a_value(column, table):
    model = family.Poisson(column, bounds=(0, 9))
    there = [cell for cell in CELLS[column] if number(cell) is not None]
    expected = sum(clamped(cell, 0, 9) for cell in there)
    assert table.sums(model.query, 0, cells=Cells("leave_out")) == ([expected], len(there))
    assert table.sums(model.query, 0, cells=Cells((5.0,))) == ([expected + 5 * (N - len(there))], N)


def test_records_are_read_one_by_one(table):
    wanted = sorted(clamped(cell, 0, 9) for cell in CELLS["age"])
    assert sorted(table.records(family.Poisson("age", bounds=(0, 9)).query, 0)) == wanted


def test_candidates_are_counted(table):
    placed = [-math.inf if number(cell) is None else number(cell) for cell in CELLS["wait"]]
    assert table.counts("wait", [0.0, 5.0, 48.0]) == ([sum(x <= c for x in placed) for c in (0.0, 5.0, 48.0)], N)


def test_no_two_engines_serve_one_table_and_each_says_what(tmp_path):
    assert len({engine.served for engine in registry.ENGINES}) == len(registry.ENGINES)
    for name in (*ENGINES, "url"):
        table = "postgresql://h/db" if name == "url" else held(name, CELLS, KINDS, tmp_path)
        given = Given(table)
        assert sum(engine.serves(given) for engine in registry.ENGINES) == 1, name
    with pytest.raises(ValueError, match=r"^table must be a path of a CSV, .* or a PySpark frame, got set\.$"):
        Table({1})


def test_the_skeleton_is_short_and_forgets_what_it_stumbled_on(monkeypatch):
    assert len(SKELETON.read_text(encoding="utf-8").splitlines()) <= 60
    monkeypatch.setattr(registry, "ENGINES", (*registry.ENGINES, _skeleton()))
    array = np.array([(1,), ("s3cr3t-9071",)], dtype=[("x", object)])
    with pytest.raises(ValueError, match=r"^table NumPy array could not be opened as a table of records\.$") as caught:
        Table(array).sums(family.Bernoulli("x").query, 0)
    assert caught.value.__context__ is None
