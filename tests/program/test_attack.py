"""Programs of an attacker, each certified once: what they took from the table, or how they failed after the charge."""

import math
from fractions import Fraction

import pytest
from tests.program.conftest import checked

import noiseaware as na
import noiseaware.program as pp

COIN = pp.Booleans(adjacency="replace")
UNIT = pp.Reals((0, 1), adjacency="replace")


def failed(verdict) -> str:
    """What was not proved, in words."""
    assert not verdict.is_certified
    return " ".join(obligation.statement for obligation in verdict.obligations if not obligation.is_proved)


def test_noisy_records_are_not_mapped_again():
    """The second map was free, as noisy records are public, and was run on the records of the table."""
    with pytest.raises(pp.Escape, match=r"^test_attack.py, line \d+: map is of the database itself; .*\.$"):
        checked(UNIT, lambda p, db: db.map(lambda x: p.laplace(x, epsilon=1)).map(lambda y: p.laplace(y, epsilon=99)))


def test_a_model_holds_nothing_of_the_table():
    """The release of a sum tells the model's variance, which was the sum itself."""

    def variance(p, db):
        pp.infer(pp.observe(db, pp.normal(0, 1), lambda m, x: pp.normal(m, db.sum()) == x))
        return p.laplace(db.sum(), epsilon="1/2")

    assert "the model must not depend on the data, and does" in failed(
        checked(pp.Reals((1, 2), adjacency="replace"), variance)
    )


KEPT = []
OUT_OF_PLACE = {
    "a draw of a private distribution": (
        COIN,
        lambda p, db: p.laplace(pp.clip(pp.ran(pp.gamma(db.count() - 5, 1)), 0, 1), epsilon=1),
        "ran: the distribution must not depend on the data",
    ),
    "a divergence in a result": (
        COIN,
        lambda p, db: pp.kl(pp.beta(p.laplace(db.count(), epsilon=1), 1), pp.beta(1, 1)),
        "divergence is not computed outside a score",
    ),
    "a divergence with noise": (
        COIN,
        lambda p, db: p.laplace(pp.clip(pp.kl(pp.beta(1 + db.count(), 1), pp.beta(1, 1)), 0, 1), epsilon=1),
        "divergence is not computed outside a score",
    ),
    "a candidate": (
        COIN,
        lambda p, db: [p.exponential([0, 1], lambda r: KEPT.append(r) or 0 * r, epsilon=1), KEPT.pop()],
        "a candidate must not be used outside its score",
    ),
    "a draw of another record": (
        UNIT,
        lambda p, db: _modelled(
            db.map(lambda x: KEPT.append(p.laplace(x, epsilon=1)) or KEPT[0]), lambda m: pp.normal(m, KEPT.pop())
        ),
        "a model of public records must not depend on the data",
    ),
    "a distribution without a density": (
        UNIT,
        lambda p, db: _modelled(db.map(lambda x: p.laplace(x, epsilon=1)), lambda m: pp.dirichlet([m, m])),
        "infer: a record must not come from a dirichlet distribution",
    ),
    "a prior without a sampler": (
        UNIT,
        lambda p, db: pp.infer(
            pp.observe(db.map(lambda x: p.laplace(x, epsilon=1)), pp.poisson(3), lambda m, x: pp.normal(m, 1) == x)
        ),
        "infer: the prior must be beta, dirichlet, gamma, normal, and is poisson",
    ),
    "a distance of the parameter": (
        UNIT,
        lambda p, db: _modelled(
            db.map(lambda x: p.laplace(x, epsilon=1)), lambda m: pp.normal(pp.l1(pp.normal(m, 1), pp.normal(0, 1)), 1)
        ),
        "a model must hold no distance",
    ),
    "a map hidden from the account": (
        UNIT,
        lambda p, db: [db.map(lambda x: p.laplace(x, epsilon=99)).sum(), p.maps.pop()][:1],
        "its own p and database",
    ),
}


def _modelled(noisy, law):
    return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda m, x: law(m) == x))


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_what_has_no_value_when_the_program_runs_is_not_certified(name):
    records, function, words = OUT_OF_PLACE[name]
    assert words in failed(checked(records, function))


class Shifting(list):
    """A list that gives its second part alone once it was asked twenty times."""

    times = 0

    def __iter__(self):
        self.times += 1
        return iter(self[1:] if self.times > 20 else self[:1])


@pytest.mark.parametrize("form", [list, Shifting])
def test_a_result_that_changes_after_the_check_is_what_was_checked(form):
    result = form()
    verdict = checked(COIN, lambda p, db: result.extend([p.laplace(db.count(), epsilon=100), db.size]) or result)
    result.append(verdict.trace.database.count())
    released, *rest = verdict.run([True, False])
    assert (released.steps, rest) == ((1,), [2] if form is list else [])


def test_a_long_calculation_fails_before_the_charge_or_not_at_all():
    """Public terms were certified without a look at how deep they are, and were evaluated by recursion."""

    def long(p, db):
        total = noisy = p.laplace(db.count() + 0, epsilon=100)
        for _ in range(2000):
            total = total + noisy
        return total

    assert checked(COIN, long).run([True]) == 2001


def coin_sample(within):
    def program(p, db):
        return p.sample(pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x)), within=within)

    return program


VAST = 10**400
EXTREME = {
    "a sample from 1e-400 on": (coin_sample(("1e-400", "1/2")), lambda found: 0 < found <= 0.5),
    "a sample up to 1 - 1e-400": (coin_sample(("1/2", 1 - Fraction(1, VAST))), lambda found: 0.5 <= found <= 1),
    "a sample within less than a step": (coin_sample(("0.5", "0.5000000001")), lambda found: 0.5 <= found < 0.51),
    "a distribution beyond floats": (
        lambda p, db: pp.beta((5 + p.laplace(db.count(), epsilon=100)) * VAST, 1),
        lambda found: (found.a, found.b) == (math.inf, 1),
    ),
    "a number beyond floats": (
        lambda p, db: p.laplace(db.count(), epsilon=100) * VAST / 3 + p.laplace(db.count(), epsilon=100) / 7,
        lambda found: found == math.inf,
    ),
    "a score that moves by 1e10": (
        lambda p, db: p.exponential([0, 1], lambda r: (r == 1) * db.count() * 10**10, epsilon=100, sensitivity=10**10),
        lambda found: found == 1,
    ),
    "noise that no release can tell": (
        lambda p, db: p.laplace(db.count(), epsilon=10**200),
        lambda found: found == 2,
    ),
}


@pytest.mark.parametrize("name", EXTREME)
def test_an_extreme_program_runs(name):
    function, is_right = EXTREME[name]
    assert is_right(checked(COIN, function, epsilon=10**201).run([True, True]))


def test_a_draw_of_a_distribution_beyond_floats_is_none_and_all_else_is_told():
    def body(p, db):
        noisy = p.laplace(db.count(), epsilon=100)
        drawn = pp.ran(pp.normal(noisy * VAST, 1))
        return {"count": noisy + 0, "drawn": drawn, "more": [drawn + noisy], "law": pp.normal(drawn, 1)}

    vast = checked(COIN, body)
    with pytest.warns(RuntimeWarning, match=r"^ran must be given .* exists; noise made it normal\(inf, 1\)\. What"):
        found = vast.run([True])
    assert found["count"] == 1
    assert math.isnan(found["drawn"])
    assert math.isnan(found["more"][0])
    assert math.isnan(found["law"].mean)


@pytest.mark.parametrize("variance", ["1e-400", VAST, None], ids=["tiny", "vast", "impossible"])
def test_a_model_whose_variance_no_release_can_tell_fails_for_no_table(variance):
    def model(p, db):
        given = -1 - p.laplace(db.sum(), epsilon=1) ** 2 if variance is None else variance
        pp.infer(pp.observe(db, pp.normal(0, 1), lambda m, x: pp.normal(m, given) == x))
        return p.laplace(db.sum(), epsilon=1000)

    assert checked(UNIT, model, epsilon=1001).run([0.5]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "function",
    [
        lambda p, db: p.laplace(db.count(), epsilon="1e-400"),
        lambda p, db: p.laplace(pp.clip(db.count(), 0, 1), epsilon="1e30"),
        lambda p, db: p.gaussian(db.count(), epsilon="1/2", delta="1e-400"),
        lambda p, db: p.exponential([0, 1], lambda r: (r == 0) * pp.clip(db.count(), 0, 1), epsilon="1e-300"),
        lambda p, db: db.map(lambda x: p.exponential([0, 1], lambda r: r == x, epsilon="1e-300")).count(),
    ],
    ids=["noise too wide", "too narrow", "delta", "choice", "of each record"],
)
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(function, tmp_path):
    certificate = checked(COIN, function, epsilon=10**31, delta="1/2")
    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon=10**32, delta="3/4")
    with pytest.raises(ValueError, match=r"^test_attack.py, line \d+: epsilon, delta, sensitivity .* nearer to 1"):
        certificate.run([True, True], ledger=ledger)
    assert not ledger.entries()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pp.Counts((0, 2**31), adjacency="replace"), r"at most 2\*\*30 for counts, so that 64 bits hold"),
        (lambda: pp.Reals((0, VAST), adjacency="replace"), "within ±1e150 and at least 1e-150 apart"),
        (lambda: pp.Reals((0, "1e-400"), adjacency="replace"), "within ±1e150 and at least 1e-150 apart"),
        (lambda: pp.program(epsilon="1e400"), "epsilon must be from 1e-300 to 1e300"),
    ],
)
def test_bounds_and_budgets_that_no_sum_can_bear_are_refused(make, sentence):
    """Counts of up to 2^62 were certified, and their sum wrapped around in 64 bits: two records were told apart."""
    with pytest.raises(ValueError, match=sentence):
        make()
