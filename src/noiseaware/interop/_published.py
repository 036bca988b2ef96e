"""Intervals, ends included, that a noisy number lay in before it was published.

rounded to a step     half a step on either side
truncated toward 0    up to the next whole number away from 0; of 0, from −1 to 1
clamped at 0          of 0, all that is below as well
to a midpoint         of 3 under base 6, from 1 to 6; of 0, 0 alone
left out              all that is below the threshold, or not above it
"""

import math
from collections.abc import Iterable, Mapping

from noiseaware.check import shown
from noiseaware.evidence.json import Origin
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily, Poisson
from noiseaware.interop._rows import Group, label
from noiseaware.mechanism import AbstractMechanism

Within = tuple[float, float]
Keys = Iterable[Mapping[str, object]]

CELL = Poisson()
"""The default model of a count: one record, the cell, with a Poisson number of persons."""


def rounded(value: float, step: float = 1.0) -> Within:
    """The interval of a value that was rounded to the nearest step."""
    return value - step / 2, value + step / 2


def midpoint(value: float, step: int) -> Within | None:
    """The whole numbers 1 to step, step + 1 to 2·step, …, of which `value` is published, or 0; None if it is of none.

    x is published as step·⌈x/step⌉ − ⌊step/2⌋, and 0 as 0.
    """
    last = value + step // 2
    if value == 0:
        return 0.0, 0.0
    return (last - step + 1, last) if last > 0 and last % step == 0 else None


def truncated(value: float) -> Within:
    """The interval of a value that was cut to a whole number toward 0."""
    return (value if value > 0 else value - 1), (value if value < 0 else value + 1)


def clamped(value: float, within: Within | None = None, *, least: float = 0.0, most: float = math.inf) -> Within | None:
    """The interval of a value that would have been raised to `least` or lowered to `most`."""
    if not least <= value <= most:
        raise ValueError(f"value must be from {least:g} to {most:g} where it is clamped, got {value:g}.")
    low, high = within or (value, value)
    low, high = (-math.inf if value <= least else low), (math.inf if value >= most else high)
    return None if within is None and low == high == value else (low, high)


def below(threshold: float, *, is_whole: bool) -> Within:
    """Less than the threshold; of whole numbers, at most the one before it."""
    return -math.inf, (math.ceil(threshold) - 1 if is_whole else threshold)


def at_most(threshold: float, *, is_whole: bool) -> Within:
    """Not above the threshold; of whole numbers, the greatest that is not."""
    return -math.inf, (math.floor(threshold) if is_whole else threshold)


def release(
    value: float,
    within: Within | None,
    mechanism: AbstractMechanism,
    *,
    family: AbstractFamily,
    n: int,
    tool: str,
    version: str | None = None,
    group: Group = (),
) -> Release:
    """One published count as a release."""
    if not isinstance(family, AbstractFamily):
        raise ValueError(f"family must be one of noiseaware.family, got {shown(family)}.")
    return Release(
        family=family,
        values=[value],
        n=n,
        mechanism=mechanism,
        within=None if within is None else [within],
        neighbours="add_remove",
        origin=Origin(tool=tool, version=version, group=group),
    )


def missing(seen: Iterable[Group], keys: Keys) -> list[Group]:
    """The groups among `keys` that were not published; text and number are the same there."""
    published = [{name: str(value) for name, value in group} for group in seen]
    known = {frozenset(group.items()) for group in published}
    found = []
    for key in keys:
        if not isinstance(key, Mapping) or set(key) != set(published[0]):
            raise ValueError(f"keys must name the columns {shown(list(published[0]))}, got {shown(key)}.")
        if frozenset((name, str(value)) for name, value in key.items()) not in known:
            found.append(tuple((name, label(value)) for name, value in key.items()))
    return found
