"""Promises: what implies what, in numbers that OpenDP agrees with."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from scipy import optimize, stats

from noiseaware.privacy import PROMISES, Approximate, Pure, ZeroConcentrated, delta_of, plain, promised

dp.enable_features("contrib")
CASES = [(1, "1e-6"), (0.1, "1e-5"), (5, "1e-9"), (0.01, "1e-3"), (0.001, "1e-12"), (20, "0.1"), (3, "1e-30")]


@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0, 10.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_delta_is_that_of_opendp(sigma, epsilon):
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    profile = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, sigma)).map(1.0)
    assert delta_of(1 / (2 * sigma**2), epsilon) == pytest.approx(profile.delta(epsilon), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_noise_kept_for_epsilon_and_delta_is_the_least_that_implies_them(epsilon, delta):
    kept = promised(epsilon=epsilon, delta=delta).kept_by()
    assert isinstance(kept, ZeroConcentrated)
    assert delta_of(float(kept.rho), epsilon) <= float(delta)
    assert delta_of(float(kept.rho) * 1.0001, epsilon) > float(delta)


@pytest.mark.parametrize(("epsilon", "delta"), CASES[:4])
def test_normal_noise_of_that_rho_keeps_epsilon_and_delta(epsilon, delta):
    """The exact δ of normal noise (Balle & Wang 2018) is below; and the noise is at most 1.4 times the least."""
    sigma = math.sqrt(1 / (2 * promised(epsilon=epsilon, delta=delta).kept_by().rho))

    def exact(sigma):
        first, second = (stats.norm.cdf(side / (2 * sigma) - epsilon * sigma) for side in (1, -1))
        return first - math.exp(epsilon) * second

    least = optimize.brentq(lambda s: exact(s) - float(delta), 1e-3, 1e6)
    assert exact(sigma) <= float(delta)
    assert least <= sigma <= 1.4 * least


def test_other_promises_are_kept_as_they_are():
    assert Pure(Fraction(1)).kept_by() == Pure(Fraction(1))
    assert ZeroConcentrated(Fraction(1)).kept_by() == ZeroConcentrated(Fraction(1))
    assert promised(epsilon="0.1", delta="1e-6") == Approximate(Fraction(1, 10), Fraction(1, 10**6))


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": 0}, {"rho": 1, "delta": 0.1}, {"epsilon": 1, "rho": 1}, {}],
)
def test_what_is_no_promise_is_refused(wrong):
    with pytest.raises(ValueError, match=r"must be|exactly one"):
        promised(**wrong)


def test_a_total_of_many_costs_can_be_told():
    """Python spells no whole number of more than 4300 digits, and a sum of odd fractions soon has them."""
    odd = sum((Fraction(1, 3**2000 + 2 * j) for j in range(6)), Fraction(1))
    assert plain(odd) == "about 1.000000000"


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-5", "1e30", "1e45", "1e100", "1e300"])
@pytest.mark.parametrize("delta", ["1e-9", "0.5", "0.999999"])
def test_at_the_ends_of_floats_a_rho_implies_epsilon_and_delta(epsilon, delta):
    """Above ε = 1e44 the search began beyond its end, and gave a ρ that implied nothing of the kind."""
    found = promised(epsilon=epsilon, delta=delta).kept_by()
    assert delta_of(float(found.rho), float(epsilon)) <= float(delta)


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-30"])
def test_where_no_rho_is_found_there_is_a_sentence(epsilon):
    with pytest.raises(ValueError, match=r"^epsilon and delta must be nearer to 1: no ρ .* implies ε = 1e-"):
        promised(epsilon=epsilon, delta="1e-300").kept_by()


PAID = [Pure(Fraction(1, 3)), ZeroConcentrated(Fraction(2, 7)), Approximate(Fraction(1, 3), Fraction(1, 10**6))]


@pytest.mark.parametrize("promise", PAID)
def test_a_promise_is_made_of_its_cost(promise):
    assert PROMISES[promise.kind].of(*promise.cost) == promise
    assert promise.amount == promise.cost[0]
    assert str(promise).startswith(f"{promise.letter} = ")


@pytest.mark.parametrize("promise", PAID)
def test_the_parts_of_a_promise_cost_what_it_does(promise):
    parts = [promise.part(Fraction(1, 3)), promise.part(Fraction(2, 3))]
    assert tuple(map(sum, zip(*(part.cost for part in parts), strict=True))) == promise.cost


@pytest.mark.parametrize("promise", PAID)
def test_a_promise_implies_itself_and_only_what_a_theorem_says(promise):
    assert promise.implied(promise.kind) == promise
    implied = {kind for kind in PROMISES if promise.implied(kind) is not None}
    assert implied == {"pure": {"pure", "zcdp", "approximate"}}.get(promise.kind, {promise.kind})
    assert PAID[0].implied("zcdp") == ZeroConcentrated(Fraction(1, 18))


@pytest.mark.parametrize("guarantee", [Pure(Fraction(1, 3)), ZeroConcentrated(Fraction(2, 7))])
def test_a_choice_of_its_scale_has_losses_in_the_range_of_the_promise(guarantee):
    """Bounded range η costs ε = η, ρ = η²/8, and OpenDP's map of noisy max gives η²/8."""
    scale = guarantee.choice_scale(5)
    assert Fraction(10) ** 2 / Fraction(scale) ** 2 <= guarantee.range_squared
    assert Fraction(10) ** 2 / Fraction(math.nextafter(math.nextafter(scale, 0), 0)) ** 2 > guarantee.range_squared
