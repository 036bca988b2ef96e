"""Figure 4 of Bernstein & Sheldon 2019: coverage of predictive intervals on deaths by cirrhosis in 46 US states.

Drinking of wine and liquor per head and the death rate are scaled to [0, 1], and the bounds are (0, 1) for both. Each
trial releases the statistics of 36 states and predicts the death rate of the other 10:

    y_new = coefficientsᵀ(x, 1) + √variance · e,  e ~ Normal(0, 1)        one for each draw of the posterior

The table is public, and noise is simulated as for a study of methods, not as for a release. The scaling reads the
least and the greatest value from the table, as the paper does; a custodian would have to be given them.
"""

import csv
import importlib.resources
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import LinearRegression
from noiseaware.prior import Independent, NormalInverseGamma, NormalInverseWishart
from noiseaware.reproduce.figure3 import LABELS, noisy_family
from noiseaware.reproduce.output import save
from noiseaware.study.simulate import Trials, draws, evaluated, progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAIN, TEST = 36, 10
LEVELS = (0.5, 0.9)
EPSILONS = (0.1, 1.0, 10.0)
FAMILY = LinearRegression(bounds={"x": (0.0, 1.0), "y": (0.0, 1.0)})
REGRESSION = NormalInverseGamma([1.0, 0.0], 0.25, 20.0, 0.5)
COVARIATES = {
    "default": None,
    # as spread as records that lie evenly between the bounds: variance 1/12 on average
    "even": NormalInverseWishart([0.5], 1.0, 4 / 12, 6.0),
}
METHODS = (
    ("nonprivate", "default"),
    ("hmc", "default"),
    ("hmc", "even"),
    ("gibbs_ss_update", "default"),
    ("gibbs_ss_noisy", "default"),
    ("naive", "default"),
)
_DRAWS = 2000


@dataclass(frozen=True)
class Point:
    """One method at one ε: where each test point fell among its predictions, and how wide the intervals were."""

    method: str
    covariates: str
    epsilon: float
    ranks: np.ndarray
    """Splits first, then test points."""
    widths: dict[float, float]

    def coverage(self, level: float) -> float:
        return float(np.mean(np.abs(2 * self.ranks - 1) < level))

    def coverage_error(self, level: float) -> float:
        """The standard error over splits, each with noise of its own; that the splits share states is left out."""
        shares = (np.abs(2 * self.ranks - 1) < level).mean(axis=1)
        return float(shares.std(ddof=1) / len(shares) ** 0.5)


def reproduce(folder: Path, *, quick: bool, seed: int) -> list[Path]:
    """Compute, draw and write the figure."""
    points = compute(20, METHODS[:2] + METHODS[-1:], seed=seed) if quick else compute(seed=seed)
    return save(folder, "figure4", HEADER, rows(points), draw(points))


def table() -> np.ndarray:
    """Drinking and deaths of each state, both scaled to [0, 1]: a column for each state."""
    text = importlib.resources.files("noiseaware").joinpath("data/cirrhosis.csv").read_text()
    lines = list(csv.DictReader(text.splitlines()))
    columns = [[float(r["wine"]) + float(r["liquor"]) for r in lines], [float(r["cirrhosis"]) for r in lines]]
    values = np.array(columns)
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    return (values - low) / (high - low)


def splits(key: Key[Array, ""], num_splits: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test records, splits first."""
    states = table()
    shuffle = jax.vmap(lambda k: jax.random.permutation(k, states.shape[1]))
    order = np.asarray(shuffle(jax.random.split(key, num_splits)))
    shuffled = np.swapaxes(states[:, order], 0, 1)
    return shuffled[..., :TRAIN], shuffled[..., TRAIN : TRAIN + TEST]


def compute(
    num_splits: int = 100,
    methods: Sequence[tuple[str, str]] = METHODS,
    epsilons: Sequence[float] = EPSILONS,
    *,
    seed: int = 0,
) -> list[Point]:
    """Every number of the figure: all methods see the same splits, and noise that differs in scale alone."""
    with jax.enable_x64(True):
        key_splits, key_rest = jax.random.split(jax.random.key(seed))
        train, test = splits(key_splits, num_splits)
        work = [(method, covariates, epsilon) for method, covariates in methods for epsilon in epsilons]
        return [_point(key_rest, m, c, epsilon, train, test) for m, c, epsilon in progress(work, "figure 4")]


def _point(
    key: Key[Array, ""], method: str, covariates: str, epsilon: float, train: np.ndarray, test: np.ndarray
) -> Point:
    key_noise, key_draws, key_new = jax.random.split(key, 3)
    family, mechanism = noisy_family(method, FAMILY, epsilon)
    believed = COVARIATES[covariates]
    given = REGRESSION if believed is None else Independent(regression=REGRESSION, covariates=believed)
    prior = FAMILY.completed(given)
    s = jnp.stack([column.sum(-1) for column in family.query.alter(jnp.asarray(np.moveaxis(train, 1, 0)))], axis=-1)
    noise = jax.vmap(lambda k: mechanism.sample(k, s.shape[1:]))(jax.random.split(key_noise, len(s)))
    trials = Trials(jnp.zeros(len(s)), s, s, s + noise)
    by, planned = evaluated(method, family), Evidence(family, mechanism, None, Public(TRAIN))
    drawn = np.asarray(draws(key_draws, by, planned, prior, trials, num_draws=_DRAWS))
    return Point(method, covariates, epsilon, *_predicted(key_new, drawn, test))


def _predicted(key: Key[Array, ""], drawn: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, dict[float, float]]:
    """The ranks of the test points among their predictions, and the mean width of the intervals."""
    slope, intercept, variance = (drawn[:, :, j, None] for j in range(3))
    x, y = test[:, None, 0], test[:, None, 1]
    e = np.asarray(jax.random.normal(key, (*drawn.shape[:2], TEST)))
    predicted = slope * x + intercept + np.sqrt(variance) * e
    ends = {level: np.quantile(predicted, ((1 - level) / 2, (1 + level) / 2), axis=1) for level in LEVELS}
    ranks = ((predicted < y).sum(axis=1) + 0.5) / (drawn.shape[1] + 1)
    return ranks, {level: float(np.mean(high - low)) for level, (low, high) in ends.items()}


HEADER = (
    *("method", "covariates", "epsilon", "splits", "test_points"),
    *(f"coverage_{100 * level:g}" for level in LEVELS),
    *(f"coverage_{100 * level:g}_error" for level in LEVELS),
    *(f"width_{100 * level:g}" for level in LEVELS),
)


def rows(points: Iterable[Point]) -> Iterable[tuple]:
    """One row a method and ε."""
    for p in points:
        measures = (p.coverage, p.coverage_error, p.widths.__getitem__)
        found = [measure(level) for measure in measures for level in LEVELS]
        yield p.method, p.covariates, p.epsilon, len(p.ranks), p.ranks.size, *found


def draw(points: Sequence[Point]) -> dict[str, "Figure"]:
    """Coverage at either level, a panel for each ε."""
    from matplotlib.figure import Figure

    epsilons = sorted({p.epsilon for p in points})
    methods = list(dict.fromkeys((p.method, p.covariates) for p in points))[::-1]
    figure = Figure(figsize=(2.0 + 3.1 * len(epsilons), 1.6 + 0.32 * len(methods)), layout="constrained")
    panels = figure.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
    colours = dict(zip(LEVELS, ("#c4560a", "#1d5fa3"), strict=True))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        chosen = [p for p in points if p.epsilon == epsilon]
        places = [methods.index((p.method, p.covariates)) for p in chosen]
        for level, marker in zip(LEVELS, "so", strict=True):
            shares, label = [100 * p.coverage(level) for p in chosen], f"{100 * level:g} % intervals"
            axes.axvline(100 * level, color=colours[level], linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            axes.plot(shares, places, marker, color=colours[level], markersize=6.5, label=label)
        axes.set(title=f"ε = {epsilon:g}", xlabel="test points held, %", xlim=(0, 103), ylim=(-0.6, len(methods) - 0.4))
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.92")
    panels[0].set_yticks(range(len(methods)), [_label(*method) for method in methods])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return {"figure4": figure}


def _label(method: str, covariates: str) -> str:
    return LABELS[method] if covariates == "default" else f"{LABELS[method]}, x evenly spread"
