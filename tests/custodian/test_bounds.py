"""Private bounds: drawn with the law that was proved, and near the quantiles.

Draws for privacy cannot be seeded, so a test of their law raises a false alarm now and then: a few in a million each.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.custodian.exponential import calibrated, select
from noiseaware.custodian.grid import finest_grid
from noiseaware.custodian.private_bounds import QUANTILES, SHARE, planned
from noiseaware.custodian.terms import terms_of
from noiseaware.privacy import Agreement, Pure, ZeroConcentrated

FALSE_ALARM = 1e-6
FAMILIES = {
    "exponential": na.family.Exponential("x"),
    "poisson": na.family.Poisson("x", outside="drop"),
    "geometric": na.family.Geometric("x"),
    "normal": na.family.Normal("x", variance=4.0),
    "gamma": na.family.Gamma("x", shape=2.0),
}


def plan_of(family, promise, share, quantiles, neighbours="replace"):
    agreement = Agreement(promise, neighbours, bounds_share=Fraction(str(share)))
    return planned(family.query, agreement, quantiles)


PROMISES = {"pure": Pure(Fraction(1, 2)), "zcdp": ZeroConcentrated(Fraction(1, 8))}


def oracle(records, candidates, quantile, each) -> list[Fraction]:
    """u(c)/b by the formula of the module and nothing of its code, in exact fractions."""
    signed = min(candidates) < 0
    sizes = sorted({abs(c) for c in candidates})
    rungs = next(2**j for j in itertools.count() if 2**j >= Fraction(5, 2 if signed else 4) * len(sizes))
    n, worst = len(records), max(quantile, 1 - quantile)
    inverse = each.epsilon / 2 if isinstance(each, Pure) else Fraction(math.sqrt(2 * each.rho))
    return [
        (-abs(sum(x <= c for x in records) - quantile * n) - worst * n * sizes.index(abs(c)) / rungs) * inverse
        for c in candidates
    ]


def law(exponents) -> np.ndarray:
    """P(i) ∝ e^{exponents[i]}."""
    weights = [mpmath.exp(mpmath.mpf(e.numerator) / e.denominator) for e in exponents]
    return np.array([float(w / sum(weights)) for w in weights])


def counted(records, candidates) -> list[int]:
    return [sum(x <= c for x in records) for c in candidates]


def p_value(draws, probability) -> float:
    """Chi-square in cells that expect 10 or more; the others are pooled."""
    expected = probability * len(draws)
    observed = np.bincount(draws, minlength=len(probability))
    pooled = expected < 10
    cells = [*zip(observed[~pooled], expected[~pooled], strict=True), (observed[pooled].sum(), expected[pooled].sum())]
    cells = [(o, e) for o, e in cells if e > 0]
    return float(stats.chi2.sf(sum((o - e) ** 2 / e for o, e in cells), len(cells) - 1))


# ---- the law -----------------------------------------------------------------------------------------------------


def short(name, promise, candidates):
    """A plan with few candidates, of which thousands of draws take a second."""
    return replace(plan_of(FAMILIES[name], promise, "1/2", QUANTILES), candidates=candidates)


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_the_upper_bound_is_drawn_with_the_law_of_the_exponential_mechanism(promise, seed):
    records = np.random.default_rng(seed).exponential(2.0, 30)
    plan = short("exponential", promise, (1.0, 2.0, 4.0, 6.0, 12.0, 16.0))
    counts = counted(records, plan.candidates)
    drawn = [plan.bounds(counts, 30) for _ in range(1200)]
    assert {low for low, _ in drawn} == {0.0}
    places = np.array([plan.candidates.index(high) for _, high in drawn])
    assert p_value(places, law(oracle(records, plan.candidates, QUANTILES[1], plan.each))) > FALSE_ALARM


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_both_bounds_are_drawn_with_the_law_of_the_exponential_mechanism(promise, seed):
    records = np.random.default_rng(seed).normal(1.0, 2.0, 30)
    plan = short("normal", promise, (-4.0, -2.0, 0.0, 2.0, 4.0))
    counts = counted(records, plan.candidates)
    drawn = [plan.bounds(counts, 30) for _ in range(1200)]
    first = law(oracle(records, plan.candidates, QUANTILES[0], plan.each)[:-1])
    exponents = oracle(records, plan.candidates, QUANTILES[1], plan.each)
    joint = np.zeros((5, 5))
    for low, chance in enumerate(first):
        joint[low, low + 1 :] = chance * law(exponents[low + 1 :])
    places = np.array([5 * plan.candidates.index(low) + plan.candidates.index(high) for low, high in drawn])
    assert p_value(places, joint.ravel()) > FALSE_ALARM


def test_opendp_selects_with_the_law():
    scores, scale = [0, 30, 50, 40, -20, 41], 17.3
    promise = Pure(Fraction(2, 1))
    drawn = [select(scores, scale=scale, sensitivity=17, guarantee=promise) for _ in range(2000)]
    assert p_value(np.array(drawn), law([Fraction(s) / Fraction(scale) for s in scores])) > FALSE_ALARM


# of a family with a natural lower bound only the upper one is chosen
CHOSEN = [(name, quantile) for name in FAMILIES for quantile in (QUANTILES if name == "normal" else QUANTILES[1:])]


@pytest.mark.parametrize(("name", "quantile"), CHOSEN)
def test_replacing_a_record_moves_no_score_by_more_than_the_sensitivity(name, quantile):
    """Every table of three records, every neighbour of it; the bound is reached."""
    plan = plan_of(FAMILIES[name], Pure(Fraction(1)), SHARE, QUANTILES)
    index, values = plan.quantiles.index(quantile), [-math.inf, 0.0, 1.0, 4.0]
    scores = {
        records: plan._scores(index, counted(records, plan.candidates), 3)
        for records in itertools.product(values, repeat=3)
    }
    furthest = 0
    for records, place, value in itertools.product(scores, range(3), values):
        neighbour = (*records[:place], value, *records[place + 1 :])
        moved = max(abs(a - b) for a, b in zip(scores[records], scores[neighbour], strict=True))
        furthest = max(furthest, moved)
    assert furthest == plan.sensitivity(index)


@pytest.mark.parametrize(("name", "quantile"), CHOSEN)
def test_adding_records_of_a_person_moves_no_score_by_more_than_the_sensitivity(name, quantile):
    """Every table of up to two records and every record more; two of them move a score by no more than twice."""
    plan = plan_of(FAMILIES[name], Pure(Fraction(1)), SHARE, QUANTILES, "add_remove")
    index, values = plan.quantiles.index(quantile), [-math.inf, 0.0, 1.0, 4.0, 1e12]
    furthest = 0
    for size in range(3):
        for records, value in itertools.product(itertools.product(values, repeat=size), values):
            before, after = (
                plan._scores(index, counted(own, plan.candidates), len(own)) for own in (records, (*records, value))
            )
            furthest = max(furthest, *(abs(a - b) for a, b in zip(before, after, strict=True)))
    assert 0.5 * plan.sensitivity(index) < furthest <= plan.sensitivity(index)
    assert replace(plan, max_records=2).sensitivity(index) == 2 * plan.sensitivity(index)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_the_exact_loss_of_the_law_is_within_the_promise(name, promise):
    """|log P/P'| for neighbours that move scores both up and down: at most ε, or √(8ρ) for ρ, and not far below."""
    plan = plan_of(FAMILIES[name], promise, "1/2", ("0.25", "0.75"))
    limit = float(plan.each.epsilon) if isinstance(plan.each, Pure) else math.sqrt(8 * plan.each.rho)
    tables = [
        [1.0] * 8 + [8.0] * 2,
        [1.0] * 7 + [8.0] * 3,
        [1.0] * 7 + [2.0**9] + [8.0] * 2,
        [-9.0] + [1.0] * 7 + [8.0] * 2,
    ]
    for index in range(len(plan.quantiles)):
        logs = [np.log(law_of(plan, index, np.array(records))) for records in tables]
        worst = max(np.abs(logs[i] - logs[j]).max() for i, j in ((0, 1), (0, 2), (0, 3), (1, 2)))
        assert 0.2 * limit < worst <= limit


def test_empirical_epsilon():
    """Neighbours that differ most: the lower confidence bound on ε must not pass the claim, nor be far below it."""
    plan = replace(short("poisson", Pure(Fraction(4)), (1.0, 2.0)), quantiles=(Fraction(3, 4),))
    num_draws, hits = 1500, []
    for records in ([1.0, 1.0, 2.0, 2.0], [1.0, 9.0, 2.0, 2.0]):
        counts = counted(records, plan.candidates)
        hits.append(sum(plan.bounds(counts, 4)[1] == 1.0 for _ in range(num_draws)))
    low = stats.beta.ppf(FALSE_ALARM, hits[0], num_draws - hits[0] + 1)
    high = stats.beta.ppf(1 - FALSE_ALARM, hits[1] + 1, num_draws - hits[1])
    assert plan.each == Pure(Fraction(2))
    assert 0.5 < math.log(low / high) <= 2


@pytest.mark.parametrize("promise", [Pure(Fraction(1, 3)), ZeroConcentrated(Fraction(1, 7)), Pure(Fraction(50))])
def test_a_scale_that_breaks_the_promise_draws_nothing(promise):
    scale = calibrated(promise, 5120)
    select([0, 1], scale=scale, sensitivity=5120, guarantee=promise)
    with pytest.raises(RuntimeError, match="nothing was drawn"):
        select([0, 1], scale=scale * (1 - 1e-9), sensitivity=5120, guarantee=promise)
    span = 2 * 5120 / Fraction(scale)
    cost = span if isinstance(promise, Pure) else span**2 / 8
    wanted = promise.epsilon if isinstance(promise, Pure) else promise.rho
    assert wanted * (1 - Fraction(1, 10**12)) < cost <= wanted


# ---- the candidates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_candidates_are_public_and_fit_the_family(name):
    family = FAMILIES[name]
    plan = plan_of(family, Pure(Fraction(1)), SHARE, QUANTILES)
    candidates = plan.candidates
    assert list(candidates) == sorted(set(candidates))
    assert (len(plan.quantiles), min(candidates) < 0) == ((2, True) if name == "normal" else (1, False))
    assert all(c == math.floor(c) for c in candidates) or not family.query.is_whole
    assert {4.0, 6.0, 8.0, 12.0, 1024.0} <= set(candidates)


@pytest.mark.parametrize("share", ["0.1", "1/3", 0.75])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_parts_add_up_to_the_promise(name, share):
    """Exactly: what each choice may cost, and what the noise may."""
    pure = plan_of(FAMILIES[name], Pure(Fraction(1, 7)), share, QUANTILES)
    rest = Agreement(Pure(Fraction(1, 7)), bounds_share=Fraction(str(share))).of_statistics
    assert len(pure.quantiles) * pure.each.epsilon + rest.epsilon == Fraction(1, 7)
    zcdp = plan_of(FAMILIES[name], ZeroConcentrated(Fraction(1, 7)), share, QUANTILES)
    spent = Agreement(ZeroConcentrated(Fraction(1, 7)), bounds_share=Fraction(str(share))).of_statistics
    assert len(zcdp.quantiles) * zcdp.each.rho + spent.rho == Fraction(1, 7)
    assert rest.epsilon == (1 - Fraction(str(share))) / 7


@pytest.mark.parametrize("promise", [Pure(Fraction(1, 10)), Pure(Fraction(50)), ZeroConcentrated(Fraction(1, 1000))])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_pair_of_candidates_is_refused_after_the_charge(name, promise):
    plan = plan_of(FAMILIES[name], promise, SHARE, QUANTILES)
    pairs = [(0.0, c) for c in plan.candidates]
    if len(plan.quantiles) == 2:
        some = [*plan.candidates[:3], *plan.candidates[::17], *plan.candidates[-3:]]
        pairs = [*itertools.combinations(sorted(set(some)), 2), *itertools.pairwise(plan.candidates)]
    for pair in [*plan.extremes, *pairs]:
        finest_grid(FAMILIES[name].within(pair).query, Agreement(promise, bounds_share=SHARE))


@pytest.mark.parametrize("exponent", [*range(-300, -288, 2), *range(274, 292, 3)])
def test_no_pair_of_candidates_is_too_narrow_or_wide_to_be_told_after_the_charge(exponent):
    """Where floats end, a variance is refused as a whole or all of its candidates can be told."""
    family = na.family.Normal("x", variance=10.0**exponent)
    try:
        terms = terms_of(family, epsilon=1, bounds="private")
    except ValueError:
        assert exponent in (-300, 289)  # and no other is refused
        return
    some = terms.selection.candidates
    for pair in [*itertools.pairwise(some), *itertools.combinations(some[::5], 2)]:
        terms.within(pair)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 250.0, 1e6])
def test_chosen_bounds_are_near_the_quantiles_of_a_large_table(scale, seed):
    """n·ε = 1000 for each choice: a bound more than one octave off has chance below 1e−3, by the law."""
    rng = np.random.default_rng(seed)
    plan = plan_of(FAMILIES["exponential"], Pure(Fraction(1)), SHARE, QUANTILES)
    records = rng.exponential(scale, 10_000)
    chance = law_of(plan, 0, records)
    near = np.abs(np.log2(np.array(plan.candidates) / (scale * math.log(40)))) <= 1
    assert chance[near].sum() > 0.999


def test_a_small_table_overshoots_by_little(seed):
    """n·ε = 100: ranks alone would put nearly all of the mass on candidates above the largest record."""
    plan = plan_of(FAMILIES["exponential"], Pure(Fraction(1)), SHARE, QUANTILES)
    chance = law_of(plan, 0, np.random.default_rng(seed).exponential(4.0, 1000))
    octaves = np.log2(np.array(plan.candidates) / (4 * math.log(40)))
    assert chance[np.abs(octaves) <= 1].sum() > 0.6
    assert chance[octaves > 6].sum() < 0.02
    assert chance[octaves < -2].sum() < 1e-6


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("family", ["exponential", "normal", "poisson"])
def test_the_rank_of_a_choice_misses_by_more_than_its_slack_in_at_most_one_of_twenty(family, neighbours, seed):
    """By the law of the choice, at tables of which it knows little and at tables of which it knows much."""
    rng = np.random.default_rng(seed)
    plan = plan_of(FAMILIES[family], Pure(Fraction(1, 2)), SHARE, QUANTILES, neighbours)
    for n in (20, 300, 5000):
        records = np.round(rng.exponential(30.0, n))
        for index, quantile in enumerate(plan.quantiles):
            chance = law_of(plan, index, records)
            counts = [int(c) for c in np.searchsorted(np.sort(records), plan.candidates, side="right")]
            in_records = np.array(plan._scores(index, counts, n), float) / (plan._steps * quantile.denominator)
            assert chance[in_records < in_records.max() - plan.slack].sum() <= 0.05


def test_a_choice_that_is_little_more_than_noise_is_warned_of(seed):
    waits = pd.DataFrame({"x": np.random.default_rng(seed).exponential(4.0, 3000)})
    small = {"epsilon": "1/2", "neighbours": "add_remove", "bounds": "private"}
    with pytest.warns(RuntimeWarning, match="say little of the table; give bounds, or a larger bounds_share"):
        na.release(waits[:50], FAMILIES["exponential"], **small)
    na.release(waits, FAMILIES["exponential"], **small)  # of which no warning is raised


def law_of(plan, index, records):
    counts = np.searchsorted(np.sort(records), plan.candidates, side="right")
    scores = np.array(plan._scores(index, [int(c) for c in counts], len(records)), float) / plan.scale(index)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


# ---- the records -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells", [[None] * 3, [np.nan] * 3, [np.inf, -np.inf, 1e308], ["x", "", "77.125"], [10**30, True, None]]
)
def test_cells_of_any_kind_change_nothing_but_the_outcome(cells, capfd):
    table = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    with pytest.warns(RuntimeWarning, match="private bounds were chosen to within 151 records of a quantile of some 3"):
        release = na.release(table, FAMILIES["exponential"], epsilon=1, bounds="private")
    assert (release.n, release.query.bounds[0]) == (3, 0.0)
    assert capfd.readouterr() == ("", "")
