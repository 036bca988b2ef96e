"""The naive posterior: the noisy statistic taken as if it were the true one.

p(θ | s := y), with y projected to the nearest possible statistic
"""

import jax
from jaxtyping import Array, Float, Key

from noiseaware.evidence.release import NoisyCount, Release, likely
from noiseaware.family import AbstractGeneralizedLinear
from noiseaware.prior import AbstractPrior, Numeric


def posterior(release: Release, prior: AbstractPrior) -> AbstractPrior:
    """The conjugate posterior of someone who does not know of the noise."""
    return _update(release.family, prior, release.values, float(release.likely_n))


def draws(key: Key[Array, ""], release: Release, prior: AbstractPrior, num_draws: int) -> Float[Array, "num_draws ..."]:
    return posterior(release, prior).sample(key, (num_draws,))


def batch(
    keys: Key[Array, " b"],
    family,
    prior: AbstractPrior,
    mechanism,
    y: Float[Array, "b k"],
    n: int | NoisyCount,
    *,
    num_draws: int,
) -> Float[Array, "b num_draws ..."]:
    """Draws for a batch of releases that differ in y alone."""
    return jax.vmap(lambda key, y: _update(family, prior, y, float(likely(n))).sample(key, (num_draws,)))(keys, y)


def explanation(release: Release, prior: AbstractPrior) -> str | None:
    """The naive posterior is right only where there was nothing to be aware of."""
    if isinstance(release.family, AbstractGeneralizedLinear):
        return "It takes the released value for the true one, and a normal law about the fit of its moments."
    if not release.family.is_natural:
        return "It takes the released value for the true one, and a simple law about the fit of its moments."
    if not release.mechanism.is_noisy and not getattr(release.family, "is_altered", False):
        return None
    return (
        "It takes the released value for the true one, and so leaves out the noise and any record outside the bounds."
    )


@jax.jit
def _update(family, prior: AbstractPrior, y: Float[Array, " k"], n: Numeric) -> AbstractPrior:
    return family.update(prior, family.project(y, n), n)
