"""Chains, warm-up and thinning, once for every Markov chain of the library.

A kernel is `init(key) → state` and `step(key, state) → state`; a chain forgets its start in `num_warmup` steps and
then keeps one state of every `thin`.
"""

from collections.abc import Callable
from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree

from noiseaware.check import whole
from noiseaware.evidence.evidence import Evidence
from noiseaware.prior import AbstractPrior
from noiseaware.sampler._sampler import AbstractSampler, Draws, Route

State = TypeVar("State")

LARGEST_RHAT = 1.01
LEAST_ESS = 400  # with R-hat, the bars of Vehtari et al. 2021


def largest_rhat(num_chains: int, num_draws: int) -> float:
    """What R-hat may be: 1.01, or what chains as short as these reach by chance, were their draws independent.

    Of split chains, 2(R-hat − 1) · length + 1 is about χ²/freedom; 6 standard deviations, since χ² is skewed.
    """
    freedom, length = 2 * num_chains - 1, max(1, num_draws // 2)
    return max(LARGEST_RHAT, 1 + 3 * (2 / freedom) ** 0.5 / length)


def run(
    key: Key[Array, ""],
    init: Callable[[Key[Array, ""]], State],
    step: Callable[[Key[Array, ""], State], State],
    keep: Callable[[State], PyTree[Array]],
    *,
    num_draws: int,
    num_warmup: int,
    thin: int = 1,
) -> PyTree[Array]:
    """What `keep` takes of every `thin`-th state after the warm-up, draws first."""
    key_init, key_warmup, key_kept = jax.random.split(key, 3)

    def advance(i: Array | int, state: State) -> State:
        return step(jax.random.fold_in(key_warmup, i), state)

    state = jax.lax.fori_loop(0, num_warmup, advance, init(key_init))
    kept = kept_of(key_kept, state, lambda key, state: (step(key, state), ()), keep, num_draws=num_draws, thin=thin)
    return kept[1]


def kept_of(
    key: Key[Array, ""],
    state: State,
    step: Callable[[Key[Array, ""], State], tuple[State, PyTree[Array]]],
    keep: Callable[[State], PyTree[Array]],
    *,
    num_draws: int,
    thin: int | Array,
) -> tuple[State, PyTree[Array], PyTree[Array]]:
    """The last state; what `keep` takes of every `thin`-th; and the sum of the infos of the steps between them."""

    def kept(state: State, key: Key[Array, ""]) -> tuple[State, tuple[PyTree[Array], PyTree[Array]]]:
        def advance(i: Array | int, carry: tuple[State, PyTree[Array]]) -> tuple[State, PyTree[Array]]:
            state, info = step(jax.random.fold_in(key, i), carry[0])
            return state, jax.tree.map(jnp.add, carry[1], info)

        none = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(step, key, state)[1])
        state, info = jax.lax.fori_loop(0, thin, advance, (state, none))
        return state, (keep(state), info)

    state, (found, infos) = jax.lax.scan(kept, state, jax.random.split(key, num_draws))
    return state, found, infos


class AbstractChains(AbstractSampler):
    """A sampler whose chains on one release are a batch of releases that are all alike."""

    chains: eqx.AbstractVar[int]
    """The number of chains."""
    is_chain: ClassVar[bool] = True

    def __check_init__(self) -> None:
        whole("chains", self.chains)

    def draws(
        self, key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Draws:
        """Return draws of the chains, one after another."""
        each = -(-num_draws // self.chains)
        y = jnp.broadcast_to(jnp.asarray(evidence.y), (self.chains, evidence.y.size))
        found = self.batch(jax.random.split(key, self.chains), evidence.at(y), prior, route, each)
        return Draws(found.reshape(self.chains * each, *found.shape[2:])[:num_draws])
