"""The naive posterior: the noisy statistic taken as if it were the true one.

    p(θ | s := y), with y projected to the nearest possible statistic
"""

import jax.numpy as jnp
from jaxtyping import Array, Key

from noiseaware.artifact import Release
from noiseaware.prior import AbstractPrior


def posterior(release: Release, prior: AbstractPrior) -> AbstractPrior:
    """The conjugate posterior of someone who does not know of the noise."""
    return release.family.update(prior, release.family.project(jnp.asarray(release.values), release.n), release.n)


def draws(key: Key[Array, ""], release: Release, prior: AbstractPrior, num_draws: int) -> dict[str, Array]:
    return {release.family.parameters[0]: posterior(release, prior).sample(key, (num_draws,))}
