"""Chains, warm-up and thinning, once for every Markov chain of the library.

A kernel is `init(key) → state` and `step(key, state) → state`; a chain forgets its start in `num_warmup` steps and
then keeps one state of every `thin`.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
from jaxtyping import Array, Key, PyTree

State = TypeVar("State")


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

    def advance(key: Key[Array, ""], state: State, steps: int) -> State:
        return jax.lax.fori_loop(0, steps, lambda i, state: step(jax.random.fold_in(key, i), state), state)

    def kept(state: State, key: Key[Array, ""]) -> tuple[State, PyTree[Array]]:
        state = advance(key, state, thin)
        return state, keep(state)

    state = advance(key_warmup, init(key_init), num_warmup)
    return jax.lax.scan(kept, state, jax.random.split(key_kept, num_draws))[1]
