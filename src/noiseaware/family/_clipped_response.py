"""Moments of clipped covariates and of the y that the unclipped ones cause: c = clip(u), u ~ Normal(m, S), y given a.

With a = βᵀu + b, s² = βᵀSβ and e = Sβ/s, the standard normal z = (a − E a)/s tells all that u has to do with y:

    E c_j y = ∫ φ(z) h₁(E a + sz) E[c_j | z] dz        u_j | z ~ Normal(m_j + e_j z, S_jj − e_j²)

The inner mean is in closed form, and bent where m_j + e_j z passes a bound: there the line is cut, and each piece
summed by Gauss and Legendre. Means are thus exact, as they must be (_clipped); covariances are by Sobol points, y given
a by its own mean and variance, so that they are positive.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.family import _clipped
from noiseaware.query.moments import all_pairs
from noiseaware.triangular import cholesky

Response = Callable[[Float[Array, "..."]], tuple[Float[Array, "..."], Float[Array, "..."]]]
"""E[y | a] and E[y² | a]."""

_NODES, _EDGES = 24, np.array([-8.0, -3.0, 0.0, 3.0, 8.0])  # a steep response needs short pieces
_MOST_POINTS = 2048  # of six covariates and their response, four times as many would take minutes more
_FLATTEST = 1e-12  # of a variance under a root, and of a slope's size


def means(
    mean: Float[Array, " p"], covariance: Float[Array, "p p"], slopes: Float[Array, " p"], intercept, response: Response
) -> Float[Array, " k"]:
    """Of (c_j, y, c_i c_j with i ≤ j, c_j y), in the order of a family's statistics."""
    cross = covariance @ slopes
    s = jnp.sqrt(slopes @ cross + _FLATTEST)
    e, middle = cross / s, intercept + slopes @ mean
    rest = jnp.sqrt(jnp.maximum(jnp.diag(covariance) - e**2, 0.0) + _FLATTEST)
    z, weights = _cut_line(mean, e)
    first, _ = response(middle + s * z)
    inner = mean[:, None] + e[:, None] * z
    (one,) = _clipped.powers(inner, jnp.broadcast_to(rest[:, None], inner.shape), 1)
    of_y, with_y = (weights[0] * first[0]).sum(), (weights * first * one).sum(1)
    return jnp.concatenate([_clipped.means(mean, covariance), of_y[None], with_y])[_places(len(mean))]


def moments(
    mean: Float[Array, " p"],
    covariance: Float[Array, "p p"],
    slopes: Float[Array, " p"],
    intercept,
    response: Response,
    *,
    again: bool = False,
) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Mean, exact, and covariance, by points; `again` by other points, as a check."""
    p = len(mean)
    exact = means(mean, covariance, slopes, intercept, response)
    u = mean + _clipped.points(p, again)[:_MOST_POINTS] @ cholesky(covariance).T
    c, (one, two) = jnp.clip(u, -1, 1), response(intercept + u @ slopes)
    i, j = np.triu_indices(p)
    ones, places = jnp.ones_like(one)[:, None], _places(p)
    given = jnp.concatenate([c, c[:, i] * c[:, j], one[:, None] * ones, one[:, None] * c], axis=1)[:, places]
    away = given - given.mean(0)
    # y given a: its spread times (1, c), and nothing for what holds no y
    still = jnp.concatenate([jnp.zeros((len(c), p + len(i))), ones, c], axis=1)[:, places]
    spread = (two - one**2)[:, None]
    return exact, (away.T @ away + still.T @ (spread * still)) / len(c)


def _cut_line(mean: Float[Array, " p"], e: Float[Array, " p"]) -> tuple[Float[Array, "p m"], Float[Array, "p m"]]:
    """For each covariate, values of z and their weights under the normal law."""
    at, weights = np.polynomial.legendre.leggauss(_NODES)
    steep = jnp.where(jnp.abs(e) < _FLATTEST, _FLATTEST, e)
    cuts = jnp.clip((np.array([[-1.0], [1.0]]) - mean) / steep, _EDGES[0], _EDGES[-1])
    always = jnp.broadcast_to(_EDGES[:, None], (len(_EDGES), len(mean)))
    edges = jnp.sort(jnp.concatenate([always, cuts]), axis=0).T
    half = 0.5 * (edges[:, 1:] - edges[:, :-1])[..., None]
    z = 0.5 * (edges[:, 1:] + edges[:, :-1])[..., None] + half * at
    density = half * weights * jnp.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return z.reshape(len(mean), -1), density.reshape(len(mean), -1)


def _places(p: int) -> np.ndarray:
    """Where each statistic stands in (c, c_i c_j, y, c_j y)."""
    inner = {pair: p + k for k, pair in enumerate(all_pairs(p))}
    of_y = p + len(inner)
    pairs = [of_y + 1 + i if j == p else inner[i, j] for i, j in all_pairs(p + 1)[:-1]]
    return np.array([*range(p), of_y, *pairs])
