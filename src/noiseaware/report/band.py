"""The regression line over each covariate, with bands: where the line lies, and where new records will.

    line(x_j) = coefficientsᵀ(x, 1)        the other covariates held at the centre of their bounds
    y(x_j)    = line(x_j) + √variance · e,  e ~ Normal(0, 1)

The bands are pointwise quantiles over the draws of the posterior. Without bounds, a covariate runs over where the
released moments put the records, and the others stay at its middle.
"""

import warnings
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from noiseaware.family import LinearRegression
from noiseaware.posterior.estimate import entries
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.posterior.prediction import of_conjugate, regression_of
from noiseaware.report.number import shown
from noiseaware.report.plot import NAIVE, POSTERIOR, PRIOR, TRUTH, grid, legend, wrapped
from noiseaware.report.posterior_words import PERCENT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_POINTS = 81
_MOST_DRAWS = 4000
_MOST_PANELS = 12
_MOST_RECORDS = 2000
_TAILS = (0.025, 0.25, 0.5, 0.75, 0.975)


def bands(
    posterior: AbstractPosterior,
    column: str | None = None,
    *,
    data: object = None,
    truths: dict[str, float] | None = None,
) -> "Figure":
    """A panel for each covariate, or for one of them."""
    family = regression_of(posterior.release.family)
    if column is not None and column not in family.x:
        raise ValueError(f"column must be one of {', '.join(family.x)}, got {column!r}.")
    columns = family.x[:_MOST_PANELS] if column is None else (column,)
    middle, ends, usual = _places(posterior, family)
    figure, axes = grid(len(columns), (7.2, 4.2), 3.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a column may be named in any script
        for panel, name in zip(axes, columns, strict=True):
            j = family.x.index(name)
            rows = np.tile(middle, (_POINTS, 1))
            rows[:, j] = np.linspace(ends[j, 0], ends[j, 1], _POINTS)
            _panel(panel, posterior, rows, j, truths or {})
            panel.plot(usual[j], [0.015] * 2, color=PRIOR, linewidth=4, transform=panel.get_xaxis_transform(),
                       solid_capstyle="butt", label="most records")  # fmt: skip
            _scatter(panel, family, name, data)
            panel.set_xlim(*ends[j])
            panel.set_xlabel(wrapped(shown(name)), parse_math=False, fontsize=9.5)
            panel.set_ylabel(wrapped(shown(family.y)), parse_math=False, fontsize=9.5)
        legend(figure, axes[0], _note(family, len(columns), is_one=column is not None))
        figure.draw_without_rendering()
    return figure


def _places(posterior: AbstractPosterior, family: LinearRegression) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each covariate's held value, the ends of its axis, and where most records are by the noisy moments."""
    release, p = posterior.release, len(family.x)
    with jax.enable_x64(True):
        mean, scatter = family.split(family.project(jnp.asarray(release.values), release.likely_n), release.likely_n)
    mean = (family.query.centre + family.query.half * np.asarray(mean))[:p]
    sd = (family.query.half * np.sqrt(np.diag(np.asarray(scatter)) / release.likely_n))[:p]
    usual = np.stack([mean - 2 * sd, mean + 2 * sd], axis=-1)
    if family.query.intervals is None:
        return mean, np.stack([mean - 3 * sd, mean + 3 * sd], axis=-1), usual
    ends = np.array(family.query.intervals[:p])
    return family.query.centre[:p], ends, usual.clip(ends[:, :1], ends[:, 1:])


def _panel(axes: "Axes", posterior: AbstractPosterior, rows: np.ndarray, j: int, truths: dict[str, float]) -> None:
    x = rows[:, j]
    coefficients, variance = (posterior.draws[name][:: _stride(posterior)] for name in ("coefficients", "variance"))
    line = coefficients[:, :-1] @ rows.T + coefficients[:, -1:]
    # one e a draw for all of x: each quantile is that of fresh noise, and the edge is as smooth as the line's
    new = line + np.sqrt(variance)[:, None] * np.random.default_rng(0).standard_normal(len(line))[:, None]
    lowest, low, median, high, highest = np.quantile(line, _TAILS, axis=0)
    axes.fill_between(x, lowest, highest, color=POSTERIOR, alpha=0.2, linewidth=0, label=f"line, {PERCENT}")
    axes.fill_between(x, low, high, color=POSTERIOR, alpha=0.35, linewidth=0, label="line, 50 %")
    axes.plot(x, median, color=POSTERIOR, linewidth=2)
    for tail, label in ((_TAILS[0], f"new records, {PERCENT}"), (_TAILS[-1], None)):
        edge = np.quantile(new, tail, axis=0)
        axes.plot(x, edge, color=POSTERIOR, linewidth=1.1, linestyle=(0, (4, 2.5)), label=label)
    if posterior.method != "naive":
        _naive(axes, posterior, rows, x)
    names = [entry.name for entry in entries(posterior.release.family, "coefficients")]
    if all(name in truths for name in names):
        true = np.array([truths[name] for name in names])
        axes.plot(x, rows @ true[:-1] + true[-1], color=TRUTH, linewidth=1.5, linestyle=(0, (1, 1.5)), label="truth")
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)


def _stride(posterior: AbstractPosterior) -> int:
    return max(1, posterior.num_draws // _MOST_DRAWS)


def _naive(axes: "Axes", posterior: AbstractPosterior, rows: np.ndarray, x: np.ndarray) -> None:
    """The line of someone who does not know of the noise, and its band."""
    line, _ = of_conjugate(posterior.release.family.parted(posterior.naive)[0], rows)
    low, middle, high = ([at.quantile(q) for at in line] for q in (_TAILS[0], 0.5, _TAILS[-1]))
    axes.fill_between(x, low, high, color=NAIVE, alpha=0.25, linewidth=0)
    axes.plot(x, middle, color=NAIVE, linewidth=1.6, label=f"naive line, {PERCENT}")


def _scatter(axes: "Axes", family: LinearRegression, name: str, data) -> None:
    """Records that are public or made up: never those of the table behind the release."""
    if data is None:
        return
    for wanted in (name, family.y):
        if wanted not in data:
            raise ValueError(f"data must have a column {wanted!r}, got {', '.join(map(str, data)) or 'none'}.")
    x, y = (np.asarray(data[wanted], dtype=float)[:_MOST_RECORDS] for wanted in (name, family.y))
    axes.plot(x, y, ".", color=TRUTH, alpha=0.25, markersize=3, zorder=0, label="records")


def _note(family: LinearRegression, count: int, *, is_one: bool) -> str:
    where = "in the middle" if family.query.intervals is None else "at the centre of their bounds"
    note = f"The other covariates are held {where}. " * (len(family.x) > 1)
    note += "Most records: 2 sd about the mean, by the noisy moments."
    return note + f" The first {count} of {len(family.x)} covariates." * (not is_one and count < len(family.x))
