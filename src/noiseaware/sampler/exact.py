"""Exact draws from p(θ | release): no central limit theorem, no burn-in, independent draws.

    one parameter    p(y | θ) by summing over the unseen sum (_latent_sum) or, for clamped or dropped records, by
                     contour or lattice (_altered_sum); then the inverse CDF of θ (_parameter)
    categorical      counts by forward–backward, then θ | counts by conjugacy (_counts)
    no noise         θ | s, plain conjugacy
    private n        summed out of p(y, ñ | θ) (_noisy_count), or drawn before the counts

Exact means: up to quadrature errors of about 1e−4 in a CDF, which no number of draws in use would show.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.artifact import NoisyCount, Release
from noiseaware.family import AbstractFamily, AbstractScalarFamily, Categorical
from noiseaware.mechanism import AbstractMechanism, DiscreteLaplace, Gaussian, Identity, Laplace
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Dirichlet
from noiseaware.sampler import _counts, _noisy_count, _parameter

# A continuous statistic under discrete noise is treated as under the continuous law. Their densities differ by
# about (grid/scale)²/24 in relative terms, which is below 1e−4 from here on.
_FINE = 20.0


def draws(
    key: Key[Array, ""], release: Release, prior: AbstractPrior, num_draws: int
) -> Float[Array, "num_draws ..."]:
    """Independent draws of θ."""
    y = jnp.asarray(release.values)
    return _sampler(release.family, prior, noise_of(release), y, release.count, num_draws)(key, y)


def draws_given(
    key: Key[Array, ""], releases: tuple[Release, ...], prior: AbstractScalarPrior, num_draws: int
) -> Float[Array, " num_draws"]:
    """Independent draws of the one θ of several tables."""
    tables = tuple(_seen(release) for release in releases)
    return _parameter.draws_given(key, releases[0].family, prior, tables, num_draws=num_draws)  # type: ignore[arg-type]


def _seen(release: Release) -> _parameter.Seen:
    noise, count = noise_of(release), release.count
    n = _noisy_count.sizes(count, release.family, noise)
    return _parameter.Seen(noise, jnp.asarray(release.values)[0], n)


def serves(family: AbstractFamily) -> bool:
    """Whether there is an exact sampler for the family."""
    return isinstance(family, AbstractScalarFamily | Categorical)


def explanation(release: Release, prior: AbstractPrior | None = None) -> str | None:
    """None when the draws are exact, else one sentence that says what is neglected."""
    family, mechanism = release.family, release.mechanism
    if isinstance(mechanism, Identity) and _parameter.is_altered(family):
        return "Without noise, the clamped or dropped records are taken as if they had not been altered."
    if mechanism.is_discrete and not family.is_integer and np.min(mechanism.spread) < _FINE:
        return "The noise is coarse for a continuous statistic, and is taken as continuous."
    if release.origin.bounds == "private":
        return "The bounds were chosen from the data, and what their choice tells of the parameter is neglected."
    return None


def noise_of(release: Release) -> AbstractMechanism:
    """The law of the noise in the units of the data, continuous where the statistic is."""
    mechanism, scale = release.mechanism, release.noise_scale
    if isinstance(mechanism, Identity) or release.family.is_integer:
        return mechanism
    return Laplace(scale) if isinstance(mechanism, Laplace | DiscreteLaplace) else Gaussian(scale)


def batch(
    keys: Key[Array, " b"],
    family,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, "b k"],
    n: int | NoisyCount,
    *,
    num_draws: int,
) -> Float[Array, "b num_draws ..."]:
    """Draws for a batch of releases that differ in y alone."""
    sampler = _sampler(family, prior, mechanism, y, n, num_draws)
    if isinstance(n, NoisyCount):  # one after another: each goes through many numbers of records
        return jax.lax.map(lambda at: sampler(*at), (keys, y))
    return jax.vmap(sampler)(keys, y)


def _sampler(
    family,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, "*b k"],
    n: int | NoisyCount,
    num_draws: int,
) -> Callable[[Key[Array, ""], Float[Array, " k"]], Float[Array, "num_draws ..."]]:
    """The function from a key and one release's values to draws; sized so that it serves every row of y."""
    if isinstance(mechanism, Identity):
        return lambda key, y: family.update(prior, family.project(y, n), n).sample(key, (num_draws,))
    if isinstance(family, Categorical) and isinstance(prior, Dirichlet):
        total = _counts.total_of(n)
        shape = _counts.shape_for(prior, mechanism, y, total)
        return lambda key, y: _counts.draws(key, prior, mechanism, y, total, num_draws=num_draws, shape=shape)
    count = _noisy_count.sizes(n, family, mechanism)
    return lambda key, y: _parameter.draws(key, family, prior, mechanism, y[0], count, num_draws=num_draws)


def log_likelihood(
    family,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, "b k"],
    n: int | NoisyCount,
    theta: Array,
) -> Float[Array, "b m"]:
    """log p(y | θ) for m values of θ a release."""
    if isinstance(family, Categorical) and isinstance(prior, Dirichlet):
        total = _counts.total_of(n)
        shape = _counts.shape_for(prior, mechanism, y, total)
        return jax.vmap(lambda y, t: _counts.log_likelihood(mechanism, y, total, t, shape=shape))(y, theta)
    count = _noisy_count.sizes(n, family, mechanism)
    if isinstance(n, NoisyCount):
        return jax.lax.map(lambda at: _parameter.log_likelihood(family, mechanism, at[0][0], count, at[1]), (y, theta))
    return jax.vmap(lambda y, t: _parameter.log_likelihood(family, mechanism, y[0], count, t))(y, theta)
