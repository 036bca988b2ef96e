"""Whole numbers as they are: the unseen sum of a count, then the parameter given it.

    p(s | y) ∝ p(s) p(y | s)        p(s) = h_n(s) Z(prior + s) / Z(prior)        θ | s by conjugacy

Nothing is asked of p(y | s) but its value at whole s, so that it may be the mass of an interval of the noise: of a
value that was rounded, clamped or suppressed. Where the noise leaves few sums, all of them are listed; else those that
matter are found on a line, and p(s | y) is taken as geometric between nodes.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractScalarFamily
from noiseaware.likelihood import line
from noiseaware.mechanism import AbstractLaw, Interval
from noiseaware.prior import AbstractScalarPrior, Numeric

_REACH = 45.0  # scales of the noise within which the sum lies, but for e^−45
_MOST = 1e15  # of a sum without a bound
_NODES = 1024
_STEPPED = 2**16  # sums that are listed under noise whose mass jumps between nodes
_SURE = 20.0  # e^20 times as much must be within reach of the noise as there may be beyond it


def num_listed(evidence: Evidence) -> int:
    """Return how many sums to list, at most, for each of a batch of values; 0 where they are too many."""
    low, high = _window(evidence)
    most = float((high - low).max()) + 1
    is_stepped = evidence.law.is_stepped
    if is_stepped and most > _STEPPED:
        rule = f"noise whose mass jumps must leave at most {_STEPPED} sums"
        raise ValueError(f"{rule}, got {most:.3g}; use augmentation.")
    return 2 ** math.ceil(math.log2(most)) if most <= _NODES or is_stepped else 0


@functools.partial(jax.jit, static_argnames=("num_draws", "listed"))
def draws(
    key: Key[Array, ""], evidence: Evidence, prior: AbstractScalarPrior, *, num_draws: int, listed: int
) -> Float[Array, " num_draws"]:
    """Return draws of θ from p(θ | s), for s from p(s | y)."""
    family, law, y, n = _parts(evidence)
    key_count, key_theta = jax.random.split(key)

    def log_density(s: Float[Array, " m"]) -> Float[Array, " m"]:
        return family.log_base(s, n) + family.update(prior, s[:, None], n).log_normalizer() + law.log_density(y - s)

    low, high = _window(evidence)
    beyond = _log_beyond(family, law, y, n, low, high)
    if listed:
        nodes = jnp.minimum(low + jnp.arange(0.0, listed), high)
    else:
        pivot = jnp.clip(jnp.round(y), low, high)
        low, high = line.focus(log_density, low, high, pivot)
        nodes = line.nodes_between(low, high, jnp.clip(pivot, low, high), _NODES)
    height = log_density(nodes)
    log_mass = line.cells(nodes, height, whole=True)[2]
    is_sure = jax.nn.logsumexp(log_mass) - prior.log_normalizer() > beyond + _SURE
    s = line.draw_whole(key_count, nodes, height, num_draws)
    theta = family.update(prior, s[:, None], n).sample(key_theta, (num_draws,))
    return jnp.where(is_sure, theta, jnp.nan)  # a prior that the noise cannot explain: seen, and refused, by infer


def _parts(evidence: Evidence) -> tuple[AbstractScalarFamily, AbstractLaw, Float[Array, "*b"], Numeric]:
    """Return the family, the law, the one value of each release, and n."""
    family: AbstractScalarFamily = evidence.family  # type: ignore[assignment]
    return family, evidence.law, jnp.asarray(evidence.y[..., 0]), evidence.count.value


def _window(evidence: Evidence) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
    """Return the least and the greatest sum that both the family and the noise allow."""
    family, law, y, n = _parts(evidence)
    below, above = (law.below, law.above) if isinstance(law, Interval) else (0.0, 0.0)
    reach = _REACH * jnp.asarray(law.spread, y.dtype)
    least, greatest = (jnp.asarray(edge, y.dtype) for edge in family.possible(n))
    greatest = jnp.minimum(greatest, _MOST)
    y = jnp.clip(y, least, greatest)  # from far outside, it is the sums at that end that matter
    low, high = jnp.ceil(y - below - reach), jnp.floor(y + above + reach)
    return jnp.clip(low, least, greatest), jnp.clip(high, least, greatest)


def _log_beyond(
    family: AbstractScalarFamily, law: AbstractLaw, y: Float[Array, ""], n: Numeric, low, high
) -> Float[Array, ""]:
    """The most that log p(y | s) can be of sums outside the window."""
    least, greatest = family.possible(n)
    next_to = jnp.stack([low - 1, high + 1])
    is_cut = jnp.stack([low > least, high < jnp.minimum(greatest, _MOST)])
    return jnp.where(is_cut, law.log_density(y - next_to), -jnp.inf).max()
