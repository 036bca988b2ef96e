"""Families of one column that explain its two power sums, Σu and Σu² of u = (x − centre)/half (query/moments.py)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from noiseaware.family._family import AbstractFamily
from noiseaware.prior import Numeric
from noiseaware.query import PowerSums


class AbstractPowerFamily(AbstractFamily):
    """A family of one number a record, summarised by Σu and Σu²."""

    query: eqx.AbstractVar[PowerSums]

    @property
    def law(self) -> str | None:
        return self.name if self.query.is_altered else None

    def project(self, s: Num[Array, "2"], n: Numeric) -> Float[Array, "2"]:
        """Return s with a sum of squares of at least (Σu)²/n."""
        return jnp.stack([s[0], jnp.maximum(s[1], s[0] ** 2 / n)])
