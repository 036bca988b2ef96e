"""Linear regression: y given covariates x, from the second moments of all of them (Bernstein & Sheldon 2019).

    y = coefficientsᵀ(x, 1) + noise,  noise ~ Normal(0, variance)        the intercept is the last coefficient

The statistics are those of the record (x, y): Σu and Σuuᵀ, each unique entry once; n is public. Given S = Σzzᵀ of
z = (x, 1) the rest needs no central limit theorem, with q = p + 1 coefficients θ and variance σ²:

    Σzy | S ~ Normal(Sθ, σ²S)        residual sum of squares ~ σ²χ²_{n−q}

and with the conjugate prior the parameters integrate out. What is believed of x is either normal with unknown mean and
covariance (NormalInverseWishart: nothing is approximated), or any law with known moments (CovariateMoments: S is
then taken as normal).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.check import kind
from noiseaware.family._family import check_conjugate
from noiseaware.family._moment import regression_columns
from noiseaware.family._pivots import log_pivots
from noiseaware.family._quadratic import AbstractQuadraticFamily, log_scatters
from noiseaware.family.glossary import Meaning
from noiseaware.family.multivariate_normal import (
    MultivariateNormal,
    evidence_of_count,
    update_normal,
)
from noiseaware.prior import (
    AbstractPrior,
    CovariateMoments,
    Independent,
    NormalInverseGamma,
    NormalInverseWishart,
    Numeric,
)
from noiseaware.query import Moments
from noiseaware.query.moments import all_pairs
from noiseaware.triangular import cholesky, solve

# What is believed of covariates unless said: a normal law whose sd is a quarter of half the bounds' width, give or
# take the half of it, so that bounds clamp about one record in a hundred. Without bounds, next to nothing: about 0 and
# an sd of about 1, each within a factor of ten or so.
_SPREAD, _COUNT, _DOF = 0.25, 1.0, 6
_VAGUE_SPREAD, _VAGUE_COUNT, _VAGUE_DOF = 1.0, 0.01, 2


class LinearRegression(AbstractQuadraticFamily):
    """Linear regression of the column y on the columns x. Without bounds, nothing was clamped."""

    query: Moments = eqx.field(static=True)
    name: ClassVar[str] = "linear_regression"
    records: ClassVar[str] = "a quantity and what explains it (linear regression)"
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "coefficients": Meaning(
            "the coefficients", ", the intercept last", entry="the coefficient of {}", last="the intercept"
        ),
        "variance": Meaning("the variance", " about the line"),
    }
    conjugate: ClassVar[type] = NormalInverseGamma
    parameters: ClassVar[tuple[str, ...]] = ("coefficients", "variance")

    def __init__(self, x=("x",), y: str = "y", bounds: object = None) -> None:
        self.query = Moments(regression_columns(x, y), bounds)

    @property
    def x(self) -> tuple[str, ...]:
        """The covariates."""
        return self.query.columns[:-1]

    @property
    def y(self) -> str:
        """The column that they explain."""
        return self.query.columns[-1]

    def settings(self) -> dict[str, Any]:
        return {"x": self.x, "y": self.y, "bounds": self.query.intervals}

    @property
    def predictor(self) -> "LinearRegression":
        return self

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        return {"coefficients": (("coefficient", (*self.x, "intercept")),)}

    def named(self, theta):
        """θ may go on with the mean and covariance of x, which are nobody's question."""
        q = self.dimension
        return {"coefficients": theta[..., :q], "variance": theta[..., q]}

    # ---- the joint law of (x, y) ---------------------------------------------------------------------------

    @property
    def _joint(self) -> MultivariateNormal:
        return MultivariateNormal(self.query.columns, self.query.intervals)

    @property
    def _covariates(self) -> MultivariateNormal:
        """The columns x by themselves, for their units and their sums."""
        return MultivariateNormal(self.x, None if self.query.intervals is None else self.query.intervals[:-1])

    def _joint_theta(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        p = len(self.x)
        slopes, intercept, variance = theta[:p], theta[p], theta[p + 1]
        mean, covariance = theta[p + 2 : 2 * p + 2], theta[2 * p + 2 :].reshape(p, p)
        cross = covariance @ slopes
        rows = jnp.block([[covariance, cross[:, None]], [cross[None], (slopes @ cross + variance)[None, None]]])
        return jnp.concatenate([mean, (slopes @ mean + intercept)[None], rows.ravel()])

    def natural(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        return self._joint.natural(self._joint_theta(theta))

    def log_partition(self, eta: Inexact[Array, " k"]) -> Inexact[Array, ""]:
        return self._joint.log_partition(eta)

    def sample(self, key: Key[Array, ""], theta: Float[Array, " m"], n: int) -> Num[Array, "d n"]:
        return self._joint.sample(key, self._joint_theta(theta), n)

    def carried(
        self, key: Key[Array, ""], x: Num[Array, "d n"], theta: Float[Array, " m"], other: Float[Array, " m"]
    ) -> Num[Array, "d n"]:
        return self._joint.carried(key, x, self._joint_theta(theta), self._joint_theta(other))

    def released_moments(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]] | None:
        return self._joint.released_moments(self._joint_theta(theta))

    def released_again(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]] | None:
        return self._joint.released_again(self._joint_theta(theta))

    def released_mean(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        return self._joint.released_mean(self._joint_theta(theta))

    def residual(self, theta: Float[Array, " m"], y: Float[Array, " k"], n: Numeric) -> Float[Array, ""]:
        """‖Σzy − Sθ‖₁ + |residual sum of squares − nσ²| in the units of u, from θ and the release alone."""
        q = self.dimension
        mean, scatter = self.split(y, n)
        whole = self._sums(mean, scatter, n)
        inner = self._forward @ theta[:q] - self._shift
        away = whole[:q, q] - whole[:q, :q] @ inner
        squares = whole[q, q] - inner @ (whole[:q, q] + away)
        return jnp.abs(away).sum() + jnp.abs(squares - n * theta[q] / self.query.half[-1] ** 2)

    # ---- priors --------------------------------------------------------------------------------------------

    def check_prior(self, prior: object) -> None:
        parts = prior.parts if isinstance(prior, Independent) else {"regression": prior}
        if not {"regression"} <= set(parts) <= {"regression", "covariates"}:
            raise ValueError(f"prior must have the parts regression and covariates, got {', '.join(parts)}.")
        check_conjugate(self, parts["regression"])
        sizes = {"regression": (self.dimension, "coefficient"), "covariates": (len(self.x), "covariate")}
        for name, part in parts.items():
            size, what = sizes[name]
            if isinstance(part, CovariateMoments):
                size, what = size * (size + 3) // 2, "moment up to the second"
            elif not isinstance(part, NormalInverseGamma if name == "regression" else NormalInverseWishart):
                raise ValueError(f"{name} must be a NormalInverseWishart or CovariateMoments, got {kind(part)}.")
            if np.ndim(part.mean) != 1 or len(part.mean) != size:  # type: ignore[arg-type]
                got = np.shape(part.mean)[0] if np.ndim(part.mean) else "one number"
                raise ValueError(f"{name} prior must have a mean of {size} entries, one a {what}, got {got}.")

    def completed(self, prior: AbstractPrior) -> Independent:
        """The prior with what is believed of the covariates, in the units of x."""
        if isinstance(prior, Independent) and "covariates" in prior.parts:
            return prior
        regression = prior.parts["regression"] if isinstance(prior, Independent) else prior
        covariates = believed_covariates(self._covariates)
        return Independent(regression=regression, covariates=covariates)

    def parted(self, prior: Independent) -> tuple[AbstractPrior, AbstractPrior]:
        return prior.parts["regression"], prior.parts["covariates"]

    def scaled(self, prior: AbstractPrior) -> Independent:
        """In the units of u: θ_u = Aθ + a, with A = diag(half_x, 1)/half_y and the centres moved to the intercept."""
        parts = self.completed(prior).parts
        regression, forward = parts["regression"], self._forward
        back = np.linalg.inv(forward)
        mean = forward @ jnp.asarray(regression.mean) - self._shift
        precision = back.T @ jnp.asarray(regression.precision) @ back / self.query.half[-1] ** 2
        inner = NormalInverseGamma(mean, precision, regression.shape, regression.scale / self.query.half[-1] ** 2)
        about_x, own = parts["covariates"], self._covariates
        is_normal = isinstance(about_x, NormalInverseWishart)
        covariates = own.scaled(about_x) if is_normal else _scaled_moments(about_x, own.query.centre, own.query.half)
        return Independent(regression=inner, covariates=covariates)

    def unscaled(self, prior: Independent) -> Independent:
        inner, forward = prior.parts["regression"], self._forward
        mean = jnp.linalg.solve(forward, jnp.asarray(inner.mean) + self._shift)
        precision = forward.T @ jnp.asarray(inner.precision) @ forward * self.query.half[-1] ** 2
        regression = NormalInverseGamma(mean, precision, inner.shape, inner.scale * self.query.half[-1] ** 2)
        about_x = prior.parts["covariates"]  # of moments nothing is unknown, and nobody asks for them again
        covariates = self._covariates.unscaled(about_x) if isinstance(about_x, NormalInverseWishart) else about_x
        return Independent(regression=regression, covariates=covariates)

    def unscaled_theta(self, theta: Float[Array, "*batch m"]) -> Float[Array, "*batch k"]:
        q = self.dimension
        coefficients = (theta[..., :q] + self._shift) @ np.linalg.inv(self._forward).T
        return jnp.concatenate([coefficients, theta[..., q : q + 1] * self.query.half[-1] ** 2], axis=-1)

    @property
    def _forward(self) -> np.ndarray:
        """A of θ_u = Aθ + a: slopes in units of half, and the intercept at the centre."""
        matrix = np.diag(np.append(self.query.half[:-1], 1.0))
        matrix[-1, :-1] = self.query.centre[:-1]
        return matrix / self.query.half[-1]

    @property
    def _shift(self) -> np.ndarray:
        """−a: the centre of y, in units of its half."""
        return np.append(np.zeros(len(self.x)), self.query.centre[-1] / self.query.half[-1])

    # ---- conjugacy -----------------------------------------------------------------------------------------

    def update_scaled(
        self, prior: Independent, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric
    ) -> Independent:
        """Through one Cholesky factor of Σ(z, y)(z, y)ᵀ and the prior's own: its last pivot squared is 2 · scale."""
        p, regression, covariates = len(self.x), prior.parts["regression"], prior.parts["covariates"]
        factor = cholesky(self._normal_equations(regression, mean, scatter, n))
        root, last = factor[:-1, :-1], factor[-1, :-1]
        centre = solve(root, last[:, None], transposed=True)[:, 0]
        posterior = NormalInverseGamma(centre, root @ root.T, regression.shape + 0.5 * n, 0.5 * factor[-1, -1] ** 2)
        if isinstance(covariates, NormalInverseWishart):
            covariates = update_normal(covariates, mean[:p], scatter[:p, :p], n)
        return Independent(regression=posterior, covariates=covariates)

    def log_evidence(
        self, prior: Independent, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric
    ) -> Float[Array, ""]:
        """log Z of the regression's posterior, −½ log |precision| − shape · log scale, and that of the covariates'."""
        p, regression, covariates = len(self.x), prior.parts["regression"], prior.parts["covariates"]
        equations, inner = self._normal_equations(regression, mean, scatter, n), scatter[:p, :p]
        if isinstance(covariates, NormalInverseWishart):
            posterior = update_normal(covariates, mean[:p], inner, n)
            others = log_pivots(jnp.asarray(posterior.scale))
        else:
            others = log_pivots(inner)
        pivots = log_pivots(equations)
        own = -pivots[:-1].sum() - (2 * regression.shape + n) * pivots[-1]
        if isinstance(covariates, NormalInverseWishart):
            return own - (covariates.dof + n) * others.sum()
        # S is normal, and the rest has the density |S|^−½ · residual^{(n−q)/2 − 1} given S; h_n(s) is taken back
        back = (n - self.dimension - 1) * others.sum()
        sums = self._covariates.joined(mean[:p], inner, n)
        root = cholesky(n * jnp.asarray(covariates.covariance))
        away = solve(root, (sums - n * jnp.asarray(covariates.mean))[:, None])
        return own - back - 0.5 * (away**2).sum()

    def log_of_count(self, prior: Independent, n: Numeric) -> Float[Array, ""]:
        of_covariates = evidence_of_count(prior.parts["covariates"], len(self.x), n)
        return log_scatters(self.dimension, n) + of_covariates + gammaln(prior.parts["regression"].shape + 0.5 * n)

    def expected(self, prior: Independent, n: Numeric) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
        regression, covariates = prior.parts["regression"], prior.parts["covariates"]
        if isinstance(covariates, NormalInverseWishart):
            mean, spread = jnp.asarray(covariates.mean), jnp.asarray(covariates.scale) / covariates.dof
        else:
            mean, spread = self._covariates.split(jnp.asarray(covariates.mean), 1.0)
        centre, variance = jnp.asarray(regression.mean), jnp.asarray(regression.scale / regression.shape)
        theta = jnp.concatenate([centre, variance[None], mean, spread.ravel()])
        joint = self._joint_theta(theta)
        d = self.dimension
        return joint[:d], n * joint[d:].reshape(d, d)

    def _normal_equations(self, prior: NormalInverseGamma, mean, scatter, n: Numeric) -> Float[Array, "r r"]:
        """Σ(z, y)(z, y)ᵀ with the prior as if it were records too."""
        precision, centre = jnp.asarray(prior.precision), jnp.asarray(prior.mean)
        cross = precision @ centre
        corner = 2 * prior.scale + centre @ cross
        own = jnp.block([[precision, cross[:, None]], [cross[None], jnp.reshape(corner, (1, 1))]])
        return self._sums(mean, scatter, n) + own

    def _sums(self, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric) -> Float[Array, "r r"]:
        """Σ(z, y)(z, y)ᵀ of z = (u, 1)."""
        q = self.dimension
        entries = jnp.concatenate([(n * jnp.outer(mean, mean) + scatter).ravel(), n * mean, jnp.full(1, n)])
        order = [*range(q - 1), q, q - 1]  # the constant, last of (x, y, 1), stands before y
        return entries[_sum_places(q)[np.ix_(order, order)]]


def believed_covariates(covariates: MultivariateNormal) -> NormalInverseWishart:
    """What is believed of columns x unless said, in the units of x."""
    known = covariates.query.intervals is not None
    spread, count, dof = (_SPREAD, _COUNT, _DOF) if known else (_VAGUE_SPREAD, _VAGUE_COUNT, _VAGUE_DOF)
    scale = np.diag((spread * covariates.query.half) ** 2 * (dof - 1))
    return NormalInverseWishart(covariates.query.centre, count, scale, float(covariates.dimension + dof))


def _sum_places(d: int) -> np.ndarray:
    """Where the entries of Σ(u, 1)(u, 1)ᵀ stand in (Σuuᵀ row by row, Σu, n)."""
    edge = d * d + np.arange(d)
    return np.block([[np.arange(d * d).reshape(d, d), edge[:, None]], [edge[None], np.full((1, 1), d * d + d)]])


def _scaled_moments(covariates: CovariateMoments, centre: np.ndarray, half: np.ndarray) -> CovariateMoments:
    """The moments of x in the units of u."""
    p = len(centre)
    pairs = all_pairs(p)
    forward = np.zeros((p + len(pairs),) * 2)
    forward[:p, :p] = np.diag(1 / half)
    shift = np.append(-centre / half, np.zeros(len(pairs)))
    for row, (i, j) in enumerate(pairs, p):
        # (x_i − c_i)(x_j − c_j)/h_i h_j
        scale = half[i] * half[j]
        forward[row, row] = 1 / scale
        forward[row, i] -= centre[j] / scale
        forward[row, j] -= centre[i] / scale
        shift[row] = centre[i] * centre[j] / scale
    mean = forward @ jnp.asarray(covariates.mean) + shift
    return CovariateMoments(mean, forward @ jnp.asarray(covariates.covariance) @ forward.T)
