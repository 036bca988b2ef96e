"""One-posterior sampling: the draws of a flattened posterior are themselves the release.

    θ ~ p(θ | x)^ρ  on [a₀, 1 − a₀],        ρ = min(1, ε_ops / 2Δ),        ε_ops = ε/100 for each of 100 draws

This is the exponential mechanism with utility log p(θ, x), so one draw is ε_ops-private when Δ bounds what replacing
a record changes in that utility at any θ: Δ = m log((1 − a₀)/a₀) for a record of m trials. The prior is flattened with
the likelihood (Foulds et al. 2016), which is why the draws are too wide; with the likelihood alone they would fall
back on the prior, and be calibrated. Settings of Bernstein & Sheldon 2018. It sees the true statistic, so it serves
evaluation only, in floating point.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import Bernoulli, Binomial
from noiseaware.prior import AbstractPrior, Beta, Numeric
from noiseaware.privacy import Pure

RELEASED = 100  # draws that share ε
LEAST = 0.1  # a₀
_NODES = 4097
_DEPTH = 40.0  # log densities this far below the mode are left out: e^−40 of the mass


def batch(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, num_draws: int
) -> Float[Array, "b num_draws"]:
    """Return draws for a batch of tables that differ in y = s alone, at the ε that the noise promises; 100 cost ε."""
    power, n = tempering(evidence, prior), evidence.n

    def one(key: Key[Array, ""], s: Float[Array, " k"]) -> Float[Array, " num_draws"]:
        full: Beta = evidence.family.update(prior, s, n)  # type: ignore[assignment]
        flat = Beta(power * (full.a - 1) + 1, power * (full.b - 1) + 1)
        return truncated(key, flat, LEAST, num_draws)

    return jax.vmap(one)(keys, evidence.y)


def tempering(evidence: Evidence, prior: AbstractPrior) -> float:
    """Return ρ = min(1, ε_ops / 2Δ)."""
    family = evidence.family
    if not isinstance(family, Bernoulli | Binomial) or not isinstance(prior, Beta):
        raise ValueError(f"method ops must be used with successes and a beta prior, got the {family.name} family.")
    promise = evidence.mechanism.guarantee(float(family.query.sensitivity()))
    if promise is None or promise.kind != Pure.kind:
        raise ValueError(f"method ops must be given epsilon, got {promise or 'no promise'}.")
    change = family.trials * math.log((1 - LEAST) / LEAST)
    return min(1.0, float(promise.amount) / RELEASED / (2 * change))


def truncated(key: Key[Array, ""], belief: Beta, least: float, num_draws: int) -> Float[Array, " num_draws"]:
    """A beta on [least, 1 − least], by the inverse CDF on a grid in v = logit θ.

    The log density of v is concave, so the grid spans where it is within 40 of its top. That is at most 18 standard
    deviations or 40 e-foldings, a hundredth of one a cell, and the CDF is right to about 1e−5 in every tail.
    """
    edge = math.log((1 - least) / least)
    mode = jnp.clip(jnp.log(belief.a) - jnp.log(belief.b), -edge, edge)
    floor = belief.log_density_real(mode) - _DEPTH
    low, high = (_crossing(belief, mode, jnp.full_like(mode, side), floor) for side in (-edge, edge))
    v = jnp.linspace(low, high, _NODES)
    density = jnp.exp(belief.log_density_real(v) - floor - _DEPTH)
    cdf = jnp.append(0.0, jnp.cumsum(density[1:] + density[:-1]))
    u = jax.random.uniform(key, (num_draws,)) * cdf[-1]
    return jnp.clip(belief.from_real(jnp.interp(u, cdf, v)), least, 1 - least)


def _crossing(belief: Beta, inside: Float[Array, ""], outside: Float[Array, ""], floor: Numeric) -> Float[Array, ""]:
    """Return the point from inside to outside where the log density falls through floor, or outside if none."""

    def halve(_, ends):
        inner, outer = ends
        middle = 0.5 * (inner + outer)
        is_in = belief.log_density_real(middle) >= floor
        return jnp.where(is_in, middle, inner), jnp.where(is_in, outer, middle)

    halved = jax.lax.fori_loop(0, 60, halve, (inside, outside))[1]
    return jnp.where(belief.log_density_real(outside) >= floor, outside, halved)
