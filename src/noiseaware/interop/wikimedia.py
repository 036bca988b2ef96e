"""Wikimedia's monthly counts of editors by country and project.

Laplace noise of scale 1/`count_eps`, on whole numbers the discrete law, was added for every country and project, and
rows whose noisy count is under `count_release_thresh` were left out. A row that is there says what its count says: that
it was published follows from the count itself. One that is not there says that its noisy count was under the threshold.
"""

from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, Keys, below, missing, release
from noiseaware.interop._rows import group_of, number, positive, rows_of, whole
from noiseaware.mechanism import DiscreteLaplace

_COLUMNS = (
    "wiki_db",
    "project",
    "country",
    "country_code",
    "activity_level",
    "count_eps",
    "sum_eps",
    "count_release_thresh",
    "editors",
    "edits",
    "month",
)
_NUMBERS = ("count_eps", "sum_eps", "count_release_thresh", "editors", "edits")


def wikimedia(
    source: object,
    *,
    keys: Keys = (),
    epsilon: float | None = None,
    threshold: float | None = None,
    family: AbstractFamily = CELL,
    n: int = 1,
) -> list[Release]:
    """A release for each row of a month's file, with or without a header; the count is `editors`.

    `keys` are mappings of the naming columns that could have been there; those that are not are releases too, of which
    `epsilon` and `threshold` must be told, since no row tells them.
    """
    about = {"family": family, "n": n, "tool": "Wikimedia"}
    found = []
    for place, row in enumerate(rows_of(source, ("count_eps", "count_release_thresh", "editors"), header=_COLUMNS), 1):
        value, least = whole(row, "editors", place), number(row, "count_release_thresh", place)
        if value < least:
            raise ValueError(f"row {place}: editors must be at least count_release_thresh {least:g}, got {value:g}.")
        mechanism = DiscreteLaplace(1 / positive(row, "count_eps", place))
        found.append(release(value, None, mechanism, group=group_of(row, _NUMBERS), **about))
    absent = missing([r.origin.group for r in found], keys)
    if absent and (epsilon is None or threshold is None):
        raise ValueError(f"epsilon and threshold must be given where keys are not among the rows, got {absent[0]}.")
    for group in absent:
        told = {"epsilon": epsilon, "threshold": threshold}
        within = below(number(told, "threshold"), is_whole=True)
        mechanism = DiscreteLaplace(1 / positive(told, "epsilon"))
        found.append(release(within[1], within, mechanism, group=group, **about))
    return found
