"""The naive posterior: the noisy statistic taken as if it were the true one.

p(θ | s := y), with y projected to the nearest possible statistic
"""

import jax
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractGeneralizedLinear
from noiseaware.prior import AbstractPrior, Numeric


def posterior(evidence: Evidence, prior: AbstractPrior) -> AbstractPrior:
    """Return the conjugate posterior of someone who does not know of the noise."""
    return _update(evidence.family, prior, evidence.y, evidence.n)


def draws(
    key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, num_draws: int
) -> Float[Array, "num_draws ..."]:
    """Return independent draws."""
    return posterior(evidence, prior).sample(key, (num_draws,))


def batch(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, num_draws: int
) -> Float[Array, "b num_draws ..."]:
    """Return draws for a batch of releases that differ in y alone."""
    return jax.vmap(lambda key, y: posterior(evidence.at(y), prior).sample(key, (num_draws,)))(keys, evidence.y)


def explanation(evidence: Evidence, prior: AbstractPrior) -> str | None:
    """Return None only where there was nothing to be aware of."""
    if isinstance(evidence.family, AbstractGeneralizedLinear):
        return "It takes the released value for the true one, and a normal law about the fit of its moments."
    if not evidence.family.is_natural:
        return "It takes the released value for the true one, and a simple law about the fit of its moments."
    if evidence.is_noiseless and not evidence.family.query.is_altered:
        return None
    return (
        "It takes the released value for the true one, and so leaves out the noise and any record outside the bounds."
    )


@jax.jit
def _update(family, prior: AbstractPrior, y: Float[Array, " k"], n: Numeric) -> AbstractPrior:
    return family.update(prior, family.project(y, n), n)
