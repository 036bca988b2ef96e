"""An engine to copy: structured NumPy arrays as tables.

Give a new engine a file like this one in custodian/engine/, its class in the list of source.py, an extra in
pyproject.toml if it needs a package, and a line in tests/custodian/engine/test_engine.py, which holds all engines to
the same sums. Three rules are yours to keep:

* What is refused before a table is read rests on what is public: types and names, never a value.
* Whatever can fail on a value happens in a method that the scan calls, or inside `quietly`: errors quote records.
* A column is plain only if the engine casts each of its values to float64, to the nearest, and refuses none.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa

from noiseaware.custodian.engine._engine import Given, Opening, Source
from noiseaware.custodian.engine.arrow import in_duckdb
from noiseaware.custodian.engine.duckdb import AbstractLocal
from noiseaware.custodian.engine.quiet import quietly


class NumPy(AbstractLocal):
    """Columns of a structured NumPy array. A table elsewhere than in this process derives from AbstractEngine."""

    served = "a structured NumPy array"

    @classmethod
    def serves(cls, given: Given) -> bool:
        return isinstance(given.table, np.ndarray) and given.table.dtype.names is not None

    @classmethod
    def source(cls, given: Given) -> Source:
        array = given.table

        def opened(opening: Opening) -> "NumPy":
            # PyArrow refuses a column of objects of several types, and quotes one of them.
            table = quietly(lambda: pa.table({name: array[name] for name in array.dtype.names}), opening.complaint)
            return cls(opening.own, nw.from_native(table))

        return Source("NumPy array", opened, rows=lambda own: array.size)

    def is_plain(self, column: str, dtype: Any) -> bool:
        return False  # so that all columns pass through DuckDB

    def is_void(self, column: str) -> bool:
        return str(self.frame.to_native().schema.field(column).type) == "null"

    def relation(self, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
        return in_duckdb(self.own, self.frame.to_native())
