"""Checks of arguments, the words of a refusal, and the extra that brings a package that is not installed."""

import importlib.util
import numbers
from collections.abc import Iterable
from typing import Any

_EXTRAS = {
    "custodian": ("duckdb", "narwhals", "opendp"),
    "numpyro": ("numpyro",),
    "parquet": ("pyarrow",),
    "postgres": ("ibis", "psycopg"),
    "program": ("mpmath", "z3"),
    "spark": ("pyspark",),
}
LONGEST_CELL = 2**15
"""Bytes of a cell of text; what is longer is no number and no level."""


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """A whole number from least to most; refused in one sentence if it is none."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not least <= value or (most is not None and value > most):  # type: ignore[operator]
        reach = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise ValueError(f"{name} must be a whole number {reach}, got {shown(value)}.")
    return int(value)  # type: ignore[call-overload]


def check_levels(levels: Iterable[object]) -> None:
    """Refuse a level of text that no cell can be: half of a pair of surrogates, or more than a cell's bytes."""
    for level in levels:
        if isinstance(level, str) and len(level.encode(errors="surrogatepass")) > LONGEST_CELL:
            raise ValueError(f"levels must be texts of at most {LONGEST_CELL} bytes, got {shown(level)}.")
        if isinstance(level, str) and any("\ud800" <= letter <= "\udfff" for letter in level):
            raise ValueError(f"levels must be texts that UTF-8 can hold, got {shown(level)}.")


def kind(value: object) -> str:
    """Name the type of an argument; a class is told from one of its objects."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def shown(value: Any, longest: int = 60) -> str:
    """Write a value as Python does, cut short."""
    text = repr(value.tolist() if type(value).__module__ == "numpy" else value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def require(extra: str) -> None:
    """Refuse work that would end for want of a package of an extra, before it begins."""
    for package in _EXTRAS[extra]:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def explained(error: ModuleNotFoundError) -> str:
    """Explain which package is missing, in a sentence with the next step."""
    package = (error.name or "").split(".")[0]
    for extra, packages in _EXTRAS.items():
        if package in packages:
            return f'this needs {package}, which is not installed: pip install "noiseaware[{extra}]".'
    return str(error)
