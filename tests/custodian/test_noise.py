"""The noise: of the law that it is said to have, and as private as it is said to be.

Noise drawn for privacy cannot be seeded, so a test of its law raises a false alarm now and then: each is set to one
in a million.
"""

import math
import secrets
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from noiseaware import family
from noiseaware.custodian.noise import calibrated, draw
from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace, Laplace
from noiseaware.privacy import Pure, ZeroConcentrated

FALSE_ALARM = 1e-6
SCALES = [0.4, 0.7, 1.3, 3.1, 11.7, 97.3, 1234.5]
LAWS = {
    "laplace": (DiscreteLaplace, lambda k, b: np.exp(-np.abs(k) / b)),
    "gaussian": (DiscreteGaussian, lambda k, s: np.exp(-((k / s) ** 2) / 2)),
}


def noise(mechanism, num_draws, value=0):
    """Draws of a mechanism, in one call, against the promise that its own scale makes for statistics that move by 1."""
    return np.array(
        draw(mechanism, [value] * num_draws, sensitivity=1, sensitivity_squared=1, guarantee=mechanism.guarantee(1))
    )


def chi_square(draws, weight, scale) -> float:
    """The p-value of draws under masses proportional to weight, in cells that expect 25 or more."""
    reach = math.ceil(60 * scale) + 60  # the rest is below e^−60
    support = np.arange(-reach, reach + 1)
    mass = weight(support, scale)
    expected = np.cumsum(mass / mass.sum()) * len(draws)
    edges = [-reach - 1]
    for k, total in zip(support, expected, strict=True):
        before = 0 if len(edges) == 1 else expected[edges[-1] + reach]
        if total - before >= 25 and len(draws) - total >= 25:
            edges.append(k)
    cumulative = np.array([0.0, *(expected[k + reach] for k in edges[1:]), len(draws)])
    observed = np.diff([0, *(np.count_nonzero(draws <= k) for k in edges[1:]), len(draws)])
    wanted = np.diff(cumulative)
    return float(stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1))


# ---- a second opinion: Canonne, Kamath & Steinke (2020), algorithms 1 to 3, in fractions and secret bits --------


def bernoulli(p: Fraction) -> bool:
    return secrets.randbelow(p.denominator) < p.numerator


def bernoulli_exp(gamma: Fraction) -> bool:
    """True with probability e^−γ (algorithm 1)."""
    while gamma > 1:
        if not bernoulli_exp(Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while bernoulli(gamma / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction) -> int:
    """P(k) ∝ e^{−|k|/scale} (algorithm 2 with t/s = scale)."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = secrets.randbelow(t)
        if not bernoulli_exp(Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(Fraction(1)):
            v += 1
        magnitude, negative = (u + t * v) // s, bernoulli(Fraction(1, 2))
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def discrete_gaussian(variance: Fraction) -> int:
    """P(k) ∝ e^{−k²/2σ²} (algorithm 3)."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = discrete_laplace(Fraction(t))
        if bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance)):
            return y


def reference(law, scale, num_draws):
    exact = Fraction(str(scale))
    if law == "laplace":
        return np.array([discrete_laplace(exact) for _ in range(num_draws)])
    return np.array([discrete_gaussian(exact**2) for _ in range(num_draws)])


# ---- the law -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_opendp_draws_the_law(law, scale):
    make, weight = LAWS[law]
    assert chi_square(noise(make(scale), 40_000), weight, scale) > FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_the_reference_sampler_draws_the_law(law, scale):
    assert chi_square(reference(law, scale, 4_000), LAWS[law][1], scale) > FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_opendp_and_the_reference_agree(law, scale):
    """Two samples, no formula in between (Kolmogorov–Smirnov, conservative where values tie)."""
    ours = noise(LAWS[law][0](scale), 4_000)
    assert stats.ks_2samp(ours, reference(law, scale, 4_000), method="asymp").pvalue > FALSE_ALARM


def test_the_chi_square_notices_a_wrong_law():
    """A scale 10 % off, the continuous law rounded, and noise at even steps only must all be seen.

    The first is the hardest: a noncentrality of about 40 000 · 0.1² = 400 at some 40 degrees of freedom, eight
    standard deviations above where the test alarms.
    """
    draws = noise(DiscreteLaplace(3.1), 40_000)
    weight = LAWS["laplace"][1]
    assert chi_square(noise(DiscreteLaplace(3.41), 40_000), weight, 3.1) < FALSE_ALARM
    assert chi_square(2 * (draws // 2), weight, 3.1) < FALSE_ALARM
    rounded = np.random.default_rng(0).laplace(0, 1.3, 40_000).round()
    assert chi_square(rounded, weight, 1.3) < FALSE_ALARM


# ---- the promise -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_low_bits_do_not_tell_zero_from_one(law):
    """Whatever comes out under 0 can come out under 1: near the centre, each is seen under both.

    At scale 11.7 the rarest of the 41 values expects 40 000 · 0.0064 = 250 (Laplace; Gaussian 300), so that one of
    82 cells is empty with chance below 82 · e^−250.
    """
    make = LAWS[law][0]
    zero, one = (noise(make(11.7), 40_000, value) for value in (0, 1))
    near = set(range(-20, 21))
    assert set(zero) & near == set(one) & near == near


SLOW = pytest.mark.slow


@pytest.mark.parametrize("epsilon", ["0.7", pytest.param("0.1", marks=SLOW), pytest.param("1.9", marks=SLOW)])
def test_the_empirical_epsilon_is_within_the_claim(epsilon):
    """Clopper–Pearson bounds on the most telling event {y ≤ 0}, for neighbours as far apart as they can be."""
    num_draws, exact = 200_000, Fraction(epsilon)
    model = family.Exponential("x", bounds=(0, 48))
    low, high = 0, 48 * 2**10
    whole = model.query.whole(10)
    moved, squared = whole.sensitivity, whole.sensitivity_squared
    mechanism = calibrated(Pure(exact), moved, squared)
    promise = {"sensitivity": moved, "sensitivity_squared": squared, "guarantee": Pure(exact)}
    below, above = (np.count_nonzero(np.array(draw(mechanism, [s] * num_draws, **promise)) <= 0) for s in (low, high))
    likely = stats.beta.ppf(FALSE_ALARM, below, num_draws - below + 1)
    unlikely = stats.beta.isf(FALSE_ALARM, above + 1, num_draws - above)
    bound = math.log(likely / unlikely)
    assert bound <= float(exact)
    assert bound > 0.5 * float(exact)  # or the test would have no power


@pytest.mark.parametrize("epsilon", ["0.1", "1/3", "1", "7", "50", "0.0001"])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 1610612736, 2**40 + 1])
def test_calibrated_noise_is_the_least_that_keeps_the_promise(epsilon, sensitivity):
    exact = Fraction(epsilon)
    laplace = calibrated(Pure(exact), sensitivity, sensitivity**2)
    gaussian = calibrated(ZeroConcentrated(exact), sensitivity, sensitivity**2)
    assert isinstance(laplace, DiscreteLaplace)
    assert isinstance(gaussian, DiscreteGaussian)
    assert Fraction(sensitivity) / Fraction(laplace.scale) <= exact
    assert Fraction(sensitivity) ** 2 / (2 * Fraction(gaussian.stddev) ** 2) <= exact
    # at most 16 steps up from the nearest float, each 2^−52 of the scale
    assert laplace.scale <= sensitivity / float(exact) * (1 + 2**-47)
    assert gaussian.stddev <= sensitivity / math.sqrt(2 * float(exact)) * (1 + 2**-47)


def test_round_numbers_stay_round():
    assert calibrated(Pure(Fraction(1, 10)), 1, 1).spread == 10.0
    assert calibrated(Pure(Fraction(1, 2)), 48, 48**2).spread == 96.0
    assert calibrated(ZeroConcentrated(Fraction(1, 2)), 1, 1).spread == 1.0


def test_noise_that_breaks_the_promise_is_not_drawn():
    promise = {"sensitivity": 3, "sensitivity_squared": 9}
    for mechanism, guarantee in (
        (DiscreteLaplace(math.nextafter(3.0, 0)), Pure(Fraction(1))),
        (DiscreteGaussian(math.nextafter(3.0, 0)), ZeroConcentrated(Fraction(1, 2))),
        (DiscreteGaussian(100.0), Pure(Fraction(1))),
        (DiscreteLaplace(100.0), ZeroConcentrated(Fraction(1, 2))),
        (Laplace(100.0), Pure(Fraction(1))),
    ):
        with pytest.raises(RuntimeError, match="nothing was drawn") as caught:
            draw(mechanism, [987654321], guarantee=guarantee, **promise)
        assert "987654321" not in str(caught.value)


def test_values_come_back_whole_and_in_order():
    values = [-(2**61), 0, 2**61]
    noisy = draw(DiscreteLaplace(2.0), values, sensitivity=2, sensitivity_squared=4, guarantee=Pure(Fraction(1)))
    assert all(type(v) is int for v in noisy)
    # beyond 60 scales with chance 3 e^−60
    assert all(abs(a - b) <= 120 for a, b in zip(noisy, values, strict=True))


# ---- sensitivity: what one record can do ------------------------------------------------------------------------

ANYTHING = st.one_of(st.none(), st.floats(), st.integers(-(2**53), 2**53), st.booleans())
BOUNDS = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).filter(lambda b: b[1] - b[0] > 1e-3 * (1 + abs(b[0])))


def _record(x, model, k):
    """What one record adds, in grid steps, by the exact arithmetic of the table's oracle."""
    low, high = (Fraction(b) for b in model.query.bounds)
    number = None if x is None or x != x else float(x)
    if model.query.outside == "drop":
        kept = Fraction(number) if number is not None and low <= number <= high else Fraction(0)
    else:
        kept = low if number is None else Fraction(min(max(number, low), high))
    return math.floor(kept * Fraction(2) ** k)


@given(x=ANYTHING, other=ANYTHING, bounds=BOUNDS, k=st.integers(-3, 20), outside=st.sampled_from(["clamp", "drop"]))
def test_no_neighbour_moves_a_sum_further_than_its_sensitivity(x, other, bounds, k, outside):
    for model in (
        family.Normal("x", bounds=bounds, variance=1.0, outside=outside),
        family.Exponential("x", bounds=bounds, outside=outside),
        family.Gamma("x", bounds=bounds, shape=2.0, outside=outside),
    ):
        here, there = (_record(value, model, k) for value in (x, other))
        assert abs(here - there) <= model.query.whole(k, "replace").sensitivity
        assert max(abs(here), abs(there)) <= model.query.whole(k, "add_remove").sensitivity
        assert (here - there) ** 2 <= model.query.whole(k, "replace").sensitivity_squared


@given(x=ANYTHING, other=ANYTHING, low=st.integers(-50, 50), width=st.integers(1, 50), drop=st.booleans())
def test_no_neighbour_moves_a_count_further_than_its_sensitivity(x, other, low, width, drop):
    outside = "drop" if drop else "clamp"
    for model in (
        family.Poisson("x", bounds=(low, low + width), outside=outside),
        family.Geometric("x", bounds=(low, low + width), outside=outside),
        family.Binomial("x", trials=width),
        family.Bernoulli("x"),
    ):
        here, there = (_record(value, model, 0) for value in (x, other))
        assert abs(here - there) <= model.query.sensitivity("replace")
        assert max(abs(here), abs(there)) <= model.query.sensitivity("add_remove")


@given(x=st.integers(0, 4), other=st.integers(0, 4))
def test_no_neighbour_moves_the_counts_of_levels_further_than_their_sensitivity(x, other):
    model = family.Categorical("x", levels=["a", "b", "c", "d", "e"])
    here, there = (np.array([int(t) for t in model.query.statistic(position)]) for position in (x, other))
    assert np.abs(here - there).sum() <= model.query.sensitivity("replace")
    assert ((here - there) ** 2).sum() <= model.query.sensitivity("replace", 2)
    assert here.sum() <= model.query.sensitivity("add_remove")
