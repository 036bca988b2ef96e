"""OpenDP's Polars queries: the frame that was released, and the query's summary.

Integer Laplace, Integer Gaussian    the discrete laws
Float Laplace, Float Gaussian        the continuous ones
dp.len() and other counts            clamped at 0, unless they were asked for with signed=True
a threshold in the summary           groups are kept whose noisy count is greater; at the threshold they are left out
"""

from noiseaware.check import shown
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, Keys, at_most, clamped, missing, release
from noiseaware.interop._rows import Row, group_of, is_blank, number, positive, rows_of, whole
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

_LAWS = {
    "Integer Laplace": DiscreteLaplace,
    "Integer Gaussian": DiscreteGaussian,
    "Float Laplace": Laplace,
    "Float Gaussian": Gaussian,
}


def opendp_polars(
    frame: object,
    summary: object,
    *,
    column: str = "len",
    signed: bool = False,
    keys: Keys = (),
    family: AbstractFamily = CELL,
    n: int = 1,
    version: str | None = None,
) -> list[Release]:
    """A release for each row of a released frame, from `query.summarize()`.

    `keys` are mappings of the grouping columns that could have been there: those that are not were left out, which
    tells that their noisy count was at most the threshold.
    """
    told = _told(summary, column)
    mechanism = _law(told)
    is_whole = mechanism.is_discrete
    is_clamped = is_whole and not signed and told.get("aggregate") != "Sum"
    others = [str(row["column"]) for row in rows_of(summary, ("column",))]
    found = []
    for place, row in enumerate(rows_of(frame, (column,)), 1):
        value = whole(row, column, place) if is_whole else number(row, column, place)
        if not is_blank(told, "threshold") and value <= (least := positive(told, "threshold")):
            raise ValueError(f"row {place}: {column} must be greater than the threshold {least:g}, got {value:g}.")
        within = clamped(value) if is_clamped else None
        about = {"family": family, "n": n, "tool": "OpenDP", "version": version, "group": group_of(row, others)}
        found.append(release(value, within, mechanism, **about))
    absent = missing([r.origin.group for r in found], keys)
    if absent and is_blank(told, "threshold"):
        raise ValueError(f"keys must be in the frame where the summary has no threshold, got {dict(absent[0])}.")
    for group in absent:
        within = at_most(positive(told, "threshold"), is_whole=is_whole)
        about = {"family": family, "n": n, "tool": "OpenDP", "version": version, "group": group}
        found.append(release(within[1], within, mechanism, **about))
    return found


def _told(summary: object, column: str) -> Row:
    rows = [row for row in rows_of(summary, ("column", "distribution", "scale")) if row["column"] == column]
    if len(rows) != 1:
        raise ValueError(f"summary must have one row for column {column!r}, got {len(rows)}.")
    return rows[0]


def _law(told: Row) -> AbstractMechanism:
    if told["distribution"] not in _LAWS:
        got = shown(told["distribution"])
        raise ValueError(f"summary.distribution must be one of {', '.join(_LAWS)}, got {got}.")
    return _LAWS[told["distribution"]](positive(told, "scale"))
