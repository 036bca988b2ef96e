"""PyArrow tables: all columns go to DuckDB, because Arrow's own casts refuse a value by quoting it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import narwhals as nw

from noiseaware.custodian.engine.duckdb import AbstractLocal

if TYPE_CHECKING:
    import pyarrow as pa


class Arrow(AbstractLocal):
    """Columns of a PyArrow table."""

    served = "a PyArrow table"
    implementations = (nw.Implementation.PYARROW,)

    def is_plain(self, column: str, dtype: Any) -> bool:
        """Never true: DuckDB does all casts."""
        return False

    def is_void(self, column: str) -> bool:
        return str(self.frame.to_native().schema.field(column).type) == "null"

    def relation(self, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
        return in_duckdb(self.own, self.frame.to_native())


def in_duckdb(own: duckdb.DuckDBPyConnection, table: "pa.Table") -> duckdb.DuckDBPyRelation:
    """Return a PyArrow table as a relation, text as bytes: DuckDB takes text that is no UTF-8 for an error."""
    import pyarrow as pa

    texts = [pa.types.is_string(t) or pa.types.is_large_string(t) for t in table.schema.types]
    kinds = [pa.large_binary() if text else kind for text, kind in zip(texts, table.schema.types, strict=True)]
    return own.from_arrow(table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True)))))
