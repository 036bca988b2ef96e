"""Exact draws from p(θ | release): no central limit theorem, no burn-in, independent draws.

    one parameter    p(y | θ) by summing over the unseen sum (_latent_sum) or, for clamped or dropped records, by
                     contour or lattice (_altered_sum); then the inverse CDF of θ (_parameter)
    categorical      counts by forward–backward, then θ | counts by conjugacy (_counts)
    no noise         θ | s, plain conjugacy
    an interval      of a count that was rounded, clamped or suppressed: s | interval, then θ | s (_unseen_count)
    private n        summed out of p(y, ñ | θ) (_noisy_count), or drawn before the counts

Exact means: up to quadrature errors of about 1e−4 in a CDF, which no number of draws in use would show.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.evidence.release import NoisyCount, Release
from noiseaware.family import AbstractFamily, AbstractScalarFamily, Categorical
from noiseaware.likelihood import counts, enumerated_count, private_count
from noiseaware.mechanism import AbstractLaw, AbstractMechanism, Interval
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Dirichlet
from noiseaware.sampler import scalar_posterior

# A continuous statistic under discrete noise is treated as under the continuous law. Their densities differ by
# about (grid/scale)²/24 in relative terms, which is below 1e−4 from here on.
_FINE = 20.0
_AT_ONCE = 64  # releases


def draws(key: Key[Array, ""], release: Release, prior: AbstractPrior, num_draws: int) -> Float[Array, "num_draws ..."]:
    """Independent draws of θ."""
    y = release.values  # NumPy's: to make it JAX's would be two small programs more to compile
    return _sampler(release.family, prior, law_of(release), y, release.count, num_draws)(key, y)


def draws_given(
    key: Key[Array, ""], releases: tuple[Release, ...], prior: AbstractScalarPrior, num_draws: int
) -> Float[Array, " num_draws"]:
    """Independent draws of the one θ of several tables."""
    tables = tuple(_seen(release) for release in releases)
    family: AbstractScalarFamily = releases[0].family  # type: ignore[assignment]
    listed = scalar_posterior.num_listed(family, *(table.n for table in tables))  # type: ignore[arg-type]
    return scalar_posterior.draws_given(key, family, prior, tables, num_draws=num_draws, listed=listed)


def _seen(release: Release) -> scalar_posterior.Seen:
    noise, count = noise_of(release), release.count
    n = private_count.sizes(count, release.family, noise)
    return scalar_posterior.Seen(noise, jnp.asarray(release.values)[0], n)


def serves(family: AbstractFamily) -> bool:
    """Whether there is an exact sampler for the family."""
    return isinstance(family, AbstractScalarFamily | Categorical)


def is_count(family: AbstractFamily) -> bool:
    """Whether the statistics are counts that nothing has altered, of which an interval may be all that is known."""
    if isinstance(family, AbstractScalarFamily):
        return family.is_integer and not family.is_altered
    return isinstance(family, Categorical)


def check_interval(release: Release) -> None:
    """Refuse values of which only an interval is known where there is no way to reason from it."""
    if release.within is None or _is_narrow(release):
        return
    family = release.family
    if not is_count(family):
        raise ValueError(
            f"within must be left out for the {family.name} family, or be narrow against the noise, got "
            f"{release.within}; intervals are served for counts: bernoulli, binomial, categorical, or poisson and "
            "geometric without bounds."
        )
    if release.n_mechanism is not None:
        raise ValueError("n must be public where values have an interval, got a noisy one; leave out n_mechanism.")
    low, high = (np.array(ends) for ends in zip(*_ends(release), strict=True))
    if not isinstance(family, Categorical):
        greatest = float(family.possible(release.n)[1])  # type: ignore[attr-defined]
        is_possible = (np.ceil(low) <= np.floor(high)).all() and high[0] >= 0 and low[0] <= greatest
    else:
        is_possible = np.maximum(np.ceil(low), 0).sum() <= release.n <= np.floor(high).sum() and (high >= 0).all()
    if not release.mechanism.is_noisy and not is_possible:
        raise ValueError(f"within must hold counts that {release.n} records can have, got {release.within}.")


def _ends(release: Release) -> list[tuple[float, float]]:
    """The interval of each value in the units of the data: the value itself where it is known."""
    known = zip(release.values.tolist(), release.within or [None] * len(release.steps), strict=True)
    return [(v, v) if w is None else (w[0] * release.grid, w[1] * release.grid) for v, w in known]


def _is_narrow(release: Release) -> bool:
    """Whether intervals about the values are so narrow against the noise on a continuous statistic as not to show."""
    if release.family.is_integer or not release.mechanism.is_noisy:
        return False
    most = np.min(release.noise_scale) / _FINE
    ends = zip(_ends(release), release.values.tolist(), strict=True)
    return all(high - low <= most and abs(low + high - 2 * v) <= 1e-9 * most for (low, high), v in ends)


def explanation(release: Release, prior: AbstractPrior | None = None) -> str | None:
    """None when the draws are exact, else one sentence that says what is neglected."""
    family, mechanism = release.family, release.mechanism
    if not mechanism.is_noisy and scalar_posterior.is_altered(family):
        return "Without noise, the clamped or dropped records are taken as if they had not been altered."
    is_gridded = mechanism.is_discrete and not (family.is_integer and release.grid == 1)
    if is_gridded and np.min(mechanism.spread) < _FINE:
        return "The noise is coarse for a continuous statistic, and is taken as continuous."
    if release.origin.bounds == "private":
        return "The bounds were chosen from the data, and what their choice tells of the parameter is neglected."
    return None


def noise_of(release: Release) -> AbstractMechanism:
    """The law of the noise in the units of the data, continuous where the statistic is."""
    mechanism = release.mechanism
    if not mechanism.is_noisy or (release.family.is_integer and release.grid == 1):
        return mechanism
    if mechanism.is_stepped:
        told = f"the {release.family.name} family" if release.grid == 1 else f"a grid of {release.grid}"
        raise ValueError(f"mechanism must be smooth for {told}, got {mechanism.title} noise, which is for counts.")
    return mechanism.continuous(release.grid)


def law_of(release: Release) -> AbstractLaw:
    """The law of the noise, or that of an interval where one is all that is known of a count."""
    noise = noise_of(release)
    check_interval(release)
    if release.within is None or not is_count(release.family):
        return noise
    low, high = (np.array(ends) for ends in zip(*_ends(release), strict=True))
    below, above = release.values - low, high - release.values
    if isinstance(release.family, Categorical):
        return Interval(noise, below, above)
    return Interval(noise, float(below[0]), float(above[0]))


def batch(
    keys: Key[Array, " b"],
    family,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, "b k"],
    n: int | NoisyCount,
    *,
    num_draws: int,
) -> Float[Array, "b num_draws ..."]:
    """Draws for a batch of releases that differ in y alone."""
    sampler = _sampler(family, prior, mechanism, y, n, num_draws)
    if isinstance(n, NoisyCount):  # one after another: each goes through many numbers of records
        return jax.lax.map(lambda at: sampler(*at), (keys, y))
    return jax.vmap(sampler)(keys, y)


def num_listed(family, laws: AbstractLaw, y: Float[Array, " b"], n: Float[Array, " b"]) -> int:
    """How many counts must be listed to draw for each of these releases."""
    return enumerated_count.num_listed(family, laws, y, n) if is_count(family) else 0


@functools.partial(jax.jit, static_argnames=("num_draws", "listed"))
def each(
    keys: Key[Array, " b"],
    family,
    prior: AbstractScalarPrior,
    laws: AbstractLaw,
    y: Float[Array, " b"],
    n: Float[Array, " b"],
    *,
    num_draws: int,
    listed: int,
) -> Float[Array, "b num_draws"]:
    """Draws for releases of one parameter that differ in y, in n and in the numbers of their laws.

    `listed` is what `num_listed` says of these releases, or of more of which they are a part.
    """

    def one(at) -> Float[Array, " num_draws"]:
        key, law, y, n = at
        if is_count(family):
            return enumerated_count.draws(key, family, prior, law, y, n, num_draws=num_draws, listed=listed)
        return scalar_posterior.draws(key, family, prior, law, y, n, num_draws=num_draws)

    return jax.lax.map(one, (keys, laws, y, n), batch_size=min(_AT_ONCE, len(y)))


def _sampler(
    family,
    prior: AbstractPrior,
    mechanism: AbstractLaw,
    y: Float[Array | np.ndarray, "*b k"],
    n: int | NoisyCount,
    num_draws: int,
) -> Callable[[Key[Array, ""], Float[Array | np.ndarray, " k"]], Float[Array, "num_draws ..."]]:
    """The function from a key and one release's values to draws; sized so that it serves every row of y."""
    if isinstance(mechanism, AbstractMechanism) and not mechanism.is_noisy:
        return lambda key, y: family.update(prior, family.project(jnp.asarray(y), n), n).sample(key, (num_draws,))
    if isinstance(family, Categorical) and isinstance(prior, Dirichlet):
        total = counts.total_of(n)
        shape = counts.shape_for(prior, mechanism, y, total)
        return lambda key, y: counts.draws(key, prior, mechanism, y, total, num_draws=num_draws, shape=shape)
    if isinstance(mechanism, AbstractMechanism) and mechanism.is_stepped:
        if not is_count(family) or isinstance(n, NoisyCount):
            told = "counts without bounds and with a public n"
            raise ValueError(f"{mechanism.title} noise is for {told} under method exact; use augmentation.")
        mechanism = Interval(mechanism, 0.0, 0.0)
    if isinstance(mechanism, Interval):
        assert isinstance(family, AbstractScalarFamily)
        assert not isinstance(n, NoisyCount)
        law, size = mechanism, float(n)
        listed = enumerated_count.num_listed(family, law, jnp.asarray(y[..., 0]), size)
        draw = functools.partial(enumerated_count.draws, num_draws=num_draws, listed=listed)
        return lambda key, y: draw(key, family, prior, law, y[0], size)
    assert isinstance(mechanism, AbstractMechanism)
    assert isinstance(family, AbstractScalarFamily)
    count = private_count.sizes(n, family, mechanism)
    draw = functools.partial(
        scalar_posterior.draws, num_draws=num_draws, listed=scalar_posterior.num_listed(family, count)
    )
    return lambda key, y: draw(key, family, prior, mechanism, y[0], count)


def log_likelihood(
    family,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    y: Float[Array, "b k"],
    n: int | NoisyCount,
    theta: Array,
) -> Float[Array, "b m"]:
    """log p(y | θ) for m values of θ a release."""
    if isinstance(family, Categorical) and isinstance(prior, Dirichlet):
        total = counts.total_of(n)
        shape = counts.shape_for(prior, mechanism, y, total)
        return jax.vmap(lambda y, t: counts.log_likelihood(mechanism, y, total, t, shape=shape))(y, theta)
    count = private_count.sizes(n, family, mechanism)
    if isinstance(n, NoisyCount):
        return jax.lax.map(
            lambda at: scalar_posterior.log_likelihood(family, mechanism, at[0][0], count, at[1]), (y, theta)
        )
    return jax.vmap(lambda y, t: scalar_posterior.log_likelihood(family, mechanism, y[0], count, t))(y, theta)
