"""Linear regression with the moments of its covariates up to the fourth, as Gibbs-SS-Noisy of Bernstein & Sheldon 2019
releases them.

    Σu_j and Σu_i u_j of the columns (x, y), then Σu_i u_j u_k and Σu_i u_j u_k u_l of the columns x alone, each once

They cost about twice the budget and tell nothing of θ but what the covariance of the second moments is.
"""

import functools
import itertools
import operator
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family._family import AbstractFamily
from noiseaware.family._quadratic import raised
from noiseaware.family.linear_regression import LinearRegression
from noiseaware.prior import AbstractPrior, CovariateMoments, NormalInverseGamma, Numeric
from noiseaware.privacy import Neighbours, check_neighbours
from noiseaware.query import AbstractQuery, Bounds, Level, Moments, Norm, Outside, Whole
from noiseaware.query.moments import all_pairs

_SHARE = 1e-6  # of the largest: how small an eigenvalue of a projected covariance may be


class FourthMoments(AbstractQuery):
    """The moments of a regression, and the third and fourth moments of its covariates."""

    moments: Moments = eqx.field(static=True)
    name: ClassVar[str] = "fourth_moments"
    is_whole: ClassVar[bool] = False
    outside: ClassVar[Outside] = "clamp"
    levels: ClassVar[tuple[Level, ...] | None] = None
    yes_or_no: ClassVar[tuple[str, ...]] = ()

    def __init__(self, moments: Moments) -> None:
        self.moments = moments

    @property
    def columns(self) -> tuple[str, ...]:
        return self.moments.columns

    @property
    def intervals(self) -> tuple[Bounds, ...] | None:
        return self.moments.intervals

    @property
    def powers(self) -> tuple[tuple[int, ...], ...]:
        """The covariates that each further statistic multiplies."""
        p = range(self.moments.dimension - 1)
        return tuple(power for degree in (3, 4) for power in itertools.combinations_with_replacement(p, degree))

    @property
    def names(self) -> tuple[str, ...]:
        further = ["·".join(self.columns[j] for j in power) for power in self.powers]
        return self.moments.names + tuple(f"sum[{product}]" for product in further)

    def settings(self) -> dict[str, Any]:
        return self.moments.settings()

    def statistic(self, x) -> tuple:
        own = self.moments.statistic(x)  # the first of which are u itself
        return (*own, *(functools.reduce(operator.mul, [own[j] for j in power]) for power in self.powers))

    def alter(self, x: Num[Array, "d ..."]) -> tuple[Num[Array, "..."], ...]:
        clamped = x if self.intervals is None else [x[j].clip(*interval) for j, interval in enumerate(self.intervals)]
        return self.statistic(clamped)

    def sensitivity(self, neighbours: Neighbours = "replace", norm: Norm = 1) -> Fraction:
        """Return the sensitivity of the regression's moments and the ranges of the rest, or for norm 2 their squares.

        *Proof.* A norm of all statistics is at most the sum of the norm of the first and of the ranges of the others;
        so it is with squares of ‖·‖₂, where the entries of the first, 1 or more, only add to it. As |u| ≤ 1, a product
        lies in [−1, 1], and one that is a square in [0, 1].
        """
        return self.moments.sensitivity(neighbours, norm) + sum(r**norm for r in self.further(neighbours))

    def further(self, neighbours: Neighbours) -> list[int]:
        """Return how far one record can move each further statistic."""
        check_neighbours(neighbours)
        return [1 if neighbours == "add_remove" or _is_square(power) else 2 for power in self.powers]

    # ---- no grid holds the powers exactly ------------------------------------------------------------------------

    def exponents(self, most: int) -> Iterable[int]:
        return ()

    def whole(self, exponent: int, neighbours: Neighbours = "replace") -> Whole:
        raise NotImplementedError("no grid holds third and fourth moments.")

    def no_grid(self, promise: object) -> str:
        return "no grid holds third and fourth moments."


class LinearRegressionFourth(AbstractFamily):
    """A linear regression and the third and fourth moments of its covariates.

    It serves simulations and releases that are written down by hand. It cannot be released from a table: no grid
    holds its powers exactly.
    """

    regression: LinearRegression
    query: FourthMoments = eqx.field(static=True)
    name: ClassVar[str] = "linear_regression_fourth"
    conjugate: ClassVar[type] = NormalInverseGamma
    parameters: ClassVar[tuple[str, ...]] = ("coefficients", "variance")

    def __init__(self, regression: LinearRegression) -> None:
        self.regression = regression
        self.query = FourthMoments(regression.query)

    def settings(self) -> dict[str, Any]:
        return {"regression": self.regression}

    def identity(self) -> list:
        return [type(self).__name__, {"regression": self.regression.identity()}]

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        return self.regression.axes

    def named(self, theta):
        return self.regression.named(theta)

    def check_prior(self, prior: object) -> None:
        self.regression.check_prior(prior)

    def completed(self, prior: AbstractPrior) -> AbstractPrior:
        return self.regression.completed(prior)

    def noise_scales(self, epsilon: float, neighbours: Neighbours = "replace") -> np.ndarray:
        """Return scales of Laplace noise: half of ε is for the statistics of the regression and half for the rest."""
        first, rest = self.regression.query, self.query.further(neighbours)
        moved = [float(first.sensitivity(neighbours)), sum(rest)]
        return np.repeat(2 * np.array(moved) / epsilon, (len(first.names), len(rest)))

    # ---- as the regression ---------------------------------------------------------------------------------

    def natural(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        """Of the regression's statistics, which are sufficient."""
        return self.regression.natural(theta)

    def log_partition(self, eta: Inexact[Array, " k"]) -> Inexact[Array, ""]:
        return self.regression.log_partition(eta)

    def sample(self, key: Key[Array, ""], theta: Float[Array, " m"], n: int) -> Num[Array, "d n"]:
        return self.regression.sample(key, theta, n)

    def carried(
        self, key: Key[Array, ""], x: Num[Array, "d n"], theta: Float[Array, " m"], other: Float[Array, " m"]
    ) -> Num[Array, "d n"]:
        return self.regression.carried(key, x, theta, other)

    def update(self, prior: AbstractPrior, s: Num[Array, " k"], n: Numeric) -> AbstractPrior:
        return self.regression.update(prior, s[: len(self.regression.query.names)], n)

    def project(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """Only what `update` reads is made possible."""
        own = len(self.regression.query.names)
        return jnp.concatenate([self.regression.project(s[:own], n), s[own:]])

    # ---- the moments of the covariates -----------------------------------------------------------------------

    def covariate_moments(self, s: Num[Array, " k"], n: Numeric) -> CovariateMoments:
        """Those of u, from sums with noise: each moved to its range, then the covariance's eigenvalues raised.

        The second moments are then those that agree with the covariance.
        """
        p = len(self.regression.x)
        places, squares = self._places()
        moments = s / n
        if self.regression.query.intervals is not None:
            low = jnp.where(squares, 0.0, -1.0)
            moments = jnp.clip(moments, low, 1.0)
        numbers = [*((j,) for j in range(p)), *all_pairs(p)]
        mean = moments[np.array([places[power] for power in numbers])]
        products = moments[np.array([[places[tuple(sorted(a + b))] for b in numbers] for a in numbers])]
        covariance = raised(products - jnp.outer(mean, mean), 1.0, _SHARE)
        second = covariance[:p, :p] + jnp.outer(mean[:p], mean[:p])
        return CovariateMoments(jnp.concatenate([mean[:p], second[np.triu_indices(p)]]), covariance)

    def _places(self) -> tuple[dict[tuple[int, ...], int], np.ndarray]:
        """Where each product of covariates stands among the statistics, and which statistics are squares."""
        d = self.regression.dimension
        powers = [*((j,) for j in range(d)), *all_pairs(d), *self.query.powers]
        return {power: place for place, power in enumerate(powers)}, np.array([_is_square(power) for power in powers])


def _is_square(power: tuple[int, ...]) -> bool:
    """Whether every covariate stands in it an even number of times."""
    return all(power.count(j) % 2 == 0 for j in power)
