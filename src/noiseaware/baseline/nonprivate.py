"""The non-private posterior: what the records themselves support, with no noise and no bound in the way.

p(θ | s), s the true statistic: `naive` on a release made by the Identity mechanism
"""

from jaxtyping import Array, Float, Key

from noiseaware.baseline import naive
from noiseaware.family import AbstractFamily
from noiseaware.mechanism import AbstractMechanism, Identity
from noiseaware.prior import AbstractPrior


def batch(
    keys: Key[Array, " b"],
    family: AbstractFamily,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    s: Float[Array, "b k"],
    n: int,
    *,
    num_draws: int,
) -> Float[Array, "b num_draws ..."]:
    """Draws for a batch of tables that differ in their true statistic s alone; the mechanism plays no part."""
    return naive.batch(keys, family, prior, Identity(), s, n, num_draws=num_draws)
