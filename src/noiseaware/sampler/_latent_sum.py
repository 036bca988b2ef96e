"""Unaltered records: the posterior as a mixture over the unseen sum.

    p(θ | y) = ∫ p(θ | s) p(s | y) ds        p(s | y) ∝ h_n(s) Z(prior + s) · noise(y − s)

The second factor is a law on a line, drawn exactly (see _line); the first is the family's conjugate update. For the
binomial this is a finite mixture of betas. Nothing is approximated but the line's cells, and the cost is free of n.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from jaxtyping import ArrayLike as Numeric

from noiseaware.family import AbstractScalarFamily
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import AbstractScalarPrior
from noiseaware.sampler import _line

_NODES = 4096
# Sums are whole numbers that a float holds exactly; no release can reach beyond (custodian/table.py caps at 2^62
# grid steps of the finest grid, which is far below 2^50 units).
_FARTHEST = 2.0**50


def log_marginal(
    family: AbstractScalarFamily, prior: AbstractScalarPrior, s: Float[Array, " m"], n: Numeric
) -> Float[Array, " m"]:
    """log p(s), the law of the sum of n records with θ integrated out."""
    updated = family.update(prior, s[:, None], n)
    return family.log_base(s, n) + updated.log_normalizer() - prior.log_normalizer()


def sum_nodes(
    family: AbstractScalarFamily,
    prior: AbstractScalarPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Nodes in the coordinate of the sum and log p(s, y) there, as a density of that coordinate."""
    low, high = _range(family, prior, y, n)
    pivot = _to_coordinate(family, y)

    def log_joint(v: Float[Array, " m"]) -> Float[Array, " m"]:
        s = from_coordinate(family, v)
        jacobian = v if _is_positive(family) else 0.0
        return log_marginal(family, prior, s, n) + mechanism.log_density(y - s) + jacobian

    low, high = _line.focus(log_joint, low, high, pivot, whole=family.is_integer)
    nodes = _line.nodes_between(low, high, jnp.clip(pivot, low, high), _NODES, whole=family.is_integer)
    return nodes, log_joint(nodes)


def _is_positive(family: AbstractScalarFamily) -> bool:
    """Whether the sum is a positive real, which is integrated on a log scale."""
    return not family.is_integer and family.possible(1.0)[0] == 0


def from_coordinate(family: AbstractScalarFamily, v: Float[Array, " m"]) -> Float[Array, " m"]:
    return jnp.exp(v) if _is_positive(family) else v


def _to_coordinate(family: AbstractScalarFamily, s: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.log(jnp.maximum(s, 1e-300)) if _is_positive(family) else s


def _range(
    family: AbstractScalarFamily, prior: AbstractScalarPrior, y: Float[Array, ""], n: Numeric
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Where the coordinate of the sum may lie at all."""
    low, high = family.possible(n)
    if _is_positive(family):
        return jnp.full_like(y, -690.0), jnp.full_like(y, 690.0)
    if family.is_integer:
        return jnp.full_like(y, low), jnp.minimum(jnp.asarray(high, y.dtype), _FARTHEST)
    # The real line: p(s | y) lies between y and the prior's guess, give or take the spread of s under the prior.
    guess = n * prior.mean  # type: ignore[attr-defined]
    spread = jnp.sqrt(-1 / _curvature(family, prior, n))
    return jnp.minimum(y, guess) - 16 * spread, jnp.maximum(y, guess) + 16 * spread


def _curvature(family: AbstractScalarFamily, prior: AbstractScalarPrior, n: Numeric) -> Float[Array, ""]:
    """(log p(s))'' of a sum whose marginal law is normal."""

    def at(s: Float[Array, ""]) -> Float[Array, ""]:
        return log_marginal(family, prior, s[None], n)[0]

    return jax.grad(jax.grad(at))(jnp.zeros(()))


@functools.partial(jax.jit, static_argnames=("num_draws",))
def draws(
    key: Key[Array, ""],
    family: AbstractScalarFamily,
    prior: AbstractScalarPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    *,
    num_draws: int,
) -> Float[Array, " num_draws"]:
    """s from p(s | y), then θ from p(θ | s)."""
    key_sum, key_theta = jax.random.split(key)
    nodes, log_joint = sum_nodes(family, prior, mechanism, y, n)
    s = from_coordinate(family, _line.draw(key_sum, nodes, log_joint, num_draws, whole=family.is_integer))
    return family.update(prior, s[:, None], n).sample(key_theta, (num_draws,))


@jax.jit
def log_likelihood(
    family: AbstractScalarFamily,
    prior: AbstractScalarPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, ""],
    n: Numeric,
    theta: Float[Array, " m"],
) -> Float[Array, " m"]:
    """log p(y | θ), by summing p(y | s) p(s | θ) over the nodes that matter for this y."""
    nodes, log_joint = sum_nodes(family, prior, mechanism, y, n)
    s = from_coordinate(family, nodes)

    def at(theta: Float[Array, ""]) -> Float[Array, ""]:
        eta = family.natural(theta)
        log_given_theta = family.log_base(s, n) + eta[0] * s - n * family.log_partition(eta)
        shifted = log_joint - log_marginal(family, prior, s, n) + log_given_theta
        return jax.nn.logsumexp(_line.cells(nodes, shifted, whole=family.is_integer)[2])

    return jax.vmap(at)(theta)
