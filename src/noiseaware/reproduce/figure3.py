"""Figure 3 of Bernstein & Sheldon 2019: linear regression on simulated tables of one covariate, seven methods.

    a   KS distance of the ranks of the truth from uniform, against n, ε = 0.1
    b   the same against ε, n = 10
    c   ECDF of the ranks of the slope, n = 10 and ε = 0.1
    d   coverage of 95 % intervals against n, ε = 0.1
    e   mean MMD² of the slope to the non-private posterior, ε = 0.1
    f   seconds a release, in batches, compile time apart

In a, b and d the worst of slope, intercept and variance is shown; the table has all of them. The 2019 paper has no
method like ours. Its tables are drawn from its prior, and so is every truth here. Beside the figure, which has wide
bounds, stands a variant whose bounds on y clamp one record in ten.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from noiseaware.baseline import nonprivate
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import LinearRegression
from noiseaware.family.linear_regression_fourth import LinearRegressionFourth
from noiseaware.mechanism import Identity, Laplace
from noiseaware.prior import Independent, NormalInverseGamma, NormalInverseWishart
from noiseaware.reproduce.output import save
from noiseaware.study import ecdf
from noiseaware.study.simulate import Trials, draws, evaluated, progress, simulate
from noiseaware.study.utility import mmd_squared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARAMETERS = ("slope", "intercept", "variance")
LEVELS = (0.5, 0.9, 0.95)
PRIOR = Independent(
    regression=NormalInverseGamma([0.0, 0.0], 0.5 / 19, 20.0, 0.5),
    covariates=NormalInverseWishart([0.0], 1.0, 1.0, 50.0),
)
# Of records drawn from the prior, y passes the first bounds in 1 of 800 and the second in 1 of 10.
FAMILIES = {
    "wide": LinearRegression(bounds={"x": (-1.0, 1.0), "y": (-3.5, 3.5)}),
    "narrow": LinearRegression(bounds={"x": (-1.0, 1.0), "y": (-1.7, 1.7)}),
}
COLOURS = {
    "hmc": "#1d5fa3",
    "mcmc_ind": "#b7791f",
    "gibbs_ss_update": "#8b3fa0",
    "gibbs_ss_prior": "#0e7490",
    "gibbs_ss_noisy": "#be185d",
    "naive": "#c4560a",
    "nonprivate": "#2f855a",
}
MARKERS = dict(zip(COLOURS, "oDvP*^s", strict=True))
LABELS = {
    "hmc": "ours (HMC)",
    "mcmc_ind": "MCMC-Ind",
    "gibbs_ss_update": "Gibbs-SS-Update",
    "gibbs_ss_prior": "Gibbs-SS-Prior",
    "gibbs_ss_noisy": "Gibbs-SS-Noisy",
    "naive": "naive",
    "nonprivate": "non-private",
}
_THREADS = 2  # each method keeps about one core busy
_MOST_INDIVIDUAL = 100  # records with which MCMC-Ind is run: its cost grows with them


class Setting(NamedTuple):
    """Records of a table, the budget of its release, and which of the FAMILIES' bounds."""

    n: int
    epsilon: float
    bounds: str = "wide"


@dataclass(frozen=True)
class Size:
    """The size of the study: settings, methods, and trials; fewer for MCMC-Ind, and draws a trial."""

    settings: tuple[Setting, ...]
    methods: tuple[str, ...]
    num_trials: int
    num_individual: int
    num_batches: int
    num_draws: int = 200


_MAIN = (Setting(10, 0.1), Setting(100, 0.1), Setting(1000, 0.1), Setting(10, 1.0), Setting(10, 10.0))
FULL = Size((*_MAIN, Setting(100, 1.0, "narrow")), tuple(COLOURS), 1000, 200, 4)
QUICK = Size(_MAIN[:2], ("hmc", "gibbs_ss_update", "naive", "nonprivate"), 40, 0, 2)


@dataclass(frozen=True)
class Point:
    """One method at one setting: of each parameter, ranks of the truth and MMD² to the non-private posterior."""

    method: str
    setting: Setting
    ranks: dict[str, np.ndarray]
    mmd_squared: dict[str, np.ndarray]
    seconds: float
    """A release, in a batch of many."""
    compile_seconds: float

    @property
    def num_trials(self) -> int:
        return self.ranks["slope"].size

    @property
    def ks(self) -> float:
        return max(map(ecdf.distance, self.ranks.values()))

    def coverage(self, parameter: str, level: float) -> float:
        return float(np.mean(np.abs(2 * self.ranks[parameter] - 1) < level))

    def worst_coverage(self, level: float) -> float:
        """The coverage of the parameter that is furthest from the level."""
        return max((self.coverage(p, level) for p in PARAMETERS), key=lambda share: abs(share - level))


def critical(num_trials: int, parameters: int = len(PARAMETERS)) -> float:
    """The 99 % quantile of the largest of three KS distances when the method is right."""
    from scipy.stats import kstwo

    return float(kstwo.isf(0.01 / parameters, num_trials))


def reproduce(folder: Path, *, quick: bool, seed: int) -> list[Path]:
    """Compute, draw and write the figure."""
    points = compute(QUICK if quick else FULL, seed=seed)
    return save(folder, "figure3", HEADER, rows(points), draw(points))


def compute(size: Size, *, seed: int = 0) -> list[Point]:
    """Every number of the figure."""

    def one(item: tuple[str, Setting]) -> Point:
        with jax.enable_x64(True):
            return _point(_key(seed, item[1]), *item, size)

    work = [(method, setting) for setting in size.settings for method in size.methods if _is_run(method, setting)]
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(one, work)
        return [point for point, _ in zip(found, progress(work, "figure 3"), strict=True)]


def _is_run(method: str, setting: Setting) -> bool:
    """True if a method is run: with narrow bounds, those that the others are like are."""
    if method == "mcmc_ind":
        return setting.n <= _MOST_INDIVIDUAL
    return setting.bounds == "wide" or method not in ("gibbs_ss_prior", "gibbs_ss_noisy")


def _key(seed: int, setting: Setting) -> Key[Array, ""]:
    """One for each setting, whatever others are computed: all methods see tables of the same records."""
    key = jax.random.key(seed)
    for number in (setting.n, round(1000 * setting.epsilon), list(FAMILIES).index(setting.bounds)):
        key = jax.random.fold_in(key, number)
    return key


def _point(key: Key[Array, ""], method: str, setting: Setting, size: Size) -> Point:
    """Batches of one size: what the first took longer than the others was spent on compiling."""
    num_trials = size.num_individual if method == "mcmc_ind" else size.num_trials
    each = num_trials // size.num_batches
    parts = [_batch(k, method, setting, each, size.num_draws) for k in jax.random.split(key, size.num_batches)]
    later = float(np.mean([part[2] for part in parts[1:]]))
    ranks = {p: np.concatenate([part[0][p] for part in parts]) for p in PARAMETERS}
    distances = {p: np.concatenate([part[1][p] for part in parts]) for p in PARAMETERS}
    return Point(method, setting, ranks, distances, later / each, max(0.0, parts[0][2] - later))


def _batch(key: Key[Array, ""], method: str, setting: Setting, size: int, num_draws: int) -> tuple[dict, dict, float]:
    """Ranks and distances of some trials, and how long the draws took."""
    key_tables, key_draws, key_other, key_ties = jax.random.split(key, 4)
    regression = FAMILIES[setting.bounds]
    family, mechanism = noisy_family(method, regression, setting.epsilon)
    planned = Evidence(family, mechanism, None, Public(setting.n))
    trials = simulate(key_tables, planned, PRIOR, size)
    jax.block_until_ready(trials)
    started = time.perf_counter()
    by = evaluated(method, family)
    drawn = np.asarray(draws(key_draws, by, planned, PRIOR, trials, num_draws=num_draws))
    seconds = time.perf_counter() - started
    keys, own = jax.random.split(key_other, size), trials.s[:, : len(regression.query.names)]
    true = Evidence(regression, Identity(), own, Public(setting.n))
    other = nonprivate.batch(keys, true, PRIOR, num_draws=num_draws)
    return _ranks(key_ties, trials, drawn), _distances(drawn, np.asarray(other)), seconds


def noisy_family(
    method: str, regression: LinearRegression, epsilon: float
) -> tuple[LinearRegression | LinearRegressionFourth, Laplace]:
    """The family released for a method, and its noise: Gibbs-SS-Noisy alone has fourth moments of covariates."""
    if method != "gibbs_ss_noisy":
        return regression, Laplace(float(regression.query.sensitivity()) / epsilon)
    family = LinearRegressionFourth(regression)
    return family, Laplace(family.noise_scales(epsilon))  # type: ignore[arg-type]


def _ranks(key: Key[Array, ""], trials: Trials, drawn: np.ndarray) -> dict[str, np.ndarray]:
    """The rank of the true value among the draws, for each parameter."""
    truth = np.asarray(trials.theta)
    ties = np.asarray(jax.random.uniform(key, (len(PARAMETERS), len(truth))))
    return {p: ecdf.rank(truth[:, j], drawn[:, :, j], ties[j]) for j, p in enumerate(PARAMETERS)}


def _distances(drawn: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    pairs = [(jnp.asarray(drawn[:, :, j]), jnp.asarray(other[:, :, j])) for j in range(len(PARAMETERS))]
    return {p: np.asarray(mmd_squared(*pair)) for p, pair in zip(PARAMETERS, pairs, strict=True)}


HEADER = (
    *("bounds", "n", "epsilon", "method", "parameter", "trials", "ks", "critical_1"),
    *(f"coverage_{100 * level:g}" for level in LEVELS),
    *("mmd_squared", "mcse_mmd_squared", "seconds", "compile_seconds"),
)


def rows(points: Iterable[Point]) -> Iterable[tuple]:
    """One row a method, setting and parameter; the critical value is of one parameter by itself."""
    for p in points:
        n, epsilon, bounds = p.setting
        for name, ranks in p.ranks.items():
            found = ecdf.distance(ranks), critical(ranks.size, 1), *(p.coverage(name, level) for level in LEVELS)
            away = p.mmd_squared[name]
            error = float(away.std(ddof=1) / away.size**0.5)
            times = p.seconds, p.compile_seconds
            yield bounds, n, epsilon, p.method, name, ranks.size, *found, float(away.mean()), error, *times


# ---- pictures ------------------------------------------------------------------------------------------------------


def draw(points: Sequence[Point]) -> dict[str, "Figure"]:
    """The six panels; where bounds are narrow there is a table alone."""
    from matplotlib.figure import Figure

    wide = [p for p in points if p.setting.bounds == "wide"]
    figure = Figure(figsize=(11.5, 7.4), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    at_epsilon = [p for p in wide if p.setting.epsilon == 0.1]
    at_n = sorted((p for p in wide if p.setting.n == 10), key=lambda p: p.setting.epsilon)
    _curves(panels[0], at_epsilon, "n", lambda p: p.ks)
    _curves(panels[1], at_n, "epsilon", lambda p: p.ks)
    for axes, chosen in zip(panels, (at_epsilon, at_n), strict=False):
        _critical_lines(axes, chosen)
        axes.set(ylabel="KS distance, worst parameter", yscale="log", ylim=(0.012, 1))
        _ticks(axes.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5, 1))
    _ecdf(panels[2], [p for p in at_n if p.setting.epsilon == 0.1])
    _curves(panels[3], at_epsilon, "n", lambda p: p.worst_coverage(0.95))
    panels[3].axhline(0.95, color="0.6", linewidth=0.9, linestyle=(0, (4, 3)))
    panels[3].set(ylabel="coverage of 95 % intervals, worst parameter", ylim=(0, 1.03))
    private = [p for p in at_epsilon if p.method != "nonprivate"]
    _curves(panels[4], private, "n", lambda p: p.mmd_squared["slope"].mean())
    panels[4].set(ylabel="MMD² to non-private, slope", ylim=(0, None))
    _curves(panels[5], at_epsilon, "n", lambda p: 1000 * p.seconds)
    panels[5].set(ylabel="milliseconds a release, in batches", yscale="log", ylim=(0.2, 1000))
    _ticks(panels[5].yaxis, (1, 10, 100, 1000))
    titles = ("ε = 0.1", "n = 10", "slope, n = 10, ε = 0.1", "ε = 0.1", "ε = 0.1", "ε = 0.1")
    for letter, axes, title in zip("abcdef", panels, titles, strict=True):
        axes.set_title(f"({letter})  {title}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.label.set_fontsize(9.5)
    _legend(figure, panels)
    return {"figure3": figure}


def _curves(axes: "Axes", points: Iterable[Point], along: str, value) -> None:
    points = list(points)
    for method in COLOURS:
        chosen = [p for p in points if p.method == method]
        if chosen:
            x, y = [getattr(p.setting, along) for p in chosen], [value(p) for p in chosen]
            (line,) = axes.plot(x, y, color=COLOURS[method], marker=MARKERS[method], label=LABELS[method])
            line.set(markersize=5.5, linewidth=1.5, zorder=3 if method == "hmc" else 2)
    axes.set(xscale="log", xlabel="number of records n" if along == "n" else "ε")
    _ticks(axes.xaxis, sorted({getattr(p.setting, along) for p in points}))


def _ticks(axis, values: Iterable[float]) -> None:
    """These and no others, as plain numbers."""
    values = list(values)
    axis.set_ticks(values, [f"{v:g}" for v in values])
    axis.set_ticks([], minor=True)


def _critical_lines(axes: "Axes", points: Iterable[Point]) -> None:
    """One for each number of trials; that of MCMC-Ind is higher, since it has fewer."""
    sizes = {p.method == "mcmc_ind": p.num_trials for p in points}
    for is_individual, size in sizes.items():
        label = f"1 % critical value, {size} trials"
        dashes = (0, (1, 2)) if is_individual else (0, (4, 3))
        colour = COLOURS["mcmc_ind"] if is_individual else "0.5"
        axes.axhline(critical(size), color=colour, linewidth=1, linestyle=dashes, label=label, zorder=1)


def _ecdf(axes: "Axes", points: Iterable[Point]) -> None:
    z = np.linspace(0, 1, 201)
    for p in sorted(points, key=lambda p: p.method == "hmc"):
        share = np.searchsorted(np.sort(p.ranks["slope"]), z, side="right") / p.num_trials
        axes.plot(z, share, color=COLOURS[p.method], linewidth=1.5)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set(xlabel="rank of the truth", ylabel="ECDF", xlim=(0, 1), ylim=(0, 1))


def _legend(figure: "Figure", panels) -> None:
    entries = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels]
    shown = {label: handle for panel in entries for handle, label in panel}
    figure.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=5, frameon=False, fontsize=9)
