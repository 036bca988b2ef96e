"""Moments of normal records that are clipped to [−1, 1]: c = clip(u), u ~ Normal(m, S).

    one column     E c^k from ∫ z^k φ by parts, in closed form
    two columns    Cov(c_i, c_j) = s_i s_j {ρ P_i P_j + ∫₀^ρ (ρ − r) Σ± φ₂(corner; r) dr},  P_j = P(|u_j| < 1)
    four           E c_i c_j c_k c_l as a mean over scrambled Sobol points

The second is Price's theorem, d²E[f(u_i) g(u_j)]/dρ² = s_i² s_j² E[f''g''], for a clip, whose second derivative is two
points: the corners are those of the bounds, in units of sd, and φ₂ the normal density of correlation r. With r = sin θ
the integrand is smooth and bounded up to ρ = ±1 (Drezner & Wesolowsky 1990). Means are thus exact; points serve for
covariances alone, since the error of a mean by points would grow as √n against the spread of the sums.
"""

import functools
import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from noiseaware.triangular import cholesky

_NODES = 24
FEW_NODES = 12  # get a covariance to 10⁻⁶ up to ρ = 0.999, and to 10⁻¹² up to 0.9, in a quarter of the time
_MOST_CORRELATED = 1 - 1e-12
# Of three columns 512 points get the variance of every sum of statistics to about 5 %, and as well of four to eight
# columns when each takes twice as many; of twenty, 2¹⁵ to about 25 %, where noise is what counts.
_LEAST_POINTS, _MOST_POINTS = 2**9, 2**15
_SEED = 20260
_INSIDE = 1 - 1e-10  # of the unit interval, so that no point is infinite


def powers(
    mean: Float[Array | np.ndarray, "*b"],
    sd: Float[Array | np.ndarray, "*b"],
    highest: int,
    *,
    keeps_outside: bool = True,
    cdf: Callable = norm.cdf,
    pdf: Callable = norm.pdf,
) -> list:
    """E c^k for k = 1 … highest; with records outside counted as 0 where they are not kept at the bounds.

    With u = m + sd·z and a, b the bounds in units of z: ∫ z^k φ over [a, b] by parts, from k − 2 to k. In plain
    operators, so that it works out what `cdf` and `pdf` of a standard normal do.
    """
    a, b = (-1 - mean) / sd, (1 - mean) / sd
    at_a, at_b = pdf(a), pdf(b)
    inside = [cdf(b) - cdf(a), at_a - at_b]
    for k in range(2, highest + 1):
        inside.append((k - 1) * inside[k - 2] + a ** (k - 1) * at_a - b ** (k - 1) * at_b)
    found = [
        sum((math.comb(k, j) * mean ** (k - j) * sd**j * inside[j] for j in range(k + 1)), start=0.0 * mean)
        for k in range(1, highest + 1)
    ]
    if not keeps_outside:
        return found
    below, above = cdf(a), cdf(-b)
    return [p + (-1) ** k * below + above for k, p in enumerate(found, 1)]


def covariances(
    mean: Float[Array, " d"], covariance: Float[Array, "d d"], *, nodes: int = _NODES
) -> Float[Array, " pairs"]:
    """Cov(c_i, c_j) of i < j, row by row."""
    i, j = np.triu_indices(len(mean), 1)
    sd = jnp.sqrt(jnp.diag(covariance))
    ends = jnp.stack([(-1 - mean) / sd, (1 - mean) / sd])
    held = norm.cdf(ends[1]) - norm.cdf(ends[0])
    rho = jnp.clip(covariance[i, j] / (sd[i] * sd[j]), -_MOST_CORRELATED, _MOST_CORRELATED)
    at, weights = np.polynomial.legendre.leggauss(nodes)
    widest = jnp.arcsin(rho)
    angle = widest * (0.5 * (at + 1))[:, None]
    sine, squared = jnp.sin(angle), jnp.cos(angle) ** 2
    corners = jnp.zeros_like(angle)
    for one, other in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x, y = ends[one][i], ends[other][j]
        density = jnp.exp(-0.5 * (x**2 - 2 * x * y * sine + y**2) / squared)
        corners = corners + (density if one == other else -density)
    bent = widest / (4 * np.pi) * (weights[:, None] * (rho - sine) * corners).sum(0)
    return sd[i] * sd[j] * (rho * held[i] * held[j] + bent)


def means(mean: Float[Array, " d"], covariance: Float[Array, "d d"], *, nodes: int = _NODES) -> Float[Array, " k"]:
    """Of (c_j, c_i c_j with i ≤ j)."""
    one, two = powers(mean, jnp.sqrt(jnp.diag(covariance)), 2)
    i, j = np.triu_indices(len(mean), 1)
    pairs = covariances(mean, covariance, nodes=nodes) + one[i] * one[j]
    return jnp.concatenate([one, jnp.concatenate([two, pairs])[_places(len(mean))]])


def moments(
    mean: Float[Array, " d"], covariance: Float[Array, "d d"], *, again: bool = False
) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Mean and covariance of (c_j, c_i c_j with i ≤ j); `again` by other points and twice the nodes, as a check."""
    d = len(mean)
    exact = means(mean, covariance, nodes=2 * _NODES if again else _NODES)
    first, second = np.triu_indices(d)
    c = jnp.clip(mean + points(d, again) @ cholesky(covariance).T, -1, 1)
    t = jnp.concatenate([c, c[:, first] * c[:, second]], axis=1)
    away = t - t.mean(0)
    return exact, away.T @ away / len(t)


@functools.cache
def points(d: int, again: bool = False) -> np.ndarray:
    """Standard normal Sobol points, always the same ones; not moved to have the moments of a normal, which is worse."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    number = min(_LEAST_POINTS * 2 ** max(d - 3, 0), _MOST_POINTS)
    sobol = qmc.Sobol(d, rng=np.random.default_rng([_SEED, int(again)]))
    return ndtri(0.5 + _INSIDE * (sobol.random(number) - 0.5))


@functools.cache
def _places(d: int) -> np.ndarray:
    """Where each product i ≤ j stands in (squares, products i < j)."""
    places = np.diag(np.arange(d))
    places[np.triu_indices(d, 1)] = d + np.arange(d * (d - 1) // 2)
    return places[np.triu_indices(d)]
