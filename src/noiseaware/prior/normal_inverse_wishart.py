"""The normal–inverse-Wishart prior of a mean vector and a covariance matrix.

    covariance ~ InverseWishart(scale, dof)        mean | covariance ~ Normal(mean, covariance / count)
    p(covariance) ∝ |covariance|^{−(dof + d + 1)/2} exp(−tr(scale · covariance⁻¹)/2)

Its real coordinates: the mean, and covariance = EBBᵀE, E diagonal, e^v, and B with ones on its diagonal and v below.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import multigammaln
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import (
    AbstractRealPrior,
    AbstractScalarPrior,
    Numeric,
    check_number,
    mean_vector,
    precision_matrix,
)
from noiseaware.prior.empirical import Empirical
from noiseaware.prior.inverse_gamma import InverseGamma
from noiseaware.prior.student_t import StudentT
from noiseaware.triangular import cholesky, solve

_DRAWS = 20_000  # by which covariances are known


class NormalInverseWishart(AbstractRealPrior):
    """NormalInverseWishart(mean, count, scale, dof).

    `count` is how many records the mean is worth, and `dof`, above d − 1, how many the covariance is; a number for
    `scale` stands for so many times the identity.
    """

    mean: np.ndarray | Float[Array, " d"]
    count: Numeric
    scale: np.ndarray | Float[Array, "d d"]
    dof: Numeric

    def __init__(self, mean, count: Numeric, scale, dof: Numeric) -> None:
        self.mean = mean_vector(mean)
        self.scale = precision_matrix(scale, len(self.mean), name="scale")
        self.count, self.dof = count, dof

    def __check_init__(self) -> None:
        for name in ("count", "dof"):
            check_number(name, getattr(self, name), positive=True, is_single=True)
        least = len(self.mean) - 1
        if isinstance(self.dof, int | float) and self.dof <= least:
            raise ValueError(f"dof must be above {least} for {least + 1} dimensions, got {self.dof}.")

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape k"]:
        """The mean and the rows of the covariance, one after another on the last axis.

        covariance = (L A⁻ᵀ)(L A⁻ᵀ)ᵀ with LLᵀ = scale and A Bartlett's factor of a standard Wishart matrix.
        """
        d = len(self.mean)
        key_diagonal, key_below, key_mean = jax.random.split(key, 3)
        dofs = self.dof - jnp.arange(float(d))
        diagonal = jnp.sqrt(2 * jax.random.gamma(key_diagonal, 0.5 * dofs, (*shape, d)))
        below = jnp.tril(jax.random.normal(key_below, (*shape, d, d)), -1)
        factor = below + diagonal[..., None] * jnp.eye(d)
        root = jnp.broadcast_to(cholesky(jnp.asarray(self.scale)), factor.shape)
        half = jnp.swapaxes(solve(factor, jnp.swapaxes(root, -1, -2)), -1, -2)
        # half = root · A⁻ᵀ, and half · halfᵀ is one draw of the covariance
        z = jax.random.normal(key_mean, (*shape, d))
        mean = self.mean + jnp.einsum("...ij,...j->...i", half, z) / jnp.sqrt(self.count)
        covariance = half @ jnp.swapaxes(half, -1, -2)
        return jnp.concatenate([mean, covariance.reshape(*shape, d * d)], axis=-1)

    def log_density(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape"]:
        """With respect to the entries of the mean and those of the covariance on and below its diagonal."""
        d = len(self.mean)
        mean, covariance = theta[..., :d], theta[..., d:].reshape(*theta.shape[:-1], d, d)
        root = cholesky(covariance)
        log_determinant = 2 * jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        away = mean - self.mean
        outer = jnp.asarray(self.scale) + self.count * away[..., :, None] * away[..., None, :]
        trace = jnp.trace(solve(root, solve(root, outer), transposed=True), axis1=-2, axis2=-1)
        return -0.5 * (self.dof + d + 2) * log_determinant - 0.5 * trace - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, ""]:
        d = len(self.mean)
        log_determinant = jnp.linalg.slogdet(jnp.asarray(self.scale))[1]
        normal = 0.5 * d * jnp.log(2 * jnp.pi / self.count)
        wishart = 0.5 * self.dof * (d * jnp.log(2.0) - log_determinant) + multigammaln(0.5 * self.dof, d)
        return normal + wishart

    @property
    def num_coordinates(self) -> int:
        d = len(self.mean)
        return d * (d + 3) // 2

    def to_real(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape m"]:
        d = len(self.mean)
        root = cholesky(theta[..., d:].reshape(*theta.shape[:-1], d, d))
        edge = jnp.diagonal(root, axis1=-2, axis2=-1)
        below = (root / edge[..., None])[..., *np.tril_indices(d, -1)]
        return jnp.concatenate([theta[..., :d], jnp.log(edge), below], axis=-1)

    def _root(self, v: Float[Array, "*shape m"]) -> Float[Array, "*shape d d"]:
        """The Cholesky factor of the covariance."""
        d = len(self.mean)
        unit = jnp.broadcast_to(jnp.eye(d, dtype=v.dtype), (*v.shape[:-1], d, d))
        return jnp.exp(v[..., d : 2 * d, None]) * unit.at[..., *np.tril_indices(d, -1)].set(v[..., 2 * d :])

    def from_real(self, v: Float[Array, "*shape m"]) -> Float[Array, "*shape k"]:
        d, root = len(self.mean), self._root(v)
        covariance = root @ jnp.swapaxes(root, -1, -2)
        return jnp.concatenate([v[..., :d], covariance.reshape(*v.shape[:-1], d * d)], axis=-1)

    def log_density_real(self, v: Float[Array, "*shape m"]) -> Float[Array, "*shape"]:
        """Row i of the factor L has 2L_ii^{d − i + 1} from d(LLᵀ), L_ii from the logarithm and L_ii^{i − 1} from B."""
        d, root = len(self.mean), self._root(v)
        away = jnp.sqrt(self.count) * (v[..., :d] - self.mean)
        scale = jnp.broadcast_to(cholesky(jnp.asarray(self.scale)), root.shape)
        inner = solve(root, jnp.concatenate([scale, away[..., None]], axis=-1))
        trace = (inner**2).sum((-2, -1))
        powers = d * jnp.log(2.0) - (self.dof + 1) * v[..., d : 2 * d].sum(-1)
        return powers - 0.5 * trace - self.log_normalizer()

    def marginals(self) -> tuple[AbstractScalarPrior, ...]:
        """Return means and variances in closed form, and covariances, which have none, by draws."""
        d = len(self.mean)
        means, variances = zip(*self.columns(), strict=True)
        with jax.enable_x64(True):
            covariance = np.asarray(self.sample(jax.random.key(0), (_DRAWS,)))[:, d:].reshape(-1, d, d)
        pairs = [(i, j) for i in range(d) for j in range(i, d)]
        return *means, *(variances[i] if i == j else Empirical.of(covariance[:, i, j]) for i, j in pairs)

    def columns(self) -> list[tuple[StudentT, InverseGamma]]:
        """Return the priors of the mean and of the variance of each column by itself."""
        d, spreads = len(self.mean), np.diag(np.asarray(self.scale)).astype(float)
        dof = float(self.dof) - d + 1
        scales = np.sqrt(spreads / (float(self.count) * dof))
        triples = zip(np.asarray(self.mean), scales, spreads, strict=True)
        return [
            (StudentT(dof, float(m), float(scale)), InverseGamma(0.5 * dof, 0.5 * float(s))) for m, scale, s in triples
        ]
