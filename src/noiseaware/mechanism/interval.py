"""A value of which an interval is known: rounded, truncated, clamped, suppressed or coarsened after the noise.

    p(published | s) = P(y − below ≤ s + noise ≤ y + above) = P(x − below ≤ noise ≤ x + above)        x = y − s

A clamp at 0 is the half-line below 0, a suppressed row the half-line below its threshold, a rounded value half a step
on either side. Noise may be none at all: then only counts inside of the interval are possible.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from noiseaware.mechanism._mechanism import AbstractLaw, AbstractMechanism, Spread, as_spread

# Log mass of a count outside of an interval without noise, for each step that it is away: as good as none, and with a
# slope that a search for the mass can follow.
_OUTSIDE = -1000.0


class Interval(AbstractLaw):
    """The noisy statistic is known to lie from y − below to y + above; where both are 0, it is known."""

    noise: AbstractMechanism
    below: Spread = eqx.field(converter=as_spread)
    above: Spread = eqx.field(converter=as_spread)

    @property
    def spread(self) -> Spread:
        return self.noise.spread

    @property
    def is_stepped(self) -> bool:
        return self.noise.is_stepped

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        low, high = x - self.below, x + self.above
        if not self.noise.is_noisy:
            return _OUTSIDE * jnp.maximum(jnp.maximum(low, -high), 0.0)
        is_known = jnp.asarray(self.below == 0) & jnp.asarray(self.above == 0)
        return jnp.where(is_known, self.noise.log_density(x), self.noise.log_mass(low, high))
