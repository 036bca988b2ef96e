"""The non-private posterior: what the records themselves support, with no noise and no bound in the way.

p(θ | s), s the true statistic: `naive` on a release made by the Identity mechanism
"""

from jaxtyping import Array, Float, Key

from noiseaware.baseline import naive
from noiseaware.evidence.evidence import Evidence
from noiseaware.prior import AbstractPrior


def batch(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, num_draws: int
) -> Float[Array, "b num_draws ..."]:
    """Return draws for a batch of tables that differ in their true statistic y = s alone; noise plays no part."""
    return naive.batch(keys, evidence, prior, num_draws=num_draws)
