"""Polars frames, eager and lazy: numbers are summed by Polars, text goes to DuckDB by Arrow."""

import re
from collections.abc import Sequence

import duckdb
import narwhals as nw

from noiseaware.custodian.engine._engine import Given, Source, check_plan
from noiseaware.custodian.engine.arrow import in_duckdb
from noiseaware.custodian.engine.duckdb import AbstractLocal

_GUESSED = re.compile(r"^\s*(Csv|NDJson) SCAN", re.MULTILINE | re.IGNORECASE)


class Polars(AbstractLocal):
    """Columns of a Polars frame."""

    served = "a Polars frame"
    implementations = (nw.Implementation.POLARS,)
    packages = ("pyarrow",)

    @classmethod
    def source(cls, given: Given) -> Source:
        """Return the frame, unless it is a lazy one that guesses types."""
        if isinstance(given.frame, nw.LazyFrame):
            check_plan(lambda: given.frame.to_native().explain(optimized=False), _GUESSED)
        return super().source(given)

    def is_void(self, column: str) -> bool:
        return str(self.frame.to_native().collect_schema()[column]) == "Null"

    def relation(self, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return the columns in DuckDB; whole numbers of 128 bits, which Arrow does not know, as text."""
        wide = [name for name in names if self.frame.collect_schema()[name] in (nw.Int128, nw.UInt128)]
        frame = self.frame.with_columns(nw.col(name).cast(nw.String) for name in wide)
        return in_duckdb(self.own, frame.lazy().collect("pyarrow").to_native())
