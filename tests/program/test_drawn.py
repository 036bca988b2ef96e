"""What is drawn at the edges: noise wider than 64 bits of steps, values on no lattice, impossible distributions."""

import math
from collections import namedtuple
from fractions import Fraction
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.program.conftest import certified

import noiseaware as na
import noiseaware.program as pp
from noiseaware.custodian import exponential, noise
from noiseaware.custodian.program import noise as drawn
from noiseaware.custodian.program import run
from noiseaware.custodian.table import Table
from noiseaware.mechanism import DiscreteLaplace
from noiseaware.privacy import Pure
from noiseaware.program.language import evaluate
from noiseaware.program.proof.lemma import hellinger_bound

Pair = namedtuple("Pair", "first second")


UNIT = pp.Reals((0, 1), adjacency="replace")
COIN = pp.Booleans(adjacency="replace")


@pytest.mark.parametrize("epsilon", ["1e-12", pytest.param("1e-9", marks=pytest.mark.slow)])
@pytest.mark.parametrize("value", [lambda db: db.sum(), lambda db: pp.clip(db.sum(), 0, 1)], ids=["linear", "clipped"])
def test_noise_wider_than_its_lattice_keeps_its_scale(epsilon, value):
    """Absolute values of Laplace noise are exponential; 120 of them, at the 1e-6 level."""
    certificate = certified(UNIT, lambda p, db: p.laplace(value(db), epsilon=epsilon))
    noise = np.abs([certificate.run([0.5]) for _ in range(120)]) * float(Fraction(epsilon))
    assert stats.kstest(noise, "expon").pvalue > 1e-6


@pytest.mark.parametrize("k", [Fraction(1, 10**6), Fraction(1, 3), Fraction(10**6)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 7), Fraction(50)])
def test_a_value_on_no_lattice_costs_what_was_certified(k, epsilon):
    """m whole steps of noise of b steps cost m/b ≤ ε·k, and hardly more noise is drawn than Laplace(1/ε) has."""
    certificate = certified(UNIT, lambda p, db: p.laplace(pp.clip(db.sum() * k, 0, k), epsilon=epsilon))
    (mechanism,) = certificate.trace.mechanisms.drawn
    found = drawn.noised(mechanism, 0, k, lambda _: Fraction(0), Fraction(1, 2**30))
    moved = -(-k // found.unit)
    assert not found.is_lattice
    assert moved / Fraction(found.law.scale) <= epsilon * k
    assert found.law.scale * found.unit <= Fraction(101, 100) / epsilon or epsilon * k < Fraction(1, 10**12)


def test_steps_are_whole_however_a_value_lies():
    """A move of exactly one step is one step, also from a half to a half."""
    for start in (Fraction(1, 2), Fraction(3, 2), Fraction(-1, 2), Fraction(1, 3)):
        assert drawn._steps(start + 1) - drawn._steps(start) == 1


@pytest.mark.parametrize(("sigma", "moved"), [(2, 1), (5, 3), (20, 1), (20, 30)])
def test_normal_noise_that_breaks_its_delta_is_not_drawn(sigma, moved):
    """δ is at least Σ max(p − e^ε q, 0) of its masses p, and q that lie so many steps beside."""
    epsilon, k = Fraction(1, 2), np.arange(-400, 401)
    p, q = (np.exp(-((k - away) ** 2) / (2 * sigma**2)) for away in (0, moved))
    least = np.maximum(p / p.sum() - math.exp(epsilon) * q / p.sum(), 0).sum()
    with pytest.raises(RuntimeError, match="must keep δ"):
        drawn._check_delta(Fraction(sigma), moved, epsilon, Fraction(0.99 * least))
    enough = moved / epsilon * Fraction(drawn._deviation(Fraction(1, 10**5)))
    drawn._check_delta(enough, moved, epsilon, Fraction(1, 10**5))


def test_a_part_of_a_count_keeps_its_own_steps():
    quarter = certified(COIN, lambda p, db: p.laplace(db.count() / 4, epsilon=1000) + 0)
    assert quarter.run([True] * 3) == 0.75


def test_half_a_surrogate_is_a_record_as_any_other():
    count = certified(COIN, lambda p, db: p.laplace(db.count(), epsilon=1000))
    assert count.run(["\ud800", "true"]).steps == (1,)


def test_results_keep_their_form():
    several = certified(COIN, lambda p, db: Pair(*[p.laplace(db.count(), epsilon=100)] * 2))
    single = certified(COIN, lambda p, db: [p.laplace(db.count(), epsilon=100)])
    assert isinstance(several.run([True]), Pair)
    assert [type(part) for part in single.run([True])] == [na.Release]


def test_noise_too_wide_for_its_lattice_makes_no_release():
    wide = certified(COIN, lambda p, db: p.laplace(db.count(), epsilon="1e-17"))
    assert isinstance(wide.run([True]), int | float)


def test_nothing_fails_for_a_draw_of_0_nor_for_an_impossible_distribution():
    inverse = certified(COIN, lambda p, db: 1 / p.laplace(db.count(), epsilon=100))
    impossible = certified(COIN, lambda p, db: pp.ran(pp.beta(p.laplace(db.count(), epsilon=100) - 9, 1)))
    assert inverse.run([False]) == 0
    with pytest.warns(RuntimeWarning, match=r"noise made it beta\(-9, 1\)"):
        assert math.isnan(impossible.run([False]))


def test_a_distribution_is_a_prior_unless_noise_made_it_impossible():
    law = certified(COIN, lambda p, db: pp.beta(p.laplace(db.count(), epsilon=10**4), 3))
    made, impossible = law.run([True, False, True]), law.run([False])
    assert (made.prior, made.a) == (na.prior.Beta(2, 3), 2)
    with pytest.raises(AttributeError, match="this distribution has no mean; it has a, b"):
        made.mean
    with pytest.raises(ValueError, match=r"^beta: a must be positive and finite, got 0\.0 \(the noise outweighed"):
        impossible.prior


def test_a_rate_of_0_is_an_impossible_distribution_too():
    impossible = certified(COIN, lambda p, db: pp.ran(pp.gamma(2, p.laplace(db.count(), epsilon=100))))
    with pytest.warns(RuntimeWarning, match=r"noise made it gamma\(2, 0\)"):
        assert math.isnan(impossible.run([False]))


def test_a_count_by_a_draw_of_0_is_drawn():
    certificate = certified(
        COIN, lambda p, db: p.laplace(pp.clip(db.count() / p.laplace(db.count(), epsilon=100), 0, 1), epsilon=500)
    )
    assert certificate.run([False]) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("prior", [(1, 1), (10**15, 1), (10**400, 10**400)], ids=["flat", "steep", "beyond floats"])
def test_neighbours_move_no_score_of_a_sample_by_more_than_is_paid_for(adjacency, prior, monkeypatch):
    """Also where scores are moved to the edge of 64 bits, and where a record comes or goes."""
    monkeypatch.setattr("noiseaware.custodian.exponential.select", choice := Mock(return_value=0))

    def sample(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(*prior), lambda r, x: pp.bernoulli(r) == x))
        return p.sample(posterior, within=(0.89, 0.9))

    certificate = certified(pp.Booleans(adjacency=adjacency), sample)
    other = [True] * 60 + [False] * 40 if adjacency == "add_remove" else [True] * 61 + [False] * 40
    for table in ([True] * 60 + [False] * 41, other):
        certificate.run(table)
    first, second = (call.args[0] for call in choice.call_args_list)
    assert max(abs(a - b) for a, b in zip(first, second, strict=True)) <= choice.call_args.kwargs["sensitivity"]
    assert max(map(abs, first)) < 2**63


def test_a_sample_under_a_steep_prior_is_where_the_prior_is():
    def sample(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(10**15, 1), lambda r, x: pp.bernoulli(r) == x))
        return p.sample(posterior, within=("1/5", "4/5"))

    assert certified(COIN, sample).run([True] * 100) == 0.8


def test_what_cannot_be_drawn_is_not_quoted():
    with pytest.raises(ValueError, match=r"^noise could not be drawn\.$"):
        exponential.select([2**70, 0], scale=2.0, sensitivity=1, guarantee=Pure(1))
    with pytest.raises(ValueError, match=r"^noise could not be drawn\.$"):
        noise.draw(DiscreteLaplace(1.0), [2**70], sensitivity=1, sensitivity_squared=1, guarantee=Pure(1))


@pytest.mark.parametrize("true", range(1, 13))
def test_a_candidate_that_does_not_exist_fails_for_no_count(true):
    """Γ has poles at 0, −1, …, which the middle of a posterior and beta(−10.5, 5) would meet at every other count."""

    def choice(p, db):
        noisy = p.laplace(db.count(), epsilon=1)
        posterior = pp.infer(pp.observe(db, pp.beta("1/2", 1), lambda r, x: pp.bernoulli(r) == x))
        candidates = [pp.beta(2, 2), pp.beta(noisy - noisy - Fraction(21, 2), 5)]
        return p.exponential(candidates, lambda r: -pp.hellinger(posterior, r), epsilon=1)

    assert certified(COIN, choice).run([True] * true).b in (2, 5)


@pytest.mark.parametrize("a", [1, 10**9, 10**15])
def test_neighbours_move_a_hellinger_distance_by_no_more_than_the_lemma_says(a):
    """log Γ(10^9) in floats errs by 10^−6, and so would the distance, by 200 times what neighbours may move it."""
    move = hellinger_bound([Fraction(a), Fraction(a)])
    near = [Fraction(a + 2), Fraction(a + 98)]
    found = [evaluate._hellinger("beta", [Fraction(a + j), Fraction(a + 100 - j)], near) for j in range(101)]
    assert max(abs(x - y) for x, y in pairwise(found)) <= move
    assert max(found) > move


@pytest.mark.parametrize("prior", [Fraction(1, 10**30), 1, 10**5, 10**13])
def test_a_distance_that_floats_tell_is_1_to_the_last_place(prior, monkeypatch, seed):
    """At every candidate near where floats begin to be asked, and at some far from there."""
    n, rng = 2000, np.random.default_rng(seed)
    posterior = [Fraction(prior + 600), Fraction(prior + n - 600)]
    places = [*range(200, 1100, 20), *map(int, rng.integers(0, n, 30))]
    candidates = [[Fraction(prior + j), Fraction(prior + n - j)] for j in places]
    quick = [evaluate._hellinger("beta", posterior, candidate) for candidate in candidates]
    monkeypatch.setattr(evaluate, "_is_apart", lambda *_: False)
    assert quick == [evaluate._hellinger("beta", posterior, candidate) for candidate in candidates]
    assert 1 in quick or prior > 1


@pytest.mark.parametrize("mean", [10**160, 0], ids=["far", "near"])
@pytest.mark.parametrize("variance", [1, Fraction(1, 10**400), 10**400, -1], ids=["one", "tiny", "vast", "negative"])
def test_a_normal_candidate_far_away_or_impossible_fails_for_no_sum(mean, variance):
    def choice(p, db):
        draw = p.laplace(0, epsilon=1)
        posterior = pp.infer(pp.observe(db, pp.normal(0, 1), lambda m, x: pp.normal(m, 1) == x))
        candidates = [pp.normal(mean, draw - draw + variance), pp.normal(mean + 1, draw - draw + variance)]
        return p.exponential(candidates, lambda r: -pp.hellinger(posterior, r), epsilon=1).mean

    assert certified(UNIT, choice).run([0.5]) in (mean, mean + 1)


@pytest.mark.parametrize("true", [1, 3])
@pytest.mark.parametrize("factor", [10**308, Fraction(1, 10**400)], ids=["vast", "tiny"])
def test_a_logarithm_fails_for_no_count(true, factor):
    clipped = certified(COIN, lambda p, db: p.laplace(pp.clip(pp.log(db.count() * factor), -1, 1), epsilon=100))
    assert clipped.run([True] * true) == pytest.approx(1 if factor > 1 else -1, abs=0.5)


class Growing(Table):
    """A table to which a record is added while it is read."""

    def records(self, family, grid_exponent):
        return [*super().records(family.query, grid_exponent), 0]


def test_a_table_that_changes_while_it_is_read_is_refused_before_the_charge(tmp_path):
    told = certified(
        COIN, lambda p, db: db.map(lambda x: p.exponential([False, True], lambda r: r == x, epsilon=1)).count()
    )
    ledger = na.Ledger.create(tmp_path / "ledger.jsonl", epsilon=2000)
    with pytest.raises(ValueError, match="must not change while it is read"):
        told.run(Growing(pd.DataFrame({"record": [True, False]})), ledger=ledger)
    assert not ledger.entries()


def test_noisy_records_are_told_in_order_of_size_not_of_the_table(monkeypatch):
    monkeypatch.setattr("noiseaware.program.language.nuts.draws", lambda model, records, public: records)

    def told(p, db):
        noisy = db.map(lambda x: p.laplace(x, epsilon=1))
        return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda r, x: pp.normal(pp.exp(r), 1) == x))

    records = certified(UNIT, told).run([0.5] * 12)
    assert records == sorted(records)


def test_records_on_the_grid_lie_within_the_bounds_of_the_certificate():
    records = pp.Reals(("1/3", "2/3"), adjacency="replace")
    low, high = map(Fraction, run._query(records, run._exponent(records)).bounds)
    assert Fraction(1, 3) <= low < high <= Fraction(2, 3)


def test_bounds_narrower_than_the_steps_of_their_sum_are_refused_by_that_reason():
    records = pp.Reals(("1e15", 10**15 + 1), adjacency="replace")
    narrow = certified(records, lambda p, db: p.laplace(db.sum(), epsilon=1))
    with pytest.raises(ValueError, match=r"^bounds \(1.*\) must be wider, or nearer to 0: 64-bit sums have steps of"):
        narrow.run([1.0])
