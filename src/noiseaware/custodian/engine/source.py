"""The engines, and the one that serves a table."""

from typing import Any

from noiseaware.custodian.engine._engine import AbstractEngine, Given, Source
from noiseaware.custodian.engine.arrow import Arrow
from noiseaware.custodian.engine.duckdb import DuckDB
from noiseaware.custodian.engine.ibis import Ibis
from noiseaware.custodian.engine.pandas import Pandas
from noiseaware.custodian.engine.polars import Polars
from noiseaware.custodian.engine.spark import Spark

ENGINES: tuple[type[AbstractEngine], ...] = (DuckDB, Pandas, Polars, Arrow, Ibis, Spark)
"""In the order in which a refusal lists what they serve; no two serve the same table."""


def source(table: Any, table_name: str | None, *, spark: bool) -> Source:
    """Return where a table lives, or refuse what no engine serves; a URL is never quoted: it may hold a password."""
    given = Given(table, table_name, by_spark=spark)
    engine = next((engine for engine in ENGINES if engine.serves(given)), None)
    if engine is None:
        *others, last = (engine.served for engine in ENGINES)
        raise ValueError(f"table must be {', '.join(others)} or {last}, got {type(table).__name__}.")
    if table_name is not None and given.url is None:
        raise ValueError("table_name must be left out unless the table is given by a postgresql:// URL.")
    return engine.source(given)
