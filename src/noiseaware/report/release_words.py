"""A release in plain sentences, for the command, the figure and the page."""

import math
from collections.abc import Sequence

import numpy as np

from noiseaware.evidence.possible import FAR, farthest
from noiseaware.evidence.release import Release
from noiseaware.privacy import plain
from noiseaware.report.number import number, shown

_MOST_RELEASED = 6  # statistics in a line
_MOST_LISTED = 30  # statistics on a page
_NEIGHBOURS = {"replace": "one record is replaced by another", "add_remove": "one record is added or removed"}


def noise(release: Release) -> str:
    if not release.mechanism.is_noisy:
        return "none: these are the true values" if release.within is None else "none, but only intervals are known"
    law, scale = release.mechanism.title, release.mechanism.spread_title
    each = " on each statistic" if len(release.query.names) > 1 else ""
    scales, entries = np.unique(release.noise_scale), np.broadcast_to(release.query.entries, len(release.steps))
    if len(scales) == 1:
        return f"{law}, {scale} {number(float(scales[0]))}{each}"
    products = np.unique(np.asarray(release.noise_scale)[entries == 2])
    if len(scales) == 2 and len(products) == 1 and products[0] == scales[0]:
        low, high = number(float(scales[0])), number(float(scales[1]))
        return f"{law}, {scale} {high} on sums and squares and {low} on products of two columns"
    return f"{law}, {scale} {number(float(scales[0]))} to {number(float(scales[-1]))} by statistic"


def guarantee(release: Release) -> str:
    promise = release.guarantee
    if promise is None:
        return "none stated"
    who = _NEIGHBOURS[release.neighbours]
    if release.origin.unit is not None:
        who = f"one {shown(release.origin.unit)} is added or removed, with all its records"
    return f"{promise}, {promise.title}, when {who}"


def records(release: Release) -> str:
    """State the number of records, as far as it is known."""
    if release.n_mechanism is None:
        return f"{release.n:,}"
    law, scale = release.n_mechanism.title, release.n_mechanism.spread_title
    return f"{release.n:,}, itself noisy ({law}, {scale} {number(float(release.n_mechanism.spread))})"  # type: ignore[arg-type]


def _person(release: Release) -> str | None:
    """Say whose records are summed, and how many of each."""
    unit, most = release.origin.unit, release.origin.max_records
    return None if unit is None else f"one for each {shown(unit)}, of whose records at most {most:,} are summed"


def outside(release: Release) -> str:
    """The bounds, and what becomes of a record outside them."""
    query = release.query
    if query.levels is not None:
        other = "; any other record counts as the first" if release.origin.missing is None else ""
        return f"levels {', '.join(shown(v) for v in query.levels)}{other}"
    if query.intervals is None:
        return "none"
    if len(query.intervals) > 1:
        named = zip(query.columns, query.intervals, strict=True)
        each = ", ".join(f"{shown(column)} {number(low)} to {number(high)}" for column, (low, high) in named)
        return f"{each}; a number outside is moved to the nearer bound"
    (interval,) = (f"{number(low)} to {number(high)}" for low, high in query.intervals)
    if not query.is_altered:
        return f"{interval}, which every record keeps"
    becomes = "moved to the nearer bound" if query.outside == "clamp" else "left out of the sum"
    return f"{interval}; a record outside is {becomes}"


def missing(release: Release) -> str | None:
    """Say what a cell counted as that holds no value of its column's kind, where the release does."""
    match release.origin.missing:
        case None:
            return None
        case "leave_out":
            became = "leaves its record out of the sums and of n"
        case "drop":
            became = "adds nothing to the sum and is one of n"
        case ((_, value),):
            became = f"counts as {_value(release, value)}"
        case counted:
            named = [f"{shown(column)} {number(float(value))}" for column, value in counted]
            more = f" and {len(named) - _MOST_RELEASED} more" if len(named) > _MOST_RELEASED else ""
            lows = [low for low, _ in release.query.intervals or ()]
            rule = ", the lower bounds" if [value for _, value in counted] == lows else ""
            became = f"counts as {', '.join(named[:_MOST_RELEASED])}{more}{rule}"
    return f"a cell that is {_no_value(release)} {became}"


def _no_value(release: Release) -> str:
    """Say which cells are missing, by the kinds of the columns."""
    query, origin = release.query, release.origin
    if query.levels is not None:
        return "none of the levels"
    if set(query.yes_or_no) != set(query.columns):
        return "empty or unreadable" if query.yes_or_no else "empty or no number"
    if origin.true and not origin.false:
        return "empty"
    return f"neither yes{_in_brackets(origin.true)} nor no{_in_brackets(origin.false)}"


def _in_brackets(words: Sequence[str]) -> str:
    told = ", ".join(shown(word) for word in words[:_MOST_RELEASED])
    return f" ({told}{', …' * (len(words) > _MOST_RELEASED)})" if words else ""


def _value(release: Release, value: float | str) -> str:
    """State the value of a missing cell of the one column, and its part in the family."""
    query = release.query
    if query.levels is not None:
        return shown(value) + ", the first level" * (value == query.levels[0])
    if query.yes_or_no:
        return "yes" if value else "no"
    lows = [low for low, _ in query.intervals or ()]
    return number(float(value)) + ", the lower bound" * (value in lows)


def convention(release: Release) -> str | None:
    """A sentence on the value that missing cells have, where they have one."""
    told = missing(release)
    return None if told is None or release.origin.missing == "leave_out" else f"{told[0].upper()}{told[1:]}."


def with_convention(why: str | None, release: Release) -> str | None:
    """Append the value of missing cells, which by itself makes no draw approximate, to why draws are approximate."""
    return None if why is None else " ".join(filter(None, (why, convention(release))))


def yes(release: Release) -> str | None:
    """The words that counted as yes, and those that counted as no."""
    true, false = (", ".join(shown(word) for word in words) for words in (release.origin.true, release.origin.false))
    if not true:
        return None
    return (
        f"{true}, and numbers of 1 or more; as no: {false}, and lesser numbers" if false else f"{true}; as no: all else"
    )


def released(release: Release, most: int | None = None) -> str:
    """The noisy statistics by name, or the first of them."""
    pairs = list(zip(release.query.names, release.values, release.known, strict=True))
    told = ", ".join(f"{shown(name)} = {number(float(value))}{known}" for name, value, known in pairs[:most])
    return told if most is None or len(pairs) <= most else f"{told} and {len(pairs) - most} more"


def _units(release: Release) -> str:
    """Name the units of second moments."""
    is_scaled = release.query.is_scaled and release.query.intervals is not None
    return " (of numbers in units of half the bounds' width from their centre)" * is_scaled


def facts(release: Release) -> list[tuple[str, str]]:
    """Everything that a release says, as label and text."""
    origin = release.origin
    column = ", ".join(shown(c) for c in release.query.columns)
    ground = "set in public" if origin.bounds == "public" else _chosen(release)
    is_bounded = release.query.intervals is not None
    known = [
        ("Columns" if len(release.query.columns) > 1 else "Column", column or None),
        ("Group", ", ".join(f"{shown(c)} = {shown(str(level))}" for c, level in origin.group) or None),
        ("Records", f"{records(release)}, {release.question.records or shown(release.question.name)}"),
        ("Persons", _person(release)),
        *((name.capitalize(), number(v)) for name in ("trials", "variance", "shape") if (v := _known(release, name))),
        ("Bounds", f"{outside(release)} ({ground})" if is_bounded else outside(release)),
        ("Counted as yes", yes(release)),
        ("Missing cells", missing(release)),
        ("Released", released(release, _MOST_LISTED) + _units(release)),
        ("Noise", noise(release)),
        ("Guarantee", guarantee(release)),
        ("Ledger entry", origin.ledger_entry),
        ("Made by", " ".join(filter(None, (origin.tool, origin.version))) or None),
        ("Made at", origin.created),
    ]
    return [(label, text if label in ("Released", "Bounds") else shown(text, 200)) for label, text in known if text]


def _chosen(release: Release) -> str:
    """Say how private bounds were chosen."""
    origin, words = release.origin, "chosen privately from the data"
    if origin.bounds_quantiles:
        many = "quantiles" if len(origin.bounds_quantiles) > 1 else "quantile"
        words += f", near the {many} {' and '.join(plain(q) for q in origin.bounds_quantiles)}"
    share = origin.bounds_share
    return words if share is None else f"{words}, for {plain(share)} of the guarantee's cost"


def brief(release: Release) -> str:
    """Write a release in one line."""
    column = f" of {shown(', '.join(release.query.columns))}" if release.query.columns else ""
    promise = f", {release.guarantee}" if release.guarantee else ""
    head = f"{release.question.name.replace('_', ' ')} release{column}: n = {records(release)}"
    if release.origin.group:
        head += f", {', '.join(f'{shown(c)} = {shown(str(level))}' for c, level in release.origin.group)}"
    for low, high in (release.query.intervals or ()) if release.origin.bounds == "private" else ():
        head += f", bounds {number(low)} to {number(high)} chosen privately"
    return f"{head}, {released(release, _MOST_RELEASED)}, noise {noise(release)}{promise}"


def impossible(release: Release) -> str | None:
    """A sentence on released values that no table has, if there are any: it is the noise, unless they are too far."""
    found = farthest(release)
    if found is None:
        return None
    if found.distance <= FAR and release.n_mechanism is not None:
        return None  # of some number of records, it may be one that a table has
    if found.statistic is None:
        if release.query.levels is not None:
            subject, why = "The released counts", f", since they add up to {number(found.value)} and not to n"
        else:
            subject, why = "The released sums", ", since a variance would be negative"
        verb, one, it = "are", "ones", "them"
    else:
        subject, why = f"The released {shown(found.statistic)} of {number(found.value)}", ""
        verb, one, it = "is", "one", "it"
    if found.distance <= FAR:
        return f"{subject} {verb} {one} that no table has{why}: that is the noise."
    if math.isinf(found.distance):
        return f"{subject} {verb} {one} that no table has{why}, and no noise made {it}: n or the bounds are wrong."
    away = f"{number(found.distance, 0.1 * found.distance)} noise scales beyond any that a table of n records has"
    return f"{subject} {verb} {away}{why}: n, the bounds or the noise scale of this release are wrong."


def _known(release: Release, name: str) -> float | None:
    """Return a constant of the family that is known beforehand."""
    return release.question.settings().get(name)
