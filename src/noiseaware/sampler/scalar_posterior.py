"""One parameter: its posterior as a law on a line.

    p(θ | y) ∝ p(θ) p(y | θ)

The log likelihood comes from _latent_sum (records as they are) or _altered_sum (clamped or dropped). In the prior's
real coordinate the line is narrowed to where the mass is, the log posterior evaluated at nodes there, placed by
mass and curvature, interpolated by cubics, and θ drawn by the inverse CDF. Records that are dropped make E t(x) rise
and fall with θ, so the line is searched in pieces on which it is monotone.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractScalarFamily
from noiseaware.likelihood import clamped_sum, line, plain_sum, private_count
from noiseaware.likelihood.private_count import Likelihood
from noiseaware.prior import AbstractScalarPrior, Numeric

_NODES, _NARROW, _SPREAD = 128, 12, 2  # narrowing ends as soon as it hardly shrinks the window
_HARDLY = 0.5  # of the window: narrowing that leaves more of it is no longer worth a stage
_NODES_NOISY = 48  # where n is noisy, every node costs many numbers of records, and the likelihood is smoother
_FINER = 16  # interpolated points from one node to the next
_NOTHING = -700.0  # log density from here down is as good as none, and cubics through it stay finite
_DEPTH = 50.0  # of a tail in log density, beyond which there is no mass
_SEARCH = 400  # points for the turning points of E t(x)


def num_listed(*tables: Evidence) -> int:
    """Return how many sums to list of each table; 0 where they are not (see plain_sum)."""
    if not all(table.count.is_public for table in tables):
        return 0
    return plain_sum.num_listed(_family(tables), max(float(table.n) for table in tables))


def _family(tables: tuple[Evidence, ...]) -> AbstractScalarFamily:
    """Return the one family of all tables."""
    return tables[0].family  # type: ignore[return-value]


def _likelihoods(evidence: Evidence, listed: int = 0) -> tuple[Likelihood, Likelihood]:
    """Return log p(y | θ) for a vector of θ: one that shows where the mass is, and the exact one."""
    count = evidence.count
    if count.is_public:
        return _given_count(evidence, count.value, listed)
    empty = evidence.law.log_density(evidence.y[0])
    rough = private_count.marginal(lambda n: _given_count(evidence, n)[0], empty, count.fewer())
    return rough, private_count.marginal(lambda n: _given_count(evidence, n)[1], empty, count)


def _given_count(evidence: Evidence, n: Numeric, listed: int = 0) -> tuple[Likelihood, Likelihood]:
    """Return both for n records."""
    family: Any = evidence.family
    mechanism, y = evidence.mechanism, evidence.y[0]
    if family.query.is_altered:
        rough = jax.vmap(functools.partial(clamped_sum.approximate, family, mechanism, y, n))
        return rough, functools.partial(clamped_sum.log_likelihood, family, mechanism, y, n)
    exact = plain_sum.likelihood(family, mechanism, y, n, listed)
    return exact, exact


def _summed(tables: tuple[Evidence, ...], listed: int) -> tuple[Likelihood, Likelihood]:
    """Return both for several tables of one θ."""
    pairs = [_likelihoods(table, listed) for table in tables]
    if len(pairs) == 1:
        return pairs[0]
    rough, exact = zip(*pairs, strict=True)
    total = lambda parts: lambda theta: functools.reduce(jnp.add, [part(theta) for part in parts])  # noqa: E731
    summed = total(exact)
    return (summed if rough == exact else total(rough)), summed


def _theta_nodes(
    prior: AbstractScalarPrior, tables: tuple[Evidence, ...], listed: int
) -> tuple[Float[Array, "pieces m"], Float[Array, "pieces m"]]:
    """Nodes in the prior's real coordinate and the log posterior density there, up to a constant."""
    rough, exact = _summed(tables, listed)
    count = _NODES if all(table.count.is_public for table in tables) else _NODES_NOISY

    def log_posterior(likelihood, v: Float[Array, " m"]) -> Float[Array, " m"]:
        return prior.log_density_real(v) + likelihood(prior.from_real(v))

    def piece(edges: Float[Array, "2"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        def place(state):
            """First narrow the window until it hardly shrinks, then spread the nodes in it by mass and curvature."""
            stage, v, log_density = state
            low, high = line.held_window(v, log_density)
            is_narrow = (stage > 0) & (high - low > _HARDLY * (v[-1] - v[0]))
            stage = jnp.where(is_narrow, jnp.maximum(stage, _NARROW), stage)
            v = jnp.where(stage < _NARROW, jnp.linspace(low, high, count), line.redistribute(v, log_density))
            return stage + 1, v, log_posterior(rough, v)

        even = jnp.linspace(edges[0], edges[1], count)
        # flat at first, which holds the whole window: the loop's body is then the only place to compile
        start = (jnp.zeros((), int), even, jnp.zeros_like(even))
        _, v, log_density = jax.lax.while_loop(lambda state: state[0] < _NARROW + _SPREAD, place, start)
        return v, log_density if exact is rough else log_posterior(exact, v)

    averages = jnp.stack([table.y[0] / table.n for table in tables])
    return jax.lax.map(piece, _pieces(_family(tables), prior, averages))


def _pieces(family: Any, prior: AbstractScalarPrior, averages: Float[Array, " tables"]) -> Float[Array, "pieces 2"]:
    """Where the coordinate may lie, cut where E t(x) turns."""
    low, high = _range(family, prior, averages)
    if not family.query.is_altered or family.query.outside == "clamp":
        return jnp.stack([low, high])[None]
    v = jnp.linspace(low, high, _SEARCH)
    mean = jax.vmap(lambda t: clamped_sum.record(family, t).tilted(jnp.zeros(()))[1])(prior.from_real(v))
    first, last = jnp.sort(jnp.stack([jnp.nanargmin(mean), jnp.nanargmax(mean)]))
    first = jnp.clip(first, 1, _SEARCH - 3)  # a piece without length has no nodes to be told apart
    last = jnp.clip(last, first + 1, _SEARCH - 2)
    edges = jnp.stack([low, v[first], v[last], high])
    return jnp.stack([edges[:-1], edges[1:]], axis=1)


def _range(
    family: AbstractScalarFamily, prior: AbstractScalarPrior, averages: Float[Array, " tables"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Nearly all that a float can hold of (0, ∞) or (0, 1); for a mean, the reach of prior, bounds and data."""
    average = averages[0]
    if family.possible(1.0)[0] == 0:
        positive = prior.from_real(jnp.full_like(average, 800.0)) > 1
        return jnp.full_like(average, -600.0), jnp.where(positive, 600.0, 36.0)
    reach = 40 * jnp.sqrt(prior.variance)  # type: ignore[attr-defined]
    centre = prior.mean  # type: ignore[attr-defined]
    low, high = family.query.bounds or (0.0, 0.0)
    beyond = jnp.stack([jnp.full_like(average, m) for m in (2 * low - high, 2 * high - low)])
    marks = jnp.concatenate([averages, beyond]) if family.query.bounds else averages
    return jnp.minimum(marks.min(), centre) - reach, jnp.maximum(marks.max(), centre) + reach


@functools.partial(jax.jit, static_argnames=("num_draws", "listed"))
def draws(
    key: Key[Array, ""],
    tables: tuple[Evidence, ...],
    prior: AbstractScalarPrior,
    *,
    num_draws: int,
    listed: int = 0,
) -> Float[Array, " num_draws"]:
    """Return θ by the inverse CDF of p(θ | y_1, y_2, …) ∝ p(θ) Π_i p(y_i | θ), of tables with one θ."""
    v, log_density = _theta_nodes(prior, tables, listed)
    log_density = jnp.maximum(log_density - log_density.max(), _NOTHING)
    v, log_density = jax.vmap(lambda v, f: line.refine(v, f, _FINER))(v, log_density)
    return prior.from_real(line.draw(key, *_with_tails(prior, v.ravel(), log_density.ravel()), num_draws))


def _with_tails(
    prior: AbstractScalarPrior, v: Float[Array, " m"], log_density: Float[Array, " m"]
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """The same with what lies beyond the first and the last node, where θ is all but a bound of its support.

    p(y | θ) no longer changes there, and of the prior a straight line in logs is left: a Beta(0.01, 0.01) has half of
    its mass at probabilities that floats cannot tell from 0 or 1.
    """
    ends = jnp.stack([v[0], v[-1]])
    out = jnp.array([-1.0, 1.0])
    fall = prior.log_density_real(ends) - prior.log_density_real(ends + out)
    reach = jnp.where((fall > 0) & jnp.isfinite(fall), _DEPTH / fall, 0.0)
    v = jnp.concatenate([ends[:1] - reach[:1], v, ends[1:] + reach[1:]])
    depth = jnp.where(reach > 0, _DEPTH, 0.0)
    return v, jnp.concatenate([log_density[:1] - depth[:1], log_density, log_density[-1:] - depth[1:]])


@jax.jit
def log_likelihood(evidence: Evidence, theta: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return log p(y | θ), or log p(y, ñ | θ)."""
    return _likelihoods(evidence)[1](theta)
