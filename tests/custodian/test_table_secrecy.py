"""Errors of an engine quote the cell that they stumbled on; errors of the table hold nothing of it."""

import duckdb
import pandas as pd
import polars as pl

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
    (folder / "broken.json").write_text(f'[{{"x": 1}}, {{"x": {SECRET}}}]')
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
        table.sums(model, 0)
    except ValueError as error:
        return error
    return None


def test_errors_hold_nothing_of_the_records(tmp_path, capfd, caplog, recwarn):
    failures = 0
    for damaged in _damaged(tmp_path):
        for model in (family.Poisson("x", bounds=(0, 9)), family.Categorical("x", levels=["a", "b"])):
            error = _error(Table(damaged), model)
            failures += error is not None
            assert SECRET not in str(error)
            assert error is None or error.__context__ is None, "a traceback would lead back to the engine's message"
    assert failures >= 16
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err + caplog.text
    assert not [warning for warning in recwarn if SECRET in str(warning.message)]
