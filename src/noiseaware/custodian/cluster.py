"""Tables in Spark: numbers are summed there, and text is read there too, by a DuckDB in each Python worker.

Text travels to the worker as bytes and in Arrow batches; nothing but numbers comes back, and nothing is collected.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from noiseaware.custodian.quiet import quietly
from noiseaware.custodian.reader import OFFLINE
from noiseaware.custodian.row import header

SUFFIXES = (".parquet", ".csv")


def opened(path: str, complaint: str) -> Any:
    """A file as a Spark DataFrame, by the session that runs or by one that is started with Spark's own settings."""
    session = _session()
    if PurePath(path).suffix.lower() == ".parquet":
        return quietly(lambda: session.read.parquet(path), complaint)
    first = quietly(lambda: header(Path(path)), complaint)
    names, delimiter = first.names, first.delimiter
    # As reader.py reads it: the header is the schema, all else is text, and no byte or quote is an error.
    options = {"header": True, "sep": delimiter, "quote": '"', "escape": '"', "encoding": "ISO-8859-1"}
    options |= {"multiLine": True, "mode": "PERMISSIVE", "maxCharsPerColumn": -1, "maxColumns": len(names) + 1}
    schema = ", ".join(f"{_quoted(name)} string" for name in names)
    return quietly(lambda: session.read.csv(path, schema=schema, **options), complaint)


def _session() -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):
            from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError("a table in Spark needs pyspark; install noiseaware[spark].") from None
    builder = SparkSession.builder.appName("noiseaware").config("spark.log.level", "OFF")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    with _unheard(), warnings.catch_warnings(action="ignore"):  # JAX warns of the fork by which Java is started
        return quietly(builder.getOrCreate, "Spark could not be started; it needs Java and its cluster's settings.")


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """What is started here has no stderr: Spark's Java process writes to it before its log level can be set."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def renamed(table: Any, columns: Sequence[str], names: Sequence[str]) -> Any:
    """Columns of a DataFrame under names without dots, which Spark would look into."""
    from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

    return table.select(
        *(functions.col(_quoted(column)).alias(name) for column, name in zip(columns, names, strict=True))
    )


def capped(table: Any, max_records: int) -> Any:
    """At most so many rows of each u, drawn at random by Spark; those without one are left out."""
    from pyspark.sql import Window, functions  # pyright: ignore[reportMissingImports]

    is_there = functions.col("u").isNotNull()
    if table.schema["u"].dataType.typeName() in ("float", "double"):
        is_there = is_there & ~functions.isnan("u")
    place = functions.row_number().over(Window.partitionBy("u").orderBy(functions.rand()))
    placed = table.filter(is_there).withColumn("place", place)
    return placed.filter(functions.col("place") <= max_records).drop("u", "place")


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def parsed(table: Any, expressions: dict[str, str], is_plain: Sequence[bool], kind: str) -> Any:
    """Columns by DuckDB's SQL for each: of doubles where plain, else of bytes; each becomes of one kind of Spark's."""
    from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

    casts = ["double" if plain else "string" for plain in is_plain]
    columns = [functions.col(name).cast(cast) for name, cast in zip(expressions, casts, strict=True)]
    columns = [c if cast == "double" else c.cast("binary") for c, cast in zip(columns, casts, strict=True)]
    table = table.select(*(c.alias(name) for name, c in zip(expressions, columns, strict=True)))
    wanted, settings = ", ".join(f"{sql} AS {name}" for name, sql in expressions.items()), OFFLINE

    def parse(batches):  # sent to the workers by value: they need DuckDB and PyArrow, and not this package
        import duckdb
        import pyarrow

        own = duckdb.connect(config=settings)
        for batch in batches:
            yield from own.from_arrow(pyarrow.Table.from_batches([batch])).project(wanted).to_arrow_table().to_batches()

    with _this_python(table), warnings.catch_warnings(action="ignore"):  # that pandas, which is not used, is too new
        return table.mapInArrow(parse, ", ".join(f"{name} {kind}" for name in expressions))


@contextlib.contextmanager
def _this_python(table: Any) -> Iterator[None]:
    """Workers on this machine run this Python, which has what they need, where Spark would take any `python3`."""
    with contextlib.ExitStack() as after:
        with contextlib.suppress(Exception):  # through Spark Connect there are none
            context = table.sparkSession.sparkContext
            if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
                after.callback(setattr, context, "pythonExec", context.pythonExec)
                context.pythonExec = sys.executable
        yield


@contextlib.contextmanager
def silent(table: Any) -> Iterator[None]:
    """Spark's own logs are off meanwhile: a task that fails is logged with the value it failed on."""
    from pyspark.logger import PySparkLogger  # pyright: ignore[reportMissingImports]

    with contextlib.ExitStack() as after, warnings.catch_warnings(action="ignore"):
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            logger = PySparkLogger.getLogger(name)
            after.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        with contextlib.suppress(Exception):  # through Spark Connect the log is the server's
            context = table.sparkSession.sparkContext
            level = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
            context.setLogLevel("OFF")
            after.callback(context.setLogLevel, level)
        yield
