"""Families of normal records whose statistics are all first and second moments: Σu_j and Σu_i u_j, i ≤ j.

The sums hold a mean ū and a scatter C = Σuuᵀ − nūūᵀ, and all that is known of n normal records u ∈ ℝ^d:

    p(s | θ) = h_n(s) exp(ηᵀs − nA)        h_n(s) ∝ |C|^{(n − d − 2)/2},  C positive definite

so that the coordinates ū and the Cholesky factor of C/n, its diagonal in logs, take every real vector to a possible s.
"""

import abc
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import multigammaln
from jaxtyping import Array, Float, Num

from noiseaware.family._moment import AbstractMomentFamily
from noiseaware.prior import AbstractPrior, Numeric
from noiseaware.triangular import cholesky

_SHARE = 1e-9  # of the mean squared record: how flat a projected scatter may be


class AbstractQuadraticFamily(AbstractMomentFamily):
    """Records of d numbers, summarised by Σu and Σuuᵀ, with a conjugate prior."""

    # ---- priors and parameters in the units of u ------------------------------------------------------------

    @abc.abstractmethod
    def scaled(self, prior) -> AbstractPrior:
        """The prior of the parameters of u."""

    @abc.abstractmethod
    def unscaled(self, prior) -> AbstractPrior:
        """The prior of the parameters of x, from that of u."""

    @abc.abstractmethod
    def unscaled_theta(self, theta: Float[Array, "*batch k"]) -> Float[Array, "*batch k"]:
        """The parameters of x, from those of u."""

    @abc.abstractmethod
    def update_scaled(self, prior, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric) -> AbstractPrior:
        """The posterior of the parameters of u, given the mean and the scatter of n records."""

    @abc.abstractmethod
    def log_evidence(
        self, prior, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric
    ) -> Float[Array, ""]:
        """log p(s)/h_n(s) with the parameters of u integrated out, up to a constant."""

    @abc.abstractmethod
    def log_of_count(self, prior, n: Numeric) -> Float[Array, ""]:
        """What `from_real` and `log_evidence` together leave out of log p(v | n), and which depends on n alone."""

    @abc.abstractmethod
    def expected(self, prior, n: Numeric) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
        """The mean and the scatter of n typical records of the prior of the parameters of u."""

    def as_quadratic(self, prior: Any) -> tuple[Any, Any]:
        return self, self.completed(prior)

    def update(self, prior, s: Num[Array, " k"], n: Numeric) -> AbstractPrior:
        return self.unscaled(self.update_scaled(self.scaled(prior), *self.split(s, n), n))

    # ---- the statistic -------------------------------------------------------------------------------------

    def split(self, s: Num[Array, " k"], n: Numeric) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
        """ū and the scatter C = Σuuᵀ − nūūᵀ."""
        d = self.dimension
        mean = s[:d] / n
        return mean, s[_places(d)] - n * jnp.outer(mean, mean)

    def joined(self, mean: Float[Array, " d"], scatter: Float[Array, "d d"], n: Numeric) -> Float[Array, " k"]:
        """The statistic with this ū and C."""
        moments = scatter + n * jnp.outer(mean, mean)
        return jnp.concatenate([n * mean, moments[np.triu_indices(self.dimension)]])

    def project(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """The scatter's eigenvalues are raised to be positive."""
        mean, scatter = self.split(s, n)
        return self.joined(mean, raised(scatter, n), n)

    def from_real(
        self, v: Float[Array, " k"], n: Numeric
    ) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, ""]]:
        """ū and C at the real vector v, and log h_n(s) + log |ds/dv| there, up to a constant.

        C = n TTᵀ with T_ii = e^{v}: |dC/dv| ∝ Π_i T_ii^{d − i + 2}, so that the sum is Σ_i (n − i) log T_ii.
        """
        d = self.dimension
        logs = v[d : 2 * d]
        factor = jnp.concatenate([v[2 * d :], jnp.exp(logs), jnp.zeros(1)])[_factor_places(d)]
        return v[:d], n * factor @ factor.T, ((n - jnp.arange(1.0, d + 1)) * logs).sum()

    def to_real(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """The real vector of a possible statistic."""
        d = self.dimension
        mean, scatter = self.split(s, n)
        factor = cholesky(scatter / n)
        return jnp.concatenate([mean, jnp.log(jnp.diag(factor)), factor[np.tril_indices(d, -1)]])


def raised(scatter: Float[Array, "d d"], n: Numeric, share: float = _SHARE) -> Float[Array, "d d"]:
    """The scatter with eigenvalues raised to be positive, at least that share of the largest."""
    values, vectors = jnp.linalg.eigh(scatter)
    least = share * jnp.maximum(values[-1], n * share)
    return (vectors * jnp.maximum(values, least)) @ vectors.T


def log_scatters(d: int, n: Numeric) -> Float[Array, ""]:
    """The factor of n in the density of ū and C = nTTᵀ of d columns: n^{d/2}/Γ_d((n−1)/2) from the laws of ū and C,
    and n^{d(n−1)/2} from |C| and dC/dT. The powers of 2 are those of the evidence."""
    return 0.5 * d * n * jnp.log(n) - multigammaln(0.5 * (n - 1), d)


@functools.cache  # gathering by places is many times faster than setting entries of an array
def _places(d: int) -> np.ndarray:
    """Where Σu_i u_j stands in the statistic."""
    places = np.zeros((d, d), dtype=int)
    places[np.triu_indices(d)] = d + np.arange(d * (d + 1) // 2)
    return np.maximum(places, places.T)


@functools.cache
def _factor_places(d: int) -> np.ndarray:
    """Where the entries of a lower triangular matrix stand in (those below the diagonal, the diagonal, 0)."""
    below = d * (d - 1) // 2
    places = np.full((d, d), below + d)
    places[np.tril_indices(d, -1)] = np.arange(below)
    places[np.diag_indices(d)] = below + np.arange(d)
    return places
