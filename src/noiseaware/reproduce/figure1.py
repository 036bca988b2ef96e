"""Figure 1 of Bernstein & Sheldon 2018: calibration against n, ECDFs of ranks, and utility against n.

    a   KS distance of the ranks of θ* from uniform, n = 10² … 10⁴, ε = 0.01 and 0.1, for four methods
    b   ECDF of the ranks at n = 1000 and ε = 0.01
    c   mean MMD² to the non-private posterior

Methods: non-private (true statistics), naive (noisy ones taken for true; the exponential model's is given the noisy
sum of all records, which is the paper's "cheating"), one-posterior sampling (binomial only) and the Gibbs samplers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from noiseaware.baseline import one_posterior_sample
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.mechanism import Laplace
from noiseaware.reproduce import model as study
from noiseaware.reproduce.model import MODELS, Model
from noiseaware.reproduce.output import save
from noiseaware.study import ecdf
from noiseaware.study.simulate import progress
from noiseaware.study.utility import mmd_squared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.01, 0.1)
COLOURS = {"gibbs": "#1d5fa3", "nonprivate": "#2f855a", "naive": "#c4560a", "ops": "#8b3fa0"}
MARKERS = {"gibbs": "o", "nonprivate": "s", "naive": "^", "ops": "D"}
LABELS = {"gibbs": "Gibbs", "nonprivate": "non-private", "naive": "naive", "ops": "OPS"}
_COMPARED = 200  # draws for an MMD


@dataclass(frozen=True)
class Size:
    """The size of the study: table sizes, trials a setting, iterations of warm-up and after it, draws kept of these."""

    records: tuple[int, ...]
    num_trials: int
    num_warmup: int
    num_kept: int
    num_draws: int


FULL = Size((100, 316, 1000, 3162, 10_000), 1000, 2000, 5000, 500)
QUICK = Size((100, 1000), 100, 200, 800, 200)


@dataclass(frozen=True)
class Point:
    """One method at one setting."""

    model: str
    method: str
    n: int
    epsilon: float
    ranks: np.ndarray
    mmd_squared: np.ndarray
    """The squared MMD of each trial; empty for a method against itself."""

    @property
    def ks(self) -> float:
        return ecdf.distance(self.ranks)


def reproduce(folder: Path, *, quick: bool, seed: int) -> list[Path]:
    """Compute, draw and write the figure."""
    points = compute(QUICK, seed=seed, models=MODELS[:3]) if quick else compute(FULL, seed=seed)
    measures = ("ks", "coverage_90", "mmd_squared", "mcse_mmd_squared")
    return save(folder, "figure1", ("model", "method", "n", "epsilon", "trials", *measures), rows(points), draw(points))


def compute(
    size: Size, *, seed: int = 0, models: Iterable[Model] = MODELS, epsilons: Iterable[float] = EPSILONS
) -> list[Point]:
    """Every number of the figure."""
    settings = [(n, epsilon) for n in size.records for epsilon in epsilons]
    points: list[Point] = []
    with jax.enable_x64(True):
        work = [(i, model, setting) for i, model in enumerate(models) for setting in _groups(settings)]
        for i, model, group in progress(work, "figure 1"):
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), i), settings.index(group[0]))
            points += _settings(key, model, group, size)
    return points


def _groups(settings: list) -> list[list]:
    """An accelerator takes all settings as one batch; a CPU does as well with one at a time, and shows progress."""
    return [[s] for s in settings] if jax.default_backend() == "cpu" else [settings]


def _settings(key, model: Model, settings: list[tuple[int, float]], size: Size) -> list[Point]:
    """The points of one model at some settings, whose chains run as one batch."""
    key_tables, key_gibbs, key_rest = jax.random.split(key, 3)
    keys = jax.random.split(key_tables, len(settings))
    parts = [study.trials(k, model, *setting, size.num_trials) for k, setting in zip(keys, settings, strict=True)]
    chains = study.by_gibbs(
        key_gibbs,
        model,
        study.joined(parts),
        num_draws=size.num_draws,
        num_warmup=size.num_warmup,
        thin=size.num_kept // size.num_draws,
    ).reshape(len(settings), size.num_trials, -1)
    return [
        point
        for i, (part, setting) in enumerate(zip(parts, settings, strict=True))
        for point in _points(jax.random.fold_in(key_rest, i), model, setting, part, chains[i])
    ]


def _points(key, model: Model, setting: tuple[int, float], trials: study.Trials, chains: np.ndarray) -> list[Point]:
    """All methods at one setting."""
    n, epsilon = setting
    keys = iter(jax.random.split(key, 8))
    m = chains.shape[1]
    # noisy statistics of unaltered records: for families that nothing alters, these are what was released
    noisy = trials.s + (trials.y - trials.altered_s)
    drawn = {
        "gibbs": chains,
        "nonprivate": study.by_conjugacy(next(keys), model, trials, trials.s, m),
        "naive": study.by_conjugacy(next(keys), model, trials, noisy, m),
    }
    if model.name == "binomial":
        drawn["ops"] = study.first(
            one_posterior_sample.batch(
                jax.random.split(next(keys), len(trials.s)),
                Evidence(model.family, Laplace(float(trials.scale[0])), trials.s, Public(n)),
                model.prior,
                num_draws=one_posterior_sample.RELEASED,
            )
        )
    other = study.by_conjugacy(next(keys), model, trials, trials.s, _COMPARED)
    return [
        Point(model.name, method, n, epsilon, study.ranks(next(keys), trials, draws), _distance(draws, other))
        for method, draws in drawn.items()
    ]


def _distance(draws: np.ndarray, other: np.ndarray) -> np.ndarray:
    """MMD² of each trial, from draws spread over the chain."""
    m = min(draws.shape[1], other.shape[1])
    spread = draws[:, np.linspace(0, draws.shape[1] - 1, m).astype(int)]
    return np.asarray(mmd_squared(jnp.asarray(spread), jnp.asarray(other[:, :m])))


def rows(points: list[Point]) -> Iterable[tuple]:
    """One row a method and setting."""
    for p in points:
        covered = float(np.mean((p.ranks > 0.05) & (p.ranks < 0.95)))
        error = float(p.mmd_squared.std(ddof=1) / p.mmd_squared.size**0.5)
        yield p.model, p.method, p.n, p.epsilon, p.ranks.size, p.ks, covered, float(p.mmd_squared.mean()), error


def draw(points: list[Point]) -> dict[str, "Figure"]:
    """The three parts of the figure."""
    models = list(dict.fromkeys(p.model for p in points))
    return {"figure1a": _calibration(points, models), "figure1b": _ecdf(points, models), "figure1c": _utility(points)}


def _panels(rows: int, columns: int, **options):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * columns, 2.7 * rows + 0.5), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _curves(axes, points: list[Point], model: str, epsilon: float, value, methods: Iterable[str]) -> None:
    for method in methods:
        chosen = [p for p in points if (p.model, p.epsilon, p.method) == (model, epsilon, method)]
        if chosen:
            x, y = [p.n for p in chosen], [value(p) for p in chosen]
            axes.plot(x, y, color=COLOURS[method], marker=MARKERS[method], markersize=4.5, label=LABELS[method])
    axes.set_xscale("log")
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure, panels) -> None:
    entries = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels.flat]
    shown = {label: handle for panel in entries for handle, label in panel}
    figure.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=len(shown), frameon=False)


def _calibration(points: list[Point], models: list[str]) -> "Figure":
    figure, panels = _panels(len(EPSILONS), len(models), sharex=True, sharey=True)
    critical = 1.628 / points[0].ranks.size ** 0.5  # the 1 % point of Kolmogorov's distribution
    for row, epsilon in zip(panels, EPSILONS, strict=True):
        for axes, model in zip(row, models, strict=True):
            _curves(axes, points, model, epsilon, lambda p: p.ks, COLOURS)
            axes.axhline(critical, color="0.6", linewidth=0.9, linestyle=(0, (4, 3)), label="1 % critical value")
            axes.set_title(f"{model}, ε = {epsilon:g}", fontsize=9.5)
        row[0].set_ylabel("KS distance")
    for axes in panels[-1]:
        axes.set_xlabel("number of records n")
    _legend(figure, panels)
    return figure


def _ecdf(points: list[Point], models: list[str]) -> "Figure":
    figure, panels = _panels(1, len(models), sharey=True)
    z = np.linspace(0, 1, 201)
    for axes, model in zip(panels[0], models, strict=True):
        for p in points:
            if (p.model, p.n, p.epsilon) == (model, 1000, EPSILONS[0]):
                share = np.searchsorted(np.sort(p.ranks), z, side="right") / p.ranks.size
                axes.plot(z, share, color=COLOURS[p.method], label=LABELS[p.method])
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set(title=f"{model}", xlabel="rank of the truth", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.title.set_fontsize(9.5)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("ECDF, n = 1000, ε = 0.01")
    _legend(figure, panels)
    return figure


def _utility(points: list[Point]) -> "Figure":
    models = [m for m in ("binomial", "multinomial") if any(p.model == m for p in points)]
    figure, panels = _panels(len(EPSILONS), len(models), sharex=True)
    for row, epsilon in zip(panels, EPSILONS, strict=True):
        for axes, model in zip(row, models, strict=True):
            _curves(axes, points, model, epsilon, lambda p: max(p.mmd_squared.mean(), 1e-7), ("gibbs", "naive"))
            axes.set_yscale("log")
            axes.set_title(f"{model}, ε = {epsilon:g}", fontsize=9.5)
        row[0].set_ylabel("MMD² to non-private")
    for axes in panels[-1]:
        axes.set_xlabel("number of records n")
    _legend(figure, panels)
    return figure
