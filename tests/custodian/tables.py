"""The same cells as each engine holds them, and the number that a cell stands for."""

import json
import math
import re
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ENGINES = ["csv", "parquet", "json", "array", "pandas", "nullable", "arrow-backed", "polars", "lazy", "arrow", "duckdb"]
WITH_SCHEMA = [engine for engine in ENGINES if engine not in ("json", "array")]
_NUMBER = re.compile(r"[+-]?((([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)|inf|infinity|nan)")
_NULLABLE = {pa.float64(): "Float64", pa.float32(): "Float32", pa.int64(): "Int64", pa.bool_(): "boolean"}


def number(cell) -> float | None:
    """What a cell stands for, as every engine rounds it: a double, or None where it is no number."""
    if isinstance(cell, str):
        word = cell.strip(" \t\n").lower()
        cell = {"true": 1.0, "false": 0.0}.get(word) if not _NUMBER.fullmatch(word) else float(word)
    return None if cell is None or math.isnan(cell) else float(cell)


def folded(word: str) -> str:
    """Without spaces around it, A to Z as a to z, and other letters as they are."""
    return "".join(c.lower() if c.isascii() else c for c in word.strip(" \t\n\r\v\f"))


def yes_or_no(cell, true=()) -> float | None:
    """Whether a cell is yes, 1, or no, 0, or a number besides; None where it is neither."""
    word = None if cell is None else folded(str(cell))
    if not true:
        words = dict.fromkeys(("t", "yes", "y", "on"), 1.0) | dict.fromkeys(("f", "no", "n", "off"), 0.0)
        return number(cell) if number(cell) is not None else words.get(word)
    if word in (None, "", "nan"):
        return None
    return float(word in [folded(other) for other in true] or number(cell) in [number(o) or "" for o in true])


def held(engine, columns, kinds, folder):
    """A table of an engine: columns by name, between two that nobody asks for."""
    n = len(next(iter(columns.values())))
    arrays = {name: pa.array(cells, kinds[name]) for name, cells in columns.items()}
    arrow = pa.table({"id": range(n), **arrays, "other": ["s"] * n})
    if engine == "csv":
        return _csv(columns, folder / "t.csv")
    if engine == "parquet":
        pq.write_table(arrow, folder / "t.parquet", row_group_size=2000)
        return folder / "t.parquet"
    if engine in ("json", "array"):
        rows = (map(_json, row) for row in zip(*columns.values(), strict=True))
        lines = [json.dumps({"id": 0, **dict(zip(columns, row, strict=True)), "other": "s"}) for row in rows]
        path = folder / ("t.ndjson" if engine == "json" else "t.json")
        path.write_text("\n".join(lines) if engine == "json" else f"[{','.join(lines)}]")
        return str(path)
    if engine == "pandas":
        return arrow.to_pandas()
    if engine == "nullable":
        return pd.DataFrame({name: _nullable(cells, kinds[name]) for name, cells in columns.items()} | {"other": "s"})
    if engine == "arrow-backed":
        return arrow.to_pandas(types_mapper=pd.ArrowDtype)
    if engine == "duckdb":
        return duckdb.connect().from_arrow(arrow)
    frame = pl.from_arrow(arrow)
    return {"polars": frame, "lazy": frame.lazy(), "arrow": arrow}[engine]  # type: ignore[union-attr]


def _csv(columns, path):
    rows = zip(*columns.values(), strict=True)
    texts = (["" if cell is None else str(cell).replace('"', '""') for cell in row] for row in rows)
    lines = [",".join([str(i), *(f'"{text}"' for text in row), "s"]) for i, row in enumerate(texts)]
    path.write_text("\r\n".join([",".join(["id", *columns, "other"]), *lines]) + "\r\n", newline="")
    return path


def _json(cell):
    return float(cell) if isinstance(cell, Decimal | np.floating) else cell


def _nullable(cells, kind):
    return pd.array(cells, dtype=_NULLABLE[kind]) if kind in _NULLABLE else pd.Series(cells, dtype=object)
