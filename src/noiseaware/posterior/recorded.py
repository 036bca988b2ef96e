"""Draws of the mean and variance of a column's values as they are recorded within its bounds.

The law behind the bounds is the family's choice; E c and Var c of the recorded values c follow from each draw of its
parameters, and hold what was released whatever that law is (family/recorded.py). A variance is told where squares were
released too. Dropped records have none: their sum is P(kept)·E[x | kept], of which the law alone, or the share of empty
and sentinel cells, says how it splits.
"""

import jax
import numpy as np

from noiseaware.family import AbstractFamily
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Empirical

MEAN, VARIANCE = "recorded mean", "recorded variance"
_DRAWS = 20_000


def numbers(family: AbstractFamily, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> dict[str, np.ndarray]:
    """Draws by name: recorded mean, and recorded variance; with the column's name where there are several.

    Empty where no record is clamped.
    """
    with np.errstate(all="ignore"):
        found = family.recorded(draws, is_altered=is_altered)
    if found is None or is_dropped(family):
        return {}
    kinds = {MEAN: found.mean} | ({VARIANCE: found.variance} if _has_squares(family) else {})
    if found.mean.ndim == 1:
        return kinds
    names = list(enumerate(family.query.columns))
    return {f"{kind}[{c}]": values[..., j] for kind, values in kinds.items() for j, c in names}


def moved(family: AbstractFamily, draws: dict[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """The posterior mean of the share of each column's records that are taken for lying below and above its bounds."""
    ends = beyond(family, draws)
    return {column: (float(below.mean()), float(above.mean())) for column, (below, above) in ends.items()}


def beyond(family: AbstractFamily, draws: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The share of each column's records that each draw takes for lying below and above its bounds."""
    with np.errstate(all="ignore"):
        found: Recorded | None = family.recorded(draws)
    if found is None:
        return {}
    columns = family.query.columns or ("x",)
    ends = (np.reshape(np.asarray(part), (-1, len(columns))).T for part in (found.below, found.above))
    return dict(zip(columns, zip(*ends, strict=True), strict=True))


def believed(family: AbstractFamily, prior: AbstractPrior, *, is_altered: bool) -> list[AbstractScalarPrior]:
    """The prior of each of `numbers`, by draws."""
    found = numbers(family, prior_draws(family, prior), is_altered=is_altered)
    return [Empirical.of(values) for values in found.values()]


def prior_draws(family: AbstractFamily, prior: AbstractPrior) -> dict[str, np.ndarray]:
    """Draws of the parameters from the prior, always the same ones."""
    with jax.enable_x64(True):
        theta = np.asarray(prior.sample(jax.random.key(0), (_DRAWS,)), dtype=float)
    return {name: np.asarray(values) for name, values in family.named(theta).items()}


def is_dropped(family: AbstractFamily) -> bool:
    """True if a record outside the bounds adds nothing to the sums."""
    return family.query.outside == "drop"


def _has_squares(family: AbstractFamily) -> bool:
    return len(family.query.names) > len(family.query.columns or ("x",))
