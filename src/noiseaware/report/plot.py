"""Posterior, prior and naive posterior of each number, side by side.

The prior and the naive posterior are drawn from their formulas, the posterior by a kernel estimate of its draws. Both
live on the whole line v = g(θ) of the prior (logit, log or θ itself), so that no density leaks over a bound:

    p(θ) = p(v) · dv/dθ        on a logarithmic axis p(log θ) = p(v) · dv/d log θ
"""

import math
import textwrap
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import numpy as np

from noiseaware.posterior.estimate import PROBABILITY, Estimate
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.posterior.recorded import MEAN, VARIANCE
from noiseaware.prior import AbstractScalarPrior
from noiseaware.report.posterior_words import PERCENT, gloss

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


POSTERIOR, NAIVE, PRIOR, TRUTH = "#1d5fa3", "#c4560a", "#6b7280", "#0f172a"
_POINTS = 600
_TALLEST = 2.5  # a naive spike may stand this much above the posterior before it is cut
_MOST_PANELS = 24
_BINS = 512  # of draws, for their kernel estimate
_NEAREST = 400  # draws at a bound, in which kernels are of one width
_LINE = 32  # letters under a panel
_WIDE = 40.0  # an interval whose ends differ by more than this factor is shown on a logarithmic axis


@dataclass(frozen=True)
class Curves:
    """One number of the parameter, and all that its panel shows: densities at x, intervals, and the truth if given."""

    name: str
    label: str
    is_log: bool
    x: np.ndarray
    posterior: np.ndarray
    naive: np.ndarray
    prior: np.ndarray
    own: Estimate
    other: Estimate
    truth: float | None

    @property
    def top(self) -> float:
        """The top of the panel; a naive spike may go beyond."""
        highest = self.posterior.max()
        return float(1.08 * max(highest, min(self.naive.max(), _TALLEST * highest)))


def densities(posterior: AbstractPosterior, truths: dict[str, float]) -> "Figure":
    """A figure with a panel for each number of the parameter, or for the first of very many."""
    numbers = len(posterior.marginals())
    shown = curves(posterior, truths)
    figure, axes = grid(len(shown), (7.2, 3.7), 2.6)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a column may be named in any script
        for panel, number in zip(axes, shown, strict=True):
            _draw(panel, number)
        is_cut = any(number.naive.max() > number.top for number in shown)
        note = f"Bars: {PERCENT} intervals and means." + " The naive curve goes off the top." * is_cut
        if numbers > len(shown):
            note += f" The first {len(shown)} of {numbers} numbers."
        legend(figure, axes[0], note)
        figure.draw_without_rendering()
    return figure


def grid(count: int, alone: tuple[float, float], height: float) -> tuple["Figure", list["Axes"]]:
    """A figure with so many panels, two or three abreast unless there is only one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 1 if count == 1 else 2 if count in (2, 4) else 3
    rows = -(-count // columns)
    figure = Figure(figsize=alone if count == 1 else (9.3, 0.5 + height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def curves(
    posterior: AbstractPosterior, truths: dict[str, float], probability: float = PROBABILITY, points: int = _POINTS
) -> list[Curves]:
    """Return the curves of each number of the parameter, or of the first of very many."""
    draws, priors, naives = posterior.marginals(), posterior.prior_marginals(), posterior.naive_marginals()
    estimates = zip(posterior.estimates(probability), posterior.naive_estimates(probability), strict=True)
    numbers = list(zip(draws, priors, naives, estimates, strict=True))[:_MOST_PANELS]
    found = []
    for name, prior, naive, (own, other) in numbers:
        is_log = prior.support[0] == 0 and own.high > _WIDE * own.low
        low, high = _window(draws[name], naive, truths.get(name), is_log=is_log)
        x = np.geomspace(low, high, points) if is_log else np.linspace(low, high, points)
        with jax.enable_x64(True):
            height = _kernel(prior, draws[name], x, is_log=is_log)
            spike, before = (_formula(marginal, x, is_log=is_log) for marginal in (naive, prior))
        label = _label(posterior, name, is_log=is_log)
        found.append(Curves(name, label, is_log, x, height, spike, before, own, other, truths.get(name)))
    return found


def _draw(axes: "Axes", number: Curves) -> None:
    x, top = number.x, number.top
    axes.fill_between(x, number.posterior, color=POSTERIOR, alpha=0.18, linewidth=0)
    axes.plot(x, number.posterior, color=POSTERIOR, linewidth=2, label="posterior")
    axes.plot(x, number.naive, color=NAIVE, linewidth=1.6, label="naive posterior")
    axes.plot(x, number.prior, color=PRIOR, linewidth=1.3, linestyle=(0, (5, 3)), label="prior")
    _intervals(axes, number.own, number.other, top)
    if number.truth is not None:
        axes.axvline(number.truth, color=TRUTH, linewidth=1.4, linestyle=(0, (1, 1.5)), label="truth")
    _frame(axes, top, (float(x[0]), float(x[-1])), is_log=number.is_log)
    axes.set_xlabel(number.label, parse_math=False, fontsize=9.5)


def _window(draws: np.ndarray, naive: AbstractScalarPrior, truth: float | None, *, is_log: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows the posterior, the naive posterior and the truth."""
    tail, top = 0.02 if is_log else 0.001, naive.support[1]
    ends = [*np.quantile(draws, (tail, 0.999)), naive.quantile(max(tail, 0.005)), naive.quantile(0.999)]
    low, high = min(ends), max(ends)
    if truth is not None:
        low, high = min(low, truth), max(high, truth)
    if is_log:
        return max(low, 1e-6 * high) / 1.2, min(1.2 * high, top)
    pad = 0.04 * (high - low)
    is_near_zero = low >= 0 and low - pad < 0.1 * (high - low)
    return (0.0 if is_near_zero else low - pad), min(high + pad, top)


def _kernel(prior: AbstractScalarPrior, draws: np.ndarray, x: np.ndarray, *, is_log: bool) -> np.ndarray:
    """The density of draws at x, by normal kernels of one width on the whole line.

    On a plain axis with a bound each is drawn where its θ is: as wide as it is there, but among the nearest draws to
    the bound no narrower than at the last of these, and mirrored at it. Else the very last would stand alone.
    """
    v = _to_real(prior, draws)
    if np.ptp(v) == 0:
        return np.zeros_like(x)
    counts, ends = np.histogram(v, bins=_BINS)
    v_mid, weight = (ends[1:] + ends[:-1]) / 2, counts / counts.sum()
    quartiles = np.subtract(*np.quantile(v, (0.75, 0.25))) / 1.34
    width = 0.9 * min(v.std(), quartiles or math.inf) * len(v) ** -0.2  # Silverman's rule
    if is_log or not np.isfinite(prior.support).any():
        return _bumps(_to_real(prior, x), v_mid, width, weight) * _slope(prior, x, is_log=is_log)
    theta = np.asarray(prior.from_real(jax.numpy.asarray(v_mid)))
    stretch, least = (1 / _slope(prior, at, is_log=False) for at in (theta, np.asarray(draws, dtype=float)))
    width = width * np.maximum(stretch, np.quantile(least, min(0.25, _NEAREST / len(v))))
    mirrored = [theta, *(2 * end - theta for end in prior.support if math.isfinite(end))]
    return sum((_bumps(x, at, width, weight) for at in mirrored), np.zeros_like(x))


def _bumps(x: np.ndarray, middle: np.ndarray, width: np.ndarray | float, weight: np.ndarray) -> np.ndarray:
    """A mixture of normal densities at x."""
    distance = (x[:, None] - middle) / width
    return np.exp(-0.5 * distance**2) @ (weight / width) / math.sqrt(2 * math.pi)


def _formula(marginal: AbstractScalarPrior, x: np.ndarray, *, is_log: bool) -> np.ndarray:
    """The density of a conjugate distribution at x."""
    inner = np.where(x == 0, x[1] / 10, x)
    height = np.exp(np.asarray(marginal.log_density_real(jax.numpy.asarray(_to_real(marginal, inner)))))
    return height * _slope(marginal, inner, is_log=is_log)


def _to_real(marginal: AbstractScalarPrior, x: np.ndarray) -> np.ndarray:
    return np.asarray(marginal.to_real(jax.numpy.asarray(x)))


def _slope(marginal: AbstractScalarPrior, x: np.ndarray, *, is_log: bool) -> np.ndarray:
    """dv/dθ, or dv/d log θ."""
    low, high = marginal.support
    slope = np.ones_like(x)
    if math.isfinite(high):
        slope = 1 / np.maximum(high - x, np.finfo(float).epsneg)
    if math.isfinite(low) and not is_log:
        slope = slope / np.maximum(x - low, np.finfo(float).tiny)
    return slope


def _intervals(axes: "Axes", own: Estimate, other: Estimate, top: float) -> None:
    """The intervals as bars under the curves."""
    for estimate, colour, row in ((own, POSTERIOR, 0.055), (other, NAIVE, 0.125)):
        axes.plot([estimate.low, estimate.high], [-row * top] * 2, color=colour, linewidth=4, solid_capstyle="butt")
        axes.plot([estimate.mean], [-row * top], "o", color="white", markeredgecolor=colour, markersize=4.5)


def _frame(axes: "Axes", top: float, window: tuple[float, float], *, is_log: bool) -> None:
    if is_log:
        axes.set_xscale("log")
    axes.set_xlim(*window)
    axes.set_ylim(-0.185 * top, top)
    axes.set_yticks([])
    axes.axhline(0, color="#9ca3af", linewidth=0.8)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)


def _label(posterior: AbstractPosterior, name: str, *, is_log: bool) -> str:
    meaning = gloss(posterior.release, name)
    is_plain = f"{meaning} of ".startswith(f"the {name} of ") or "[" in name or name in (MEAN, VARIANCE)
    label = wrapped(meaning.removeprefix("the ")) if is_plain else f"{name}: {meaning}".replace(", of ", ",\nof ")
    return label + " (logarithmic axis)" * is_log


def wrapped(text: str) -> str:
    """A label in at most two lines of a panel's width."""
    lines = textwrap.wrap(text, _LINE) if " " in text or len(text) > _LINE else [text]
    return "\n".join(lines if len(lines) <= 2 else [lines[0], lines[1][: _LINE - 1] + "…"])


def legend(figure: "Figure", axes: "Axes", note: str) -> None:
    """One legend for all panels, and a note under them."""
    handles, labels = axes.get_legend_handles_labels()
    fits = int(0.65 * figure.get_figwidth())
    ncols = len(labels) if len(labels) <= fits else -(-len(labels) // 2)
    figure.legend(handles, labels, loc="outside upper center", ncols=ncols, frameon=False, fontsize=9.5)
    figure.supxlabel(note, fontsize=8.5, color="#4b5563", x=0.02, ha="left")
