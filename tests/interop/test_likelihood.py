"""What a loader says of a published number, against the tool's own steps: P(published | count), outcome by outcome.

The noise is listed or integrated by SciPy, and each tool's steps (rounding, truncation, clamp, threshold) are written
down here as the tool's sources and papers have them. Scales and thresholds are small, so that a law that is off by one
anywhere is off by much; and what can be published adds up to one.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import noiseaware as na

COUNTS = range(8)
_FINE = 40  # cells a unit, of continuous noise that is cut or rounded


def discrete_laplace(scale: float) -> dict[int, float]:
    return {k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-200, 201)}


def discrete_gaussian(sigma: float) -> dict[int, float]:
    weight = {k: math.exp(-0.5 * (k / sigma) ** 2) for k in range(-200, 201)}
    return {k: w / sum(weight.values()) for k, w in weight.items()}


def cells(scale: float) -> dict[float, float]:
    """Laplace noise in cells that no whole or half number divides, each as its middle."""
    edges = np.arange(-60 * _FINE, 60 * _FINE + 1) / _FINE
    return dict(zip((edges[1:] + edges[:-1]) / 2, np.diff(stats.laplace(scale=scale).cdf(edges)), strict=True))


@dataclass(frozen=True)
class Tool:
    """The noise that a tool adds, what it publishes of a noisy count (None: nothing), and its loader."""

    noise: dict
    publishes: Callable[[float], float | None]
    read: Callable[[float | None], na.Release]

    def outcomes(self, count: int) -> dict[float | None, float]:
        """The probability of each outcome."""
        found: dict[float | None, float] = {}
        for noise, mass in self.noise.items():
            outcome = self.publishes(count + noise)
            found[outcome] = found.get(outcome, 0.0) + mass
        return found


KEPT = {"place": "kept", "n": 50}
KEYS = [{"place": "kept"}, {"place": "asked"}]


def opendp(value, function="make_laplace", scale=0.8, **more):
    domain = {"__function__": "atom_domain", "__kwargs__": {"T": "i64"}}
    arguments = {"input_domain": domain, "scale": scale, "k": None} | more
    text = json.dumps({"__function__": function, "__kwargs__": arguments, "__version__": "0.16.0"})
    return na.interop.opendp(text, value)


def row_of(value, shared):
    """The row that was asked for beside one that is always there."""
    rows = [KEPT | shared]
    return rows if value is None else [*rows, {"place": "asked", "n": value} | shared]


def opendp_polars(value, threshold=None, distribution="Integer Laplace", **options):
    told = {"column": "n", "aggregate": "Frame Length", "distribution": distribution, "scale": 0.8}
    summary = [told | ({} if threshold is None else {"threshold": threshold})]
    return na.interop.opendp_polars(row_of(value, {}), summary, column="n", keys=KEYS, **options)[1]


def smartnoise(value, **options):
    return na.interop.smartnoise(row_of(value, {}), column="n", scale=0.8, keys=KEYS, **options)[1]


def wikimedia(value):
    shared = {"count_eps": 1.25, "count_release_thresh": 3}
    rows = [{"place": row["place"], "editors": row["n"]} | shared for row in row_of(value, {})]
    return na.interop.wikimedia(rows, keys=KEYS, epsilon=1.25, threshold=3)[1]


def table(value, **told):
    row = {"value": "" if value is None else value, "scale": 0.8, "family": "discrete_laplace"} | told
    return na.interop.table([row])[0]


def tumult(value):
    told = {"noise_mechanism": "GEOMETRIC", "noise_parameter": 0.8}
    return na.interop.tumult([{"count": value}], told)[0]


def census(value):
    return na.interop.census_measurements([{"value": value, "variance": 0.64}])[0]


def toward_zero(value: float) -> int:
    return math.trunc(value)


def nearest(value: float) -> int:
    return math.floor(value + 0.5)


WHOLE = discrete_laplace(0.8)
TOOLS = {
    "opendp": Tool(WHOLE, lambda y: y, opendp),
    "opendp, gaussian": Tool(discrete_gaussian(0.8), lambda y: y, lambda y: opendp(y, "make_gaussian")),
    "opendp, within bounds": Tool(
        WHOLE, lambda y: min(max(y, 1), 5), lambda y: opendp(y, "make_geometric", bounds=[1, 5])
    ),
    "opendp_polars": Tool(WHOLE, lambda y: max(y, 0), opendp_polars),
    "opendp_polars, signed": Tool(WHOLE, lambda y: y, lambda y: opendp_polars(y, signed=True)),
    "opendp_polars, gaussian": Tool(
        discrete_gaussian(0.8), lambda y: max(y, 0), lambda y: opendp_polars(y, distribution="Integer Gaussian")
    ),
    # `col(name).gt(lit(threshold_value))` in OpenDP's group_by
    "opendp_polars, threshold": Tool(WHOLE, lambda y: y if y > 3 else None, lambda y: opendp_polars(y, 3)),
    "opendp_polars, threshold between": Tool(WHOLE, lambda y: y if y > 3.5 else None, lambda y: opendp_polars(y, 3.5)),
    "pydp": Tool(cells(0.8), nearest, lambda y: na.interop.pydp([y], scale=0.8)[0]),
    "smartnoise": Tool(cells(0.8), toward_zero, smartnoise),
    "smartnoise, clamped": Tool(
        cells(0.8), lambda y: max(toward_zero(y), 0), lambda y: smartnoise(y, clamp_counts=True)
    ),
    "smartnoise, censored": Tool(
        cells(0.8), lambda y: toward_zero(y) if y > 3 else None, lambda y: smartnoise(y, threshold=3.0)
    ),
    "tumult": Tool(WHOLE, lambda y: y, tumult),
    "census_measurements": Tool(discrete_gaussian(0.8), lambda y: y, census),
    "wikimedia": Tool(WHOLE, lambda y: y if y >= 3 else None, wikimedia),
    "table": Tool(WHOLE, lambda y: y, table),
    "table, clamped": Tool(WHOLE, lambda y: max(y, 1), lambda y: table(y, clamped_at=1)),
    "table, suppressed": Tool(
        WHOLE, lambda y: y if y >= 3 else None, lambda y: table(y, **({"high": 2} if y is None else {}))
    ),
    "table, rounded": Tool(
        cells(0.8), lambda y: 3 * nearest(y / 3), lambda y: table(y, family="laplace", rounded_to=3)
    ),
    "table, truncated": Tool(cells(0.8), toward_zero, lambda y: table(y, family="laplace", truncated="yes")),
}


def probability(release: na.Release, count: int) -> float:
    """P(published | count) as the release has it."""
    return math.exp(float(release.evidence().law.log_density(np.asarray(release.values[0] - count))))


@pytest.mark.parametrize("name", TOOLS)
def test_a_loader_says_of_each_outcome_what_the_tool_does(name):
    tool = TOOLS[name]
    for count in COUNTS:
        expected = {y: mass for y, mass in tool.outcomes(count).items() if mass > 1e-6}
        found = {y: probability(tool.read(y), count) for y in expected}
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12), count
        assert sum(found.values()) == pytest.approx(1, abs=1e-4), count


def of_polars(tool) -> tuple[list[float | None], Tool]:
    asked = tool("opendp-polars", "opendp_polars", counts=[6] * NUM, loss={"epsilon": 1.0, "delta": 0.01})
    (told,) = asked["summary"]
    seen = {row["place"]: row["len"] for row in asked["rows"]}
    said = Tool(discrete_laplace(told["scale"]), lambda y: y if y > told["threshold"] else None, opendp_polars)
    return [seen.get(place) for place in range(NUM)], said


def of_smartnoise(tool) -> tuple[list[float | None], Tool]:
    given = {"epsilon": 2.0, "delta": 1e-3, "clamp": True, "censor": True}
    asked = tool("smartnoise-sql", "smartnoise", counts=[4] * NUM, **given)
    seen = dict(asked["rows"][1:])
    said = Tool(cells(0.5), lambda y: max(toward_zero(y), 0) if y > asked["tau"] else None, smartnoise)
    return [seen.get(f"g{place:04d}") for place in range(NUM)], said


NUM = 3000


@pytest.mark.slow
@pytest.mark.parametrize("ask", [of_polars, of_smartnoise])
def test_what_a_tool_publishes_and_leaves_out_is_as_its_steps_say(ask, tool):
    """Chi-square of real releases at the 1e-6 point: a threshold that is one too low or too high is far off."""
    published, said = ask(tool)
    count = {of_polars: 6, of_smartnoise: 4}[ask]
    law = {y: NUM * mass for y, mass in said.outcomes(count).items() if NUM * mass >= 5}
    seen = [published.count(y) for y in law]
    rest = NUM - sum(law.values()), NUM - sum(seen)
    distance = sum((o - e) ** 2 / e for o, e in zip([*seen, rest[1]], [*law.values(), max(rest[0], 1)], strict=True))
    assert distance < stats.chi2.isf(1e-6, len(law))


@pytest.mark.parametrize("tool", ["pipelinedp", "census_estimates"])
def test_a_loader_of_continuous_noise_has_its_density(tool):
    if tool == "pipelinedp":
        read = lambda y: na.interop.pipelinedp([("a", {"count": y, "count_noise_stddev": 0.8})])[0]  # noqa: E731
        law = stats.laplace(scale=0.8 / 2**0.5)
    else:
        read = lambda y: na.interop.census_estimates([{"estimate": y, "std_dev": 0.8}])[0]  # noqa: E731
        law = stats.norm(scale=0.8)
    for count in COUNTS:
        for y in (-1.5, 0.0, 2.25, 7.0):
            assert probability(read(y), count) == pytest.approx(law.pdf(y - count), rel=1e-6)


def test_a_published_count_that_the_threshold_would_have_hidden_is_refused():
    with pytest.raises(ValueError, match=r"^row 2: n must be greater than the threshold 3, got 3\.$"):
        opendp_polars(3, 3)


# ---- rounding of counts without noise --------------------------------------------------------------------------------


def midpoint(x: int, base: int) -> int:
    """As OpenSAFELY's documentation has it: ceiling(x/base)·base − floor(base/2)·(x ≠ 0)."""
    return math.ceil(x / base) * base - base // 2 * (x != 0)


@pytest.mark.parametrize("base", [2, 5, 6, 7, 10])
@pytest.mark.parametrize("by", ["column", "option"])
def test_midpoint_rounding_tells_exactly_the_counts_that_it_hides(base, by):
    for published in sorted({midpoint(x, base) for x in range(60)}):
        row = {"value": published, "family": "none", "scale": "", "rounded_to": base}
        row, options = (row | {"rounding": " Midpoint"}, {}) if by == "column" else (row, {"rounding": "midpoint"})
        (release,) = na.interop.table([row], **options)
        if published + base < 60:
            possible = [x for x in range(60) if probability(release, x) == 1]
            assert possible == [x for x in range(60) if midpoint(x, base) == published]


def test_the_posterior_of_a_midpoint_is_that_of_the_counts_behind_it(seed):
    rows = [{"value": v, "family": "none", "scale": "", "rounded_to": 6, "rounding": "midpoint"} for v in (3, 0)]
    three, zero = (na.infer(r, na.prior.Gamma(1, 0.1), seed=seed) for r in na.interop.table(rows))
    theta = np.linspace(0, 60, 60_001)
    density = np.exp(-0.1 * theta) * (stats.poisson.cdf(6, theta) - stats.poisson.cdf(0, theta))
    cumulative = np.cumsum(density) / density.sum()
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    found = np.searchsorted(np.sort(three.draws["theta"]), np.interp(levels, cumulative, theta))
    assert found / len(three.draws["theta"]) == pytest.approx(levels, abs=5 * (0.25 / 4000) ** 0.5)
    wanted = stats.gamma(1, scale=1 / 1.1).ppf(levels)
    found = np.searchsorted(np.sort(zero.draws["theta"]), wanted) / len(zero.draws["theta"])
    assert found == pytest.approx(levels, abs=5 * (0.25 / 4000) ** 0.5)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"value": 3}, "value must be a multiple of rounded_to 6, got 3; midpoint rounding gives it: say rounding mid"),
        ({"value": 15}, "value must be a multiple of rounded_to 6, got 15; midpoint rounding gives it"),
        ({"value": 4}, r"value must be a multiple of rounded_to 6, got 4\.$"),
        ({"value": 2.5, "rounded_to": 5}, r"value must be a multiple of rounded_to 5, got 2\.5\.$"),
        (
            {"value": 6, "rounding": "midpoint"},
            "one of 0, 3, 9, 15, … under midpoint rounding to 6, got 6; rounding to",
        ),
        ({"value": 4, "rounding": "midpoint"}, r"one of 0, 3, 9, 15, … under midpoint rounding to 6, got 4\.$"),
        ({"value": -3, "rounding": "midpoint"}, r"one of 0, 3, 9, 15, … .*, got -3\.$"),
        ({"value": 5, "rounded_to": 5, "rounding": "midpoint"}, "one of 0, 3, 8, 13, … under midpoint rounding to 5"),
        ({"value": 3, "rounded_to": 0.5, "rounding": "midpoint"}, "rounded_to must be a whole number from 2"),
        ({"value": 3, "rounded_to": "", "rounding": "midpoint"}, "rounded_to must be given under midpoint rounding"),
        ({"value": 3, "family": "laplace", "scale": 2, "rounding": "midpoint"}, "family must be none under midpoint"),
        ({"value": 6, "rounding": "middle"}, r"rounding must be nearest or midpoint, got 'middle'\.$"),
    ],
)
def test_a_value_that_its_rounding_cannot_give_is_refused(told, sentence):
    row = {"family": "none", "scale": "", "rounded_to": 6} | told
    with pytest.raises(ValueError, match=f"^row 1: .*{sentence}") as refusal:
        na.interop.table([row])
    assert "\n" not in str(refusal.value)


def test_multiples_by_floats_and_clamped_values_are_no_mistake():
    tenth = {"value": "0.3", "family": "laplace", "scale": 1, "rounded_to": 0.1}
    raised = {"value": 1, "family": "laplace", "scale": 1, "rounded_to": 3, "clamped_at": 1}
    assert na.interop.table([tenth])[0].within == ((pytest.approx(0.25), pytest.approx(0.35)),)
    assert na.interop.table([raised])[0].within == ((-math.inf, 2.5),)
    with pytest.raises(ValueError, match="rounding must be 'nearest' or 'midpoint', got 'up'"):
        na.interop.table([tenth], rounding="up")  # type: ignore[arg-type]
