"""Is a posterior right? Simulation-based calibration, thousands of trials in one batch.

    θ* ~ prior,  x ~ p(x | θ*),  y = Σ t(x) + noise,  θ₁ … θ_L ~ method(y):  the rank of θ* among θ₁ … θ_L is uniform

and so is the rank of any function of (θ, y). The log likelihood log p(y | θ) is ranked too, because a method that
ignores the data passes on θ alone (Modrák et al. 2023). A rank is turned into (rank + U)/(L + 1), exactly uniform on
(0, 1) for a right posterior, and KS is the largest distance of their empirical CDF from the diagonal.
"""

import math
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.family import AbstractFamily
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from noiseaware.posterior import METHODS, checked_method
from noiseaware.prior import AbstractPrior
from noiseaware.privacy import Number, Pure, promised
from noiseaware.sampler import exact

_DRAWS = 63
_CHUNK = 250  # trials a batch, a compromise of memory and overhead

BatchMethod = Callable[..., Float[Array, "b num_draws ..."]]


@dataclass(frozen=True)
class Calibration:
    """Uniform ranks, if the method is right."""

    ranks: dict[str, np.ndarray]
    """(rank + U)/(L + 1) of each trial, for each parameter and for the log likelihood."""

    @property
    def by_parameter(self) -> dict[str, float]:
        """The KS distance of each row of ranks from uniform."""
        return {name: _distance(ranks) for name, ranks in self.ranks.items()}

    @property
    def ks(self) -> float:
        """The largest KS distance."""
        return max(self.by_parameter.values())

    def coverage(self, level: float) -> dict[str, float]:
        """The share of trials whose central interval of this level held the truth."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}.")
        margin = (1 - level) / 2
        return {name: float(np.mean((r > margin) & (r < 1 - margin))) for name, r in self.ranks.items()}

    def plot(self):
        """The empirical CDF of the ranks minus the diagonal, with the band that 95 % of uniform samples stay in."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        grid = np.linspace(0, 1, 201)
        for name, ranks in self.ranks.items():
            axes.plot(grid, np.searchsorted(np.sort(ranks), grid) / ranks.size - grid, label=name)
        band = 1.358 / math.sqrt(next(iter(self.ranks.values())).size)  # 5 % point of the Kolmogorov distribution
        axes.axhspan(-band, band, color="0.9", zorder=0, label="95 % of right posteriors")
        axes.set(xlabel="rank of the truth in the posterior", ylabel="ECDF − diagonal", xlim=(0, 1))
        axes.legend(frameon=False, fontsize="small")
        return figure


def calibrate(
    family: AbstractFamily,
    prior: AbstractPrior,
    *,
    n: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    mechanism: AbstractMechanism | None = None,
    method: str = "auto",
    num_trials: int = 1000,
    seed: int | None = None,
) -> Calibration:
    """Ranks of the truth over simulated tables of n records, released with epsilon, rho or a given mechanism."""
    draw_batch = METHODS[checked_method(method)].batch
    if mechanism is None:
        mechanism = _simulated_noise(family, epsilon=epsilon, rho=rho)
    elif epsilon is not None or rho is not None:
        raise ValueError("give one of epsilon, rho and mechanism.")
    with jax.enable_x64(True):
        key = jax.random.key(secrets.randbits(32) if seed is None else seed)
        starts = range(0, num_trials, _CHUNK)
        sizes = [min(_CHUNK, num_trials - start) for start in starts]
        keys = jax.random.split(key, len(sizes))
        chunks = [
            _trials(key, family, prior, mechanism, n, draw_batch, size)
            for key, size in zip(keys, _progress(sizes), strict=True)
        ]
    return Calibration({name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]})


def _simulated_noise(family: AbstractFamily, *, epsilon: Number | None, rho: Number | None) -> AbstractMechanism:
    """The noise of a release with this promise: discrete for counts, else on so fine a grid as to be continuous."""
    promise = promised(epsilon=epsilon, rho=rho)
    if isinstance(promise, Pure):
        scale = float(family.sensitivity() / promise.epsilon)
        return DiscreteLaplace(scale) if family.is_integer else Laplace(scale)
    stddev = math.sqrt(family.sensitivity_squared() / (2 * promise.rho))
    return DiscreteGaussian(stddev) if family.is_integer else Gaussian(stddev)


def _trials(
    key: Key[Array, ""],
    family: AbstractFamily,
    prior: AbstractPrior,
    mechanism: AbstractMechanism,
    n: int,
    draw_batch: BatchMethod,
    size: int,
) -> dict[str, np.ndarray]:
    """One batch of trials."""
    key_truth, key_draws, key_ties = jax.random.split(key, 3)
    truth, y = simulate(key_truth, family, prior, mechanism, n, size)
    draws = draw_batch(jax.random.split(key_draws, size), family, prior, mechanism, y, n, num_draws=_DRAWS)
    both = jnp.concatenate([truth[:, None], draws], axis=1)
    likelihood = exact.log_likelihood(family, prior, mechanism, y, n, both)
    quantities = _named(family, np.asarray(both)) | {"log_likelihood": np.asarray(likelihood)}
    ties = np.asarray(jax.random.uniform(key_ties, (size,)))
    return {name: _rank(values, ties) for name, values in quantities.items()}


def simulate(
    key: Key[Array, ""], family: AbstractFamily, prior: AbstractPrior, mechanism: AbstractMechanism, n: int, size: int
) -> tuple[Float[Array, "b ..."], Float[Array, "b k"]]:
    """Parameters from the prior, and the noisy statistics of a table of n records for each."""

    @jax.jit
    def one(key):
        key_theta, key_records, key_noise = jax.random.split(key, 3)
        theta = prior.sample(key_theta)
        columns = family.statistic(family.alter(family.sample(key_records, theta, n)))
        s = jnp.stack([column.sum(dtype=theta.dtype) for column in columns])
        return theta, s + mechanism.sample(key_noise, s.shape)

    return jax.vmap(one)(jax.random.split(key, size))


def _named(family: AbstractFamily, theta: np.ndarray) -> dict[str, np.ndarray]:
    """One array a scalar parameter."""
    named = family.named(theta)
    if any(values.ndim == 3 for values in named.values()):
        return {f"{name}[{j}]": values[..., j] for name, values in named.items() for j in range(values.shape[-1])}
    return named


def _rank(values: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """(rank + U)/(L + 1) of the first column among the others, ties broken at random."""
    if not np.isfinite(values).all():
        raise RuntimeError("calibration met a value that is not finite: the method is broken for this setting.")
    below = (values[:, 1:] < values[:, :1]).sum(axis=1)
    equal = (values[:, 1:] == values[:, :1]).sum(axis=1)
    return (below + ties * (equal + 1)) / values.shape[1]


def _distance(ranks: np.ndarray) -> float:
    """sup |ECDF − diagonal|."""
    ordered = np.sort(ranks)
    steps = np.arange(ordered.size + 1) / ordered.size
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def _progress(sizes: list[int]):
    """The sizes, with a bar on a terminal."""
    if not sys.stderr.isatty():
        return sizes
    from rich.console import Console
    from rich.progress import track

    return track(sizes, "calibrating", console=Console(stderr=True), transient=True)
