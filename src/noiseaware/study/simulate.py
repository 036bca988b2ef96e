"""Simulated trials: parameters, tables and releases by the thousand, and a method's draws for each.

    θ* ~ prior,  x ~ p(x | θ*),  s = Σ t(x),  y = Σ t(altered x) + noise,  θ₁ … θ_L ~ method

A method of `infer` sees y. The baselines of EVALUATED see what no analyst has, and so exist only here.
"""

import functools
import math
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.baseline import naive, nonprivate, one_posterior_sample
from noiseaware.check import shown, whole
from noiseaware.evidence.count import AbstractCount, Private, Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.mechanism import AbstractMechanism, law_for
from noiseaware.prior import AbstractPrior, Dirichlet
from noiseaware.privacy import N_SHARE, Neighbours, Number, agreed, check_neighbours
from noiseaware.sampler.method import METHODS, AbstractSampler, Method, checked_method, decided

_CHUNK = 250  # trials a batch, a compromise of memory and overhead
_RECORDS = 2**22  # simulated at a time: 32 MB for each number that a record takes


class Trials(NamedTuple):
    """A batch of simulated tables and their releases."""

    theta: Float[Array, "b ..."]
    s: Float[Array, "b k"]
    """The statistic of the records as they are."""
    altered_s: Float[Array, "b k"]
    """The statistic of the records as they were summed, clamped or dropped."""
    y: Float[Array, "b k"]
    """The released value: altered_s and noise."""


class Evaluated(NamedTuple):
    """A way to draw θ for a batch of trials, and what it sees of them."""

    batch: Callable[..., Float[Array, "b num_draws ..."]]
    seen: Callable[[Trials], Float[Array, "b k"]] = lambda trials: trials.y


EVALUATED = {
    "nonprivate": Evaluated(nonprivate.batch, lambda trials: trials.s),
    "ops": Evaluated(one_posterior_sample.batch, lambda trials: trials.s),
    # the 2018 paper's naive for truncated models: the sum of the unaltered records, with noise of the same scale
    "cheating": Evaluated(naive.batch, lambda trials: trials.s + (trials.y - trials.altered_s)),
}


def evaluated(method: Method, family: AbstractFamily, *, has_private_n: bool = False) -> Evaluated:
    """A method of `infer` or of EVALUATED by its name."""
    if isinstance(method, str):
        if method in EVALUATED and not has_private_n:
            return EVALUATED[method]
        if method != "auto" and method not in METHODS:
            known = [*METHODS, *([] if has_private_n else EVALUATED)]
            raise ValueError(f"method must be one of auto, {', '.join(known)}, got {method!r}.")
    return Evaluated(_batch_of(checked_method(method, family, has_private_n=has_private_n)))


def _batch_of(sampler: AbstractSampler) -> Callable[..., Float[Array, "b num_draws ..."]]:
    """Return the sampler's batch, by the route of a release of which there are no values yet."""

    def batch(keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, num_draws: int) -> Array:
        return sampler.batch(keys, evidence, prior, decided(sampler, evidence.at(None), prior), num_draws)

    return batch


def draws(
    key: Key[Array, ""], method: Evaluated, evidence: Evidence, prior: AbstractPrior, trials: Trials, *, num_draws: int
) -> Float[Array, "b num_draws ..."]:
    """Return a method's draws for every trial."""
    keys = jax.random.split(key, len(trials.y))
    drawn = method.batch(keys, evidence.at(method.seen(trials)), prior, num_draws=num_draws)
    if not np.isfinite(np.asarray(drawn)).all():
        raise RuntimeError("the method drew a value that is not finite: it is broken for this setting.")
    return drawn


def simulate(
    key: Key[Array, ""],
    evidence: Evidence,
    prior: AbstractPrior,
    size: int,
    *,
    theta: Float[Array, "..."] | None = None,
) -> Trials:
    """Return a table of n records and its release for each of `size` parameters from the prior, or all from `theta`.

    Given a private n, each table has as many records as the law of its noise would have it.
    """
    count = evidence.count
    if count.is_public:
        return _simulate(jax.random.split(key, size), evidence, prior, theta, None, n=int(count.value))
    key, key_n = jax.random.split(key)
    numbers = count.sample(key_n, size)
    most = 2 ** math.ceil(math.log2(max(numbers.max(), 1)))  # so that few sizes are compiled
    return _simulate(jax.random.split(key, size), evidence, prior, theta, jnp.asarray(numbers), n=most)


@functools.partial(jax.jit, static_argnames=("n",))
def _simulate(keys, evidence: Evidence, prior, fixed, numbers, *, n: int) -> Trials:
    family = evidence.family

    def one(at: tuple[Key[Array, ""], Float[Array, ""] | None]) -> Trials:
        key, number = at
        key_theta, key_records, key_noise = jax.random.split(key, 3)
        theta = prior.sample(key_theta) if fixed is None else fixed
        x = family.sample(key_records, theta, n)

        def total(column: Array) -> Float[Array, ""]:
            there = column if number is None else jnp.where(jnp.arange(0.0, n) < number, column, jnp.zeros_like(column))
            return there.sum(dtype=theta.dtype)

        both = family.query.statistic(x), family.query.alter(x)
        s, altered_s = (jnp.stack([total(c) for c in columns]) for columns in both)
        return Trials(theta, s, altered_s, altered_s + evidence.mechanism.sample(key_noise, s.shape))

    at_once = max(1, _RECORDS // n)
    if at_once >= len(keys):
        return jax.vmap(one)((keys, numbers))
    return jax.lax.map(one, (keys, numbers), batch_size=at_once)


def planned(
    family: AbstractFamily,
    n: int,
    *,
    epsilon: Number | None,
    rho: Number | None,
    delta: Number | None = None,
    mechanism: AbstractMechanism | None = None,
    neighbours: Neighbours = "replace",
    n_share: Fraction = N_SHARE,
) -> Evidence:
    """Return what a release with this promise, or with this noise, will say: all but its values."""
    promise = {"epsilon": epsilon, "rho": rho, "delta": delta, "neighbours": neighbours, "n_share": n_share}
    return Evidence(family, noise(family, mechanism=mechanism, **promise), None, count(n, **promise))


def noise(
    family: AbstractFamily,
    *,
    epsilon: Number | None,
    rho: Number | None,
    mechanism: AbstractMechanism | None,
    delta: Number | None = None,
    neighbours: Neighbours = "replace",
    n_share: Fraction = N_SHARE,
) -> AbstractMechanism:
    """The noise of a release with this promise: discrete for counts, else on so fine a grid as to be continuous."""
    check_neighbours(neighbours)
    if mechanism is not None:
        if epsilon is not None or rho is not None or delta is not None:
            raise ValueError("give one of epsilon, rho and mechanism.")
        if neighbours == "add_remove":
            raise ValueError("mechanism must be left out where n is private, for its noise has a mechanism too.")
        return mechanism
    agreement = agreed(epsilon=epsilon, rho=rho, delta=delta, neighbours=neighbours, n_share=n_share)
    promise, query = agreement.of_statistics, family.query
    scale = promise.scale(float(query.sensitivity(neighbours)), float(query.sensitivity(neighbours, 2)))
    law = law_for(promise.kind, is_discrete=query.is_whole)
    return law.of(scale / np.sqrt(query.entries) if law.weighs and set(query.entries) != {1} else scale)


def count(
    n: int,
    *,
    epsilon: Number | None,
    rho: Number | None,
    delta: Number | None,
    neighbours: Neighbours,
    n_share: Fraction = N_SHARE,
) -> AbstractCount:
    """n as the analyst knows it: noisy where one may be added or removed."""
    if neighbours == "replace":
        return Public(n)
    promise = agreed(epsilon=epsilon, rho=rho, delta=delta, neighbours=neighbours, n_share=n_share).of_n
    assert promise is not None
    return Private(n, law_for(promise.kind, is_discrete=True).of(promise.scale(1, 1)))


def checked(family: AbstractFamily, prior: AbstractPrior, *, n: object, num_trials: object) -> AbstractPrior:
    """The prior in full; a setting that cannot be simulated is refused."""
    if not isinstance(family, AbstractFamily):
        raise ValueError(f"family must be one of noiseaware.family, such as Bernoulli(), got {shown(family)}.")
    prior = family.checked_prior(prior)
    for name, value in (("n", n), ("num_trials", num_trials)):
        whole(name, value)
    return prior


def fixed(family: AbstractFamily, prior: AbstractPrior, theta: object) -> Float[Array, "..."]:
    """A parameter to hold fixed, as an array; refused if the family has none such."""
    wanted = jax.eval_shape(prior.sample, jax.random.key(0)).shape
    try:
        values = jnp.asarray(np.asarray(theta, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"theta must be a number, or a list of them, got {theta!r}.") from None
    if values.shape != wanted:
        raise ValueError(f"theta must have {math.prod(wanted)} entries for the {family.name} family, got {theta}.")
    is_whole = not isinstance(prior, Dirichlet) or abs(float(values.sum()) - 1) < 1e-9
    eta = family.natural(values)
    numbers = [eta, prior.log_density(values)]
    numbers.append(family.log_partition(eta) if family.is_natural else family.mean(values))
    if not is_whole or not all(np.isfinite(number).all() for number in numbers):
        raise ValueError(f"theta must be possible for the {family.name} family and its prior, got {theta}.")
    return values


def chunks(num_trials: int, seed: int | None, what: str) -> tuple[int, Iterable[Key[Array, ""]]]:
    """How many trials make a batch, and a key for each batch, with a bar on a terminal.

    All batches are of one size, so that nothing is compiled twice; together they may hold a few trials too many.
    """
    count = -(-num_trials // _CHUNK)
    keys = list(jax.random.split(jax.random.key(secrets.randbits(32) if seed is None else seed), count))
    return -(-num_trials // count), progress(keys, what)


_is_quiet = ContextVar("is_quiet", default=False)


@contextmanager
def quiet(is_quiet: bool = True) -> Iterator[None]:
    """No bars within."""
    token = _is_quiet.set(is_quiet)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def progress(items: list, what: str) -> Iterable:
    """The items, with a bar and the time left on a terminal, unless it is to be quiet."""
    if _is_quiet.get() or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, what, console=Console(stderr=True), transient=True)
