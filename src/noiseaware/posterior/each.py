"""Releases of many groups: a posterior for each, and those that differ in their numbers alone all at once.

A table of thousands of noisy counts is thousands of releases. What takes time is to compile the sampler, so releases
are sorted by what it is compiled for, the family and the kind of law, and their numbers go through it together.
"""

import dataclasses
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from noiseaware.evidence import several
from noiseaware.evidence.release import Release
from noiseaware.posterior import concern
from noiseaware.posterior.infer import check_finite, checked_seed, drawn
from noiseaware.posterior.posterior import Posterior
from noiseaware.posterior.seed import own_seed
from noiseaware.prior import AbstractPrior
from noiseaware.report.release_words import with_convention
from noiseaware.sampler import exact
from noiseaware.sampler.method import Method, method_for

Progress = Callable[[int, int], None]
_AT_A_TIME = 1000
"""Releases that go through the sampler before progress is told: some seconds of work."""


def infer_each(
    releases: Iterable[Release],
    prior: AbstractPrior,
    *,
    method: Method = "auto",
    num_draws: int = 1000,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[Posterior]:
    """A posterior for each release, of its own parameter, in their order.

    The groups have nothing in common but the prior; `infer` with a list is for tables that share one parameter.
    Releases that say the very same are of different groups too, and have random numbers of their own.
    `progress` is called with how many releases are done, and of how many. One warning counts the releases that speak
    against what is taken for granted, and quotes the first; `concerns` of each posterior says all.

    >>> law = na.mechanism.DiscreteLaplace(10.0)
    >>> wards = [na.Release(family=na.family.Poisson("ill"), values=[v], n=1, mechanism=law) for v in (3, 40)]
    >>> few, many = na.infer_each(wards, na.prior.Gamma(1, 0.1), seed=1)
    >>> bool(few.draws["theta"].mean() < many.draws["theta"].mean())
    True
    """
    releases = list(releases)
    for release in releases:
        several.checked_alike([release])
    seeds = _seeds(releases, checked_seed(num_draws, seed))
    kinds: dict[Hashable, list[int]] = {}
    for place, release in enumerate(releases):
        is_alone = not _is_exact(release, method) or not _is_stackable(release)
        kinds.setdefault(place if is_alone else _kind(release), []).append(place)
    found: dict[int, Posterior] = {}
    for places in kinds.values():
        some = [releases[place] for place in places]
        if _is_stackable(some[0]) and _is_exact(some[0], method):
            each = _at_once(some, prior, [seeds[p] for p in places], num_draws)
        else:
            each = iter([drawn(some[0], prior, method=method, num_draws=num_draws, seed=seeds[places[0]])])
        for place, posterior in zip(places, each, strict=True):
            found[place] = posterior
            if progress is not None:
                progress(len(found), len(releases))
    posteriors = [found[place] for place in range(len(releases))]
    if (concerned := concern.of_many(posteriors, "releases")) is not None:
        warnings.warn(concerned, RuntimeWarning, stacklevel=2)
    return posteriors


def _seeds(releases: list[Release], seed: int) -> list[int]:
    """The seed of each: the one that was given, but another for a release that says what one before it has said."""
    before: Counter[str] = Counter()
    seeds = []
    for release in releases:
        number = before[release.fingerprint]
        before[release.fingerprint] += 1
        seeds.append(own_seed(seed, str(number)) if number else seed)
    return seeds


def _is_exact(release: Release, method: Method) -> bool:
    """Return True if the exact sampler is taken, and not one of somebody's own by that name."""
    return isinstance(method_for(release.evidence(), method), exact.Exact)


def _is_stackable(release: Release) -> bool:
    """Whether the exact sampler takes it with others: one parameter, a public n, and noise or an interval."""
    is_known = not release.mechanism.is_noisy and release.within is None
    return release.family.exact_by == "sum" and release.n_mechanism is None and not is_known


def _kind(release: Release) -> Hashable:
    """What releases that go through the sampler together have in common."""
    leaves, family = jax.tree.flatten(release.family)
    return family, tuple(map(float, leaves)), type(release.mechanism), release.within is None, release.grid == 1


def _at_once(releases: list[Release], prior: AbstractPrior, seeds: list[int], num_draws: int) -> Iterator[Posterior]:
    """Draws of each by the exact sampler; so many at a time."""
    family = releases[0].family
    prior = family.checked_prior(prior)
    with jax.enable_x64(True):
        own = [own_seed(seed, release.fingerprint) for seed, release in zip(seeds, releases, strict=True)]
        keys = jax.vmap(jax.random.key)(jnp.asarray(own))
        evidence = jax.tree.map(_stacked, *(dataclasses.replace(r.evidence(), neglected=None) for r in releases))
        listed = exact.num_listed(evidence)
    for start in range(0, len(releases), _AT_A_TIME):
        # All batches are of one size, so that nothing is compiled twice: the last may repeat some of the one before.
        first = max(0, min(start, len(releases) - _AT_A_TIME))
        batch = slice(first, first + _AT_A_TIME)
        with jax.enable_x64(True):
            part = jax.tree.map(lambda leaf, batch=batch: leaf[batch], (keys, evidence))
            batched = exact.each(*part, prior, num_draws=num_draws, listed=listed)
        rows, after = np.asarray(batched)[start - first :], start + _AT_A_TIME
        check_finite("exact", family.named(rows))
        for row, release, seed in zip(rows, releases[start:after], seeds[start:after], strict=True):
            why = with_convention(exact.explanation(release.evidence()), release)
            yield Posterior(family.named(row), release, prior, "exact", why, seed)


def _stacked(*leaves) -> jax.Array:
    return jnp.asarray(np.array(leaves, dtype=float))
