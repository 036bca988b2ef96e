"""Errors of an engine quote the cell that they stumbled on; errors of the table hold nothing of it."""

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pytest

from noiseaware import family
from noiseaware.custodian.table import Table

SECRET = "s3cr3t-9071"


def _damaged(folder):
    """Sources whose engines raise errors of their own, most of which quote the cell."""
    good = pd.DataFrame({"x": [1.0, 2.0], "y": [SECRET] * 2})
    good.to_parquet(folder / "t.parquet")
    whole = (folder / "t.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:40] + whole[60:])
    (folder / "text.parquet").write_text(SECRET * 50)
    (folder / "broken.json").write_text(f'[{{"x": 1}}, {{"x": {SECRET}}}')
    (folder / "empty.csv").write_bytes(b"")
    yield from (folder / name for name in ("cut.parquet", "text.parquet", "broken.json", "empty.csv"))
    yield duckdb.connect().sql(f"SELECT CAST(t AS DOUBLE) AS x FROM (VALUES ('1'), ('{SECRET}')) v(t)")
    yield pl.LazyFrame({"x": ["1", SECRET]}).with_columns(pl.col("x").cast(pl.Float64, strict=True))
    yield pl.LazyFrame({"x": ["1", SECRET]}).with_columns(pl.col("x").cast(pl.Float64, strict=True).cast(pl.String))
    yield pd.DataFrame({"x": pd.Series([f"{SECRET}\ud800", 1], dtype=object)})
    yield pd.DataFrame({"x": pd.Series([_Unprintable(), 1], dtype=object)})


class _Unprintable:
    def __str__(self):
        raise RuntimeError(SECRET)

    __repr__ = __str__


def _error(table, model) -> ValueError | None:
    try:
        table.sums(model.query, 0)
    except ValueError as error:
        return error
    return None


def test_errors_hold_nothing_of_the_records(tmp_path, capfd, caplog, recwarn):
    failures = 0
    for damaged in _damaged(tmp_path):
        for model in (family.Poisson("x", bounds=(0, 9)), family.Categorical("x", levels=["a", "1"])):
            error = _error(Table(damaged), model)
            failures += error is not None
            assert SECRET not in str(error)
            assert error is None or error.__context__ is None, "a traceback would lead back to the engine's message"
    assert failures >= 14
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err + caplog.text
    assert not [warning for warning in recwarn if SECRET in str(warning.message)]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_that_compute_at_once_do_so_unheard(frame, monkeypatch):
    """Were the work between opening and summing to fail, on whichever path, its engine would quote the cell."""
    for name in ("fixed_point", "placed", "scaled"):
        failing = nw.col("c0").cast(nw.String).str.to_datetime(format="%Y-%m-%d")
        monkeypatch.setattr(f"noiseaware.custodian.table.{name}", lambda *_, failing=failing: failing)
    table = Table(frame({"x": [9071.5, 2.0]}))
    for work in (
        lambda: table.sums(family.Poisson("x", bounds=(0, 9)).query, 0),
        lambda: table.sums(family.Normal("x", bounds=(0, 9)).query, 6),
        lambda: table.counts("x", [1.0]),
    ):
        with pytest.raises(ValueError, match=r"could not be read as a table of records\.$") as caught:
            work()
        assert caught.value.__context__ is None
