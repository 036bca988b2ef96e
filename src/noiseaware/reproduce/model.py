"""The models of Bernstein & Sheldon 2018, simulated and inferred from by the thousand.

The exponential model keeps the middle 95 % of records, with bounds a, b that the paper takes from each trial's own
true θ*. In units of 1/θ* these are the same for every trial,

    x' = θ*x ~ Exponential(1),  θ' = θ/θ* ~ Gamma(8, 2θ*),  a' = −log 0.975,  b' = −log 0.025

so that one batch serves all trials, each with a prior of its own. Such bounds tell the analyst something of θ*; the
model "exponential, public bounds" has those of the prior predictive distribution instead, the same for every table.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, Bernoulli, Categorical, Exponential
from noiseaware.mechanism import Laplace
from noiseaware.prior import AbstractPrior, Beta, Dirichlet, Gamma
from noiseaware.sampler import gibbs
from noiseaware.study import ecdf
from noiseaware.study.simulate import simulate


@dataclass(frozen=True)
class Model:
    """A family and its prior; `is_scaled` where data are in units of each trial's own θ*."""

    name: str
    family: AbstractFamily
    prior: AbstractPrior
    is_scaled: bool = False


class Trials(NamedTuple):
    """A row a trial: the truth, its prior, its true, altered and released statistic, n and the noise scale."""

    theta: Float[Array, "b ..."]
    prior: AbstractPrior
    s: Float[Array, "b k"]
    altered_s: Float[Array, "b k"]
    y: Float[Array, "b k"]
    n: Float[Array, " b"]
    scale: Float[Array, " b"]


def _middle(quantile) -> tuple[float, float]:
    """The quantiles that leave 2.5 % on either side."""
    return quantile(0.025), quantile(0.975)


def _lomax(q: float) -> float:
    """A quantile of the prior predictive Exponential(θ), θ ~ Gamma(8, 2)."""
    return 2 * ((1 - q) ** (-1 / 8) - 1)


MODELS = (
    Model("binomial", Bernoulli(), Beta(10.0, 10.0)),
    Model("multinomial", Categorical(levels=["1", "2", "3"]), Dirichlet([5.0, 5.0, 5.0])),
    Model(
        "exponential",
        Exponential(bounds=_middle(lambda q: -math.log1p(-q)), outside="drop"),
        Gamma(8.0, 2.0),
        is_scaled=True,
    ),
    Model("exponential, public bounds", Exponential(bounds=_middle(_lomax), outside="drop"), Gamma(8.0, 2.0)),
)


def trials(key: Key[Array, ""], model: Model, n: int, epsilon: float, size: int) -> Trials:
    """Tables and releases of one setting."""
    key_theta, key_tables = jax.random.split(key)
    scale = float(model.family.query.sensitivity()) / epsilon
    prior, theta = model.prior, None
    if model.is_scaled:
        assert isinstance(model.prior, Gamma)
        prior = Gamma(jnp.full(size, model.prior.shape), model.prior.rate * model.prior.sample(key_theta, (size,)))
        theta = jnp.asarray(1.0)
    planned = Evidence(model.family, Laplace(scale), None, Public(n))
    drawn = simulate(key_tables, planned, model.prior, size, theta=theta)
    rows = jnp.ones(size)
    return Trials(drawn.theta, prior, drawn.s, drawn.altered_s, drawn.y, n * rows, scale * rows)


def joined(parts: Iterable[Trials]) -> Trials:
    """Trials of several settings as one batch."""
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves) if jnp.ndim(leaves[0]) else leaves[0], *parts)


def by_gibbs(
    key: Key[Array, ""], model: Model, trials: Trials, *, num_draws: int, num_warmup: int, thin: int
) -> np.ndarray:
    """The first entry of θ, drawn by a chain for each trial."""
    keys = jax.random.split(key, len(trials.n))
    noise = Laplace(trials.scale)  # type: ignore[arg-type]  # one for each chain
    drawn = gibbs.chains(
        keys,
        Evidence(model.family, noise, trials.y, Public(trials.n)),
        trials.prior,
        num_draws=num_draws,
        num_warmup=num_warmup,
        thin=thin,
    )
    return first(drawn)


def by_conjugacy(
    key: Key[Array, ""], model: Model, trials: Trials, statistic: Float[Array, "b k"], num_draws: int
) -> np.ndarray:
    """The first entry of θ, drawn as if the statistic were the true one."""
    keys = jax.random.split(key, len(trials.n))
    return first(_conjugate(keys, model.family, trials.prior, statistic, trials.n, num_draws=num_draws))


@functools.partial(jax.jit, static_argnames=("num_draws",))
def _conjugate(keys, family: AbstractFamily, prior: AbstractPrior, statistic, n, *, num_draws: int):
    def one(key, prior, s, n):
        return family.update(prior, family.project(s, n), n).sample(key, (num_draws,))

    axes = jax.tree.map(lambda leaf: 0 if jnp.ndim(leaf) else None, prior)
    return jax.vmap(one, in_axes=(0, axes, 0, 0))(keys, prior, statistic, n)


def first(theta: Float[Array, "b m ..."]) -> np.ndarray:
    """θ itself, or its first entry: the paper shows no other."""
    values = np.asarray(theta)
    if not np.isfinite(values).all():
        raise RuntimeError("a method drew a value that is not finite: it is broken for this setting.")
    return values[..., 0] if values.ndim == 3 else values


def ranks(key: Key[Array, ""], trials: Trials, draws: np.ndarray) -> np.ndarray:
    """The rank of the first entry of each truth among its draws."""
    truth = np.asarray(trials.theta)
    truth = truth[:, 0] if truth.ndim == 2 else truth
    return ecdf.rank(truth, draws, np.asarray(jax.random.uniform(key, truth.shape)))
