"""Which extra brings a package that is not installed."""

_EXTRAS = {
    "custodian": ("duckdb", "narwhals", "opendp"),
    "numpyro": ("numpyro",),
    "postgres": ("ibis", "psycopg"),
    "program": ("mpmath", "z3"),
    "spark": ("pyspark",),
}


def explained(error: ModuleNotFoundError) -> str:
    """What is missing, in a sentence with the next step."""
    package = (error.name or "").split(".")[0]
    for extra, packages in _EXTRAS.items():
        if package in packages:
            return f'this needs {package}, which is not installed: pip install "noiseaware[{extra}]".'
    return str(error)
