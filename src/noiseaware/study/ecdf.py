"""The empirical CDF of ranks, and the band that holds all of it (Säilynoja, Bürkner & Vehtari 2022).

At a point z the number of N uniforms below z is Binomial(N, z), so a pointwise interval of level 1 − γ is two of its
quantiles. γ is taken such that the share of samples that stay inside at all points at once is the level asked for:

    γ = the (1 − level) quantile of  min_z 2 min(P(B_z ≤ R_z), P(B_z ≥ R_z)),        R_z counted in a uniform sample
"""

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Ranks = dict[str, np.ndarray]

POINTS = 100
_SAMPLES = 5_000  # the level of a 95 % band is right to √(.05 · .95/5000) = 0.003
_COLOURS = ("#1d5fa3", "#c4560a", "#2f855a", "#8b3fa0", "#b7791f", "#0f172a")
_STYLES = ("-", (0, (5, 1.5)), (0, (1.5, 1)))


def rank(truth: np.ndarray, draws: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(rank + U)/(L + 1) of each truth among its L draws, uniform for a right posterior; ties are broken by u.

    Truths come first, and their draws after them.
    """
    below, equal = (at.sum(axis=1) for at in (draws < truth[:, None], draws == truth[:, None]))
    return (below + u * (equal + 1)) / (draws.shape[1] + 1)


def distance(ranks: np.ndarray) -> float:
    """sup |ECDF − diagonal|: the Kolmogorov–Smirnov distance from uniform."""
    ordered = np.sort(ranks)
    steps = np.arange(ordered.size + 1) / ordered.size
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


@functools.cache
def band(size: int, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points z, and the band's lower and upper end there, as shares of a sample of this size."""
    from scipy.stats import binom

    z = np.arange(1, POINTS) / POINTS
    rng = np.random.default_rng(size)  # the same band every time
    below = rng.multinomial(size, np.full(POINTS, 1 / POINTS), _SAMPLES)[:, :-1].cumsum(axis=1)
    tails = np.minimum(binom.cdf(below, size, z), binom.sf(below - 1, size, z))
    gamma = np.quantile(2 * tails.min(axis=1), 1 - level, method="lower")
    # a count r is inside when both of its tails are above γ/2
    return z, binom.ppf(gamma / 2, size, z) / size, binom.isf(gamma / 2, size, z) / size


def difference(ranks: Ranks, level: float) -> "Figure":
    """ECDF − diagonal of each row of ranks."""
    figure, axes = _figure(ranks, level, is_difference=True)
    axes.set(xlabel="rank of the truth among the draws", ylabel="ECDF − diagonal")
    return figure


def coverage(ranks: Ranks, level: float) -> "Figure":
    """Coverage against level: the ECDF of |2 rank − 1|, since a central interval holds what is near the middle."""
    figure, axes = _figure({name: np.abs(2 * r - 1) for name, r in ranks.items()}, level, is_difference=False)
    axes.set(xlabel="level of the interval", ylabel="share that held the truth", ylim=(0, 1), aspect="equal")
    return figure


def _figure(ranks: Ranks, level: float, *, is_difference: bool) -> "tuple[Figure, Axes]":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.9) if is_difference else (4.6, 4.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    size = next(iter(ranks.values())).size
    z, low, high = (np.concatenate([[0], values, [1]]) for values in band(size, level))
    low[-1], high[0] = 1, 0  # at 0 and 1 the ECDF is known
    base = z if is_difference else 0 * z
    right = f"{100 * level:g} % of right methods" if is_difference else f"{100 * level:g} % if it always covered so"
    axes.fill_between(z, low - base, high - base, color="#e2e8f0", linewidth=0, label=right)
    axes.plot(z, z - base, color="#9ca3af", linewidth=0.8)
    for i, (name, values) in enumerate(ranks.items()):
        share = np.searchsorted(np.sort(values), z, side="right") / values.size
        style = {"color": _COLOURS[i % len(_COLOURS)], "linestyle": _STYLES[i % len(_STYLES)]}
        axes.plot(z, share - base, linewidth=1.7, label=name.replace("_", " "), **style)
    axes.set_xlim(0, 1)
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), 4 if is_difference else 2)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=9.5)
    return figure, axes
