"""The audit: within the claim for every family and promise, near it where theory says so, and beyond it for a fault."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian import audit as auditing
from noiseaware.custodian import neighbour
from noiseaware.custodian import private_bounds as choosing
from noiseaware.custodian import terms as agreeing
from noiseaware.custodian.grid import finest_grid
from noiseaware.custodian.noise import calibrated
from noiseaware.privacy import Pure

FAMILIES = {
    "bernoulli": na.family.Bernoulli("x"),
    "binomial": na.family.Binomial("x", trials=5),
    "categorical": na.family.Categorical("x", levels=["a", "b", "c"]),
    "poisson": na.family.Poisson("x", bounds=(0, 12)),
    "geometric": na.family.Geometric("x", bounds=(0, 12), outside="drop"),
    "exponential": na.family.Exponential("x", bounds=(0, 48)),
    "normal": na.family.Normal("x", bounds=(-3, 5), variance=2.0),
    "gamma": na.family.Gamma("x", bounds=(0.5, 48), shape=2.0, outside="drop"),
    "mean_variance": na.family.Normal("x", bounds=(-3, 5)),
    "regression": na.family.LinearRegression(["x"], "y", bounds={"x": (0, 1), "y": (2, 3)}),
    "multivariate": na.family.MultivariateNormal(["x", "y"], bounds=(0, 1)),
}
PROMISES = [{"epsilon": 0.5}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-5}]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("name", ["bernoulli", "categorical", "geometric", "exponential", "regression"])
def test_no_release_can_be_told_apart_better_than_promised(name, promise):
    found = na.audit(FAMILIES[name], **promise, num_releases=2000)
    assert found.is_within is not False
    assert found.losses[0].mean() > found.losses[1].mean()  # it does tell them apart


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_hundred_thousand_releases_agree_with_the_claim(name, promise, neighbours):
    assert na.audit(FAMILIES[name], **promise, neighbours=neighbours, num_releases=100_000).is_within is not False


@pytest.mark.parametrize("name", ["bernoulli", "exponential", "regression"])
def test_where_records_are_added_the_empty_table_is_told_from_one_of_one_record(name):
    """And n tells them apart too: for counts of one the whole claim is nearly reached."""
    found = na.audit(FAMILIES[name], epsilon=1, neighbours="add_remove", num_releases=20_000)
    assert found.tables[0] == ()
    assert found.is_within is not False
    assert found.lower > 0.6 or name == "regression"


def test_a_private_n_without_its_share_of_the_price_is_found_out(monkeypatch):
    """The statistics spend the whole of ε, and n a quarter beside it."""
    honest = Pure.part
    monkeypatch.setattr(Pure, "part", lambda promise, share: promise if share > 0.5 else honest(promise, share))
    found = na.audit(FAMILIES["bernoulli"], epsilon=2, neighbours="add_remove", num_releases=40_000)
    assert found.is_within is False


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_for_one_sum_under_laplace_noise_the_bound_is_near_the_claim(epsilon):
    """The ratio e^ε is reached on a half-line; the confidence interval takes the rest."""
    found = na.audit(FAMILIES["exponential"], epsilon=epsilon, num_releases=40_000)
    assert 0.8 * epsilon - 0.06 < found.lower <= epsilon
    assert found.shares[0] > found.shares[1]
    assert {row[0] for row in found.tables} == {0.0, 48.0}


@pytest.mark.parametrize("name", ["exponential", "categorical", "regression"])
def test_an_understated_sensitivity_is_found_out(name, monkeypatch):
    """A quarter of it, or half of 2, and the noise that would be enough for that."""
    honest = agreeing.finest_grid

    def understated(*terms, **options):
        grid, guarantee = honest(*terms, **options), terms[1].of_statistics
        part = max(1, grid.sensitivity // 4)
        return replace(grid, sensitivity=part, mechanism=calibrated(guarantee, part, part**2))

    monkeypatch.setattr(agreeing, "finest_grid", understated)
    assert na.audit(FAMILIES[name], epsilon=1, num_releases=20_000).is_within is False


@pytest.mark.parametrize("promise", [{"epsilon": 1}, {"rho": 1}], ids=["all", "squares"])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 12])
def test_the_worst_pair_of_any_number_of_columns_is_tried(d, neighbours, promise):
    """It moves the statistics as far as neighbours can, to within the rounding of a record to 2^−15."""
    model = na.family.MultivariateNormal([f"x{j}" for j in range(d)], bounds=(-3, 5))
    terms = agreeing.terms_of(model, **promise, neighbours=neighbours)
    grid = terms.grid
    tables = neighbour._furthest(terms)
    totals = (neighbour._totals(terms, row) for row in tables)
    first, second = (np.array(sums, dtype=float) for *sums, _ in totals)
    moved, weights = np.abs(first - second), np.array(model.query.entries)
    is_all = "epsilon" in promise
    total, most = (moved.sum(), grid.sensitivity) if is_all else (weights @ moved**2, grid.sensitivity_squared)
    assert 1 - 1e-4 < total / most <= 1


@pytest.mark.parametrize("p", [2, 3, 4, 6, 9])
def test_where_a_square_is_not_released_no_pair_of_a_search_is_further_apart(p, seed):
    model = na.family.LogisticRegression([f"x{j}" for j in range(p)], "y", bounds=(0, 1))
    terms = agreeing.terms_of(model, epsilon=1)

    def apart(rows):
        u, w = (model.query.monomials(list(np.moveaxis(side, -1, 0))) for side in rows)
        return np.abs(np.array(u) - np.array(w)).sum(0)

    first, second = (np.array([row]) * 2 - 1 for row in neighbour._furthest(terms))
    rng = np.random.default_rng(seed)
    found = rng.choice([-1, -0.5, -1 / (p + 2), 0, 0.5, 1], (2, 20_000, p + 1))
    for width in (1, 0.3, 0.1, 0.03, 0.01):
        best = found[:, np.argsort(-apart(found))[:200]]
        found = np.concatenate([best, *(np.clip(best + rng.normal(0, width, best.shape), -1, 1) for _ in range(50))], 1)
    assert apart(found).max() <= apart((first, second))[0] * (1 + 1e-9)


def test_an_event_shows_what_its_probabilities_show():
    assert auditing._least_epsilon(0.5, 0.25) == pytest.approx(math.log(2))
    assert auditing._least_epsilon(0.0, 0.01) == -math.inf
    entropy = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert auditing._least_rho(0.5, 0.25) >= entropy * 0.99  # α near 1
    assert auditing._least_rho(0.25, 0.25) == 0


def test_intervals_are_those_of_clopper_and_pearson():
    """Of 10 in 10: the low end is where 10 of 10 has half of 0.1 %; of 0 in 10, the high end likewise."""
    low, high = auditing._ends_of(np.ones(10, bool), np.zeros(10, bool))
    assert low**10 == pytest.approx(0.0005)
    assert (1 - high) ** 10 == pytest.approx(0.0005)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"epsilon": 1, "num_releases": 10}, "at least 1,000"),
        ({}, "exactly one of epsilon"),
        ({"epsilon": -1}, "epsilon must be positive"),
    ],
)
def test_a_bad_setting_is_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        na.audit(FAMILIES["bernoulli"], **wrong)
    with pytest.raises(ValueError, match="bounds must be given"):
        na.audit(na.family.Exponential("x"), epsilon=1)


@pytest.mark.parametrize("name", ["poisson", "exponential", "regression"])
def test_the_noise_is_that_of_a_release(name, monkeypatch):
    """The same grid and the same scale."""
    made, honest = [], auditing._of_noise
    monkeypatch.setattr(auditing, "_of_noise", lambda grid, *rest: made.append(grid) or honest(grid, *rest))
    na.audit(FAMILIES[name], epsilon=0.7, num_releases=1000)
    release = na.release(pd.DataFrame({"x": [1.0, 2.0], "y": [2.5, 3.0]}), FAMILIES[name], epsilon=0.7)
    assert made
    assert all((grid.mechanism, 2.0**-grid.exponent) == (release.mechanism, release.grid) for grid in made)


def test_the_picture_has_the_claim_in_it():
    for promise in PROMISES:
        found = na.audit(FAMILIES["bernoulli"], **promise, num_releases=1000)
        figure = found.plot()
        labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert "the most that the promise allows" in labels
        share = np.linspace(0, 1, 11)
        most = found._most(share)
        assert most[0] < 0.01
        assert most[-1] == pytest.approx(1)
        assert (most >= share - 1e-12).all()


# ---- persons, groups and bounds that are chosen ---------------------------------------------------------------------

PLANS = {
    "record": (FAMILIES["exponential"], {"epsilon": 1}),
    "squares": (FAMILIES["exponential"], {"rho": 1}),
    "person": (FAMILIES["bernoulli"], {"epsilon": 1, "unit": "patient", "max_records": 3}),
    "left_out": (na.family.Exponential("x", bounds=(10, 48)), {"epsilon": 1, "missing": "leave_out"}),
    "words": (FAMILIES["bernoulli"], {"epsilon": 1, "true": ["F"], "missing": "leave_out"}),
    "groups": (FAMILIES["exponential"], {"epsilon": 1, "by": "region", "levels": {"region": ["north", "south"]}}),
    "person_in_groups": (
        FAMILIES["bernoulli"],
        {"epsilon": 1, "unit": "patient", "max_records": 2, "by": "region", "levels": {"region": [1, 2, 3]}},
    ),
    "chosen": (na.family.Exponential("x"), {"epsilon": 1, "bounds": "private"}),
    "chosen_between": (na.family.Normal("x", variance=1.0), {"epsilon": 2, "bounds": "private"}),
    "chosen_of_persons": (
        na.family.Exponential("x"),
        {"epsilon": 1, "bounds": "private", "unit": "patient", "max_records": 3},
    ),
}


SLOW = ("chosen_between", "chosen_of_persons")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PLANS])
def test_with_as_many_releases_as_needed_half_of_the_promise_is_seen(name):
    model, terms = PLANS[name]
    needed = na.audit(model, **terms, num_releases=1000).needed
    assert needed is not None
    found = na.audit(model, **terms, num_releases=needed)
    assert found.is_within is True
    if found.lower < found.claim / 2:  # which one in ten may be
        found = na.audit(model, **terms, num_releases=2 * needed)
    assert found.claim / 2 <= found.lower <= found.claim


def test_too_few_releases_are_no_verdict():
    found = na.audit(FAMILIES["exponential"], epsilon=0.01, num_releases=1000)
    assert found.is_within is None
    assert found.needed > 1_000_000
    assert f"no verdict, for that takes {found.needed:,} of each table" in repr(found)


def test_the_number_that_is_needed_is_that_of_a_calculation():
    """Of Laplace noise the event has probabilities ½ and e^−ε/2; the counts at their 5 % ends must show ε/2."""
    from scipy import stats

    epsilon, needed = 0.5, na.audit(FAMILIES["exponential"], epsilon=0.5, num_releases=1000).needed

    def shown(half):
        few, many = stats.binom.ppf(0.05, half, 0.5), stats.binom.ppf(0.95, half, 0.5 * math.exp(-epsilon))
        return math.log(stats.beta.ppf(0.0005, few, half - few + 1) / stats.beta.ppf(0.9995, many + 1, half - many))

    half = needed / 2 / auditing._SLACK
    assert shown(1.15 * half) > epsilon / 2 > shown(0.7 * half)


def _uncapped(table, terms):
    return [table.sums(terms.query, terms.grid.exponent, least=terms.agreement.least)]


def _one_too_many(table, terms):
    unit = replace(terms.unit, max_records=terms.unit.max_records + 1)
    return [table.sums(terms.query, terms.grid.exponent, least=terms.agreement.least, unit=unit)]


def test_a_record_that_is_left_out_is_tried_and_found_out_where_it_is_not_paid_for(monkeypatch):
    """Within (10, 48) a record that is replaced moves the sum by 38, and one that is left out by 48 and n by 1."""
    model, terms = PLANS["left_out"]
    found = na.audit(model, **terms, num_releases=20_000)
    assert found.is_within is True
    assert (None,) in found.tables
    assert found.lower > 0.75  # what the sum alone may show
    real = finest_grid

    def understated(*args, leaves_out, **options):
        return real(*args, **options)

    monkeypatch.setattr("noiseaware.custodian.terms.finest_grid", understated)
    assert na.audit(model, **terms).is_within is False


@pytest.mark.parametrize("fault", [_uncapped, _one_too_many])
def test_a_person_who_is_not_capped_is_found_out(fault, monkeypatch):
    model, terms = PLANS["person"]
    assert na.audit(model, **terms, num_releases=20_000).is_within is True
    monkeypatch.setattr(neighbour, "summed", fault)
    assert na.audit(model, **terms, num_releases=20_000).is_within is False


def test_a_cap_that_each_group_has_for_itself_is_found_out(monkeypatch):
    model, terms = PLANS["person_in_groups"]

    def apart(table, agreed):
        by = agreed.groups.columns[0]
        frame = table._source.open(SimpleNamespace(own=None)).frame.to_native()
        parts = [neighbour.Table(frame[frame[by] == level]) for (level,) in agreed.groups.keys]
        return [part.sums(agreed.query, agreed.grid.exponent, least=0, unit=agreed.unit) for part in parts]

    monkeypatch.setattr(neighbour, "summed", apart)
    assert na.audit(model, **terms, num_releases=20_000).is_within is False


@pytest.mark.parametrize("name", ["person", "groups", "chosen"])
def test_half_of_the_noise_is_found_out(name, monkeypatch):
    model, terms = PLANS[name]
    honest = agreeing.finest_grid

    def halved(*given, **options):
        grid = honest(*given, **options)
        return replace(
            grid, sensitivity=grid.sensitivity // 2 or 1, mechanism=type(grid.mechanism)(grid.mechanism.spread / 2)
        )

    monkeypatch.setattr(
        auditing.Grid, "noisy", lambda grid, totals: auditing._made_up(np.random.default_rng(), grid, totals)
    )
    monkeypatch.setattr(agreeing, "finest_grid", halved)
    assert na.audit(model, **terms, num_releases=20_000).is_within is False


def test_a_choice_of_bounds_that_costs_more_than_its_share_is_found_out(monkeypatch):
    """A choice that may cost half of ε costs five times all of it."""
    model, terms = na.family.Exponential("x"), {"epsilon": 2, "bounds": "private", "bounds_share": "0.5"}
    honest = choosing.Selection.scale
    monkeypatch.setattr(choosing.Selection, "scale", lambda own, index: honest(own, index) / 10)
    assert na.audit(model, **terms, num_releases=10_000).is_within is False


def test_the_law_of_a_choice_is_that_of_its_draws():
    selection = agreeing.terms_of(na.family.Poisson("x"), epsilon=20, bounds="private").selection
    assert selection is not None
    counts = [min(i, 12) * 5 for i in range(len(selection.candidates))]
    law = selection.law(counts, 60)
    assert sum(law.values()) == pytest.approx(1)
    drawn = [selection.bounds(counts, 60) for _ in range(400)]
    for ends, share in sorted(law.items(), key=lambda pair: -pair[1])[:4]:
        assert abs(drawn.count(ends) / 400 - share) < 4 * (share * (1 - share) / 400) ** 0.5 + 1e-9
