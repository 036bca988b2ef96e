"""Not in the paper: few records and rare events, where the central limit theorem fails and the exact sampler does not.

Ranks of the truth for the exact sampler and for the Gibbs sampler of 2018, on the same settings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from noiseaware.family import Bernoulli
from noiseaware.prior import Beta
from noiseaware.reproduce.output import save
from noiseaware.study.calibration import Calibration, calibrate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = (
    (10, 1.0, Beta(1.0, 1.0)),
    (10, 1.0, Beta(0.5, 20.0)),
    (100, 1.0, Beta(0.5, 20.0)),
    (1000, 1.0, Beta(0.5, 100.0)),
)
METHODS = {"exact": ("exact", "#1d5fa3"), "gibbs": ("Gibbs, 2018", "#c4560a")}


@dataclass(frozen=True)
class Point:
    """One method at one setting."""

    n: int
    epsilon: float
    prior: str
    method: str
    found: Calibration


def reproduce(folder: Path, *, quick: bool, seed: int) -> list[Path]:
    """Compute, draw and write the figure."""
    points = compute(100, SETTINGS[::3], seed=seed) if quick else compute(1500, SETTINGS, seed=seed)
    header = ("n", "epsilon", "prior", "method", "trials", "ks", "coverage_90", "coverage_90_error")
    return save(folder, "rare_events", header, rows(points), draw(points))


def compute(num_trials: int, settings: Sequence[tuple[int, float, Beta]], *, seed: int = 0) -> list[Point]:
    return [
        Point(
            n,
            epsilon,
            str(prior),
            method,
            calibrate(Bernoulli(), prior, n=n, epsilon=epsilon, method=method, num_trials=num_trials, seed=seed + i),
        )
        for i, (n, epsilon, prior) in enumerate(settings)
        for method in METHODS
    ]


def rows(points: list[Point]) -> Iterable[tuple]:
    """One row a method and setting."""
    for p in points:
        covered, error = p.found.coverage(0.9)["theta"], p.found.coverage_error(0.9)["theta"]
        yield p.n, p.epsilon, p.prior, p.method, p.found.num_trials, p.found.by_parameter["theta"], covered, error


def draw(points: list[Point]) -> dict[str, "Figure"]:
    from matplotlib.figure import Figure

    settings = list(dict.fromkeys((p.n, p.epsilon, p.prior) for p in points))
    figure = Figure(figsize=(3.1 * len(settings), 3.4), layout="constrained")
    panels = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
    z = np.linspace(0, 1, 201)
    for p in points:
        axes = panels[settings.index((p.n, p.epsilon, p.prior))]
        ranks = np.sort(p.found.ranks["theta"])
        label, colour = METHODS[p.method]
        covered = f"{label}: 90 % interval covers {100 * p.found.coverage(0.9)['theta']:.0f} %"
        axes.plot(z, np.searchsorted(ranks, z, side="right") / ranks.size - z, color=colour, label=covered)
        critical = 1.358 / ranks.size**0.5  # the 5 % point of Kolmogorov's distribution
        axes.axhspan(-critical, critical, color="0.92", zorder=0)
        axes.set(title=f"n = {p.n}, ε = {p.epsilon:g}, {p.prior}", xlabel="rank of the truth", xlim=(0, 1))
        axes.title.set_fontsize(9.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    panels[0].set_ylabel("ECDF − diagonal")
    return {"rare_events": figure}
