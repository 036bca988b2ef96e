"""The US Census of 2020: noisy measurements, and the least-squares estimates made of them.

    noisy measurement files    whole numbers under discrete Gaussian noise of the `variance` beside them
    least-squares estimates    normal about the true count, of the `std_dev` beside them; clamped nowhere, and no wholes

Measurements of one cell by several queries, and of an area and its parts, tell of one another; here each is taken by
itself. Estimates share what they were made of: their errors are correlated, and no two of them are independent.
"""

import math
from typing import Any

from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, release
from noiseaware.interop._rows import group_of, number, positive, rows_of, whole
from noiseaware.mechanism import DiscreteGaussian, Gaussian

_CONSTRAINT = "_con"  # how the names of queries end that were answered without noise


def census_measurements(source: object, *, family: AbstractFamily = CELL, n: int = 1) -> list[Release]:
    """A release for each cell of a noisy measurement file: columns `value`, `variance`, and others that name the cell.

    A file of delimited text, or a frame: the Bureau's own are Parquet, which pandas, Polars and Arrow read. A value may
    be a list, of the cells of one query; rows of constraints, which have no noise, are passed over.
    """
    found = []
    for place, row in enumerate(rows_of(source, ("value", "variance")), 1):
        if str(row.get("query_name", "")).endswith(_CONSTRAINT):
            continue
        mechanism = DiscreteGaussian(math.sqrt(positive(row, "variance", place)))
        group = group_of(row, ("value", "variance"))
        for cell, value in enumerate(_cells(row["value"])):
            named = group if not _is_list(row["value"]) else (*group, ("cell", cell))
            count = whole({"value": value}, "value", place)
            found.append(release(count, None, mechanism, family=family, n=n, tool="US Census Bureau", group=named))
    if not found:
        raise ValueError("rows must have at least one noisy measurement, got constraints only.")
    return found


def census_estimates(source: object, *, family: AbstractFamily = CELL, n: int = 1) -> list[Release]:
    """A release for each least-squares estimate: columns `estimate`, `std_dev`, and others that name the cell."""
    found = []
    for place, row in enumerate(rows_of(source, ("estimate", "std_dev")), 1):
        mechanism = Gaussian(positive(row, "std_dev", place))
        about = {"family": family, "n": n, "tool": "US Census Bureau", "group": group_of(row, ("estimate", "std_dev"))}
        found.append(release(number(row, "estimate", place), None, mechanism, **about))
    return found


def _is_list(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _cells(value: Any) -> list:
    return list(value) if _is_list(value) else [value]
