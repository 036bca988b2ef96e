"""Evidence: what a release says of the model's statistic, in the units of the data, and all that a sampler sees of it.

    p(y | s) = law(y − s)        y the released values, s the statistic, n public or private

It is made once, by `Release.evidence()`, and is a pytree: a batch of releases that differ in y alone is evidence whose
y has an axis before its last; evidence of a release that is planned has no y yet.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from noiseaware.evidence.count import AbstractCount
from noiseaware.family import AbstractFamily
from noiseaware.mechanism import AbstractLaw, AbstractMechanism, Interval

# A continuous statistic under discrete noise is treated as under the continuous law. Their densities differ by
# about (grid/scale)²/24 in relative terms, which is below 1e−4 from here on.
_FINE = 20.0

Ends = list[tuple[float, float]]
Within = Sequence[tuple[float, float] | None] | None


def _as_it_is(y: Any) -> Any:
    return y


class Evidence(eqx.Module):
    """A family, the law of y given its statistic, the released y, and the number of records."""

    family: AbstractFamily
    law: AbstractLaw
    """The law of the noise, continuous where the statistic is; or of an interval, where that is known of a count."""
    y: Float[Array, "*batch k"] = eqx.field(converter=_as_it_is)
    """The released values, NumPy's as long as they are constants: to make them JAX's would be programs to compile.

    None of a release that is planned."""
    count: AbstractCount
    neglected: str | None = eqx.field(static=True, default=None)
    """What this reading of the release leaves out, in a sentence; None where nothing."""

    @property
    def mechanism(self) -> AbstractMechanism:
        """The law of the noise."""
        return self.law.noise if isinstance(self.law, Interval) else self.law  # type: ignore[return-value]

    @property
    def is_interval(self) -> bool:
        """True if no more than an interval is known of some counts."""
        return isinstance(self.law, Interval)

    @property
    def is_noiseless(self) -> bool:
        """True if the values are the statistics themselves."""
        return not (self.is_interval or self.mechanism.is_noisy)

    @property
    def n(self) -> float:
        """The number of records to reckon with where only one will do."""
        return self.count.likely  # type: ignore[return-value]

    def at(self, y: Any) -> "Evidence":
        """Return this evidence with other values."""
        return dataclasses.replace(self, y=y)

    def placed(self) -> "Evidence":
        """Return this evidence with nodes of a private n to evaluate a likelihood at; call it outside of `jit`."""
        return dataclasses.replace(self, count=self.count.placed(self._hidden()))

    def _hidden(self) -> float | None:
        """Return how many records the noise of y hides; None without bounds."""
        if self.count.is_public:
            return None
        try:
            most = self.family.query.sensitivity("add_remove")
        except ValueError:  # without bounds
            return None
        return float(np.max(np.asarray(self.mechanism.spread))) / float(most)


def read(
    family: AbstractFamily,
    mechanism: AbstractMechanism,
    values: Float[np.ndarray, " k"],
    count: AbstractCount,
    *,
    grid: float,
    within: Within,
    has_private_bounds: bool,
) -> Evidence:
    """Return what released values, in the units of the data, say; `mechanism` and `within` count grid steps."""
    noise = _in_units(family, mechanism, grid)
    law = noise if within is None else _of_interval(family, noise, values, count, grid, within)
    return Evidence(family, law, values, count, _neglected(family, mechanism, grid, has_private_bounds))


def _in_units(family: AbstractFamily, mechanism: AbstractMechanism, grid: float) -> AbstractMechanism:
    """Return the law of the noise in the units of the data, continuous where the statistic is."""
    if not mechanism.is_noisy or (family.query.is_whole and grid == 1):
        return mechanism
    if mechanism.is_stepped:
        told = f"the {family.name} family" if grid == 1 else f"a grid of {grid}"
        raise ValueError(f"mechanism must be smooth for {told}, got {mechanism.title} noise, which is for counts.")
    return mechanism.continuous(grid)


def _neglected(
    family: AbstractFamily, mechanism: AbstractMechanism, grid: float, has_private_bounds: bool
) -> str | None:
    is_gridded = mechanism.is_discrete and not (family.query.is_whole and grid == 1)
    if is_gridded and np.min(mechanism.spread) < _FINE:
        return "The noise is coarse for a continuous statistic, and is taken as continuous."
    if has_private_bounds:
        return "The bounds were chosen from the data, and what their choice tells of the parameter is neglected."
    return None


# ---- intervals -----------------------------------------------------------------------------------------------------


def _of_interval(
    family: AbstractFamily,
    noise: AbstractMechanism,
    values: Float[np.ndarray, " k"],
    count: AbstractCount,
    grid: float,
    within: Sequence[tuple[float, float] | None],
) -> AbstractLaw:
    """Return the law of values of which an interval is known; refused where there is no way to reason from one."""
    known = zip(values.tolist(), within, strict=True)
    ends = [(v, v) if w is None else (w[0] * grid, w[1] * grid) for v, w in known]
    if _is_narrow(family, noise, values, ends):
        return noise
    if not family.is_count:
        raise ValueError(
            f"within must be left out for the {family.name} family, or be narrow against the noise, got "
            f"{within}; intervals are served for counts: bernoulli, binomial, categorical, or poisson and "
            "geometric without bounds."
        )
    if not count.is_public:
        raise ValueError("n must be public where values have an interval, got a noisy one; leave out n_mechanism.")
    low, high = (np.array(side) for side in zip(*ends, strict=True))
    if not noise.is_noisy and not family.allows(np.ceil(low), np.floor(high), float(count.value)):
        raise ValueError(f"within must hold counts that {count.value:.0f} records can have, got {within}.")
    below, above = values - low, high - values
    if len(values) == 1:
        return Interval(noise, float(below[0]), float(above[0]))
    return Interval(noise, below, above)


def _is_narrow(family: AbstractFamily, noise: AbstractMechanism, values: Float[np.ndarray, " k"], ends: Ends) -> bool:
    """Return True if intervals about the values do not show against the noise on a continuous statistic."""
    if family.query.is_whole or not noise.is_noisy:
        return False
    most = np.min(noise.spread) / _FINE
    pairs = zip(ends, values.tolist(), strict=True)
    return all(high - low <= most and abs(low + high - 2 * v) <= 1e-9 * most for (low, high), v in pairs)


# ---- another reading -----------------------------------------------------------------------------------------------
