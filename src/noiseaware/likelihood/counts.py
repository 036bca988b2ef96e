"""Categorical records: forward–backward over the unseen counts.

    p(k | y) ∝ Π_j g_j(k_j) on Σ_j k_j = n        g_j(k) = Γ(α_j + k) / (k! Γ(α_j)) · noise(y_j − k)

Forward, f_j = g_j ∗ f_{j−1} by the FFT; backward, k_J, …, k_2 are drawn one after another given what is left, and
k_1 is the rest; then θ | k ~ Dirichlet(α + k). Every g_j is tilted by the same e^{λk}, which changes nothing because
Σk is fixed, with λ such that the tilted means add up to n: then n is in the bulk of f_J and the FFT's round-off,
which is relative to the bulk, does not show. Draws are independent and the cost does not grow with n.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int, Key

from noiseaware.evidence.release import NoisyCount
from noiseaware.likelihood import line
from noiseaware.mechanism import AbstractLaw, AbstractMechanism, AbstractTilt
from noiseaware.prior import Dirichlet, Numeric

_MOST_BLOCKS = 2**16
_BISECTIONS = 36
_MEAN_NODES = 512
_TRIES = 100_000
_LISTED_AT_ONCE = 32  # draws
_ROUND_OFF = 1e-15  # of the FFT, against a greatest mass of 1

LogWeight = Callable[[Float[Array, "... J"]], Float[Array, "... J"]]


class Total(NamedTuple):
    """A private number of records: what was released of it, the law of its noise, and the most that it may be."""

    value: Float[Array, ""]
    mechanism: AbstractMechanism
    most: Float[Array, ""]

    def wanted(self, tilt: Float[Array, ""]) -> Float[Array, ""]:
        """The n at which log p(ñ | n) has this slope; of Laplace noise, the kink."""
        return jnp.maximum(self.value, 1.0) - self._noise.place(tilt)

    def held(self, tilt: Float[Array, ""]) -> Float[Array, ""]:
        """The tilt, within the slopes that log p(ñ | n) has."""
        return self._noise.limited(tilt)

    @property
    def _noise(self) -> AbstractTilt:
        return self.mechanism.continuous().tilt


def total_of(count: int | NoisyCount) -> float | Total:
    """The total of the counts: a noisy one is within reach of what was released."""
    if not isinstance(count, NoisyCount):
        return float(count)
    most = count.likely + math.ceil(count.mechanism.reach * count.mechanism.spread)  # type: ignore[operator]
    return Total(jnp.asarray(float(count.value)), count.mechanism, jnp.asarray(float(most)))


def most_of(n: Numeric | Total) -> Numeric:
    """The most records that there may be."""
    return n.most if isinstance(n, Total) else n


class Shape(NamedTuple):
    """The static size of the computation: `blocks` blocks of `stride` counts a cell, and whether they start at 0."""

    blocks: int
    stride: int
    full: bool


def shape_for(
    prior: Dirichlet, mechanism: AbstractLaw, y: Float[Array | np.ndarray, "*batch J"], n: Numeric | Total
) -> Shape:
    """Every count from 0 to n where that is affordable, else the widest window that any count needs, in strides."""
    if (most := float(most_of(n))) < _MOST_BLOCKS:
        return Shape(2 ** math.ceil(math.log2(most + 2)), 1, True)
    width = float(_widest(prior, mechanism, y.reshape(-1, y.shape[-1]), n)) + 3
    blocks = min(2 ** math.ceil(math.log2(width)), _MOST_BLOCKS)
    return Shape(blocks, 2 ** math.ceil(math.log2(width / blocks)), False)


@jax.jit
def _widest(prior: Dirichlet, mechanism: AbstractLaw, y: Float[Array, "b J"], n: Numeric | Total) -> Float[Array, ""]:
    """The widest window of the counts of a batch of releases."""

    def one(y: Float[Array, " J"]) -> Float[Array, ""]:
        log_weight = _posterior_weight(prior, mechanism, y)
        moments = functools.partial(_moments_found, log_weight, y, most_of(n))
        found = moments(_tilt(moments, log_weight, y, n))
        return (found.high - found.low).max()

    return jax.lax.map(one, y).max()


def _posterior_weight(prior: Dirichlet, mechanism: AbstractLaw, y: Float[Array, " J"]) -> LogWeight:
    """log g_j(k) up to a constant."""
    concentration = jnp.asarray(prior.concentration)
    return lambda k: gammaln(concentration + k) - gammaln(k + 1.0) + mechanism.log_density(y - k)


class Forward(NamedTuple):
    """Tilted masses g_j and partial convolutions f_j, both scaled to a maximum of 1, in the order of `order`."""

    order: Int[Array, " J"]
    start: Float[Array, " J"]
    g: Float[Array, "J blocks"]
    f: Float[Array, "J size"]
    log_scale: Float[Array, ""]
    tilt: Float[Array, ""]


class Moments(NamedTuple):
    """Of each count under its tilted mass alone."""

    mean: Float[Array, " J"]
    variance: Float[Array, " J"]
    low: Float[Array, " J"]
    high: Float[Array, " J"]


def _moments_listed(log_g: Float[Array, "k J"], k: Float[Array, " k"], tilt: Float[Array, ""]) -> Moments:
    """By listing every count."""
    mass = jax.nn.softmax(log_g + tilt * k[:, None], axis=0)
    mean = (mass * k[:, None]).sum(0)
    return Moments(mean, (mass * (k[:, None] - mean) ** 2).sum(0), jnp.zeros_like(mean), jnp.full_like(mean, k[-1]))


def _moments_found(log_weight: LogWeight, y: Float[Array, " J"], n: Numeric, tilt: Float[Array, ""]) -> Moments:
    """By first finding the window where the mass is."""

    def one(position: Int[Array, ""], pivot: Float[Array, ""]) -> Moments:
        def log_density(k: Float[Array, " m"]) -> Float[Array, " m"]:
            return log_weight(k[:, None])[:, position] + tilt * k

        low, high = line.focus(log_density, jnp.zeros_like(pivot), jnp.full_like(pivot, n), pivot)
        nodes = line.nodes_between(low, high, jnp.clip(pivot, low, high), _MEAN_NODES)
        length, _, log_mass = line.cells(nodes, log_density(nodes), whole=True)
        middle, mass = nodes + 0.5 * (length - 1), jax.nn.softmax(log_mass)
        mean = (mass * middle).sum()
        return Moments(mean, (mass * (middle - mean) ** 2).sum(), low, high)

    return jax.vmap(one)(jnp.arange(y.size), jnp.clip(y, 0.0, n))


def _tilt(
    moments: Callable[[Float[Array, ""]], Moments], log_weight: LogWeight, y: Float[Array, " J"], n: Numeric | Total
) -> Float[Array, ""]:
    """λ by bisection, to well within what moves a mean by a standard deviation.

    On a sinh scale: far from the λ sought, λk is so large that its rounding would hide the mass. Of a private n, the
    sum wanted is where p(n | y, ñ) is greatest: where λ is the slope of log p(ñ | n).
    """
    zero, top = jnp.zeros_like(y), jnp.full_like(y, most_of(n))
    # |λ| never needs to pass the steepest slope of a log weight, which is at an end, by more than this
    ends = log_weight(jnp.stack([zero, zero + 1, top - 1, top]))
    reach = jnp.maximum(jnp.abs(ends[1] - ends[0]).max(), jnp.abs(ends[3] - ends[2]).max()) + 60

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        tilt = jnp.sinh(middle)
        below = moments(tilt).mean.sum() < (n.wanted(tilt) if isinstance(n, Total) else n)
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    edge = jnp.arcsinh(reach)
    low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, (-edge, edge))
    tilt = jax.lax.stop_gradient(jnp.sinh(0.5 * (low + high)))  # nothing depends on it
    return n.held(tilt) if isinstance(n, Total) else tilt


def forward(log_weight: LogWeight, y: Float[Array, " J"], n: Numeric | Total, shape: Shape) -> Forward:
    """The tilted masses and their partial convolutions, widest count first."""
    most = most_of(n)
    size = 4 * shape.blocks
    offset = jnp.arange(0.0, shape.blocks * shape.stride)
    if shape.full:
        k = jnp.broadcast_to(offset[:, None], (offset.size, y.size))
        log_g = jnp.where(k <= most, log_weight(k), -jnp.inf)
        moments = functools.partial(_moments_listed, log_g, offset)
        tilt = _tilt(moments, log_weight, y, n)
        found = moments(tilt)
    else:
        moments = functools.partial(_moments_found, log_weight, y, most)
        tilt = _tilt(moments, log_weight, y, n)
        found = moments(tilt)
        k = _starts(found, most, float(offset.size)) + offset[:, None]
        log_g = jnp.where(k <= most, log_weight(k), -jnp.inf)
    order = jnp.argsort(-found.variance)
    log_g = jax.nn.logsumexp((log_g + tilt * k).reshape(shape.blocks, shape.stride, -1), axis=1).T[order]
    log_g = jnp.where(log_g == -jnp.inf, -jnp.inf, log_g)  # the slope of log 0 is not a number
    peak = log_g.max(axis=1)
    g = jnp.exp(log_g - peak[:, None])
    # with every count from 0 on, no partial sum above the most can reach a total up to it
    reachable = jnp.arange(0.0, size) <= (most if shape.full else float(size))

    def convolve(carry, g_next):
        f, log_scale = carry
        product = jnp.fft.irfft(jnp.fft.rfft(f) * jnp.fft.rfft(g_next, size), size)
        product = jnp.where(reachable, jnp.maximum(product, 0.0), 0.0)
        scale = product.max()
        return (product / scale, log_scale + jnp.log(scale)), product / scale

    first = jnp.zeros(size).at[: shape.blocks].set(g[0])
    (_, log_scale), rest = jax.lax.scan(convolve, (first, peak.sum()), g[1:])
    return Forward(order, k[0][order], g, jnp.concatenate([first[None], rest]), log_scale, tilt)


def _starts(found: Moments, n: Numeric, reach: float) -> Float[Array, " J"]:
    """Where windows of the given reach start so that each holds the window found, inside [0, n]."""
    start = jnp.maximum(jnp.floor(0.5 * (found.low + found.high - reach)), 0.0)
    return jnp.minimum(start, jnp.maximum(n - reach + 1, 0.0))


def _backward(
    key: Key[Array, ""], chain: Forward, n: Float[Array, " d"], num_draws: int, shape: Shape
) -> Float[Array, "d J"]:
    """Counts from J down to 2 by rejection: k_j from g_j, kept with probability f_{j−1}(rest) / max f_{j−1}."""
    size = chain.f.shape[1]
    total = jnp.round((n - _least(chain, shape)) / shape.stride)
    cumulative = jnp.cumsum(chain.g, axis=1)

    def one_count(carry, level):
        left, key = carry
        key, key_loop = jax.random.split(key)
        cumulative_g, f_before = level

        def propose(state):
            key, block, accepted, tries = state
            key, key_block, key_accept = jax.random.split(key, 3)
            u = jax.random.uniform(key_block, (num_draws,)) * cumulative_g[-1]
            proposal = jnp.searchsorted(cumulative_g, u, side="right").astype(left.dtype)
            rest = jnp.mod(left - proposal, size).astype(int)
            keep = jax.random.uniform(key_accept, (num_draws,)) < f_before[rest]
            return key, jnp.where(accepted, block, proposal), accepted | keep, tries + 1

        start = (key_loop, jnp.zeros(num_draws), jnp.zeros(num_draws, bool), 0)
        _, block, accepted, _ = jax.lax.while_loop(lambda s: ~s[2].all() & (s[3] < _TRIES), propose, start)
        block = jnp.where(accepted, block, jnp.nan)  # seen, and refused, by infer
        return (left - block, key), block

    levels = (cumulative[1:], chain.f[:-1])
    (left, _), blocks = jax.lax.scan(one_count, (total, key), levels, reverse=True)
    return jnp.concatenate([left[None], blocks]).T


def _backward_listed(
    key: Key[Array, ""], chain: Forward, n: Float[Array, " d"], num_draws: int, shape: Shape
) -> Float[Array, "d J"]:
    """The same by listing g_j(k) f_{j−1}(rest) for each draw: for totals that differ, and may lie in the tails of f."""
    size, blocks = chain.f.shape[1], chain.g.shape[1]
    block = jnp.arange(blocks)

    def one(at: tuple[Float[Array, ""], Key[Array, ""]]) -> Float[Array, " J"]:
        def one_count(left: Float[Array, ""], level) -> tuple[Float[Array, ""], Float[Array, ""]]:
            g, f_before, u = level
            rest = jnp.mod(left.astype(int) - block, size)
            cumulative = jnp.cumsum(g * f_before[rest])
            drawn = jnp.searchsorted(cumulative, u * cumulative[-1], side="right").astype(left.dtype)
            drawn = jnp.where(cumulative[-1] > 0, jnp.minimum(drawn, blocks - 1.0), jnp.nan)  # refused by infer
            return left - drawn, drawn

        total, key = at
        levels = (chain.g[1:], chain.f[:-1], jax.random.uniform(key, (chain.g.shape[0] - 1,)))
        left, drawn = jax.lax.scan(one_count, total, levels, reverse=True)
        return jnp.append(left[None], drawn)

    total = jnp.round((n - _least(chain, shape)) / shape.stride)
    return jax.lax.map(one, (total, jax.random.split(key, num_draws)), batch_size=_LISTED_AT_ONCE)


def _least(chain: Forward, shape: Shape) -> Float[Array, ""]:
    """The sum of the counts in the middle of their first blocks."""
    return chain.start.sum() + chain.g.shape[0] * 0.5 * (shape.stride - 1)


def _counts(
    key: Key[Array, ""],
    log_weight: LogWeight,
    chain: Forward,
    n: Float[Array, " d"],
    num_draws: int,
    shape: Shape,
    backward: Callable[..., Float[Array, "d J"]],
) -> Float[Array, "d J"]:
    """Counts in the family's order: blocks by backward draws, then the place within each block."""
    key_block, key_place = jax.random.split(key)
    k = chain.start + shape.stride * backward(key_block, chain, n, num_draws, shape)
    inverse = jnp.argsort(chain.order)
    k = k[:, inverse]
    if shape.stride > 1:
        places = jnp.arange(0.0, shape.stride)[:, None, None]
        inside = jnp.where(k + places <= n[:, None], log_weight(k + places) + chain.tilt * places, -jnp.inf)
        k = k + jax.random.categorical(key_place, inside, axis=0).astype(k.dtype)
        widest = chain.order[0]
        k = k.at[:, widest].add(n - k.sum(axis=1))
    return jnp.where(k < 0, 0.0, k)


def _log_totals(
    chain: Forward, total: Total, shape: Shape, log_arrangements: Callable[[Float[Array, " s"]], Float[Array, " s"]]
) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """Every total n within reach, and log of f_J(n) p(ñ | n) times its number of arrangements, the tilt undone."""
    f, size = chain.f[-1], chain.f.shape[1]
    place, least = jnp.arange(0.0, size), _least(chain, shape)
    near = (total.wanted(chain.tilt) - least) / shape.stride
    n = least + shape.stride * (place + size * jnp.round((near - place) / size))  # the FFT is periodic
    log_f = jnp.where(f > _ROUND_OFF, jnp.log(jnp.maximum(f, _ROUND_OFF)), -jnp.inf)
    inside = (n <= total.most) & (n >= 0)
    n = jnp.where(inside, n, 0.0)
    log_weight = log_f - chain.tilt * n + total.mechanism.log_density(total.value - jnp.round(n)) + log_arrangements(n)
    return n, jnp.where(inside, log_weight, -jnp.inf)


@functools.partial(jax.jit, static_argnames=("num_draws", "shape"))
def draws(
    key: Key[Array, ""],
    prior: Dirichlet,
    mechanism: AbstractLaw,
    y: Float[Array, " J"],
    n: Numeric | Total,
    *,
    num_draws: int,
    shape: Shape,
) -> Float[Array, "num_draws J"]:
    """k from p(k | y), then θ from Dirichlet(α + k); a private n is drawn before, from p(n | y, ñ)."""
    key_count, key_theta, key_total = jax.random.split(key, 3)
    concentration = jnp.asarray(prior.concentration)
    log_weight = _posterior_weight(prior, mechanism, y)
    chain = forward(log_weight, y, n, shape)
    if isinstance(n, Total):
        whole = concentration.sum()
        totals, log_mass = _log_totals(chain, n, shape, lambda n: gammaln(n + 1.0) - gammaln(n + whole))
        total, backward = totals[jax.random.categorical(key_total, log_mass, shape=(num_draws,))], _backward_listed
    else:
        total, backward = jnp.full(num_draws, n), _backward
    k = _counts(key_count, log_weight, chain, total, num_draws, shape, backward)
    return Dirichlet(concentration + k).sample(key_theta, (num_draws,))


@functools.partial(jax.jit, static_argnames=("shape",))
def log_likelihood(
    mechanism: AbstractLaw, y: Float[Array, " J"], n: Numeric | Total, theta: Float[Array, "m J"], *, shape: Shape
) -> Float[Array, " m"]:
    """log p(y | θ) = log n! + log f_J(n), with g_j(k) = θ_j^k/k! · noise(y_j − k); summed over a private n."""

    def at(theta: Float[Array, " J"]) -> Float[Array, ""]:
        def log_weight(k: Float[Array, "... J"]) -> Float[Array, "... J"]:
            return k * jnp.log(theta) - gammaln(k + 1.0) + mechanism.log_density(y - k)

        chain = forward(log_weight, y, n, shape)
        if isinstance(n, Total):
            return jax.nn.logsumexp(_log_totals(chain, n, shape, lambda n: gammaln(n + 1.0))[1]) + chain.log_scale
        total = jnp.round((n - chain.start.sum()) / shape.stride)
        last = chain.f[-1, jnp.mod(total, chain.f.shape[1]).astype(int)]
        return jnp.log(last) + chain.log_scale - chain.tilt * n + gammaln(n + 1.0)

    return jax.lax.map(at, theta)
