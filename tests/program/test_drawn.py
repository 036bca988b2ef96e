"""What is drawn at the edges: noise wider than 64 bits of steps, values on no lattice, impossible distributions."""

from collections import namedtuple
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import noiseaware as na
import noiseaware.program as pp
from noiseaware.custodian import drawn, execute

Pair = namedtuple("Pair", "first second")


def certified(records, function, epsilon=1000):
    found = pp.check(pp.program(epsilon=epsilon)(_annotated(function, records)))
    assert found.is_certified, found.reason
    return found


def _annotated(function, records):
    def program(p, db):
        return function(p, db)

    program.__annotations__["db"] = records
    return program


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
    certificate = certified(UNIT, lambda p, db: p.laplace(pp.clip(db.sum() * k, 0, k), epsilon=epsilon), 10**9)
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


def test_nothing_fails_for_a_draw_of_0_and_an_impossible_distribution_is_a_sentence():
    inverse = certified(COIN, lambda p, db: 1 / p.laplace(db.count(), epsilon=100))
    impossible = certified(COIN, lambda p, db: pp.ran(pp.beta(p.laplace(db.count(), epsilon=100) - 9, 1)))
    assert inverse.run([False]) == 0
    with pytest.raises(ValueError, match=r"noise made it beta\(-9, 1\)"):
        impossible.run([False])


def test_noisy_records_are_told_in_order_of_size_not_of_the_table(monkeypatch):
    monkeypatch.setattr("noiseaware.program.nuts.draws", lambda model, records, public: records)

    def told(p, db):
        noisy = db.map(lambda x: p.laplace(x, epsilon=1))
        return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda r, x: pp.normal(pp.exp(r), 1) == x))

    records = certified(UNIT, told).run([0.5] * 12)
    assert records == sorted(records)


def test_records_on_the_grid_lie_within_the_bounds_of_the_certificate():
    records = pp.Reals(("1/3", "2/3"), adjacency="replace")
    low, high = map(Fraction, execute._family(records, execute._exponent(records)).bounds)
    assert Fraction(1, 3) <= low < high <= Fraction(2, 3)
