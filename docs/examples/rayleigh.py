"""A family of one's own: the Rayleigh distribution, of wind speeds and of distances from a target.

p(x | θ) = 2θx e^{−θx²}        t(x) = x²        η = −θ        A(η) = −log(−η)
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

import noiseaware as na


class SumOfSquares(na.query.AbstractColumn):
    """The sum of the squares of a column's records."""

    column: str | None = eqx.field(static=True)
    bounds: tuple[float, float] | None = eqx.field(static=True)
    outside: str = eqx.field(static=True)
    name: ClassVar[str] = "sum_of_squares"
    names: ClassVar[tuple[str, ...]] = ("sum_of_squares",)
    is_whole: ClassVar[bool] = False
    support: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    def settings(self):
        return vars(self).copy()

    def statistic(self, x):
        return (x * x,)

    # How far one record can move the sum: x² lies between the squares of the bounds
    def spans(self, low, high):
        return [(low * low, high * high)]


class Rayleigh(na.family.AbstractTruncatedFamily):
    """Rayleigh(θ): the square of a record is exponential with rate θ."""

    query: SumOfSquares = eqx.field(static=True)
    name: ClassVar[str] = "rayleigh"
    conjugate: ClassVar[type] = na.prior.Gamma
    parameters: ClassVar[tuple[str, ...]] = ("theta",)

    def __init__(self, column=None, bounds=None, outside="clamp"):
        self.query = SumOfSquares(column, bounds, outside)

    # The exponential family
    def natural(self, theta):
        return -theta[None]

    def from_natural(self, eta):
        return -eta[0]

    def log_partition(self, eta):
        return -jnp.log(-eta[0])

    # Simulation, conjugacy, and the nearest possible sum
    def sample(self, key, theta, n):
        return jnp.sqrt(jax.random.exponential(key, (n,)) / theta)

    def update(self, prior, s, n):
        return na.prior.Gamma(prior.shape + n, prior.rate + s[..., 0])

    def project(self, s, n):
        return jnp.maximum(s, 0)

    # One record, needed where bounds alter it
    def log_below(self, x, theta):
        return jnp.log(-jnp.expm1(-theta * max(x, 0.0) ** 2))

    def log_above(self, x, theta):
        return -theta * max(x, 0.0) ** 2
