"""Programs of an attacker, each certified once: what they took from the table, or how they failed after the charge."""

import pytest

import noiseaware.program as pp

COIN = pp.Booleans(adjacency="replace")
UNIT = pp.Reals((0, 1), adjacency="replace")


def checked(records, function, *, epsilon=1000, delta=0):
    """The verdict on a function of p and db."""

    def program(p, db):
        return function(p, db)

    program.__annotations__["db"] = records
    return pp.check(pp.program(epsilon=epsilon, delta=delta)(program))


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
