"""SmartNoise SQL: counts of a query, as it returns them.

What it calls discrete Laplace is continuous noise: the noisy count is cut to a whole number toward 0 on the way out.
Where the metadata says `clamp_counts`, negative counts are raised to 0 before that. Groups whose noisy count is not
above the reader's threshold `tau` are left out (`censor_dims`); where a person may have several rows, another count
decides.
"""

import math

from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, Keys, clamped, missing, release, truncated
from noiseaware.interop._rows import group_of, number, positive, rows_of, whole
from noiseaware.mechanism import Laplace


def smartnoise(
    rows: object,
    *,
    scale: float,
    column: str = "count",
    clamp_counts: bool = False,
    threshold: float | None = None,
    keys: Keys = (),
    family: AbstractFamily = CELL,
    n: int = 1,
    version: str | None = None,
) -> list[Release]:
    """A release for each row of `reader.execute(query)`, with the noise's scale (for COUNT, contributions/ε).

    `keys` are mappings of the grouping columns that could have been there: those that are not were left out, which
    tells that their noisy count was at most `threshold`, the reader's `tau`.
    """
    mechanism = Laplace(positive({"scale": scale}, "scale"))
    about = {"family": family, "n": n, "tool": "SmartNoise SQL", "version": version}
    found = []
    for place, row in enumerate(rows_of(rows, (column,)), 1):
        value = whole(row, column, place)
        within = clamped(value, truncated(value)) if clamp_counts else truncated(value)
        found.append(release(value, within, mechanism, group=group_of(row, (column,)), **about))
    absent = missing([r.origin.group for r in found], keys)
    if absent and threshold is None:
        raise ValueError(f"threshold must be given where keys are not among the rows, got {dict(absent[0])}.")
    for group in absent:
        tau = number({"threshold": threshold}, "threshold")
        found.append(release(tau, (-math.inf, tau), mechanism, group=group, **about))
    return found
