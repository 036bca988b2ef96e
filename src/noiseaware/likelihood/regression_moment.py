"""Moments of a regression's statistics, from those of its covariates up to the fourth (Bernstein & Sheldon 2019).

With z = (x, 1), y = θᵀz + e and e ~ Normal(0, σ²), write w = (z, y) = Gz + δe. Each statistic is a product w_a w_b, so

    t = P vec(zzᵀ) + e Hz + e² f        P = G_a ⊗ G_b,   H = δ_a G_b + δ_b G_a,   f = δ_a δ_b
    E t = P vec η + σ² f                η = E zzᵀ
    Cov t = P ξ Pᵀ + σ² H η Hᵀ + 2σ⁴ f fᵀ        ξ = Cov vec(zzᵀ)

which are all of the paper's equations (2) and (3) at once, and positive semidefinite because η and ξ are. It has
Cov(x_i y, x_j y) = σ²η_ij + Σ_kl θ_k θ_l ξ_{ik,jl}, where the paper's indices are ij,kl.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.likelihood.moment import Moments
from noiseaware.prior import AbstractPrior, CovariateMoments, NormalInverseWishart, Numeric


class Covariate(NamedTuple):
    """η = E zzᵀ and ξ = Cov vec(zzᵀ) of z = (x, 1)."""

    eta: Float[Array, "q q"]
    xi: Float[Array, "qq qq"]


def of_record(covariate: Covariate, theta: Float[Array, " q"], variance: Float[Array, ""]) -> Moments:
    """E t and Cov t of one record: of u_j and of u_i u_j, i ≤ j, for the columns u = (x, y)."""
    q = theta.size
    columns = [*range(q - 1), q]  # of w: x, then y; the constant stands between them at q − 1
    a, b = np.array([(j, q - 1) for j in columns] + [(i, j) for i in columns for j in columns if i <= j]).T
    gain, own = jnp.concatenate([jnp.eye(q), theta[None]]), np.append(np.zeros(q), 1.0)
    whole = (gain[a, :, None] * gain[b, None, :]).reshape(len(a), q * q)
    cross = own[a, None] * gain[b] + own[b, None] * gain[a]
    square = own[a] * own[b]
    mean = whole @ covariate.eta.ravel() + variance * square
    covariance = whole @ covariate.xi @ whole.T + variance * cross @ covariate.eta @ cross.T
    return Moments(mean, covariance + 2 * variance**2 * np.outer(square, square))


def of_covariates(prior: AbstractPrior, parameters: Float[Array, " m"]) -> Covariate:
    """Of normal covariates with these parameters, their mean and covariance; or as they are known."""
    if isinstance(prior, CovariateMoments):
        return of_known(prior)
    p = len(prior.mean)  # type: ignore[attr-defined]
    return of_normal(parameters[:p], parameters[p:].reshape(p, p))


def of_normal(mean: Float[Array, " p"], covariance: Float[Array, "p p"]) -> Covariate:
    """Isserlis' theorem: ξ_{ij,kl} = T_ik T_jl + T_il T_jk + (µ_i µ_k T_jl and its like)."""
    return _elliptical(mean, covariance, 1.0)


def of_known(moments: CovariateMoments) -> Covariate:
    """ξ has zeros where z_i z_j is the constant."""
    places = _places(_count(len(moments.mean)))
    mean = jnp.append(jnp.asarray(moments.mean), 1.0)
    covariance = jnp.pad(jnp.asarray(moments.covariance), (0, 1))
    flat = places.ravel()
    return Covariate(mean[places], covariance[flat][:, flat])


def predictive(prior: NormalInverseWishart) -> CovariateMoments:
    """Of one record under the prior: x ~ Student's t with dof − p + 1 degrees of freedom, which must be above 4."""
    p = len(prior.mean)
    freedom = prior.dof - p + 1
    covariance = (1 + 1 / prior.count) * jnp.asarray(prior.scale) / (freedom - 2)
    found = _elliptical(jnp.asarray(prior.mean), covariance, (freedom - 2) / (freedom - 4))
    flat = np.array([p * i + i + j for i, j in _numbers(p)])  # row i, column j of the q × q of zzᵀ
    return CovariateMoments(found.eta.ravel()[flat], found.xi[flat][:, flat])


def _elliptical(mean: Float[Array, " p"], covariance: Float[Array, "p p"], tail: Numeric) -> Covariate:
    """An elliptical law: its central fourth moments are `tail` times those of a normal law."""
    m, t = jnp.append(mean, 1.0), jnp.pad(covariance, (0, 1))
    q = m.size
    outer = jnp.outer(m, m)
    crossed = tail * jnp.einsum("ik,jl->ijkl", t, t) + jnp.einsum("ik,jl->ijkl", outer, t)
    crossed = crossed + jnp.einsum("ik,jl->ijkl", t, outer)
    own = (tail - 1) * jnp.einsum("ij,kl->ijkl", t, t)
    xi = crossed + jnp.swapaxes(crossed, 2, 3) + own
    return Covariate(t + outer, xi.reshape(q * q, q * q))


def _numbers(p: int) -> list[tuple[int, int]]:
    """x_j and x_i x_j (i ≤ j), each as a pair of entries of z."""
    return [(j, p) for j in range(p)] + [(i, j) for i in range(p) for j in range(i, p)]


def _places(p: int) -> np.ndarray:
    """Where z_i z_j stands among the numbers of CovariateMoments, the constant after the last."""
    places = np.full((p + 1, p + 1), p + p * (p + 1) // 2)
    for place, (i, j) in enumerate(_numbers(p)):
        places[i, j] = places[j, i] = place
    return places


def _count(size: int) -> int:
    """p covariates have p(p + 3)/2 numbers."""
    return (int(np.sqrt(9 + 8 * size)) - 3) // 2
