"""Several releases as one: of independent tables with one parameter, or of the same table.

    independent tables    p(y_1, y_2, … | θ) = Π_i p(y_i | θ)
    the same table        p(y_1, y_2, … | s) ∝ Normal(ȳ; s, 1/w),  w = Σ 1/σ_i²,  ȳ = Σ y_i / (w σ_i²)

The second holds for Gaussian noise, as a function of s also where it is discrete: one value ȳ of a smaller noise
says all that several values say. Laplace noise has no such value.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from noiseaware.check import shown
from noiseaware.evidence.release import Release
from noiseaware.mechanism import Gaussian

_FINE = 20  # grid steps from which discrete noise on a continuous statistic is as good as continuous


def checked_tables(releases: Sequence[Release]) -> tuple[Release, ...]:
    """Releases of independent tables, if the exact engine takes them all at once."""
    releases = checked_alike(releases)
    releases[0].evidence()  # refuses a release without a family
    if len(releases) > 1 and releases[0].family.exact_by != "sum":
        name = releases[0].question.name
        raise ValueError(
            f"several tables must be of a family of one parameter, got {name}; "
            "for others add up noiseaware.model.log_likelihood in a model of your own."
        )
    if len(releases) > 1 and any(not release.mechanism.is_noisy for release in releases):
        raise ValueError("each of several releases must have noise, got one without.")
    _check_known(releases)
    return releases


def same_table(releases: Sequence[Release]) -> Release:
    """The one release that says what several releases of one table say together; Gaussian noise only."""
    releases = checked_alike(releases)
    first = releases[0]
    _check_known(releases)
    for release in releases:
        if not release.mechanism.adds_up:
            got = type(release.mechanism).__name__
            raise ValueError(f"releases of the same table must have Gaussian noise, got {got}; infer from one of them.")
        is_coarse = release.mechanism.is_discrete and np.min(release.mechanism.spread) < _FINE
        if is_coarse and not release.query.is_whole:
            raise ValueError(f"noise must be at least {_FINE} grid steps wide to be combined, got {release.mechanism}.")
        if release.n_mechanism is not None or release.n != first.n:
            raise ValueError(f"releases of the same table must have one public n, got {first.n} and {release.n}.")
    precision = [1 / np.broadcast_to(np.asarray(r.noise_scale, float), r.values.shape) ** 2 for r in releases]
    total = np.sum(precision, axis=0)
    values = np.sum([w * r.values for w, r in zip(precision, releases, strict=True)], axis=0) / total
    spread = 1 / np.sqrt(total)
    noise = Gaussian(float(spread[0]) if len(set(spread)) == 1 else spread)
    return Release(
        family=first.family,
        query=first.query,
        values=values.tolist(),
        n=first.n,
        mechanism=noise,
        neighbours=first.neighbours,
        origin=first.origin,
    )


def _check_known(releases: tuple[Release, ...]) -> None:
    for release in releases:
        if len(releases) > 1 and release.within is not None:
            told = "each of several releases must have values and not intervals, got one with within"
            raise ValueError(f"{told} {release.within}; infer from each of them by itself.")


def checked_alike(releases: Any) -> tuple[Release, ...]:
    """The releases, if they are of one family with the same bounds, levels and known constants."""
    found = tuple(releases) if isinstance(releases, Iterable) else ()
    if not found or not all(isinstance(release, Release) for release in found):
        end = "; noiseaware.load reads a file" if isinstance(releases, str | os.PathLike) else ""
        raise ValueError(f"release must be one release or a list of them, got {shown(releases)}{end}.")
    first = found[0].question
    for other in found[1:]:
        if not bool(eqx.tree_equal(first, other.question)):
            raise ValueError(f"several releases must be of one family, alike in all, got {first} and {other.question}.")
    return found
