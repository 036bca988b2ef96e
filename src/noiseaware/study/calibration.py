"""Is a posterior right? Simulation-based calibration, thousands of trials in one batch.

    θ* ~ prior,  x ~ p(x | θ*),  y = Σ t(x) + noise,  θ₁ … θ_L ~ method(y):  the rank of θ* among θ₁ … θ_L is uniform

and so is the rank of any function of (θ, y). Two of them are ranked beside θ, because a method that ignores the data
passes on θ alone (Modrák et al. 2023): the log likelihood log p(y | θ) where it is known exactly, and always the size
of the residual, ‖y − n E t(θ)‖₁ in most families. A rank is turned into (rank + U)/(L + 1), exactly uniform on (0, 1)
for a right posterior, and KS is the largest distance of their empirical CDF from the diagonal.
"""

import math
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
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.prior import AbstractPrior
from noiseaware.privacy import Neighbours, Number
from noiseaware.sampler import exact
from noiseaware.sampler.method import Method
from noiseaware.study import ecdf
from noiseaware.study.simulate import (
    Evaluated,
    checked,
    chunks,
    draws,
    evaluated,
    fixed,
    planned,
    simulate,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWS = 63
_BAND = 0.95


@dataclass(frozen=True)
class Calibration:
    """Where the truth fell among a method's draws, trial by trial.

    With θ* from the prior the ranks of a right method are uniform. At a fixed `theta` they are not, even then: there
    only `coverage` means something, and it averages to its level over the prior rather than at each θ.
    """

    ranks: dict[str, np.ndarray]
    """(rank + U)/(L + 1) of each trial, for each parameter and each function of θ and y."""
    theta: float | np.ndarray | None = None
    """The parameter of all trials, where it was held fixed."""

    def __repr__(self) -> str:
        held = ", ".join(f"{name} {100 * share:.1f} %" for name, share in self.coverage(0.9).items())
        limit = f"95 % of right methods stay below {self.critical():.3g}"
        ranks = "" if self.theta is not None else f"largest KS {self.ks:.3g} ({limit}), "
        return f"Calibration({self.num_trials:,} tables, {ranks}90 % intervals hold {held})"

    @property
    def num_trials(self) -> int:
        """How many tables were simulated."""
        return next(iter(self.ranks.values())).size

    @property
    def by_parameter(self) -> dict[str, float]:
        """The KS distance of the ranks of each parameter, and of each function of the release, from uniform."""
        if self.theta is not None:
            raise ValueError("theta must come from the prior for ranks to be uniform; at a fixed theta, see coverage.")
        return {name: ecdf.distance(ranks) for name, ranks in self.ranks.items()}

    @property
    def ks(self) -> float:
        """The largest KS distance."""
        return max(self.by_parameter.values())

    def critical(self, level: float = 0.95) -> float:
        """What `ks` stays below with at least this probability when the method is right."""
        from scipy.stats import kstwo

        return float(kstwo.isf((1 - _checked(level)) / len(self.ranks), self.num_trials))

    def coverage(self, level: float) -> dict[str, float]:
        """The share of trials whose central interval of this level held the truth."""
        margin = (1 - _checked(level)) / 2
        return {name: float(np.mean((r > margin) & (r < 1 - margin))) for name, r in self.ranks.items()}

    def coverage_error(self, level: float) -> dict[str, float]:
        """The Monte Carlo standard error of `coverage`; two trials are added to either side, so that none is 0."""
        total = self.num_trials + 4
        shares = {name: (share * self.num_trials + 2) / total for name, share in self.coverage(level).items()}
        return {name: math.sqrt(share * (1 - share) / total) for name, share in shares.items()}

    def plot(self) -> "Figure":
        """The empirical CDF of the ranks minus the diagonal, with the band that 95 % of right methods stay in.

        At a fixed θ, coverage against level.
        """
        return (ecdf.difference if self.theta is None else ecdf.coverage)(self.ranks, _BAND)


def _check_alone(method: Method, neighbours: str, others: tuple) -> None:
    if method != "auto" or neighbours != "replace" or any(other is not None for other in others):
        raise ValueError("a posterior is tried at its own setting: leave out all but num_trials and seed.")


def calibrate(
    family: "AbstractFamily | AbstractPosterior",
    prior: AbstractPrior | None = None,
    *,
    n: int | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    mechanism: AbstractMechanism | None = None,
    neighbours: Neighbours = "replace",
    method: Method = "auto",
    theta: object = None,
    num_trials: int = 1000,
    seed: int | None = None,
) -> Calibration:
    """Ranks of the truth over simulated tables of n records, released under a promise or with a given mechanism.

    `method` is one of `infer`, or one that sees what no analyst has: nonprivate (the true statistic), ops
    (one-posterior sampling, for successes) or cheating (the naive one, given the unaltered records' noisy sum).
    With `theta`, all tables come from that parameter, and only the coverage of the result is meaningful. With
    neighbours="add_remove", n is the noisy number of records that was released. Given a posterior alone, its own
    method is tried at its very setting.

    >>> found = na.calibrate(na.family.Bernoulli(), na.prior.Beta(2, 50), n=500, epsilon=0.5, num_trials=200, seed=1)
    >>> found.num_trials, bool(0.8 < found.coverage(0.9)["theta"] < 1)
    (200, True)
    """
    if isinstance(family, AbstractPosterior):
        _check_alone(method, neighbours, (prior, n, epsilon, rho, delta, mechanism, theta))
        return _at(family, num_trials, seed)
    prior = checked(family, prior, n=n, num_trials=num_trials)  # type: ignore[arg-type]
    assert n is not None
    drawn_by = evaluated(method, family, has_private_n=neighbours == "add_remove")
    promise = {"epsilon": epsilon, "rho": rho, "delta": delta, "neighbours": neighbours}
    evidence = planned(family, n, mechanism=mechanism, **promise)
    return _calibrated(evidence, prior, drawn_by, theta, num_trials, seed)


def _at(posterior: AbstractPosterior, num_trials: int, seed: int | None) -> Calibration:
    release, family = posterior.release, posterior.release.family
    if posterior.others or release.within is not None:
        raise ValueError("posterior must be of one release without intervals, to be calibrated at its setting.")
    prior = checked(family, posterior.prior, n=1, num_trials=num_trials)
    method = posterior.method if posterior.route is None else posterior.route.sampler
    drawn_by = evaluated(method, family, has_private_n=release.n_mechanism is not None)
    return _calibrated(release.evidence().at(None), prior, drawn_by, None, num_trials, seed)


def _calibrated(
    evidence: Evidence, prior: AbstractPrior, method: Evaluated, theta: object, num_trials: int, seed: int | None
) -> Calibration:
    with jax.enable_x64(True):
        held = None if theta is None else fixed(evidence.family, prior, theta)
        size, keys = chunks(num_trials, seed, "calibrating")
        parts = [_ranks(key, evidence, prior, method, held, size) for key in keys]
    ranks = {name: np.concatenate([part[name] for part in parts])[:num_trials] for name in parts[0]}
    return Calibration(ranks, None if held is None else np.asarray(held))


def _ranks(
    key: Key[Array, ""],
    evidence: Evidence,
    prior: AbstractPrior,
    method: Evaluated,
    theta: Float[Array, "..."] | None,
    size: int,
) -> dict[str, np.ndarray]:
    """Return the ranks of one batch of trials."""
    key_truth, key_draws, key_ties = jax.random.split(key, 3)
    family, trials = evidence.family, simulate(key_truth, evidence, prior, size, theta=theta)
    drawn = draws(key_draws, method, evidence, prior, trials, num_draws=_DRAWS)
    truth = trials.theta[:, None]
    if drawn.ndim == 3:  # what nobody asks for is at the end of θ, and not every method draws it
        truth = truth[..., : drawn.shape[2]]
    both = jnp.concatenate([truth, drawn], axis=1)
    quantities = numbers(family, family.named(np.asarray(both)))
    if theta is None:
        quantities |= _data_dependent(evidence.at(trials.y), prior, both)
    ties = np.asarray(jax.random.uniform(key_ties, (size,)))
    return {name: _rank(name, values, ties) for name, values in quantities.items()}


def _data_dependent(evidence: Evidence, prior: AbstractPrior, theta: Float[Array, "b m ..."]) -> dict[str, np.ndarray]:
    """Return functions of θ and y; E t(θ) is that of unaltered records, since any function will do."""
    found = {}
    if evidence.family.exact_by is not None and not evidence.is_noiseless:
        found["log_likelihood"] = exact.log_likelihood(evidence, prior, theta)
    found["residual"] = _residual(evidence.family, evidence.y, evidence.n, theta)
    return {name: np.asarray(values) for name, values in found.items()}


@jax.jit
def _residual(family: AbstractFamily, y: Float[Array, "b k"], n: float, theta: Array) -> Float[Array, "b m"]:
    return jax.vmap(lambda y, theta: jax.vmap(lambda t: family.residual(t, y, n))(theta))(y, theta)


def _rank(name: str, values: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """(rank + U)/(L + 1) of the first column among the others, ties broken at random."""
    if np.isnan(values).any() or np.isposinf(values).any():
        raise RuntimeError(f"calibration met a {name} that is not a number: the method is broken for this setting.")
    return ecdf.rank(values[:, 0], values[:, 1:], ties)


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}.")
    return level
