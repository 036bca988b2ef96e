"""Tables in Spark: numbers are summed there, and text is read there too, by a DuckDB in each Python worker.

Text travels to the worker as bytes and in Arrow batches; nothing but numbers comes back, and nothing is collected.
"""

import atexit
import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Self

import narwhals as nw

from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.engine._engine import AbstractEngine, Given, Opening, Source, check_columns
from noiseaware.custodian.engine.connection import SCHEMES, named
from noiseaware.custodian.engine.duckdb import OFFLINE
from noiseaware.custodian.engine.file import header
from noiseaware.custodian.engine.quiet import quietly

_SUFFIXES = (".parquet", ".csv")
_BATCH = 10_000  # rows


class Spark(AbstractEngine):
    """Columns of a Spark DataFrame."""

    served = "a PySpark frame"
    implementations = (nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT)

    @classmethod
    def serves(cls, given: Given) -> bool:
        return (given.path is not None and given.by_spark) or super().serves(given)

    @classmethod
    def source(cls, given: Given) -> Source:
        """Return the DataFrame, or the file if Spark can read it."""
        if given.path is None:
            return Source(super().source(given).name, lambda opening: cls._of(given.frame.to_native(), opening))
        path = _checked(given.path, given.table_name)
        return Source(PurePath(path).name, lambda opening: cls._of(_opened(path, opening), opening))

    @classmethod
    def _of(cls, table: Any, opening: Opening) -> Self:
        frame = quietly(lambda: nw.from_native(table), opening.complaint)
        opening.closing.enter_context(_silent(table))
        return cls(opening.own, frame)

    def is_void(self, column: str) -> bool:
        return self.frame.to_native().schema[column].dataType.typeName() == "void"

    def renamed(self, columns: Sequence[str], names: Sequence[str]) -> Self:
        """Return columns under names without dots, which Spark would look into; char(n) without its padding."""
        from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

        table = self.frame.to_native()

        def column(name: str) -> Any:
            declared = table.schema[name].metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")
            found = functions.col(_quoted(name))
            return functions.rtrim(found) if declared.startswith("char") else found

        renamed = (column(name).alias(new) for name, new in zip(columns, names, strict=True))
        return self.over(nw.from_native(table.select(*renamed)))

    def capped(self, names: Sequence[str], max_records: int) -> Self:
        from pyspark.sql import Window, functions  # pyright: ignore[reportMissingImports]

        table = self.frame.to_native()
        kind, unit = table.schema["u"].dataType.typeName(), functions.col("u")
        is_there = unit.isNotNull() & ~functions.isnan(unit) if kind in ("float", "double") else unit.isNotNull()
        salted = [functions.lit(secrets.token_bytes(16))]
        for name in names:
            cell = functions.col(name).cast("string").cast("binary")
            size = functions.concat(functions.octet_length(cell).cast("string"), functions.lit(":")).cast("binary")
            salted.append(functions.coalesce(functions.concat(size, cell), functions.lit(b"-")))
        rows = table.filter(is_there).withColumn("h", functions.sha2(functions.concat(*salted), 256))
        # A collation may hold two texts to be equal whose bytes differ.
        rows = rows.withColumn("u", unit.cast("binary")) if kind == "string" else rows
        alike = functions.row_number().over(Window.partitionBy("u", "h").orderBy("h"))
        rows = rows.withColumn("h", functions.sha2(functions.concat("h", alike.cast("string")).cast("binary"), 256))
        place = functions.row_number().over(Window.partitionBy("u").orderBy("h"))
        few = rows.withColumn("place", place).filter(functions.col("place") <= max_records).drop("u", "h", "place")
        return self.over(nw.from_native(few))

    def parsed(self, sql: Mapping[str, Callable[[str], str]], plain: Sequence[bool], kind: str) -> Self:
        """Return each column as a DuckDB in Spark's workers parses it: of doubles where plain, else of bytes."""
        from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

        casts = ["double" if is_plain else "string" for is_plain in plain]
        columns = [functions.col(name).cast(cast) for name, cast in zip(sql, casts, strict=True)]
        columns = [c if cast == "double" else _short(c) for c, cast in zip(columns, casts, strict=True)]
        table = self.frame.to_native().select(*(c.alias(name) for name, c in zip(sql, columns, strict=True)))
        texts = (of("double" if is_plain else "blob") for of, is_plain in zip(sql.values(), plain, strict=True))
        wanted = ", ".join(f"CAST({text} AS {kind}) AS {name}" for text, name in zip(texts, sql, strict=True))
        settings, schema = OFFLINE, ", ".join(f"{name} {kind}" for name in sql)

        # The workers get this function by value: they need DuckDB and PyArrow, and not this package.
        def parse(batches):
            import duckdb
            import pyarrow

            own = duckdb.connect(config=settings)
            for batch in batches:
                yield from (
                    own.from_arrow(pyarrow.Table.from_batches([batch])).project(wanted).to_arrow_table().to_batches()
                )

        needs = " (to read text, Spark's Python workers need duckdb and pyarrow, and noiseaware for CSV)"
        return replace(self, frame=nw.from_native(_mapped(table, parse, schema)), needs=needs)

    def rows(self, *, are_many: bool = False) -> Iterable[tuple]:
        """Return all rows; if they are many, a partition at a time."""
        native = self.frame.to_native()
        return native.toLocalIterator() if are_many else native.collect()


def _checked(path: str, table_name: str | None) -> str:
    """Return the path of a file as Spark finds it, or refuse it."""
    if path.lower().startswith(tuple(f"{scheme}:" for scheme in SCHEMES)):
        raise ValueError("table must be a file where Spark reads it, got a URL of PostgreSQL; leave out --spark.")
    if table_name is not None:
        raise ValueError("table_name must be left out where Spark reads the table.")
    if PurePath(path).suffix.lower() not in _SUFFIXES:
        raise ValueError(f"table file must end in one of {', '.join(_SUFFIXES)} for Spark, got {named(path)}.")
    return path if "://" in path else os.path.abspath(path)  # Spark's Java process may be in another folder


def _opened(path: str, opening: Opening) -> Any:
    """Return a file as a DataFrame, by the session that runs or by one that is started with Spark's own settings."""
    session, complaint = _session(), opening.complaint
    if PurePath(path).suffix.lower() == ".parquet":
        return quietly(lambda: session.read.parquet(path), complaint)
    names = header(Path(path), complaint).names
    wanted = list(dict.fromkeys(opening.columns))
    check_columns(wanted, names, PurePath(path).name)

    # The one worker needs this package: Spark's own reader takes a long row for an error.
    def read(batches):
        from noiseaware.custodian.engine._engine import Opening
        from noiseaware.custodian.engine.duckdb import connection
        from noiseaware.custodian.engine.file import READERS

        for _ in batches:
            with connection() as own, contextlib.ExitStack() as closing:
                rows = READERS[".csv"](Path(path), Opening(own, wanted, closing, complaint))
                yield from rows.to_arrow_reader(_BATCH)

    schema = ", ".join(f"{_quoted(name)} string" for name in wanted)
    return quietly(lambda: _mapped(session.range(1, numPartitions=1), read, schema), complaint)


def _session() -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):
            from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError("a table in Spark needs pyspark; install noiseaware[spark].") from None
    builder = SparkSession.builder.appName("noiseaware")
    own = _own_settings() if SparkSession.getActiveSession() is None else {}
    for name, value in own.items():
        builder = builder.config(name, value)
    with _unheard(), warnings.catch_warnings(action="ignore"):  # JAX warns of the fork by which Java is started
        return quietly(builder.getOrCreate, "Spark could not be started; it needs Java and its cluster's settings.")


def _own_settings() -> dict[str, str]:
    """Return settings of a session that is started here: nobody else can read what it writes, and it logs nothing.

    A shuffle brings the records of a person together in files; an event log keeps the value that a task failed on.
    """
    folder = tempfile.mkdtemp(prefix="noiseaware-spark-")  # which is nobody else's to open
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "spark.local.dir": folder,
        "spark.io.encryption.enabled": "true",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Give what is started here no stderr, and files that nobody else can read.

    Spark's Java process writes to stderr before its log level can be set.
    """
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    mask = os.umask(0o077)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.umask(mask)
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _short(text: Any) -> Any:
    """Return a column of text as bytes; what is too long to be a number or a level is NULL."""
    from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

    return functions.when(functions.octet_length(text) <= LONGEST_CELL, text.cast("binary"))


def _mapped(table: Any, function: Any, schema: str) -> Any:
    with _this_python(table), warnings.catch_warnings(action="ignore"):  # that pandas, which is not used, is too new
        return table.mapInArrow(function, schema)


@contextlib.contextmanager
def _this_python(table: Any) -> Iterator[None]:
    """Let workers on this machine run this Python, which has the packages; Spark would take any `python3`."""
    with contextlib.ExitStack() as after:
        with contextlib.suppress(Exception):  # through Spark Connect there are none
            context = table.sparkSession.sparkContext
            if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
                after.callback(setattr, context, "pythonExec", context.pythonExec)
                context.pythonExec = sys.executable
        yield


@contextlib.contextmanager
def _silent(table: Any) -> Iterator[None]:
    """Switch Spark's own logs off: a task that fails is logged with the value it failed on."""
    from pyspark.logger import PySparkLogger  # pyright: ignore[reportMissingImports]

    with contextlib.ExitStack() as after, warnings.catch_warnings(action="ignore"):
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            logger = PySparkLogger.getLogger(name)
            after.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        with contextlib.suppress(Exception):  # through Spark Connect the log is the server's
            context = table.sparkSession.sparkContext
            logs = context._jvm.org.apache.logging.log4j
            configurator, level = logs.core.config.Configurator, logs.LogManager.getRootLogger().getLevel()
            # Not by setLogLevel, after which Spark would no longer hold back what no level was set for.
            configurator.setRootLevel(logs.Level.OFF)
            after.callback(configurator.setRootLevel, level)
        yield
