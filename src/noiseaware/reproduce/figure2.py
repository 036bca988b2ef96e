"""Figure 2 of Bernstein & Sheldon 2018: the first 500 iterations of the Gibbs samplers at n = 1000 and ε = 0.1.

Four chains start from the naive posterior; the shaded band is the central 95 % of the exact posterior.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, Bernoulli, Exponential
from noiseaware.mechanism import Laplace
from noiseaware.prior import AbstractPrior, Beta, Gamma
from noiseaware.reproduce.output import save
from noiseaware.sampler import exact, gibbs
from noiseaware.study.simulate import simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N, EPSILON, ITERATIONS, CHAINS = 1000, 0.1, 500, 4
_COLOURS = ("#1d5fa3", "#5a93c9", "#2f855a", "#7fb89a")


@dataclass(frozen=True)
class Trace:
    """The chains of one model, the truth, and the exact posterior's interval."""

    model: str
    chains: np.ndarray
    truth: float
    interval: tuple[float, float]


def reproduce(folder: Path, *, quick: bool, seed: int) -> list[Path]:
    """Compute, draw and write the figure; it is quick as it is."""
    traces = compute(seed=seed)
    return save(folder, "figure2", ("model", "chain", "iteration", "theta"), rows(traces), draw(traces))


def compute(*, seed: int = 0) -> list[Trace]:
    """One table a model, of a typical parameter."""
    settings: list[tuple[str, AbstractFamily, AbstractPrior, float]] = [
        ("binomial", Bernoulli(), Beta(10.0, 10.0), 0.4),
        # the middle 95 % of records at the true rate
        ("exponential", Exponential(bounds=(0.025318 / 4, 3.688879 / 4), outside="drop"), Gamma(8.0, 2.0), 4.0),
    ]
    with jax.enable_x64(True):
        return [_trace(jax.random.fold_in(jax.random.key(seed), i), *s) for i, s in enumerate(settings)]


def _trace(key, name: str, family: AbstractFamily, prior: AbstractPrior, truth: float) -> Trace:
    key_table, key_chains, key_exact = jax.random.split(key, 3)
    mechanism = Laplace(float(family.query.sensitivity()) / EPSILON)
    evidence = Evidence(family, mechanism, None, Public(N))
    y = simulate(key_table, evidence, prior, 1, theta=jnp.asarray(truth)).y
    chains = gibbs.chains(
        jax.random.split(key_chains, CHAINS),
        evidence.at(jnp.broadcast_to(y, (CHAINS, 1))),
        prior,
        num_draws=ITERATIONS,
        num_warmup=0,
    )
    right = np.asarray(exact.draws(key_exact, evidence.at(np.asarray(y[0])), prior, 20_000))
    low, high = np.quantile(right, (0.025, 0.975))
    return Trace(name, np.asarray(chains), truth, (float(low), float(high)))


def rows(traces: list[Trace]) -> Iterable[tuple]:
    """One row an iteration of a chain."""
    for trace in traces:
        for (chain, iteration), theta in np.ndenumerate(trace.chains):
            yield trace.model, chain, iteration + 1, float(theta)


def draw(traces: list[Trace]) -> dict[str, "Figure"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(traces), 3.2), layout="constrained")
    panels = figure.subplots(1, len(traces), squeeze=False)[0]
    for axes, trace in zip(panels, traces, strict=True):
        axes.axhspan(*trace.interval, color="#e5e7eb", zorder=0, label="exact posterior, 95 %")
        for colour, chain in zip(_COLOURS, trace.chains, strict=True):
            axes.plot(np.arange(1, chain.size + 1), chain, color=colour, linewidth=0.7)
        axes.axhline(trace.truth, color="#0f172a", linewidth=1.2, linestyle=(0, (1, 1.5)), label="truth")
        axes.set(title=f"{trace.model}, n = {N}, ε = {EPSILON:g}", xlabel="iteration", ylabel="θ")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return {"figure2": figure}
