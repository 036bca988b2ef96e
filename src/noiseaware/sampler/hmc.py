"""Hamiltonian Monte Carlo, for every family that has no exact sampler: many chains at once, whitened at the mode.

    1  climb to the mode; v = mode + Wz with WWᵀ the inverse curvature, and each chain starts at z ~ Normal(0, I)
    2  warm up: a common step size by dual averaging, then W anew from where all chains have been, and once more
    3  leapfrog trajectories of common, random length; keep one state of every `thin`
    4  where R-hat or the effective number of draws falls short, go on with twice the distance between draws

What the chains walk on is in _target; the leapfrog, the acceptance and dual averaging are BlackJAX's.
"""

import functools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from noiseaware.baseline import naive
from noiseaware.check import whole
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, AbstractGeneralizedLinear, AbstractQuadraticFamily
from noiseaware.likelihood import frozen_moment
from noiseaware.prior import AbstractPrior, AbstractRealPrior
from noiseaware.sampler import _mode, _target, markov_chain
from noiseaware.sampler._sampler import AbstractSampler, Draws, Refusal, Route
from noiseaware.sampler.adequacy import LARGEST, Adequacy, has_given_moments
from noiseaware.sampler.markov_chain import LEAST_ESS, largest_rhat

_CHAINS, _FEW_CHAINS, _BATCH_CHAINS = 64, 16, 8
_MOST_WORKED_OUT = 20  # statistics of clamped records whose covariance is worked out at each step: of five columns
_WARMUP = 100  # steps of one phase
_LOOKED_AT = 256  # draws a chain
_BLOCK = 64  # draws of each chain that are compiled as one
_ACCEPT = 0.8
_LENGTH = 1.6  # of a trajectory in z: about a quarter of a standard normal's period
_MOST_STEPS = 64
_LONGEST = 32  # times as far apart as first tried, before giving up
_BATCH_THIN = 4


class Phase(NamedTuple):
    """What a run of steps is for: whether it tunes the step size, whether W is made anew after it; steps a draw."""

    tunes: Bool[Array, ""] | bool
    respreads: Bool[Array, ""] | bool
    thin: Array | int


class State(NamedTuple):
    """Where each chain is (BlackJAX's state: z, its log density and slope), and how all of them walk."""

    walkers: Any
    centre: Float[Array, " k"]
    spread: Float[Array, "k k"]
    tuning: Any
    """BlackJAX's state of dual averaging, which holds the step size."""

    @property
    def v(self) -> Float[Array, "c k"]:
        return self.centre + self.walkers.position @ self.spread.T


class Info(NamedTuple):
    """The share of proposals that were accepted, and of those that diverged."""

    acceptance: Float[Array, ""]
    divergences: Float[Array, ""]


def init(key: Key[Array, ""], target: _target.Target, num_chains: int) -> State:
    """Chains about the mode."""
    import blackjax

    peak = _mode.climb(target.smooth, target.curvature, target.starts)
    z = jax.random.normal(key, (num_chains, peak.mode.size))
    density = _whitened(target, peak.mode, peak.spread)
    walkers = jax.vmap(lambda z: blackjax.hmc.init(z, density))(z)
    return State(walkers, peak.mode, peak.spread, _tuning(0.5))


def step(
    key: Key[Array, ""], state: State, target: _target.Target, tunes: Bool[Array, ""] | bool = False
) -> tuple[State, Info]:
    """One trajectory of every chain; when it tunes, the common step size is moved toward the wanted acceptance."""
    import blackjax

    key_length, key_walk = jax.random.split(key)
    kernel = blackjax.hmc.build_kernel()
    density = _whitened(target, state.centre, state.spread)
    step_size = jnp.exp(jnp.where(tunes, state.tuning.log_step_size, state.tuning.log_step_size_avg))
    length = _LENGTH * jax.random.uniform(key_length, minval=0.5, maxval=1.5)
    steps = jnp.clip(jnp.ceil(length / step_size), 1, _MOST_STEPS).astype(int)
    size = state.walkers.position.shape
    walk = jax.vmap(lambda key, walker: kernel(key, walker, density, step_size, jnp.ones(size[1]), steps))
    walkers, info = walk(jax.random.split(key_walk, size[0]), state.walkers)
    acceptance = info.acceptance_rate.mean()
    tuned = _averaging()[1](state.tuning, acceptance)
    tuning = jax.tree.map(lambda new, old: jnp.where(tunes, new, old), tuned, state.tuning)
    return state._replace(walkers=walkers, tuning=tuning), Info(acceptance, info.is_divergent.mean(dtype=float))


def _averaging() -> tuple:
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return dual_averaging_adaptation(_ACCEPT)


def _tuning(step_size: Float[Array, ""] | float):
    """The start of dual averaging, of the types that it goes on with, so that nothing is compiled twice."""
    begun = _averaging()[0](jnp.asarray(step_size, float))
    return jax.tree.map(lambda value: jnp.asarray(value, float), begun)._replace(step=jnp.asarray(begun.step))


def _whitened(target: _target.Target, centre: Float[Array, " k"], spread: Float[Array, "k k"]):
    """The log density of z; a value that is not a number is one that cannot be."""

    def density(z: Float[Array, " k"]) -> Float[Array, ""]:
        height = target.log_density(centre + spread @ z)
        return jnp.where(jnp.isnan(height), -jnp.inf, height)

    return density


def _run(
    key: Key[Array, ""], state: State, target: _target.Target, phase: Phase, num_draws: int
) -> tuple[State, Float[Array, "num_draws c k"], Info]:
    """One phase: the last state, v of all chains, and how the steps went."""
    state, v, info = markov_chain.kept_of(
        key,
        state,
        lambda key, state: step(key, state, target, phase.tunes),
        lambda state: state.v,
        num_draws=num_draws,
        thin=phase.thin,
    )
    fresh = _respread(state, v)._replace(tuning=_tuning(jnp.exp(state.tuning.log_step_size_avg)))
    return jax.tree.map(lambda new, old: jnp.where(phase.respreads, new, old), fresh, state), v, info


def _respread(state: State, seen: Float[Array, "s c k"]) -> State:
    """The same chains at the same places, whitened by the covariance of where they have been lately."""
    k = seen.shape[-1]
    lately = seen[len(seen) // 2 :].reshape(-1, k)
    centre = lately.mean(0)
    z = jnp.linalg.solve(state.spread, (lately - centre).T)
    share = k / (k + 0.2 * len(lately))  # stay with the old coordinates while little was seen
    root = jnp.linalg.cholesky((1 - share) * (z @ z.T) / len(lately) + share * jnp.eye(k))
    spread = state.spread @ root
    places = jnp.linalg.solve(spread, (state.v - centre).T).T
    walkers = state.walkers._replace(position=places, logdensity_grad=state.walkers.logdensity_grad @ root)
    return state._replace(walkers=walkers, centre=centre, spread=spread)


def _phases(num_draws: int, thin: int) -> Phase:
    """Three phases of warm-up, and one whose draws are kept."""
    warm = -(-_WARMUP // num_draws)
    return Phase(
        jnp.array([True, True, True, False]),
        jnp.array([True, True, False, False]),
        jnp.array([warm, warm, warm, thin]),
    )


def _thetas(key: Key[Array, ""], target: _target.Target, v: Float[Array, "s c k"]) -> Float[Array, "s c ..."]:
    return jax.vmap(jax.vmap(target.theta))(jax.random.split(key, v.shape[:2]), v)


def has_converged(v: Float[np.ndarray, "num_draws c k"]) -> bool:
    """Whether R-hat and the effective number of draws of every coordinate pass Vehtari et al.'s bars.

    Of very long chains only some draws are looked at, which can only make it harder to pass.
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    if len(v) < 4:
        return True  # too few to tell; the posterior says so
    v = v[:: 1 + len(v) // _LOOKED_AT]
    runs = np.moveaxis(v, 0, 1)
    least = min(LEAST_ESS, 0.1 * v.shape[0] * v.shape[1])
    rhats = [float(np.asarray(array_stats.rhat(runs[..., j]))) for j in range(v.shape[2])]
    counts = [float(np.asarray(array_stats.ess(runs[..., j], method="bulk"))) for j in range(v.shape[2])]
    return max(rhats) <= largest_rhat(v.shape[1], v.shape[0]) and min(counts) >= least


def serves(family: AbstractFamily) -> bool:
    """Whether there is a target: second moments, or one column and a prior with real coordinates."""
    has_coordinates = len(family.query.columns) <= 1 and issubclass(family.conjugate, AbstractRealPrior)
    return isinstance(family, AbstractQuadraticFamily | AbstractGeneralizedLinear) or has_coordinates


def _is_frozen(family: AbstractFamily) -> bool:
    """Return True if third and fourth moments of clamped records of so many statistics are frozen."""
    return isinstance(family, frozen_moment.HOLDS) and len(family.query.names) > _MOST_WORKED_OUT


Frozen = Float[Array, "k k"] | None
"""A root of the covariance of standardised records' statistics, where it is frozen (see frozen_moment)."""


def _begin(
    key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, *, clips: bool, num_chains: int
) -> tuple[Frozen, State]:
    """Return chains about the mode, third and fourth moments frozen there where there are many statistics."""
    family: Any = evidence.family
    target = _target.of(evidence, prior, clips=clips)
    if not clips or not _is_frozen(family):
        return None, init(key, target, num_chains)
    frozen = frozen_moment.hold(family, target.theta(key, target.starts[0]))
    target = _target.of(evidence, prior, clips=clips, frozen=frozen)
    mode = _mode.climb(*target[1:4]).mode
    frozen = frozen_moment.hold(family, target.theta(key, mode))
    target = _target.of(evidence, prior, clips=clips, frozen=frozen)
    return frozen, init(key, target._replace(starts=mode[None]), num_chains)


@functools.partial(jax.jit, static_argnames=("clips", "num_chains"))
def _start(key, evidence: Evidence, prior, *, clips: bool, num_chains: int) -> tuple[Frozen, State]:
    return _begin(key, evidence, prior, clips=clips, num_chains=num_chains)


@functools.partial(jax.jit, static_argnames=("clips", "num_draws"))
def _go_on(key, state, evidence: Evidence, prior, frozen: Frozen, phase: Phase, *, clips: bool, num_draws: int):
    """Run one phase of chains: the last state, θ, v, and how the steps went."""
    key_walk, key_theta = jax.random.split(key)
    target = _target.of(evidence, prior, clips=clips, frozen=frozen)
    state, v, info = _run(key_walk, state, target, phase, num_draws)
    return state, _thetas(key_theta, target, v), v, info


def draws(
    key: Key[Array, ""],
    evidence: Evidence,
    prior: AbstractPrior,
    num_draws: int,
    *,
    clips: bool = False,
    num_chains: int = _CHAINS,
) -> Draws:
    """Return draws of many chains, one after another, further apart until the chains agree or it takes too long."""
    evidence = _target.walked(evidence, prior)
    each = -(-num_draws // num_chains)
    block = min(each, _BLOCK)
    key_start, key_warm, *keys = jax.random.split(key, 2 + _LONGEST.bit_length())
    *warm, last = (jax.tree.map(lambda a, i=i: a[i], _phases(block, 1)) for i in range(4))
    frozen, state = _start(key_start, evidence, prior, clips=clips, num_chains=num_chains)
    walk = functools.partial(_go_on, clips=clips, num_draws=block)
    for key_phase, phase in zip(jax.random.split(key_warm, len(warm)), warm, strict=True):
        state, *_ = walk(key_phase, state, evidence, prior, frozen, phase)
    theta, went = jnp.zeros(()), []
    for doubling, key_kept in enumerate(keys):
        found, went = [], []
        for key_block in jax.random.split(key_kept, -(-each // block)):
            phase = last._replace(thin=last.thin * 2**doubling)
            state, *kept, info = walk(key_block, state, evidence, prior, frozen, phase)
            found.append(kept)
            went.append([float(np.asarray(share).mean()) / 2**doubling for share in info])
        theta, v = (jnp.concatenate(parts)[:each] for parts in zip(*found, strict=True))
        if has_converged(np.asarray(v)):
            break
    theta = jnp.swapaxes(theta, 0, 1).reshape(num_chains * each, *theta.shape[2:])[:num_draws]
    return Draws(theta, dict(zip(Info._fields, np.mean(went, axis=0).tolist(), strict=True)))


@functools.partial(jax.jit, static_argnames=("clips", "num_draws"))
def _batch(keys, evidence: Evidence, prior, *, clips: bool, num_draws: int):
    each = -(-num_draws // _BATCH_CHAINS)

    def one(key: Key[Array, ""], y: Float[Array, " k"]) -> Float[Array, "num_draws ..."]:
        key_start, key_theta, *keys = jax.random.split(key, 6)
        own = evidence.at(y)
        frozen, state = _begin(key_start, own, prior, clips=clips, num_chains=_BATCH_CHAINS)
        target = _target.of(own, prior, clips=clips, frozen=frozen)

        def run(state: State, at: tuple[Phase, Key[Array, ""]]) -> tuple[State, Float[Array, "s c k"]]:
            return _run(at[1], state, target, at[0], each)[:2]

        _, v = jax.lax.scan(run, state, (_phases(each, _BATCH_THIN), jnp.stack(keys)))
        theta = _thetas(key_theta, target, v[-1])
        return theta.reshape(each * _BATCH_CHAINS, *theta.shape[2:])[:num_draws]

    return jax.vmap(one)(keys, evidence.y)


# ---- the sampler ---------------------------------------------------------------------------------------------------


class HMC(AbstractSampler):
    """Hamiltonian Monte Carlo by many chains, of the central limit theorem or of second moments.

    With `chains`, so many of them; else 64, or 16 where a step takes long.
    """

    chains: int | None = eqx.field(static=True, default=None)
    name: ClassVar[str] = "hmc"
    preference: ClassVar[int | None] = 1
    is_chain: ClassVar[bool] = True

    def __check_init__(self) -> None:
        if self.chains is not None:
            whole("chains", self.chains)

    @property
    def takes_private_n(self) -> bool:
        return True

    def serves(self, family: AbstractFamily) -> bool:
        return serves(family)

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route | Refusal:
        adequacy = Adequacy(evidence, prior)
        if not evidence.is_noiseless and (refused := _refused(evidence, prior)) is not None:
            return Refusal(refused)
        explanation = None if evidence.y is None else _explanation(adequacy)
        return Route(self, explanation, adequacy.clips, adequacy)

    def draws(
        self, key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Draws:
        if evidence.is_noiseless:
            return Draws(naive.draws(key, evidence, prior, num_draws))
        is_slow = route.clips and evidence.y.size > _MOST_WORKED_OUT
        chains = self.chains or (_FEW_CHAINS if is_slow else _CHAINS)
        return draws(key, evidence, prior, num_draws, clips=route.clips, num_chains=chains)

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        if evidence.is_noiseless:
            return naive.batch(keys, evidence, prior, num_draws=num_draws)
        return _batch(keys, _target.walked(evidence, prior), prior, clips=route.clips, num_draws=num_draws)


def _explanation(adequacy: Adequacy) -> str | None:
    """Return None where the chains' limit is the posterior itself."""
    evidence, clips = adequacy.evidence, adequacy.clips
    quadratic = evidence.family.as_quadratic(adequacy.prior)
    sentences = []
    if not evidence.count.is_public:
        sentences.append("The private number of records is taken as a real number.")
    if quadratic is None or clips:
        sentences.append("The released sums are taken as normal given θ (central limit theorem).")
    elif has_given_moments(quadratic[1]):
        sentences.append("The sums of the covariates are taken as normal (central limit theorem).")
    if clips:
        sentences.append(_of_points(adequacy))
    elif quadratic is not None and quadratic[0].query.is_altered:
        sentences.append("Records outside the bounds are taken as if they had not been moved to them.")
    if isinstance(evidence.family, AbstractGeneralizedLinear):
        sentences.append(_of_covariates(adequacy))
    return " ".join(sentences) or None


def _of_points(adequacy: Adequacy) -> str:
    """Return how good the moments of clamped records are."""
    error, family = adequacy.coarseness, adequacy.evidence.family
    sentence = "Third and fourth moments of standardised records are held. " if _is_frozen(family) else ""
    if error <= LARGEST:
        return f"{sentence}The moments of clamped records are good to {max(error, 0.0001):.1g} in a CDF."
    return f"{sentence}The moments of clamped records are sums over too few points: others move a CDF by {error:.2f}."


def _of_covariates(adequacy: Adequacy) -> str:
    """Return what a generalized linear model takes for granted, and how wrong that is here."""
    sentence = "The covariates are taken as normal"
    if adequacy.evidence.family.query.is_altered and not adequacy.clips:
        sentence += ", and as if none outside the bounds had been moved to them"
    reason = adequacy.doubt.reason
    return f"{sentence}." if reason is None else f"{sentence}. {reason}"


def _refused(evidence: Evidence, prior: AbstractPrior) -> str | None:
    """Return a sentence where there is no density: the scatter of so few records has none."""
    if not evidence.count.is_public:
        is_given = has_given_moments(prior)
        rule = "prior must be of the covariates themselves where n is private, got their moments."
        return rule if is_given else None
    quadratic = evidence.family.as_quadratic(prior)
    if quadratic is None or evidence.n > (d := quadratic[0].dimension):
        return None
    return (
        f"n must be at least {d + 1} for hmc with {d} columns, got {evidence.n:g}; "
        "use fewer columns, or method='augmentation'."
    )
