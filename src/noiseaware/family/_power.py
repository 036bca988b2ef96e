"""Families of one column that release two power sums: Σu and Σu² of u = (x − centre)/half.

With public bounds, u takes them to ±1: the noise of Σu² is then that of a spread about the centre, and does not grow
with how far that is from 0. Without bounds u = x. Columns are released as those of several are (_moment.py).
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from noiseaware.family._family import AbstractNumberFamily, Bounds, checked_given
from noiseaware.family._moment import distance, distance_squared
from noiseaware.prior import Numeric
from noiseaware.privacy import Neighbours


class AbstractPowerFamily(AbstractNumberFamily):
    """A family of one number a record, summarised by Σu and Σu²."""

    @property
    def statistics(self) -> tuple[str, ...]:
        return ("sum", "sum_of_squares")

    @property
    def _centre(self) -> float:
        """The centre of the bounds."""
        return 0.0 if self.bounds is None else 0.5 * (self.bounds[0] + self.bounds[1])

    @property
    def _half(self) -> float:
        """Half of the bounds' width."""
        return 1.0 if self.bounds is None else 0.5 * (self.bounds[1] - self.bounds[0])

    # ---- as families of several columns have them (_moment.py), so that they are released alike -----------------

    @property
    def intervals(self) -> tuple[Bounds, ...] | None:
        return None if self.bounds is None else (self.bounds,)

    @property
    def degrees(self) -> tuple[int, ...]:
        return 1, 2

    @property
    def entries(self) -> tuple[int, ...]:
        return 1, 1

    @property
    def centre(self) -> np.ndarray:
        return np.array([self._centre])

    @property
    def half(self) -> np.ndarray:
        return np.array([self._half])

    def monomials(self, u: Sequence) -> tuple:
        return u[0], u[0] * u[0]

    def statistic(self, x) -> tuple:
        return self.monomials([(x - self._centre) / self._half])

    def sensitivity(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """|u − w| + |u² − w²| = |u − w| (1 + |u + w|) is greatest at u = 1, w = −1/2: there 1.5 · 1.5.

        For u ≥ |w|, which is no loss, it grows with u; and (1 − w)(2 + w) has its maximum at w = −1/2. A dropped
        record, at (0, 0), is at most |u| + u² ≤ 2 from any other.
        """
        checked_given(self, None)
        return distance(1, neighbours, bounds)

    def sensitivity_squared(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """(u − w)² (1 + (u + w)²) is greatest at u = 1, w = −1, where it is 4; a record alone has at most 1 + 1."""
        checked_given(self, None)
        return distance_squared(1, neighbours, bounds)

    def project(self, s: Num[Array, "2"], n: Numeric) -> Float[Array, "2"]:
        """A sum of squares is at least (Σu)²/n."""
        return jnp.stack([s[0], jnp.maximum(s[1], s[0] ** 2 / n)])
