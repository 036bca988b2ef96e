"""Releases of many groups: a posterior for each, and those that differ in their numbers alone all at once.

A table of thousands of noisy counts is thousands of releases. What takes time is to compile the sampler, so releases
are sorted by what it is compiled for, the family and the kind of law, and their numbers go through it together.
"""

from collections.abc import Hashable, Iterable

import jax
import jax.numpy as jnp
import numpy as np

from noiseaware import combination
from noiseaware.artifact import Release
from noiseaware.family import AbstractScalarFamily
from noiseaware.mechanism import Identity
from noiseaware.posterior import Posterior, check_finite, checked_prior, checked_seed, infer, method_for
from noiseaware.prior import AbstractPrior
from noiseaware.sampler import exact


def infer_each(
    releases: Iterable[Release],
    prior: AbstractPrior,
    *,
    method: str = "auto",
    num_draws: int = 1000,
    seed: int | None = None,
) -> list[Posterior]:
    """A posterior for each release, of its own parameter, in their order.

    The groups have nothing in common but the prior; `infer` with a list is for tables that share one parameter.
    """
    releases = list(releases)
    for release in releases:
        combination.checked_alike([release])
    seed = checked_seed(num_draws, seed)
    kinds: dict[Hashable, list[int]] = {}
    for place, release in enumerate(releases):
        is_alone = method_for(release, method) != "exact" or not _is_stackable(release)
        kinds.setdefault(place if is_alone else _kind(release), []).append(place)
    found: dict[int, Posterior] = {}
    for places in kinds.values():
        some = [releases[place] for place in places]
        if _is_stackable(some[0]) and method_for(some[0], method) == "exact":
            found |= dict(zip(places, _at_once(some, prior, places, num_draws, seed), strict=True))
        else:
            own = int(np.random.SeedSequence([seed, places[0]]).generate_state(1)[0])
            found[places[0]] = infer(some[0], prior, method=method, num_draws=num_draws, seed=own)
    return [found[place] for place in range(len(releases))]


def _is_stackable(release: Release) -> bool:
    """Whether the exact sampler takes it with others: one parameter, a public n, and noise or an interval."""
    is_known = isinstance(release.mechanism, Identity) and release.within is None
    return isinstance(release.family, AbstractScalarFamily) and release.n_mechanism is None and not is_known


def _kind(release: Release) -> Hashable:
    """What releases that go through the sampler together have in common."""
    leaves, family = jax.tree.flatten(release.family)
    return family, tuple(map(float, leaves)), type(release.mechanism), release.within is None, release.grid == 1


def _at_once(
    releases: list[Release], prior: AbstractPrior, places: list[int], num_draws: int, seed: int
) -> list[Posterior]:
    """Draws of each by the exact sampler, with a key for each place in the list."""
    family = releases[0].family
    prior = checked_prior(family, prior)
    with jax.enable_x64(True):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed), jnp.asarray(places))
        laws = jax.tree.map(_stacked, *(exact.law_of(release) for release in releases))
        y = jnp.asarray([float(release.values[0]) for release in releases])
        n = jnp.asarray([float(release.n) for release in releases])
        drawn = np.asarray(exact.each(keys, family, prior, laws, y, n, num_draws=num_draws))  # type: ignore[arg-type]
    check_finite("exact", family.named(drawn))
    return [
        Posterior(family.named(row), release, prior, "exact", exact.explanation(release, prior), seed)
        for row, release in zip(drawn, releases, strict=True)
    ]


def _stacked(*leaves) -> jax.Array:
    return jnp.asarray(np.array([float(np.asarray(leaf).item()) for leaf in leaves]))
