"""Cells of pandas columns of objects: none is an error, and a person is who pandas holds to be one."""

import datetime
import math
import random
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian.division import Unit
from noiseaware.custodian.engine.cell import identities
from noiseaware.custodian.table import Table

ONE, COUNT = na.family.Bernoulli("ill"), na.family.Poisson("x", bounds=(0, 9))
PERSONS = [
    1,
    1.0,
    True,
    np.True_,
    Decimal(1),
    Decimal("1.00"),
    Fraction(1),
    1 + 0j,
    0,
    0.0,
    -0.0,
    False,
    math.nan,
    None,
]
PERSONS += [pd.NA, pd.NaT, Decimal("NaN"), "1", "1.0", "True", "", "\0a", b"1", b"\xff", 0.1, Decimal("0.1"), 2**60]
PERSONS += [float(2**60), 2**60 + 1, 2**61 - 1, 10**5000, 10**5000 + 1, Decimal("1e5000"), math.inf, Decimal("-inf")]
PERSONS += [
    (1, 2),
    (1.0, 2),
    pd.Timestamp("2020"),
    datetime.datetime(2020, 1, 1),
    datetime.timedelta(1),
    pd.Timedelta("1D"),
]


class _Odd:
    def __str__(self):
        raise RuntimeError

    __repr__ = __hash__ = __str__


ODD = [
    b"1",
    b"\xff",
    10**5000,
    -(10**5000),
    10**305,
    "\ud800",
    "a\x00",
    [1],
    {"a": 1},
    np.zeros(3),
    Decimal("sNaN"),
    object,
]
ODD += [_Odd(), Decimal("1E+999999999"), float("nan"), pd.NA, 1 + 2j, Fraction(1, 3), datetime.date(2020, 1, 1)]


@pytest.mark.parametrize("kind", ["object", "category"])
@pytest.mark.parametrize("max_records", [1, 3])
def test_a_person_is_who_pandas_holds_to_be_one(max_records, kind, seed):
    rng = random.Random(seed)
    for _ in range(10):
        cells = pd.Series([rng.choice(PERSONS) for _ in range(100)], dtype=object)
        if kind == "category":
            cells = pd.Series([rng.choice([1, 2.5, None]) for _ in range(100)], dtype=object).astype("category")
        most = cells.groupby(cells, sort=False, observed=True).size().clip(upper=max_records).sum()
        table = Table(pd.DataFrame({"pid": cells, "ill": 1}))
        assert table.sums(ONE.query, 0, unit=Unit("pid", max_records), least=0) == ([most], most)


def test_one_person_under_many_spellings_is_summed_once():
    """What pd.concat of a frame of whole numbers and of one with a gap gives."""
    frames = [pd.DataFrame({"pid": pids, "ill": 1}) for pids in ([1, 2], [1.0, math.nan], [True])]
    frame = pd.concat([frame.astype({"pid": object}) for frame in frames])
    assert Table(frame).sums(ONE.query, 0, unit=Unit("pid", 1)) == ([2], 2)


@pytest.mark.parametrize("column", ["x", "level", "group", "pid"])
@pytest.mark.parametrize("odd", ODD, ids=[type(cell).__name__ for cell in ODD])
def test_no_object_is_an_error_or_changes_another_record(odd, column, tmp_path):
    """In a column of numbers, of levels, of groups and of persons; before the charge and after."""
    good = {"x": 2, "level": "b", "group": "g", "pid": "p", "ill": 1}
    rows = [good, {**good, column: odd}, {**good, "pid": 7}]
    frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in good})
    (total,), n = Table(frame).sums(COUNT.query, 0)
    assert (n, 4 <= total <= 13) == (3, True)
    counts, n = Table(frame).sums(na.family.Categorical("level", levels=["a", "b"]).query, 0)
    assert (n, counts[1]) == (3, 3 - (column == "level"))
    for unit in (None, Unit("pid", 1)):
        ledger = na.Ledger.create(tmp_path / f"{unit is None}.ledger", epsilon=1)
        whose = {} if unit is None else {"unit": "pid", "max_records": 1}
        made = na.release(
            frame,
            COUNT,
            epsilon=1,
            by="group",
            levels={"group": ["g"]},
            neighbours="add_remove",
            ledger=ledger,
            **whose,
        )
        assert list(made) == ["g"]
        assert ledger.spent == 1


def test_a_cell_is_the_number_that_it_holds():
    for cell, number in ((b"1", 1), (10**5000, 9), (-(10**5000), 0), (10**305, 9), (2.0, 2), ("\ud800", 0)):
        frame = pd.DataFrame({"x": pd.Series([cell, "1"], dtype=object)})
        assert Table(frame).sums(COUNT.query, 0) == ([number + 1], 2)


def test_a_whole_number_is_one_text_whatever_its_type():
    """A frame with a gap has 1.0 where one without has 1."""
    cells = [1, 1.0, np.float32(1), Decimal("1.0"), "1", b"1", True, 1.5, "x", None]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    levels = ["other", "1", "1.5", "True"]
    assert Table(frame).sums(na.family.Categorical("x", levels=levels).query, 0) == ([2, 6, 1, 1], 10)


def test_ids_whose_hashes_can_be_made_equal_are_two_persons():
    first = UUID(int=5)
    twins = [first, UUID(int=first.int + 2**61 - 1), (-1,), (-2,), (1,), (1.0,)]
    assert hash(twins[0]) == hash(twins[1])
    found = identities(pd.Series(twins, dtype=object)).tolist()
    assert len(set(found[:5])) == 5
    assert found[4] == found[5]
