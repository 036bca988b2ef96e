"""Is a posterior useful? How far it is from the one that the records themselves would give, trial by trial.

    MMD²(P, Q)   = Σ_{i≠j} (k(p_i, p_j) + k(q_i, q_j) − k(p_i, q_j) − k(p_j, q_i)) / m(m−1),   k(p, q) = e^{−(p−q)²/2}
    W₁(P, Q)     = ∫ |P⁻¹(u) − Q⁻¹(u)| du
    width ratio  = width of P's 90 % interval / width of Q's

for m draws of P, the method's posterior, and m of Q, the non-private one. The first is unbiased and may be negative
(Gretton et al. 2012); its kernel has unit bandwidth (Bernstein & Sheldon 2018), whatever the scale of θ. The second
is in the units of θ and cannot be below what m draws of one and the same law are apart.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.mechanism import AbstractMechanism
from noiseaware.posterior.estimate import numbers
from noiseaware.prior import AbstractPrior
from noiseaware.privacy import Number
from noiseaware.sampler.method import Method
from noiseaware.study.simulate import EVALUATED, Evaluated, checked, chunks, draws, evaluated, planned, simulate

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.9


@dataclass(frozen=True)
class Utility:
    """Distances to the non-private posterior: number of the parameter → one value a trial."""

    mmd_squared: dict[str, np.ndarray]
    wasserstein: dict[str, np.ndarray]
    width_ratio: dict[str, np.ndarray]

    def summary(self) -> "pd.DataFrame":
        """The mean over trials of each measure, and its Monte Carlo standard error."""
        import pandas as pd

        columns = {}
        for measure, values in vars(self).items():
            columns[measure] = {name: v.mean() for name, v in values.items()}
            columns[f"mcse_{measure}"] = {name: v.std(ddof=1) / len(v) ** 0.5 for name, v in values.items()}
        return pd.DataFrame(columns)


def utility(
    family: AbstractFamily,
    prior: AbstractPrior,
    *,
    n: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    mechanism: AbstractMechanism | None = None,
    method: Method = "auto",
    num_trials: int = 100,
    num_draws: int = 500,
    seed: int | None = None,
) -> Utility:
    """Distances over simulated tables of n records; settings and methods are those of `calibrate`, with a public n."""
    prior = checked(family, prior, n=n, num_trials=num_trials)
    if num_draws < 2:
        raise ValueError(f"num_draws must be at least 2, got {num_draws}.")
    drawn_by = evaluated(method, family)
    evidence = planned(family, n, epsilon=epsilon, rho=rho, delta=delta, mechanism=mechanism)
    with jax.enable_x64(True):
        size, keys = chunks(num_trials, seed, "comparing")
        parts = [_distances(key, evidence, prior, drawn_by, size, num_draws) for key in keys]
    names = parts[0][0]
    measures = ({name: np.concatenate([p[i][name] for p in parts])[:num_trials] for name in names} for i in range(3))
    return Utility(*measures)


def _distances(
    key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, method: Evaluated, size: int, num_draws: int
) -> tuple[dict[str, np.ndarray], ...]:
    """Return the three measures of one batch of trials."""
    key_truth, key_own, key_other = jax.random.split(key, 3)
    family, trials = evidence.family, simulate(key_truth, evidence, prior, size)
    pairs = ((key_own, method), (key_other, EVALUATED["nonprivate"]))
    own, other = (draws(key, by, evidence, prior, trials, num_draws=num_draws) for key, by in pairs)
    p, q = (numbers(family, family.named(np.asarray(drawn))) for drawn in (own, other))
    return tuple(
        {name: np.asarray(measure(jnp.asarray(p[name]), jnp.asarray(q[name]))) for name in p}
        for measure in (mmd_squared, wasserstein, width_ratio)
    )


@jax.jit
def mmd_squared(p: Float[Array, "b m"], q: Float[Array, "b m"]) -> Float[Array, " b"]:
    """The unbiased estimate for each of b pairs of samples."""

    def one(pair: tuple[Float[Array, " m"], Float[Array, " m"]]) -> Float[Array, ""]:
        p, q = pair
        # k(p_i, p_j) + k(q_i, q_j) − k(p_i, q_j) − k(p_j, q_i): the last two have the same sum over i ≠ j
        terms = _kernel(p, p) + _kernel(q, q) - 2 * _kernel(p, q)
        m = p.shape[0]
        return (terms.sum() - jnp.trace(terms)) / (m * (m - 1))

    return jax.lax.map(one, (p, q))


def _kernel(p: Float[Array, " m"], q: Float[Array, " m"]) -> Float[Array, "m m"]:
    return jnp.exp(-0.5 * (p[:, None] - q) ** 2)


@jax.jit
def wasserstein(p: Float[Array, "b m"], q: Float[Array, "b m"]) -> Float[Array, " b"]:
    """W₁ between samples of one size: their order statistics, compared in pairs."""
    return jnp.abs(jnp.sort(p) - jnp.sort(q)).mean(-1)


@jax.jit
def width_ratio(p: Float[Array, "b m"], q: Float[Array, "b m"]) -> Float[Array, " b"]:
    """Width of the central 90 % interval of p over that of q."""
    ends = jnp.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    own, other = (jnp.diff(jnp.quantile(sample, ends, axis=-1), axis=0)[0] for sample in (p, q))
    return own / other
