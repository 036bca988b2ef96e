"""How much ε, or how many records, for a wanted width: decided before any data is touched.

A plan says how wide the interval of each number will be on average over tables that the prior thinks of (see
width.py), and what to change to have a wanted width: the smallest ε or n, the best bounds, the best share of ε for a
private n. `simulated` says the same by making tables and posteriors, which takes longer.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, AbstractUnboundedFamily
from noiseaware.mechanism import Identity
from noiseaware.posterior.estimate import numbers
from noiseaware.prior import AbstractPrior
from noiseaware.privacy import N_SHARE, Neighbours, Number, exact, proper
from noiseaware.study import simulate
from noiseaware.study.width import TAILS, Ellipsoids, Lines, error, predictor, widths

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LEAST, _MOST = 1e-6, 1e6  # ε or ρ that are looked at
_MOST_RECORDS = 10**12
_STEPS = 14  # of a bisection on a log scale
_FIGURES = 2  # to which a found ε is rounded up
_SHARES = tuple(Fraction(i, 20) for i in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12))
_QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
_RECORDS = 100_000  # simulated, of which bounds are quantiles
_TABLE = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the planned ε, or n
_CURVE = np.geomspace(0.03, 30, 25)
_DRAWS = 1000


class Choice(NamedTuple):
    """Something that may be chosen, and the expected width that goes with it."""

    what: Any
    width: float


@dataclass(frozen=True)
class Plan:
    """A release that is not made yet."""

    family: AbstractFamily
    prior: AbstractPrior
    n: int
    epsilon: Number | None
    rho: Number | None
    delta: Number | None
    neighbours: Neighbours
    n_share: Fraction
    parameter: str | None
    """The number that a wanted width is of; None: the widest."""
    wanted: float | None
    _predictor: Lines | Ellipsoids

    def __repr__(self) -> str:
        cost = f"{self._cost_name} = {self._cost:g}"
        return f"Plan({self.family.name}, n = {self.n}, {cost}, expected width {self.width:.4g} ± {self.error:.0%})"

    @property
    def by_parameter(self) -> dict[str, float]:
        """The expected width of each number's interval."""
        return self._widths()

    @property
    def width(self) -> float:
        """The expected width of the number that was asked for, or of the widest."""
        return self._of(self._widths())

    @property
    def error(self) -> float:
        """The share by which a planned width may be wrong, as simulated tables show (benchmarks/plan.py)."""
        with jax.enable_x64(True):
            return error(self._predictor, self._evidence())

    @property
    def floor(self) -> float:
        """The same without any noise: no ε makes it narrower."""
        return self._of(self._noiseless())

    @property
    def records_worth(self) -> float:
        """How many records without noise would give that width."""
        return _least(lambda n: replace(self, n=max(1, round(n))).floor, self.width, 1.0, float(self.n))

    def table(self) -> "pd.DataFrame":
        """Widths for other promises (down) and other n (across)."""
        import pandas as pd

        costs = [self._times(factor) for factor in _TABLE]
        sizes = sorted({max(1, round(self.n * factor)) for factor in _TABLE})
        rows = [[replace(cost, n=n).width for n in sizes] for cost in costs]
        index = pd.Index([cost._cost for cost in costs], name=self._cost_name)
        return pd.DataFrame(rows, index=index, columns=pd.Index(sizes, name="n"))

    def plot(self) -> "Figure":
        """Width against ε (or ρ) for n, a tenth of it and ten times it; dashed, what no ε can better."""
        curves = {}
        for n in sorted({max(1, self.n // 10), self.n, self.n * 10}):
            plans = [replace(self._times(factor), n=n) for factor in _CURVE]
            curves[n] = ([plan._cost for plan in plans], [plan.width for plan in plans], plans[0].floor)
        return _picture(self, curves)

    def simulated(self, num_trials: int = 200, seed: int | None = None) -> dict[str, tuple[float, float]]:
        """Mean width over simulated tables and its standard error, by the method that `infer` would take."""
        private = self.neighbours == "add_remove"
        method = simulate.evaluated("auto", self.family, has_private_n=private)
        evidence = self._evidence()
        with jax.enable_x64(True):
            size, keys = simulate.chunks(num_trials, seed, "simulating")
            parts = []
            for key in keys:
                key_table, key_draws = jax.random.split(key)
                tables = simulate.simulate(key_table, evidence, self.prior, size)
                drawn = simulate.draws(key_draws, method, evidence, self.prior, tables, num_draws=_DRAWS)
                parts.append(np.asarray(drawn))
        drawn = np.concatenate(parts)[:num_trials]
        found = {}
        for name, values in numbers(self.family, self.family.named(drawn)).items():
            ends = np.quantile(values, TAILS, axis=1)
            found[name] = (float(np.diff(ends, axis=0).mean()), float(np.diff(ends, axis=0).std() / num_trials**0.5))
        return found

    def best_n_share(self) -> list[Choice]:
        """What part of the promise to give to a private n: the best first."""
        if self.neighbours != "add_remove":
            raise ValueError("n_share must be left alone where n is public: give neighbours='add_remove'.")
        found = [Choice(share, replace(self, n_share=share).width) for share in _SHARES]
        return sorted(found, key=lambda choice: choice.width)

    def best_bounds(self) -> list[Choice]:
        """Public bounds by the quantiles of records that the prior thinks of: the best first."""
        family = self.family
        if not isinstance(family, AbstractUnboundedFamily):
            raise ValueError(f"bounds can be chosen for one column of numbers without end, got {family.name}.")
        with jax.enable_x64(True):
            x = np.asarray(_records(family, self.prior))
        found = []
        for q in _QUANTILES:
            low, high = np.quantile(x, [1 - q, q])
            low = family.query.support[0] if math.isfinite(family.query.support[0]) else _rounded(float(low))
            high = max(_rounded(float(high)), low + 1) if family.query.is_whole else _rounded(float(high))
            if high > low and all(choice.what != (low, high) for choice in found):
                found.append(Choice((low, high), self._with(family.within((low, high))).width))
        return sorted(found, key=lambda choice: choice.width)

    # ---- another plan of the same kind -----------------------------------------------------------------------

    def _with(self, family: AbstractFamily) -> "Plan":
        with jax.enable_x64(True):
            return replace(self, family=family, _predictor=predictor(family, self.prior))

    def _times(self, factor: float) -> "Plan":
        """The same with so much more ε or ρ."""
        return replace(self, **{self._cost_name: float(f"{self._cost * factor:.3g}")})  # type: ignore[arg-type]

    @property
    def _cost_name(self) -> str:
        return "epsilon" if self.rho is None else "rho"

    @property
    def _cost(self) -> float:
        return float(exact(self._cost_name, getattr(self, self._cost_name)))

    def _evidence(self) -> Evidence:
        """Return all that the release will say but its values."""
        promise = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta, "neighbours": self.neighbours}
        return simulate.planned(self.family, self.n, n_share=self.n_share, **promise)  # type: ignore[arg-type]

    def _widths(self) -> dict[str, float]:
        with jax.enable_x64(True):
            return widths(self._predictor, self._evidence())

    def _noiseless(self) -> dict[str, float]:
        with jax.enable_x64(True):
            return widths(self._predictor, Evidence(self.family, Identity(), None, Public(self.n)))

    def _of(self, found: dict[str, float]) -> float:
        if self.parameter is None:
            return max(found.values())
        if self.parameter not in found:
            raise ValueError(f"parameter must be one of {', '.join(found)}, got {self.parameter!r}.")
        return found[self.parameter]


def plan(
    family: AbstractFamily,
    prior: AbstractPrior,
    *,
    n: int | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    width: float | None = None,
    parameter: str | None = None,
    neighbours: Neighbours = "replace",
    n_share: Number = N_SHARE,
) -> Plan:
    """A release of n records at ε or ρ; with a wanted `width`, whichever of them was left out is found.

    The width is that of the 95 % interval of `parameter`, or of the widest number, on average over the prior.

    >>> plan = na.plan(na.family.Bernoulli(), na.prior.Beta(2, 50), n=2000, epsilon=0.5)
    >>> bool(plan.width > plan.floor)
    True
    """
    prior = simulate.checked(family, prior, n=1 if n is None else n, num_trials=1)
    if width is not None and not (isinstance(width, int | float) and 0 < width < math.inf):
        raise ValueError(f"width must be positive, got {width}.")
    has_promise = epsilon is not None or rho is not None
    if (n is not None) + has_promise + (width is not None) != 2:
        raise ValueError("give two of n, a promise (epsilon or rho) and width; the third is found.")
    with jax.enable_x64(True):
        found = predictor(family, prior)
    share = proper("n_share", n_share)
    start = Plan(family, prior, n or 1, epsilon, rho, delta, neighbours, share, parameter, width, found)
    if n is None:
        return replace(start, n=_enough_records(start))
    return start if has_promise else replace(start, epsilon=_enough_epsilon(replace(start, epsilon=1)))


def _enough_epsilon(start: Plan) -> float:
    assert start.wanted is not None
    if start.floor > start.wanted:
        enough = replace(start, n=_least_count(lambda n: replace(start, n=n).floor, start.wanted))
        raise ValueError(
            f"width must be at least {start.floor:.3g}, which {start.n:,} records have without any noise, "
            f"got {start.wanted:g}; without noise it takes {enough.n:,} records."
        )
    found = _least(lambda cost: replace(start, epsilon=cost).width, start.wanted, _LEAST, _MOST)
    unit = 10.0 ** (math.floor(math.log10(found)) - _FIGURES + 1)
    return float(f"{math.ceil(found / unit - 1e-9) * unit:.{_FIGURES}g}")


def _enough_records(start: Plan) -> int:
    assert start.wanted is not None
    return _least_count(lambda n: replace(start, n=n).width, start.wanted)


def _least_count(width: Callable[[int], float], wanted: float) -> int:
    if width(_MOST_RECORDS) > wanted:
        most = f"with up to {_MOST_RECORDS:,} records"
        rest = "ask for a wider interval or a larger promise"
        raise ValueError(f"width {wanted:g} cannot be reached at this promise {most}; {rest}.")
    return math.ceil(_least(lambda n: width(max(1, round(n))), wanted, 1.0, float(_MOST_RECORDS)))


def _least(width: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """The least number at which a width that falls with it is as wanted, by bisection on a log scale."""
    if width(low) <= wanted:
        return low
    below, above = math.log(low), math.log(high)
    for _ in range(_STEPS + math.ceil(math.log2(max(above - below, 1.0)))):
        middle = (below + above) / 2
        below, above = (below, middle) if width(math.exp(middle)) <= wanted else (middle, above)
    return math.exp(above)


def _records(family: AbstractFamily, prior: AbstractPrior):
    keys = jax.random.split(jax.random.key(0), (_RECORDS, 2))
    return jax.jit(jax.vmap(lambda key: family.sample(key[1], prior.sample(key[0]), 1)[0]))(keys)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _picture(plan: Plan, curves: dict[int, tuple[list[float], list[float], float]]) -> "Figure":
    from noiseaware.report.plot import NAIVE, POSTERIOR, PRIOR, grid, legend

    figure, (axes,) = grid(1, (7.2, 4.2), 0)
    shades = dict(zip(curves, (0.35, 1.0, 0.6), strict=False)) if len(curves) == 3 else dict.fromkeys(curves, 1.0)
    for n, (costs, found, floor) in curves.items():
        width = 2.2 if n == plan.n else 1.3
        axes.plot(costs, found, color=POSTERIOR, alpha=shades[n], linewidth=width, label=f"n = {n:,}")
        axes.axhline(floor, color=POSTERIOR, alpha=shades[n] * 0.7, linewidth=0.9, linestyle=(0, (5, 3)))
    if plan.wanted is not None:
        axes.axhline(plan.wanted, color=NAIVE, linewidth=1.3, label="wanted")
    axes.plot([plan._cost], [plan.width], "o", color="white", markeredgecolor=POSTERIOR, markersize=8, zorder=5)
    symbol = "ε" if plan.rho is None else "ρ"
    one = plan.parameter or (plan.family.parameters[0] if len(plan.by_parameter) == 1 else None)
    about = "the widest interval" if one is None else f"the interval of {one}"
    axes.set(xscale="log", yscale="log", xlabel=f"{symbol} of the release", ylabel=f"expected width of {about}")
    for axis in (axes.xaxis, axes.yaxis):  # 0.02 and not 2 × 10⁻²
        axis.set_major_formatter(lambda tick, _: f"{tick:g}")
        axis.set_minor_formatter(lambda tick, _: f"{tick:g}" if f"{tick:e}"[0] in "25" else "")
    axes.grid(color="#e5e7eb", linewidth=0.7)
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)
    axes.tick_params(which="both", labelsize=9, length=3, pad=4, color=PRIOR)
    note = f"Dashed: without noise. Ring: this plan, {symbol} = {plan._cost:g} and n = {plan.n:,}, ± {plan.error:.0%}."
    legend(figure, axes, note)
    return figure
