"""The Gibbs samplers of Bernstein & Sheldon 2018, Algorithms 1, 2 and 3, for any exponential family.

    θ ~ p(θ | s)                     by conjugacy
    m, V ← n · moments of (t, r)     r is what the bounds leave of t (_moment); r = t in Algorithm 1
    s, r ~ N(m, V) given y ~ N(r, diag σ²)
    σ_j² given |y_j − r_j|           Laplace noise of scale b is normal noise of variance σ² ~ Exp(mean 2b²)

As corrected: s is drawn given y in all of it, sections of the line have multinomial counts, and draws that no table
could have are drawn again. The law of s given θ is normal by the central limit theorem while θ given s is exact, so
that no joint law has both conditionals: where there is an exact sampler, it is the better one.
"""

import functools
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, AbstractQuadraticFamily
from noiseaware.likelihood import moment
from noiseaware.prior import AbstractPrior, Numeric
from noiseaware.sampler import _truncated_normal, markov_chain
from noiseaware.sampler._sampler import Route
from noiseaware.triangular import cholesky, solve

_WARMUP, _KEPT = 2000, 5000  # as in the paper
_TRIES = 100  # at a statistic that a table could have
_JITTER = 1e-12  # of a variance: a multinomial covariance has no inverse


class State(NamedTuple):
    """θ, the statistic s of all records, and the variance of each noise."""

    theta: Float[Array, "*batch"]
    s: Float[Array, " k"]
    noise_variance: Float[Array, " k"]


class Info(NamedTuple):
    """What is released but for the noise; and whether it is new, or no s was found that a table could have."""

    released: Float[Array, " k"]
    is_new: Bool[Array, ""]


def init(key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior) -> State:
    """Start where the naive posterior is: s = y, or the nearest that a table could have."""
    family, n = evidence.family, evidence.count.value
    s = family.project(evidence.y, n)
    return State(family.update(prior, s, n).sample(key), s, jnp.full_like(s, 2 * evidence.mechanism.spread**2))


def step(key: Key[Array, ""], state: State, evidence: Evidence, prior: AbstractPrior) -> tuple[State, Info]:
    """Make one sweep."""
    key_statistic, key_theta, key_noise = jax.random.split(key, 3)
    family, y, n = evidence.family, evidence.y, evidence.count.value
    mean, covariance = moment.of_record(family, state.theta)
    draw = _draw_number if y.size == 1 else _draw_vector
    s, released, is_new = draw(key_statistic, family, n * mean, n * covariance, y, state, n)
    theta = family.update(prior, s, n).sample(key_theta)
    noise_variance = evidence.mechanism.mixture.draw_variance(key_noise, y - released)
    return State(theta, s, noise_variance), Info(released, is_new)


def _draw_number(
    key: Key[Array, ""],
    family: AbstractFamily,
    mean: Float[Array, " m"],
    covariance: Float[Array, "m m"],
    y: Float[Array, "1"],
    state: State,
    n: Numeric,
) -> tuple[Float[Array, "1"], Float[Array, "1"], Bool[Array, ""]]:
    """One statistic: s given y, or first r given y and then s given r, each normal and held to what is possible."""
    key_released, key_s = jax.random.split(key)
    low, high = (family.project(jnp.full_like(y, end), n)[0] for end in (-jnp.inf, jnp.inf))
    last = covariance[-1, -1]
    gain = last / jnp.maximum(last + state.noise_variance[0], 1e-300)
    centre, sd = mean[-1] + gain * (y[0] - mean[-1]), jnp.sqrt(gain * state.noise_variance[0])
    if mean.size == 1:
        s = _truncated_normal.draw(key_s, centre, sd, low, high)
        return s[None], s[None], jnp.array(True)
    released = centre + sd * jax.random.normal(key_released)
    slope = covariance[0, 1] / jnp.maximum(last, 1e-300)
    centre = mean[0] + slope * (released - mean[1])
    sd = jnp.sqrt(jnp.maximum(covariance[0, 0] - slope * covariance[0, 1], 0.0))
    return _truncated_normal.draw(key_s, centre, sd, low, high)[None], released[None], jnp.array(True)


def _draw_vector(
    key: Key[Array, ""],
    family: AbstractFamily,
    mean: Float[Array, " m"],
    covariance: Float[Array, "m m"],
    y: Float[Array, " k"],
    state: State,
    n: Numeric,
) -> tuple[Float[Array, " k"], Float[Array, " k"], Bool[Array, ""]]:
    """Several: a joint draw is moved to agree with y (Matheron's rule), until a table could have it."""
    k = y.size
    is_altered = mean.size > k
    covariance = covariance + _JITTER * jnp.diag(jnp.diag(covariance))
    root = cholesky(covariance)
    inner = covariance[-k:, -k:] + jnp.diag(state.noise_variance)
    factor = cholesky(inner)

    def propose(carry):
        key, _, _, tries = carry
        key, key_joint, key_noise = jax.random.split(key, 3)
        joint = mean + root @ jax.random.normal(key_joint, mean.shape)
        noise = jnp.sqrt(state.noise_variance) * jax.random.normal(key_noise, (k,))
        half = solve(factor, (y - joint[-k:] - noise)[:, None])
        moved = joint + covariance[:, -k:] @ solve(factor, half, transposed=True)[:, 0]
        s = family.project(moved[:k], n)
        is_valid = (jnp.abs(s - moved[:k]) <= 1e-5 * (1 + jnp.abs(s))).all()
        released = jnp.where(is_valid | is_altered, moved[-k:], state.s)
        return key, jnp.where(is_valid, s, state.s), released, (is_valid, tries[1] + 1)

    start = (key, state.s, state.s, (jnp.array(False), 0))
    _, s, released, (is_new, _) = jax.lax.while_loop(lambda c: ~c[3][0] & (c[3][1] < _TRIES), propose, start)
    return s, released, is_new


@functools.partial(jax.jit, static_argnames=("num_draws", "num_warmup", "thin"))
def chains(
    keys: Key[Array, " c"],
    evidence: Evidence,
    prior: AbstractPrior,
    *,
    num_draws: int,
    num_warmup: int = _WARMUP,
    thin: int = 1,
) -> Float[Array, "c num_draws ..."]:
    """Run one chain for each key and y. What else is an array holds one number for each; a plain number is for all."""

    def one(key, prior, law, y, count):
        own = Evidence(evidence.family, law, y, count)
        return markov_chain.run(
            key,
            lambda key: init(key, own, prior),
            lambda key, state: step(key, state, own, prior)[0],
            lambda state: state.theta,
            num_draws=num_draws,
            num_warmup=num_warmup,
            thin=thin,
        )

    settings = (prior, evidence.law, evidence.y, evidence.count)
    axes = jax.tree.map(lambda leaf: 0 if jnp.ndim(leaf) else None, settings)
    return jax.vmap(one, in_axes=(0, *axes))(keys, *settings)


class Gibbs(markov_chain.AbstractChains):
    """The Gibbs samplers of Bernstein & Sheldon 2018, thinned from as many sweeps as in the paper."""

    chains: int = eqx.field(static=True, default=16)
    name: ClassVar[str] = "gibbs"
    preference: ClassVar[int | None] = 2

    def serves(self, family: AbstractFamily) -> bool:
        """Return True for any exponential family but those of several columns, which the samplers of 2019 serve."""
        return len(family.query.columns) <= 1 and family.is_natural and not isinstance(family, AbstractQuadraticFamily)

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route:
        """Return a route with a sentence always: with few records and a vague prior draws can be far from the truth."""
        sentence = "The statistic is taken as normal given θ (central limit theorem), as in the Gibbs sampler of 2018."
        if evidence.family.exact_by is not None:
            sentence += " Take method='exact' for draws of the posterior itself."
        return Route(self, f"{sentence} There is no noise." if evidence.is_noiseless else sentence)

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        return chains(keys, evidence, prior, num_draws=num_draws, thin=max(1, _KEPT // num_draws))
