"""Exact draws from p(θ | release): no central limit theorem, no burn-in, independent draws.

    one parameter    p(y | θ) by summing over the unseen sum (_latent_sum) or, for clamped or dropped records, by
                     contour or lattice (_altered_sum); then the inverse CDF of θ (_parameter)
    categorical      counts by forward–backward, then θ | counts by conjugacy (_counts)
    no noise         θ | s, plain conjugacy
    an interval      of a count that was rounded, clamped or suppressed: s | interval, then θ | s (_unseen_count)
    private n        summed out of p(y, ñ | θ) (_noisy_count), or drawn before the counts

Exact means: up to quadrature errors of about 1e−4 in a CDF, which no number of draws in use would show.
"""

import functools
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.likelihood import counts, enumerated_count
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Dirichlet
from noiseaware.sampler import scalar_posterior
from noiseaware.sampler._sampler import AbstractSampler, Draws, Route

_AT_ONCE = 64  # releases


def draws(
    key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, num_draws: int
) -> Float[Array, "num_draws ..."]:
    """Return independent draws of θ."""
    return _sampler(evidence, prior, num_draws)(key, evidence.y)


def draws_given(
    key: Key[Array, ""], tables: tuple[Evidence, ...], prior: AbstractScalarPrior, num_draws: int
) -> Float[Array, " num_draws"]:
    """Return independent draws of the one θ of several tables."""
    tables = tuple(table.placed() for table in tables)
    listed = scalar_posterior.num_listed(*tables)
    return scalar_posterior.draws(key, tables, prior, num_draws=num_draws, listed=listed)


def explanation(evidence: Evidence) -> str | None:
    """Return None when the draws are exact, else one sentence that says what is neglected."""
    if evidence.is_noiseless and evidence.family.query.is_altered:
        return "Without noise, the clamped or dropped records are taken as if they had not been altered."
    return evidence.neglected


def batch(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, num_draws: int
) -> Float[Array, "b num_draws ..."]:
    """Return draws for a batch of releases that differ in y alone."""
    sampler = _sampler(evidence, prior, num_draws)
    if not evidence.count.is_public:  # one after another: each goes through many numbers of records
        return jax.lax.map(lambda at: sampler(*at), (keys, evidence.y))
    return jax.vmap(sampler)(keys, evidence.y)


def num_listed(evidence: Evidence) -> int:
    """Return how many counts must be listed to draw for each of these releases."""
    return enumerated_count.num_listed(evidence) if evidence.family.is_count else 0


@functools.partial(jax.jit, static_argnames=("num_draws", "listed"))
def each(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractScalarPrior, *, num_draws: int, listed: int
) -> Float[Array, "b num_draws"]:
    """Return draws for releases of one parameter that differ in all their numbers: each leaf has an axis of releases.

    `listed` is what `num_listed` says of these releases, or of more of which they are a part.
    """

    def one(at: tuple[Key[Array, ""], Evidence]) -> Float[Array, " num_draws"]:
        key, own = at
        if own.family.is_count:
            return enumerated_count.draws(key, own, prior, num_draws=num_draws, listed=listed)
        return scalar_posterior.draws(key, (own,), prior, num_draws=num_draws)

    return jax.lax.map(one, (keys, evidence), batch_size=min(_AT_ONCE, len(keys)))


def _sampler(
    evidence: Evidence, prior: AbstractPrior, num_draws: int
) -> Callable[[Key[Array, ""], Float[Array | np.ndarray, " k"]], Float[Array, "num_draws ..."]]:
    """Return the function from a key and one release's values to draws; sized so that it serves every row of y."""
    family, count = evidence.family, evidence.count
    if evidence.is_noiseless:
        n = count.value
        return lambda key, y: family.update(prior, family.project(jnp.asarray(y), n), n).sample(key, (num_draws,))
    if family.exact_by == "counts" and isinstance(prior, Dirichlet):
        law = evidence.law
        shape = counts.shape_for(prior, law, evidence.y, count)
        return lambda key, y: counts.draws(key, prior, law, y, count, num_draws=num_draws, shape=shape)
    assert isinstance(prior, AbstractScalarPrior)
    if evidence.law.is_stepped and not (family.is_count and count.is_public):
        told = "counts without bounds and with a public n"
        raise ValueError(f"{evidence.mechanism.title} noise is for {told} under method exact; use augmentation.")
    if evidence.is_interval or evidence.law.is_stepped:
        listed = enumerated_count.num_listed(evidence)
        draw = functools.partial(enumerated_count.draws, num_draws=num_draws, listed=listed)
        return lambda key, y: draw(key, evidence.at(y), prior)
    placed = evidence.placed()
    listed = scalar_posterior.num_listed(placed)
    draw = functools.partial(scalar_posterior.draws, num_draws=num_draws, listed=listed)
    return lambda key, y: draw(key, (placed.at(y),), prior)


def log_likelihood(evidence: Evidence, prior: AbstractPrior, theta: Array) -> Float[Array, "b m"]:
    """Return log p(y | θ) for m values of θ a release."""
    y, count = evidence.y, evidence.count
    if evidence.family.exact_by == "counts" and isinstance(prior, Dirichlet):
        shape = counts.shape_for(prior, evidence.law, y, count)
        return jax.vmap(lambda y, t: counts.log_likelihood(evidence.law, y, count, t, shape=shape))(y, theta)
    placed = evidence.placed()
    if not count.is_public:
        return jax.lax.map(lambda at: scalar_posterior.log_likelihood(placed.at(at[0]), at[1]), (y, theta))
    return jax.vmap(lambda y, t: scalar_posterior.log_likelihood(placed.at(y), t))(y, theta)


class Exact(AbstractSampler):
    """Independent draws from the posterior itself, of one parameter or of the probabilities of levels."""

    name: ClassVar[str] = "exact"
    preference: ClassVar[int | None] = 0
    is_chain: ClassVar[bool] = False

    @property
    def takes_private_n(self) -> bool:
        return True

    @property
    def takes_interval(self) -> bool:
        return True

    def serves(self, family: AbstractFamily) -> bool:
        return family.exact_by is not None

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route:
        return Route(self, explanation(evidence))

    def draws(
        self, key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Draws:
        return Draws(draws(key, evidence, prior, num_draws))

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        return batch(keys, evidence, prior, num_draws=num_draws)
