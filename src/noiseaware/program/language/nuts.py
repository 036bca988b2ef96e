"""Inference in any model of public records: the No-U-Turn sampler (Hoffman & Gelman 2014) in the prior's coordinates.

log p(v | x) = log p(v) + Σ log p(x_i | θ(v))
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np

from noiseaware.prior import AbstractRealPrior, Beta, Dirichlet, Gamma, Normal
from noiseaware.program.language.distribution import Distribution, Observation
from noiseaware.program.language.evaluate import rounded
from noiseaware.program.language.expression import Constant, Operation, Term
from noiseaware.program.language.operation import operations

_CHAINS, _WARMUP, _KEPT = 4, 500, 1000


_OPERATIONS = operations(jnp.where, jnp.exp, jnp.log)
_LOG_DENSITIES: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda x, p: jnp.where(x == 1, jnp.log(p), jnp.log1p(-p)),
    "categorical": lambda x, *p: jnp.log(jnp.stack(jnp.broadcast_arrays(*p, x)))[x.astype(int), jnp.arange(x.size)],
    "beta": stats.beta.logpdf,
    "normal": lambda x, mean, variance: stats.norm.logpdf(x, mean, jnp.sqrt(variance)),
    "gamma": lambda x, shape, rate: stats.gamma.logpdf(x, shape, scale=1 / rate),
    "poisson": stats.poisson.logpmf,
}


def draws(model: Observation, records: Sequence[float], public: Callable[[Term], float]) -> dict[str, np.ndarray]:
    """Draws of the parameter, four chains one after another."""
    import blackjax

    if model.likelihood.distribution.name not in _LOG_DENSITIES:
        raise ValueError(f"a record must not come from a {model.likelihood.distribution.name} distribution.")
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):  # BlackJAX's adaptation mixes bool and int
        prior, data = _prior(model.prior, public), jnp.asarray(records, dtype=float)

        def log_density(v: jax.Array) -> jax.Array:
            place = v[0] if prior.num_coordinates == 1 else v
            theta = prior.from_real(place)
            return jnp.sum(prior.log_density_real(place)) + jnp.sum(_log_likelihood(model, theta, data, public))

        def chain(key: jax.Array) -> jax.Array:
            key_start, key_warm, key_kept = jax.random.split(key, 3)
            start = jnp.atleast_1d(prior.to_real(prior.sample(key_start)))
            warm = blackjax.window_adaptation(blackjax.nuts, log_density).run
            (state, tuned), _ = warm(key_warm, start, _WARMUP)  # type: ignore[call-arg]
            step = blackjax.nuts(log_density, **tuned).step

            def advance(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
                state, _ = step(key, state)
                return state, state.position

            return jax.lax.scan(advance, state, jax.random.split(key_kept, _KEPT))[1]

        keys = jax.random.split(jax.random.key(secrets.randbits(32)), _CHAINS)
        v = jax.jit(jax.vmap(chain))(keys).reshape(_CHAINS * _KEPT, -1)
        return {"theta": np.asarray(prior.from_real(v[:, 0] if prior.num_coordinates == 1 else v))}


def _prior(distribution: Distribution, public: Callable[[Term], float]) -> AbstractRealPrior:
    numbers = [public(parameter) for parameter in distribution.parameters]
    if distribution.name == "dirichlet":
        return Dirichlet(numbers)
    kinds = {"beta": Beta, "gamma": Gamma, "normal": Normal}
    if distribution.name not in kinds:
        raise ValueError(f"a prior must be beta, dirichlet, gamma or normal, got {distribution.name}.")
    return kinds[distribution.name](*numbers)


def _log_likelihood(
    model: Observation, theta: jax.Array, data: jax.Array, public: Callable[[Term], float]
) -> jax.Array:
    bound = {id(own): theta[..., j] if len(model.parameter) > 1 else theta for j, own in enumerate(model.parameter)}
    bound[id(model.record)] = data

    def at(node: Term) -> Any:
        if id(node) in bound:
            return bound[id(node)]
        if isinstance(node, Constant):
            return rounded(node.value)
        if isinstance(node, Operation):
            return _OPERATIONS[node.name](*map(at, node.arguments))
        return public(node)

    distribution = model.likelihood.distribution
    return _LOG_DENSITIES[distribution.name](at(model.likelihood.target), *map(at, distribution.parameters))
