"""The multivariate normal family: records of several numbers, with unknown mean and covariance.

t(x) = (u, uuᵀ)        conjugate to NormalInverseWishart
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import multigammaln
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.family import _clipped, recorded
from noiseaware.family._family import check_conjugate
from noiseaware.family._pivots import log_pivots
from noiseaware.family._quadratic import AbstractQuadraticFamily, log_scatters
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractScalarPrior, NormalInverseWishart, Numeric
from noiseaware.query import Moments
from noiseaware.triangular import cholesky, solve


class MultivariateNormal(AbstractQuadraticFamily):
    """Normal(mean, covariance) of the columns; without column names, of `dimension` numbers."""

    query: Moments = eqx.field(static=True)
    name: ClassVar[str] = "multivariate_normal"
    records: ClassVar[str] = "measurements of several kinds (multivariate normal)"
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "mean": Meaning("the means", entry="the mean of {}"),
        "covariance": Meaning("the covariances", entry="the covariance of {} and {}", twice="the variance of {}"),
    }
    conjugate: ClassVar[type] = NormalInverseWishart
    parameters: ClassVar[tuple[str, ...]] = ("mean", "covariance")

    def __init__(self, columns=None, bounds: object = None, dimension: int | None = None) -> None:
        if columns is None:
            if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
                raise ValueError(f"dimension must be a whole number of at least 1 without columns, got {dimension}.")
            columns = [f"x{j}" for j in range(1, dimension + 1)]
        self.query = Moments(columns, bounds)
        if dimension is not None and dimension != self.dimension:
            raise ValueError(f"dimension must be the number of columns, {self.dimension}, got {dimension}.")

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        column, other = ("column", self.query.columns), ("other_column", self.query.columns)
        return {"mean": (column,), "covariance": (column, other)}

    def named(self, theta):
        d = self.dimension
        return {"mean": theta[..., :d], "covariance": theta[..., d : d + d * d].reshape(*theta.shape[:-1], d, d)}

    def natural(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        """(Σ⁻¹µ, −½Σ⁻¹ on the diagonal and −Σ⁻¹ beside it)."""
        mean, covariance = self._scaled_law(theta)
        precision = jnp.linalg.inv(covariance)
        weights = np.where(np.eye(self.dimension), 0.5, 1.0)
        return jnp.concatenate([precision @ mean, -(weights * precision)[np.triu_indices(self.dimension)]])

    def log_partition(self, eta: Inexact[Array, " k"]) -> Inexact[Array, ""]:
        d = self.dimension
        upper = jnp.zeros((d, d), eta.dtype).at[np.triu_indices(d)].set(-eta[d:])
        precision = upper + upper.T
        square = eta[:d] @ jnp.linalg.solve(precision, eta[:d])
        return 0.5 * square - 0.5 * jnp.linalg.slogdet(precision)[1]

    def sample(self, key: Key[Array, ""], theta: Float[Array, " m"], n: int) -> Num[Array, "d n"]:
        mean, root = self._law(theta)
        return mean + root @ jax.random.normal(key, (self.dimension, n))

    def _law(self, theta: Float[Array, "*b m"]) -> tuple[Float[Array, "*b d 1"], Float[Array, "*b d d"]]:
        """The mean, as a column, and the Cholesky factor of the covariance."""
        parts = self.named(theta)
        return parts["mean"][..., None], cholesky(parts["covariance"])

    def carried(
        self, key: Key[Array, ""], x: Num[Array, "d n"], theta: Float[Array, " m"], other: Float[Array, " m"]
    ) -> Num[Array, "d n"]:
        """The same standard normal numbers."""
        mean, root = self._law(jnp.stack([theta, other]))
        return mean[1] + root[1] @ solve(root[0], x - mean[0])

    def released_moments(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]] | None:
        """Mean and covariance of what the bounds leave of (u, uuᵀ): the mean exact, the covariance by points."""
        return None if self.query.intervals is None else _clipped.moments(*self._scaled_law(theta))

    def released_again(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]] | None:
        return None if self.query.intervals is None else _clipped.moments(*self._scaled_law(theta), again=True)

    def released_mean(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        """The mean alone, as each step of a long chain needs it."""
        return _clipped.means(*self._scaled_law(theta), nodes=_clipped.FEW_NODES)

    def _scaled_law(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
        """Mean and covariance of u."""
        parts = self.named(theta)
        return (parts["mean"] - self.query.centre) / self.query.half, parts["covariance"] / self._outer

    @property
    def law(self) -> str | None:
        return "normal" if self.query.is_altered else None

    def recorded_belief(self, belief: NormalInverseWishart, s: np.ndarray, n: float) -> tuple[AbstractScalarPrior, ...]:
        means, variances = zip(*belief.columns(), strict=True)
        return *means, *variances

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        """Of each column by itself."""
        if self.query.intervals is None:
            return None
        mean, variance = draws["mean"], np.diagonal(draws["covariance"], axis1=-2, axis2=-1)
        if not is_altered:
            return recorded.unaltered(mean, variance)
        each = zip(mean.T, variance.T, self.query.intervals, strict=True)
        with np.errstate(all="ignore"):
            found = [recorded.normal(*one) for one in each]
        return Recorded(*(np.stack(parts, axis=-1) for parts in zip(*found, strict=True)))

    def check_prior(self, prior: object) -> None:
        check_conjugate(self, prior)
        if len(prior.mean) != self.dimension:  # type: ignore[attr-defined]
            got = len(prior.mean)  # type: ignore[attr-defined]
            raise ValueError(f"prior must have a mean of {self.dimension} entries, one a column, got {got}.")

    def scaled(self, prior: NormalInverseWishart) -> NormalInverseWishart:
        mean = (jnp.asarray(prior.mean) - self.query.centre) / self.query.half
        return NormalInverseWishart(mean, prior.count, jnp.asarray(prior.scale) / self._outer, prior.dof)

    def unscaled(self, prior: NormalInverseWishart) -> NormalInverseWishart:
        mean = self.query.centre + self.query.half * prior.mean
        return NormalInverseWishart(mean, prior.count, self._outer * prior.scale, prior.dof)

    def unscaled_theta(self, theta: Float[Array, "*batch m"]) -> Float[Array, "*batch m"]:
        d = self.dimension
        mean = self.query.centre + self.query.half * theta[..., :d]
        return jnp.concatenate([mean, theta[..., d:] * self._outer.ravel()], axis=-1)

    @property
    def _outer(self) -> np.ndarray:
        return np.outer(self.query.half, self.query.half)

    def update_scaled(
        self, prior: NormalInverseWishart, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric
    ) -> NormalInverseWishart:
        return update_normal(prior, mean, scatter, n)

    def log_evidence(
        self, prior: NormalInverseWishart, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric
    ) -> Float[Array, ""]:
        """−½(dof + n) log |scale|."""
        posterior = update_normal(prior, mean, scatter, n)
        return -posterior.dof * log_pivots(jnp.asarray(posterior.scale)).sum()

    def log_of_count(self, prior: NormalInverseWishart, n: Numeric) -> Float[Array, ""]:
        return log_scatters(self.dimension, n) + evidence_of_count(prior, self.dimension, n)

    def expected(self, prior: NormalInverseWishart, n: Numeric) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
        return jnp.asarray(prior.mean), n * jnp.asarray(prior.scale) / prior.dof


def update_normal(
    prior: NormalInverseWishart, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric
) -> NormalInverseWishart:
    """The posterior given the mean and the scatter of n records."""
    count, away = prior.count + n, mean - jnp.asarray(prior.mean)
    centre = prior.mean + n / count * away
    scale = prior.scale + scatter + prior.count * n / count * jnp.outer(away, away)
    return NormalInverseWishart(centre, count, scale, prior.dof + n)


def evidence_of_count(prior: NormalInverseWishart, d: int, n: Numeric) -> Float[Array, ""]:
    """The factor of n in ∫ p(θ) |Σ|^{−n/2} e^{…} dθ, less 2^{dn/2}."""
    return multigammaln(0.5 * (prior.dof + n), d) - 0.5 * d * jnp.log(prior.count + n)
