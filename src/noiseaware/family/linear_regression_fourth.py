"""Linear regression with the moments of its covariates up to the fourth, as Gibbs-SS-Noisy of Bernstein & Sheldon 2019
releases them.

    Σu_j and Σu_i u_j of the columns (x, y), then Σu_i u_j u_k and Σu_i u_j u_k u_l of the columns x alone, each once

They cost about twice the budget and tell nothing of θ but what the covariance of the second moments is.
"""

import itertools
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family._family import AbstractFamily
from noiseaware.family._moment import all_pairs
from noiseaware.family._quadratic import raised
from noiseaware.family.linear_regression import LinearRegression
from noiseaware.prior import AbstractPrior, CovariateMoments, NormalInverseGamma, Numeric
from noiseaware.privacy import Neighbours, check_neighbours

_SHARE = 1e-6  # of the largest: how small an eigenvalue of a projected covariance may be


class LinearRegressionFourth(AbstractFamily):
    """A linear regression and the third and fourth moments of its covariates.

    It serves simulations and releases that are written down by hand. It cannot be released from a table: no grid
    holds its powers exactly.
    """

    regression: LinearRegression
    name: ClassVar[str] = "linear_regression_fourth"
    conjugate: ClassVar[type] = NormalInverseGamma
    parameters: ClassVar[tuple[str, ...]] = ("coefficients", "variance")
    is_integer: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        return self.regression.columns

    @property
    def powers(self) -> tuple[tuple[int, ...], ...]:
        """Which covariates each further statistic multiplies."""
        p = range(len(self.regression.x))
        return tuple(power for degree in (3, 4) for power in itertools.combinations_with_replacement(p, degree))

    @property
    def statistics(self) -> tuple[str, ...]:
        further = ["·".join(self.regression.x[j] for j in power) for power in self.powers]
        return self.regression.statistics + tuple(f"sum[{product}]" for product in further)

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        return self.regression.axes

    def named(self, theta):
        return self.regression.named(theta)

    def check_prior(self, prior: object) -> None:
        self.regression.check_prior(prior)

    def completed(self, prior: AbstractPrior) -> AbstractPrior:
        return self.regression.completed(prior)

    def statistic(self, x) -> tuple:
        return (*self.regression.statistic(x), *self._further(x))

    def alter(self, x: Num[Array, "d ..."]) -> tuple[Num[Array, "..."], ...]:
        intervals = self.regression.intervals
        clamped = x if intervals is None else [x[j].clip(*interval) for j, interval in enumerate(intervals)]
        return self.statistic(clamped)

    def _further(self, x) -> tuple:
        u = self.regression.statistic(x)  # the first of which are u itself
        products = []
        for first, *rest in self.powers:
            product = u[first]
            for j in rest:
                product = product * u[j]
            products.append(product)
        return tuple(products)

    # ---- privacy -------------------------------------------------------------------------------------------

    def _ranges(self, neighbours: Neighbours) -> list[int]:
        """How far one record can move each further statistic: |u| ≤ 1, and a product of squares is not negative."""
        check_neighbours(neighbours)
        return [1 if neighbours == "add_remove" or _is_square(power) else 2 for power in self.powers]

    def sensitivity(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """That of the regression and the ranges of the rest: ‖t − t'‖₁ is at most the sum of what each can move."""
        return self.regression.sensitivity(neighbours) + sum(self._ranges(neighbours))

    def sensitivity_squared(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """The same of squares; the regression's, whose weights are 1 or more, is an upper bound of its own."""
        return self.regression.sensitivity_squared(neighbours) + sum(r**2 for r in self._ranges(neighbours))

    def noise_scales(self, epsilon: float, neighbours: Neighbours = "replace") -> np.ndarray:
        """Of Laplace noise: half of ε is for the statistics of the regression and half for the rest."""
        moved = [self.regression.sensitivity(neighbours), sum(self._ranges(neighbours))]
        return np.repeat(2 * np.array(moved) / epsilon, (len(self.regression.statistics), len(self.powers)))

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
        return self.regression.update(prior, s[: len(self.regression.statistics)], n)

    def project(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """Only what `update` reads is made possible."""
        own = len(self.regression.statistics)
        return jnp.concatenate([self.regression.project(s[:own], n), s[own:]])

    # ---- the moments of the covariates -----------------------------------------------------------------------

    def covariate_moments(self, s: Num[Array, " k"], n: Numeric) -> CovariateMoments:
        """Those of u, from sums with noise: each moved to its range, then the covariance's eigenvalues raised.

        The second moments are then those that agree with the covariance.
        """
        p = len(self.regression.x)
        places, squares = self._places()
        moments = s / n
        if self.regression.intervals is not None:
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
        powers = [*((j,) for j in range(d)), *all_pairs(d), *self.powers]
        return {power: place for place, power in enumerate(powers)}, np.array([_is_square(power) for power in powers])


def _is_square(power: tuple[int, ...]) -> bool:
    """Whether every covariate stands in it an even number of times."""
    return all(power.count(j) % 2 == 0 for j in power)
