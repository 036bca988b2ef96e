"""Which extra brings a package that is not installed."""

import importlib.util

_EXTRAS = {
    "custodian": ("duckdb", "narwhals", "opendp"),
    "numpyro": ("numpyro",),
    "parquet": ("pyarrow",),
    "postgres": ("ibis", "psycopg"),
    "program": ("mpmath", "z3"),
    "spark": ("pyspark",),
}


def require(extra: str) -> None:
    """Refuse work that would end for want of a package of an extra, before it begins."""
    for package in _EXTRAS[extra]:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def explained(error: ModuleNotFoundError) -> str:
    """What is missing, in a sentence with the next step."""
    package = (error.name or "").split(".")[0]
    for extra, packages in _EXTRAS.items():
        if package in packages:
            return f'this needs {package}, which is not installed: pip install "noiseaware[{extra}]".'
    return str(error)
