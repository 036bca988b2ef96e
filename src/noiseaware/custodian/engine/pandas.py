"""pandas frames: numbers are summed by pandas, objects are read cell by cell as text."""

from collections.abc import Sequence
from typing import Any

import duckdb
import narwhals as nw

from noiseaware.custodian.engine import cell
from noiseaware.custodian.engine._engine import NUMBERS
from noiseaware.custodian.engine.duckdb import AbstractLocal


class Pandas(AbstractLocal):
    """Columns of a pandas frame."""

    served = "a pandas frame"
    implementations = (nw.Implementation.PANDAS,)

    def is_plain(self, column: str, dtype: Any) -> bool:
        """True of a column of numbers that NumPy holds: Arrow's casts refuse a value by quoting it."""
        return dtype in NUMBERS and "pyarrow" not in str(self.frame.to_native()[column].dtype)

    def is_void(self, column: str) -> bool:
        return str(self.frame.to_native()[column].dtype) == "null[pyarrow]"

    def relation(self, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return the columns in DuckDB: objects as text, or as the identity of a person."""
        native = self.frame.to_native()
        spelled = {name: (cell.identities if name == "u" else cell.texts)(native[name]) for name in names}
        return self.own.from_df(native.assign(**spelled))
