"""Programs that must be certified, each with exactly its cost."""

import math
from fractions import Fraction

import pytest
from tests.program.conftest import checked

import noiseaware.program as pp

HELLINGER = math.sqrt(1 - math.pi / 4)

# The first table of the design, and what follows from it: ε and δ.
COSTS = {
    "coin_input": (Fraction(1), 0),
    "normal_input": (Fraction(1, 2), Fraction(1, 10**6)),
    "coin_laplace": (Fraction(1), 0),
    "coin_exponential": (Fraction(2), 0),
    "dirichlet_laplace": (Fraction(2), 0),
    "coin_public_size": (Fraction(1), 0),
    "coin_hellinger": (HELLINGER, 0),
    "normal_mean": (Fraction(1), 0),
    "any_model": (Fraction(1, 2), Fraction(1, 10**6)),
    "coin_aware": (Fraction(1), 0),
    "rate_laplace": (Fraction(1), 0),
    "coin_sample": (2 * math.log(4), 0),
    "coin_unknown_size": (Fraction(1), 0),
    "line_aware": (Fraction(1), 0),
}


def test_every_example_is_in_the_table(examples):
    assert set(examples) == set(COSTS)


@pytest.mark.parametrize("name", COSTS)
def test_an_example_is_certified_with_exactly_its_cost(name, examples):
    found = pp.check(examples[name])
    epsilon, delta = COSTS[name]
    assert found.verdict == "certified", found.reason
    assert found.delta == delta
    if isinstance(epsilon, Fraction):
        assert found.epsilon == epsilon
    else:  # not rational: the certificate is above it, by no more than its 15 decimals
        assert epsilon - 1e-15 <= found.epsilon <= epsilon + 3e-15
    assert min(pp.check(examples[name]).seconds for _ in range(3)) < 1  # now that what it needs is imported
    assert found.lemmas
    assert all(obligation.is_proved for obligation in found.obligations)


def test_the_coin_of_the_design():
    @pp.program(epsilon=1)
    def coin(p, db: pp.Booleans(adjacency="replace")):
        posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
        a = p.laplace(posterior.a, epsilon="1/2")
        b = p.laplace(posterior.b, epsilon="1/2")
        return pp.beta(a, b)

    found = pp.check(coin)
    assert (found.verdict, found.epsilon, found.delta) == ("certified", 1, 0)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(5, 7), Fraction(2)])
@pytest.mark.parametrize("prior", [(1, 1), ("1/2", "1/2"), (3, "1/10")])
def test_two_laplace_draws_cost_twice_whatever_the_prior(epsilon, prior):
    @pp.program(epsilon=100)
    def coin(p, db: pp.Booleans(adjacency="replace")):
        posterior = pp.infer(pp.observe(db, pp.beta(*prior), lambda r, x: pp.bernoulli(r) == x))
        return pp.beta(p.laplace(posterior.a, epsilon=epsilon), p.laplace(posterior.b, epsilon=epsilon))

    assert pp.check(coin).epsilon == 2 * epsilon


@pytest.mark.parametrize("faces", [2, 3, 10, 40])
@pytest.mark.parametrize("drawn", ["together", "one by one"])
def test_a_dirichlet_of_any_size_moves_two_entries(faces, drawn):
    @pp.program(epsilon=2)
    def die(p, db: pp.Categories(list(range(faces)), adjacency="replace")):
        posterior = pp.infer(pp.observe(db, pp.dirichlet([1] * faces), lambda r, x: pp.categorical(r) == x))
        if drawn == "together":
            return pp.dirichlet(*p.laplace(posterior.concentration, epsilon=1))
        return pp.dirichlet(*(p.laplace(entry, epsilon=1) for entry in posterior.concentration))

    found = pp.check(die)
    assert (found.verdict, found.epsilon) == ("certified", 2)


@pytest.mark.parametrize(("prior", "bound"), [((1, 1), 0.46325), (("1/2", "1/2"), 0.603), (("1/10", "1/10"), 0.869)])
def test_hellinger_is_worked_out_for_each_prior(prior, bound):
    @pp.program(epsilon=1)
    def coin(p, db: pp.Booleans(adjacency="replace")):
        before = pp.beta(*prior)
        posterior = pp.infer(pp.observe(db, before, lambda r, x: pp.bernoulli(r) == x))
        return p.exponential(pp.posteriors(db, before), lambda r: -pp.hellinger(posterior, r), epsilon=1)

    assert float(pp.check(coin).epsilon) == pytest.approx(bound, abs=5e-4)


def test_a_distance_costs_the_same_from_either_side():
    def certificate(metric):
        @pp.program(epsilon=2)
        def coin(p, db: pp.Booleans(adjacency="replace")):
            posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
            return p.exponential(pp.posteriors(db, pp.beta(1, 1)), lambda r: -metric(r, posterior), epsilon=1)

        return pp.check(coin)

    assert float(certificate(pp.hellinger).epsilon) == pytest.approx(HELLINGER)
    assert certificate(pp.l1).epsilon == 2


def test_a_count_and_a_private_size_move_together():
    @pp.program(epsilon=2)
    def both(p, db: pp.Booleans(adjacency="add_remove")):
        return p.laplace(db.count() + db.size, epsilon=1)

    assert pp.check(both).epsilon == 2


def test_a_draw_is_paid_once_however_often_it_is_used():
    @pp.program(epsilon=1)
    def coin(p, db: pp.Booleans(adjacency="replace")):
        a = p.laplace(db.count(), epsilon=1)
        return a, a * a, pp.exp(a), pp.ran(pp.normal(a, 1))

    assert pp.check(coin).epsilon == 1


def test_deltas_of_several_draws_add_up():
    @pp.program(epsilon=1, delta="3e-5")
    def twice(p, db: pp.Booleans(adjacency="replace")):
        first = p.gaussian(db.count(), epsilon="1/2", delta="1e-5")
        return first, p.gaussian(db.count(), epsilon="1/4", delta="2e-5")

    found = pp.check(twice)
    assert (found.epsilon, found.delta) == (Fraction(3, 4), Fraction(3, 10**5))


def test_values_that_a_draw_was_used_for_are_bounded_given_the_draw():
    @pp.program(epsilon="3/2")
    def adaptive(p, db: pp.Booleans(adjacency="replace")):
        first = p.laplace(db.count(), epsilon=1)
        return p.laplace(pp.clip(db.count() - first, -1, 1), epsilon="1/2")

    assert pp.check(adaptive).epsilon == Fraction(3, 2)


def test_a_clip_bounds_what_nothing_is_known_of():
    @pp.program(epsilon=1)
    def clipped(p, db: pp.Reals(adjacency="replace")):
        return p.laplace(pp.clip(pp.exp(db.sum()), 0, 3), epsilon="1/3")

    assert pp.check(clipped).epsilon == 1


@pytest.mark.parametrize(("adjacency", "cost"), [("replace", Fraction(7)), ("add_remove", Fraction(5))])
def test_a_clamped_sum_moves_by_what_one_record_adds(adjacency, cost):
    @pp.program(epsilon=10)
    def total(p, db: pp.Reals(bounds=(-2, 5), adjacency=adjacency)):
        return p.laplace(db.sum(), epsilon=1)

    assert pp.check(total).epsilon == cost


@pytest.mark.parametrize(("adjacency", "costs"), [("replace", ("16/3", "75/8")), ("add_remove", (5, 9))])
def test_all_moments_of_rows_cost_less_than_each_by_itself(adjacency, costs):
    for columns, cost in zip((["x"], ["x", "z"]), costs, strict=True):
        bounds = dict.fromkeys([*columns, "y"], (0, 3))

        @pp.program(epsilon=100)
        def together(p, db: pp.Rows(x=columns, y="y", bounds=bounds, adjacency=adjacency)):
            return p.laplace(db.moments(), epsilon=1)

        @pp.program(epsilon=100)
        def apart(p, db: pp.Rows(x=columns, y="y", bounds=bounds, adjacency=adjacency)):
            return [p.laplace(moment, epsilon=1) for moment in db.moments()]

        assert pp.check(together).epsilon == Fraction(cost)
        assert pp.check(apart).epsilon >= Fraction(cost)


def test_what_is_the_same_for_neighbours_may_be_returned():
    """a + b is the prior's and n, though neither a nor b is public."""

    @pp.program(epsilon=1)
    def total(p, db: pp.Booleans(adjacency="replace")):
        posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
        return posterior.a + posterior.b

    assert pp.check(total).epsilon == 0


def test_a_declared_size_makes_a_posterior_mean_linear():
    @pp.program(epsilon=1)
    def mean(p, db: pp.Reals(bounds=(0, 1), adjacency="replace", size=99)):
        posterior = pp.infer(pp.observe(db, pp.normal(0, 1), lambda m, x: pp.normal(m, 1) == x))
        return p.laplace(posterior.mean, epsilon=100)

    assert pp.check(mean).epsilon == 1


def test_a_number_is_a_level_only_where_it_is_compared():
    """Told twice its place, a record of three levels moves by 4; compared with the level 2, by 1."""

    def cost(function):
        @pp.program(epsilon=10)
        def told(p, db: pp.Categories([1, 2, 3], adjacency="replace")):
            return db.map(lambda x: p.laplace(function(x), epsilon=1)).sum()

        return pp.check(told).epsilon

    assert cost(lambda x: x * 2) == 4
    assert cost(lambda x: x == 2) == 1


def test_no_time_is_no_proof(examples):
    found = pp.check(examples["normal_mean"], seconds=1e-9)
    assert found.verdict == "not proved"


@pytest.mark.parametrize(
    ("records", "function", "advice"),
    [
        (pp.Reals((0, 30), adjacency="replace"), lambda p, db: p.laplace(db.sum(), epsilon=1), "sensitivity=30"),
        (
            pp.Reals((0, 30), adjacency="replace"),
            lambda p, db: p.exponential([0, 1], lambda r: (r == 1) * db.sum(), epsilon=1),
            "sensitivity=30",
        ),
        (
            pp.Reals((-3, 5), adjacency="add_remove"),
            lambda p, db: p.laplace([db.sum(), db.size], epsilon="1/2"),
            "sensitivity=5",
        ),
        (pp.Booleans(adjacency="replace"), lambda p, db: p.laplace(db.count(), epsilon=2), None),
        (
            pp.Reals((0, 30), adjacency="replace"),
            lambda p, db: p.laplace(db.sum(), epsilon=2, sensitivity=30),
            None,
        ),
    ],
)
def test_a_sensitivity_that_was_left_out_is_named_where_it_costs_too_much(records, function, advice):
    """The cost was thirty times the budget, and the advice was to add noise."""
    verdict = checked(records, function, epsilon=1)
    assert not verdict.is_certified
    (failed,) = (obligation for obligation in verdict.obligations if not obligation.is_proved)
    assert failed.advice == "add noise, or ask less" if advice is None else f"give {advice} to " in failed.advice
    assert (f"give {advice} to " in verdict.reason) == (advice is not None)
    said = " ".join(obligation.statement for obligation in verdict.obligations)
    assert ("where the sensitivity is 1 unless given" in said) == (advice is not None)
