"""A loader to copy: counts as some tool published them, each rounded to a multiple of 5 after its noise.

A loader turns what another tool wrote into releases. It is a plain function and needs nothing private, so it works from
outside the package; inside, it is one file in interop/, a line in interop/__init__.py, and tests that feed it what the
real tool made. Three rules are yours to keep:

* Take the law of the noise from the tool's documentation and code, and say in the docstring where it stands.
* What the tool did after the noise (rounding, clamping, suppression) is an interval that each value lay in.
* Refuse a row that the tool cannot have written, with its place, the rule and the value.
"""

from collections.abc import Iterable

import noiseaware as na

STEP = 5


def loaded(counts: Iterable[int], *, scale: float) -> list[na.Release]:
    """Return a release for each count: discrete Laplace noise of this scale, then the nearest multiple of 5."""
    return [_release(count, scale, place) for place, count in enumerate(counts, 1)]


def _release(count: int, scale: float, place: int) -> na.Release:
    if count % STEP:
        raise ValueError(f"row {place}: count must be a multiple of {STEP}, got {count}.")
    return na.Release(
        family=na.family.Poisson(),  # one record is the cell, with a number of persons in it
        values=[count],
        within=[(count - STEP // 2, count + STEP // 2)],
        n=1,
        mechanism=na.mechanism.DiscreteLaplace(scale),
        neighbours="add_remove",
    )
