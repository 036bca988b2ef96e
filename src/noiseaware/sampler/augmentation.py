"""Data augmentation with interweaving: chains over θ and every record of the table, exact for any bounds.

    1  records    x' ~ p(x | θ); a block of them takes the place of its old ones with probability
                  min(1, p(y − Σr(x'))/p(y − Σr(x))), p the density of the noise, r what the bounds leave of t
    2  θ | x      by conjugacy, or as the family says (`given_records`)
    3  both       θ ⇄ θ' reversible under the prior, x' = x carried along to θ', accepted with the same ratio of noise

For 3, m records of θ are imagined and θ' drawn from the prior updated by them: a Gibbs step of the prior, so that the
prior needs no ratio of its own; m is tuned in the warm-up. The records are carried by the family (`carried`), for a
normal with (x − mean)/sd held fixed. Where noise hides the table, 2 is a walk of steps 1/√n and 3 strides; where it
does not, 3 stands still and 2 is nearly an independent draw (Yu & Meng 2011; Ju, Awan, Gong & Rao 2022).
"""

import functools
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num

from noiseaware.check import whole
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, AbstractGeneralizedLinear
from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import AbstractPrior
from noiseaware.sampler import exact, markov_chain
from noiseaware.sampler._sampler import AbstractSampler, Draws, Refusal, Route
from noiseaware.sampler.hmc import has_converged

MOST_RECORDS = 10_000
QUICK_RECORDS = 300  # up to which it takes a minute or two at most, and auto may take it
_CHAINS, _AT_ONCE = (8, 64), 2**14  # fewer chains where they are long, so that so many records are walked on at once
_GAINS = (1.0, 0.5, 0.2, 0.1)  # of the tuning, in four equal parts of the warm-up
_WARMUP = 100  # sweeps of one part
_LONGEST = 64  # times as far apart as first tried, before giving up
_BATCH_THIN = 16
_WANTED = 0.3  # of moves of both accepted
_LOOKED_AT = (100, 100)  # parameters of the prior, and records of each, that tell the size of a block
# XLA's threads may wait for each other's batches of small factorisations forever; one cannot
_OPTIONS = {"xla_cpu_multi_thread_eigen": False}


class State(NamedTuple):
    """θ, the records as they are before any bound, and the log of how many a move of both imagines."""

    theta: Float[Array, "..."]
    x: Num[Array, "... n"]
    pace: Float[Array, ""]


class Info(NamedTuple):
    """The share of blocks that were replaced, and the probability that the move of both was accepted."""

    replaced: Float[Array, ""]
    moved: Float[Array, ""]


class Setting(NamedTuple):
    """Sizes that are fixed when a sweep is compiled: records of a block, the most imagined, and whether 3 is done."""

    block: int
    imagined: int
    interweaves: bool = True


def init(key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, n: int, setting: Setting) -> State:
    """Start with records of a parameter that is drawn from the prior or, as often, from the naive posterior."""
    family, y = evidence.family, evidence.y
    key_side, key_theta, key_records = jax.random.split(key, 3)
    is_near = jax.random.bernoulli(key_side)
    near = family.update(prior, family.project(y, float(n)), float(n)).sample(key_theta)
    theta = jnp.where(is_near, near, prior.sample(key_theta))
    pace = 0.5 * jnp.log(jnp.asarray(setting.imagined, theta.dtype))
    return State(theta, family.sample(key_records, theta, n), pace)


def step(
    key: Key[Array, ""],
    state: State,
    evidence: Evidence,
    prior: AbstractPrior,
    setting: Setting,
    gain: Float[Array, ""] | float = 0.0,
) -> tuple[State, Info]:
    """Make one sweep; with a gain, the pace is tuned."""
    key_records, key_theta, key_both = jax.random.split(key, 3)
    x, replaced = _replace(key_records, state.theta, state.x, evidence, setting.block)
    theta = evidence.family.given_records(key_theta, prior, x, jnp.ones(x.shape[-1], bool))
    if not setting.interweaves:
        return State(theta, x, state.pace), Info(replaced, jnp.zeros_like(replaced))
    state, moved = _move(key_both, State(theta, x, state.pace), evidence, prior, setting.imagined)
    # often accepted: too short a move, and fewer records to be imagined
    pace = jnp.clip(state.pace + gain * (_WANTED - moved), -3.0, np.log(setting.imagined))
    return state._replace(pace=pace), Info(replaced, moved)


def _replace(
    key: Key[Array, ""],
    theta: Float[Array, "..."],
    x: Num[Array, "... n"],
    evidence: Evidence,
    block: int,
) -> tuple[Num[Array, "... n"], Float[Array, ""]]:
    """Return new records, block by block: the sum is all that one block knows of another."""
    key_new, key_accept = jax.random.split(key)
    family, mechanism, y = evidence.family, evidence.mechanism, evidence.y
    n = x.shape[-1]
    new = family.sample(key_new, theta, n)
    alter = family.query.alter
    old_r, new_r = (jnp.stack([column.astype(y.dtype) for column in alter(records)]) for records in (x, new))
    num_blocks = -(-n // block)
    padded = jnp.pad(new_r - old_r, ((0, 0), (0, num_blocks * block - n)))
    moves = padded.reshape(y.size, num_blocks, block).sum(-1).T

    def decide(s: Float[Array, " k"], at: tuple[Array, Array]) -> tuple[Array, Array]:
        move, log_u = at
        is_taken = ~(log_u > _log_ratio(mechanism, y - s - move, y - s))
        return jnp.where(is_taken, s + move, s), is_taken

    log_u = jnp.log(jax.random.uniform(key_accept, (num_blocks,), y.dtype))
    _, is_taken = jax.lax.scan(decide, old_r.sum(1), (moves, log_u))
    return jnp.where(jnp.repeat(is_taken, block)[:n], new, x), is_taken.mean(dtype=y.dtype)


def _move(
    key: Key[Array, ""],
    state: State,
    evidence: Evidence,
    prior: AbstractPrior,
    most: int,
) -> tuple[State, Float[Array, ""]]:
    """Move θ by way of m imagined records, and the records with it; m is about e^pace, random and rounded at random."""
    key_size, key_round, key_imagined, key_theta, key_carried, key_accept = jax.random.split(key, 6)
    family, y = evidence.family, evidence.y
    size = jnp.exp(state.pace + jax.random.normal(key_size, (), y.dtype))
    m = jnp.clip(jnp.floor(size + jax.random.uniform(key_round, (), y.dtype)), 0, most)
    imagined = family.sample(key_imagined, state.theta, most)
    theta = family.given_records(key_theta, prior, imagined, jnp.arange(0.0, most) < m)
    x = family.carried(key_carried, state.x, state.theta, theta)
    log_ratio = _log_ratio(
        evidence.mechanism, *(y - _total(family.query.alter(records), y) for records in (x, state.x))
    )
    # what is not a number is taken, so that it is seen
    is_taken = ~(jnp.log(jax.random.uniform(key_accept, (), y.dtype)) > log_ratio)
    theta, x = (jnp.where(is_taken, new, old) for new, old in ((theta, state.theta), (x, state.x)))
    return State(theta, x, state.pace), jnp.exp(jnp.minimum(log_ratio, 0.0))


def _log_ratio(
    mechanism: AbstractMechanism, noise: Float[Array, " k"], old_noise: Float[Array, " k"]
) -> Float[Array, ""]:
    return (mechanism.log_density(noise) - mechanism.log_density(old_noise)).sum()


def _total(columns: tuple, y: Float[Array, " k"]) -> Float[Array, " k"]:
    return jnp.stack([column.sum(dtype=y.dtype) for column in columns])


# ---- chains --------------------------------------------------------------------------------------------------


def sized(evidence: Evidence, prior: AbstractPrior, *, interweaves: bool = True) -> Setting:
    """Return blocks whose replacement moves the sums by about the noise: 1/Σ_j (sd_j/scale_j)² records.

    A move of both needs about as many imagined records as the release is worth, n/(1 + block/n); four times that leaves
    room.
    """
    n = int(evidence.n)
    sd = np.asarray(_spreads(jax.random.key(0), evidence.family, prior))
    block = 1 / np.square(sd / np.asarray(evidence.mechanism.spread)).sum()
    imagined = 4 * n / (1 + block / n)
    return Setting(int(np.clip(block, 1, n)), int(np.clip(np.ceil(imagined), 4, max(4, n))), interweaves)


@jax.jit
def _spreads(key: Key[Array, ""], family: AbstractFamily, prior: AbstractPrior) -> Float[Array, " k"]:
    """The sd of what is released of one record: the median over the prior."""
    size, n = _LOOKED_AT

    def one(key: Key[Array, ""]) -> Float[Array, " k"]:
        key_theta, key_records = jax.random.split(key)
        theta = prior.sample(key_theta)
        released = family.query.alter(family.sample(key_records, theta, n))
        return jnp.stack([column.astype(theta.dtype) for column in released]).std(1)

    return jnp.maximum(jnp.median(jax.vmap(one)(jax.random.split(key, size)), axis=0), 1e-12)


@functools.partial(jax.jit, static_argnames=("n", "setting"), compiler_options=_OPTIONS)
def _start(keys: Key[Array, " c"], evidence: Evidence, prior, *, n: int, setting: Setting) -> State:
    return jax.vmap(lambda key, y: init(key, evidence.at(y), prior, n, setting))(keys, evidence.y)


@functools.partial(jax.jit, static_argnames=("num_draws", "setting"), compiler_options=_OPTIONS)
def _go_on(
    keys: Key[Array, " c"],
    states: State,
    evidence: Evidence,
    prior,
    gain: Float[Array, ""] | float,
    thin: Array | int,
    *,
    num_draws: int,
    setting: Setting,
) -> tuple[State, Float[Array, "c num_draws ..."], Info]:
    """Each chain a while longer: where it is then, θ of every `thin`-th sweep, and how the sweeps went."""

    def one(key, state, y):
        return markov_chain.kept_of(
            key,
            state,
            lambda key, state: step(key, state, evidence.at(y), prior, setting, gain),
            lambda state: state.theta,
            num_draws=num_draws,
            thin=thin,
        )

    return jax.vmap(one)(keys, states, evidence.y)


def warmed(key: Key[Array, ""], evidence: Evidence, prior, num_draws: int, setting: Setting) -> State:
    """Return chains that have forgotten their start and found their pace."""
    key_start, *keys = jax.random.split(key, 1 + len(_GAINS))
    count = len(evidence.y)
    states = _start(jax.random.split(key_start, count), evidence, prior, n=int(evidence.n), setting=setting)
    for key_part, gain in zip(keys, _GAINS, strict=True):
        keys_part, thin = jax.random.split(key_part, count), -(-_WARMUP // num_draws)
        states, *_ = _go_on(keys_part, states, evidence, prior, gain, thin, num_draws=num_draws, setting=setting)
    return states


def draws(
    key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, num_draws: int, *, num_chains: int | None = None
) -> Float[Array, "num_draws ..."]:
    """Return draws of many chains, one after another, further apart until the chains agree or it takes too long."""
    num_chains = num_chains or int(np.clip(_AT_ONCE // int(evidence.n), *_CHAINS))
    setting, each = sized(evidence, prior), -(-num_draws // num_chains)
    evidence = evidence.at(jnp.broadcast_to(jnp.asarray(evidence.y), (num_chains, evidence.y.size)))
    key_warm, *keys = jax.random.split(key, 1 + _LONGEST.bit_length())
    states = warmed(key_warm, evidence, prior, each, setting)
    theta = jnp.zeros(())
    for doubling, key_kept in enumerate(keys):
        states, theta, _ = _go_on(
            jax.random.split(key_kept, num_chains),
            states,
            evidence,
            prior,
            0.0,
            2**doubling,
            num_draws=each,
            setting=setting,
        )
        numbers = np.asarray(theta).reshape(num_chains, each, -1)
        if not np.isfinite(numbers).all() or has_converged(np.swapaxes(numbers, 0, 1)):
            break
    return theta.reshape(num_chains * each, *theta.shape[2:])[:num_draws]


def batch(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, num_draws: int
) -> Float[Array, "b num_draws ..."]:
    """Return draws for a batch of releases that differ in y alone, a chain for each."""
    setting = sized(evidence, prior)
    states = warmed(keys[0], evidence, prior, num_draws, setting)
    keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
    return _go_on(keys, states, evidence, prior, 0.0, _BATCH_THIN, num_draws=num_draws, setting=setting)[1]


class Augmentation(AbstractSampler):
    """Data augmentation over every record: exact in law for any bounds, for tables of few records.

    With `chains`, so many of them; else from 8 to 64, the fewer the more records there are.
    """

    chains: int | None = eqx.field(static=True, default=None)
    name: ClassVar[str] = "augmentation"
    preference: ClassVar[int | None] = 6
    is_chain: ClassVar[bool] = True

    def __check_init__(self) -> None:
        if self.chains is not None:
            whole("chains", self.chains)

    def serves(self, family: AbstractFamily) -> bool:
        """Return True for families whose parameters can be drawn given its records."""
        return not isinstance(family, AbstractGeneralizedLinear)

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route | Refusal:
        n = evidence.n
        if not evidence.count.is_public:
            return Refusal("n must be public for augmentation, got a noisy one.")
        if n > MOST_RECORDS:
            rule = f"n must be at most {MOST_RECORDS} for augmentation, which walks on every record"
            return Refusal(f"{rule}, got {n:.0f}.")
        if evidence.is_noiseless:
            return Refusal("mechanism must have noise for augmentation, got Identity; use naive.")
        if not simulates(evidence, prior):
            return Refusal("prior must be one that whole records can be drawn from for augmentation; use hmc.")
        return Route(self, exact.explanation(evidence))

    def draws(
        self, key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Draws:
        return Draws(draws(key, evidence, prior, num_draws, num_chains=self.chains))

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        return batch(keys, evidence, prior, num_draws=num_draws)


def simulates(evidence: Evidence, prior: AbstractPrior) -> bool:
    """Return True if there are few enough records, and the prior says enough to draw them, as moments do not."""
    family = evidence.family
    is_small = evidence.count.is_public and evidence.n <= MOST_RECORDS
    if not is_small or isinstance(family, AbstractGeneralizedLinear):
        return False
    try:
        jax.eval_shape(lambda key: family.sample(key, prior.sample(key), 1), jax.random.key(0))
    except (TypeError, ValueError):
        return False
    return True


def is_quick(evidence: Evidence, prior: AbstractPrior) -> bool:
    """Return True if auto may take it: of second moments its chains are too slow to be taken unasked."""
    return evidence.n <= QUICK_RECORDS and evidence.family.as_quadratic(prior) is None
