"""A sampler like another one, but for some of its methods: for tests of what is asked of it, and of what is said."""

from collections.abc import Callable

import jax

from noiseaware.evidence.release import Release
from noiseaware.sampler.method import AbstractSampler, Draws, decided


def stand_in(sampler: AbstractSampler, **methods: object) -> AbstractSampler:
    """Return a sampler of the same name, preference and options, with other methods."""
    like = type(sampler)
    return type(like.__name__, (like,), methods)(**vars(sampler))


def drawing(sampler: AbstractSampler, draws: Callable) -> AbstractSampler:
    """Return the sampler with draws of θ by a function of a key and a number of draws."""
    return stand_in(sampler, draws=lambda self, key, evidence, prior, route, m: Draws(draws(key, m)))


def drawn(sampler: AbstractSampler, key: jax.Array, release: Release, prior, num_draws: int) -> jax.Array:
    """Return a sampler's draws of θ given a release, by its own route; call it under float64."""
    evidence = release.evidence()
    return sampler.draws(key, evidence, prior, decided(sampler, evidence, prior), num_draws).theta
