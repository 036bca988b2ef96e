"""`certificate.run`: what a checked program gives for a table, what it is charged, and the law of what it draws.

Noise drawn for privacy cannot be seeded: each test of its law raises a false alarm once in a million times.
"""

import copy
import functools
import math
import pickle
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats
from scipy.special import softmax
from tests.program import conftest

import noiseaware as na
import noiseaware.program as pp
from noiseaware.custodian.table import Table
from noiseaware.evidence.release import from_json
from noiseaware.privacy import Approximate, Pure

FALSE_ALARM = 1e-6
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
MOST_SIGMAS = 5.3  # once in nine million times
BOOLEANS = pp.Booleans(adjacency="replace")
REALS = pp.Reals((-2, 6), adjacency="replace")
FINE = 10**4  # an ε at which a count has noise once in e^10000 times


def certified(records=BOOLEANS, **budget):
    """The certificate of a function of p and db."""
    return functools.partial(conftest.certified, records, **budget)


def runs(certificate, records, count) -> list:
    table = conftest.ReadOnce(pd.DataFrame({"record": records}))
    return [certificate.run(table) for _ in range(count)]


def agrees(draws, cdf, worth: float = 1.0) -> bool:
    """Whether as many draws as should lie below each of an oracle's levels: binomial tails, which a normal law would
    understate for few draws. `worth` is what one draw counts for."""
    assert np.isfinite(draws).all()
    below = worth * (cdf(np.asarray(draws))[:, None] <= LEVELS).sum(0)
    law = stats.binom(round(worth * len(draws)), LEVELS)
    return bool(min(*law.cdf(np.ceil(below)), *law.sf(np.floor(below) - 1)) > FALSE_ALARM / 10)


def chi_square(draws, weights: dict) -> float:
    """The p-value of draws under weights by outcome; outcomes that expect fewer than 10 are put with another."""
    wanted = np.array([*weights.values()]) * len(draws) / sum(weights.values())
    observed = np.array([draws.count(outcome) for outcome in weights])
    assert observed.sum() == len(draws)
    often = np.flatnonzero(wanted >= 10)
    for counts in (observed, wanted):
        counts[often[-1]] += np.delete(counts, often).sum()
    return stats.chisquare(observed[often], wanted[often]).pvalue


@certified(epsilon=1)
def coin(p, db):
    return p.laplace(db.count(), epsilon=1)


@certified()
def count(p, db):
    return p.laplace(db.count(), epsilon=FINE)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, lambda x: np.array(x, float)])
def test_runs_on_plain_records(form):
    release = count.run(form([True, False, True, True, False]))
    assert (release.steps, release.n) == ((3,), 5)


def test_runs_on_frames_and_files(tmp_path):
    @certified(pp.Booleans("smokes", adjacency="replace"))
    def smokers(p, db):
        return p.laplace(db.count(), epsilon=FINE)

    frame = pd.DataFrame({"age": [40, 50, 60], "smokes": [True, False, True]})
    file = tmp_path / "clinic.csv"
    frame.to_csv(file, index=False)
    for table in (frame, pl.from_pandas(frame), Table(frame), file, str(file)):
        assert smokers.run(table).steps == (2,)
    with pytest.raises(ValueError, match="column 'smokes'"):
        smokers.run(frame[["age"]])


def test_a_declared_size_must_be_that_of_the_table():
    @certified(pp.Booleans(adjacency="replace", size=3))
    def sized(p, db):
        return p.laplace(db.count(), epsilon=FINE) + db.size

    assert sized.run([True, True, False]) == 5
    for other in ([True], [True] * 4):
        with pytest.raises(ValueError, match=rf"must hold the 3 records that the program declares, got {len(other)}\."):
            sized.run(other)


@pytest.mark.parametrize("nasty", [None, math.nan, "text", "nan", -math.inf, -1, [1], {"a": 1}, b"x"], ids=repr)
@pytest.mark.parametrize("rest", [0, 1], ids=["alone", "not alone"])
def test_no_record_raises_and_what_is_outside_is_moved_to_the_bounds(nasty, rest):
    total = certified(pp.Reals((2, 6), adjacency="replace"))(lambda p, db: p.laplace(db.sum(), epsilon=10**15))
    levels = certified(pp.Categories(["a", "b"], adjacency="replace"))(
        lambda p, db: p.laplace(db.counts(), epsilon=FINE)
    )
    assert count.run([nasty] + [True] * rest).steps == (rest,)
    assert total.run([nasty] + [5.0] * rest) == 2 + 5 * rest
    assert total.run(["1e300", 6.5, math.inf, 2**80, nasty]) == 4 * 6 + 2
    assert levels.run([nasty] + ["b"] * rest).steps == (1, rest)


def test_a_table_without_records_is_as_any_other_where_its_size_is_private():
    private = certified(pp.Booleans(adjacency="add_remove"))(lambda p, db: p.laplace(db.count(), epsilon=FINE))
    assert private.run([True]) == 1
    assert private.run([]) == 0


def test_charges_exactly_the_certified_cost(tmp_path):
    @certified()
    def twice(p, db):
        return p.laplace(db.count(), epsilon="1/3"), p.laplace(db.count(), epsilon="1/7") + 1

    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon=1)
    release, _ = twice.run([True, False], ledger=ledger)
    twice.run([True], ledger=str(ledger.path))
    first, second = ledger.entries()
    assert first.cost == second.cost == twice.epsilon == Fraction(10, 21)
    assert first.guarantee == release.guarantee == Pure(Fraction(10, 21))
    assert first.what == {"program": "twice", "table": "pandas frame", "neighbours": "replace"}
    assert release.origin.ledger_entry == first.id
    with pytest.raises(na.LedgerRefusal, match="ε = 10/21 left, has ε = 1/21 of ε = 1"):
        twice.run([True], ledger=ledger)
    assert ledger.spent == Fraction(20, 21)


def test_charges_before_noise_is_drawn_and_draws_none_when_refused(tmp_path, monkeypatch):
    drawn = Mock(side_effect=EOFError)
    monkeypatch.setattr("noiseaware.custodian.noise._laplace", drawn)
    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon="3/2")
    with pytest.raises(EOFError):
        coin.run([True], ledger=ledger)
    drawn.reset_mock()
    for table in ([True], []):  # refused before the table is looked at, too
        with pytest.raises(na.LedgerRefusal):
            coin.run(table, ledger=ledger)
    drawn.assert_not_called()
    assert ledger.spent == 1


def test_delta_is_charged_to_a_ledger_of_epsilon_and_delta_only(tmp_path):
    normal = certified(delta="1e-5")(lambda p, db: p.gaussian(db.count(), epsilon="1/2", delta="1e-5"))
    both = na.Ledger.create(tmp_path / "both.ledger", epsilon=3, delta="1.5e-5")
    release = normal.run([True, False], ledger=both)
    assert release.guarantee == both.entries()[0].guarantee == Approximate(Fraction(1, 2), Fraction(1, 10**5))
    assert (both.spent, both.spent_delta) == (Fraction(1, 2), Fraction(1, 10**5))
    with pytest.raises(na.LedgerRefusal):  # ε is left, δ is not
        normal.run([True, False], ledger=both)
    coin.run([True], ledger=both)
    assert (both.spent, both.spent_delta) == (Fraction(3, 2), Fraction(1, 10**5))
    for kind in ("epsilon", "rho"):
        other = na.Ledger.create(tmp_path / f"{kind}.ledger", **{kind: 1})
        with pytest.raises(ValueError, match=r"^delta cannot be charged to .*; make one with epsilon and delta\.$"):
            normal.run([True, False], ledger=other)
        assert other.spent == 0


def test_a_run_that_costs_nothing_leaves_the_ledger_readable(tmp_path):
    free = certified()(lambda p, db: db.size)
    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon=1)
    assert free.run([True, False], ledger=ledger) == 2
    assert sum(entry.cost for entry in ledger.entries()) == ledger.spent == free.epsilon == 0


def test_what_is_not_certified_does_not_run():
    def raw(p, db: BOOLEANS):
        return db.count()

    def far(p, db: BOOLEANS):
        return p.gaussian(db.count(), epsilon=1, delta="1e-5")

    for function, verdict in ((raw, "refuted"), (far, "not proved")):
        with pytest.raises(ValueError, match=rf"^program {function.__name__} must be certified to .* {verdict}: .*\w"):
            pp.check(pp.program(epsilon=1, delta="1e-5")(function)).run([True])


def of_booleans(value):
    def program(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(2, "1/2"), lambda r, x: pp.bernoulli(r) == x))
        return p.laplace(value(db, posterior), epsilon=FINE)

    return certified()(program), [True] * 3 + [False], [3], na.prior.Beta(1, 1)


def rate(p, db):
    posterior = pp.infer(pp.observe(db, pp.gamma(2, 1), lambda theta, x: pp.poisson(theta) == x))
    return p.laplace(posterior.shape, epsilon=FINE, sensitivity=9)


def mean(p, db):
    posterior = pp.infer(pp.observe(db, pp.normal(1, 4), lambda theta, x: pp.normal(theta, 9) == x))
    return p.laplace(posterior.mean, epsilon=10**6, sensitivity=posterior.variance * 8 / 9)


FACES, SIDES = pp.Categories(["a", "b", "c"], adjacency="replace"), na.prior.Dirichlet([1, 1, 1])
COUNTS, VISITS = pp.Counts((0, 9), "visits", adjacency="replace"), pd.DataFrame({"visits": [1, 4, 100, 0]})
COUNTED = certified(FACES)(lambda p, db: p.laplace(db.counts(), epsilon=FINE))
# certificate, table, statistic, prior
RELEASES = {
    "count": of_booleans(lambda db, posterior: db.count()),
    "posterior.a": of_booleans(lambda db, posterior: posterior.a),
    "posterior.b": of_booleans(lambda db, posterior: posterior.b),
    "a multiple": of_booleans(lambda db, posterior: 7 - db.count() / 2),
    "counts": (COUNTED, ["c", "a", "c", "c"], [1, 0, 3], SIDES),
    "rate": (certified(COUNTS)(rate), VISITS, [14], na.prior.Gamma(2, 1)),
    "mean": (certified(REALS)(mean), [-2.5, 0.25, 3.5], [1.75], na.prior.Normal(1, 4)),
}


@pytest.mark.filterwarnings("ignore:The fit takes:RuntimeWarning")  # of three records beyond their bounds
@pytest.mark.parametrize("name", RELEASES)
def test_a_noisy_statistic_is_a_release(name):
    certificate, table, statistic, prior = RELEASES[name]
    release = certificate.run(table)
    assert isinstance(release, na.Release)
    assert release.values == pytest.approx(statistic, abs=1e-3)  # 125 times the scale of the mean's noise
    assert (release.n, release.guarantee) == (len(table), certificate.guarantee)
    assert from_json(release.to_json()) == release
    assert na.infer(release, prior, seed=1).is_exact


def heights(p, db):
    pp.infer(pp.observe(db, pp.normal(1, 4), lambda theta, x: pp.normal(theta, 9) == x))
    return p.laplace(db.sum(), epsilon=FINE, sensitivity=9)


def visits(p, db):
    pp.infer(pp.observe(db, pp.gamma(2, 1), lambda theta, x: pp.poisson(theta) == x))
    return p.laplace(db.sum(), epsilon=FINE, sensitivity=9)


@pytest.mark.parametrize(("model", "family"), [(heights, "normal"), (visits, "poisson")])
@pytest.mark.parametrize("records", [pp.Counts((0, 9), adjacency="replace"), pp.Reals((0, 9), adjacency="replace")])
def test_numbers_of_either_kind_are_released_by_the_model_of_a_program(records, model, family, tmp_path):
    ledger = na.Ledger.create(tmp_path / "k.ledger", epsilon=FINE)
    release = certified(records)(model).run([1, 4, 100], ledger=ledger)
    assert (release.family.name, release.n) == (family, 3)
    assert release.values[0] == pytest.approx(14, abs=0.1)


def test_what_no_family_models_is_a_number_and_no_error_once_it_is_paid_for(tmp_path):
    ledger = na.Ledger.create(tmp_path / "k.ledger", epsilon=2 * FINE)
    halves = certified(pp.Reals(("1/2", "5/2"), adjacency="replace"))(visits)
    assert halves.run([1, 2, 2], ledger=ledger) == pytest.approx(5, abs=0.1)
    alone = pp.Rows(x=[], y="y", bounds={"y": (0, 2)}, adjacency="replace")
    program = certified(alone)(lambda p, db: p.laplace(db.moments(), epsilon=FINE, sensitivity="9/4"))
    np.testing.assert_allclose(program.run(pd.DataFrame({"y": [2, 2]}), ledger=ledger), (2, 2), atol=0.1)


def test_what_is_inferred_from_a_release_is_right(seed):
    normal = certified(delta="1e-3")(lambda p, db: p.gaussian(db.count(), epsilon="1/2", delta="1e-3"))
    release, sigma = normal.run([True] * 7 + [False] * 3), 2 * math.sqrt(2 * math.log(1250))
    assert isinstance(release.mechanism, na.mechanism.DiscreteGaussian)
    assert release.noise_scale == pytest.approx(sigma, rel=1e-9)
    theta, counts = np.linspace(0, 1, 2001), np.arange(11)
    given = stats.norm.pdf(release.values[0] - counts, scale=sigma) @ stats.binom.pmf(counts[:, None], 10, theta)
    cumulative = integrate.cumulative_trapezoid(given, theta, initial=0)
    draws = na.infer(release, na.prior.Beta(1, 1), seed=seed).draws["theta"]
    assert agrees(draws, lambda x: np.interp(x, theta, cumulative / cumulative[-1]))


def test_results_keep_their_form_and_a_draw_is_one_draw():
    seen = []

    @certified()
    def several(p, db):
        noisy = p.laplace(db.count(), epsilon=1)
        told = pp.apply(
            lambda *given: seen.extend(given) or "told", noisy, noisy + 0, pp.beta(noisy, 3), [db.size, "a"]
        )
        return {"all": (noisy, [noisy + 1, 2 * noisy]), "posterior": pp.beta(noisy, 3), "told": told, "plain": None}

    result = several.run([True, False])
    release, [more, double] = result["all"]
    y = release.steps[0]
    assert (more, double) == (y + 1, 2 * y)
    assert (result["posterior"].a, result["posterior"].b, result["told"], result["plain"]) == (y, 3, "told", None)
    assert seen == [release, y, result["posterior"], [2, "a"]]


def test_a_distribution_can_be_copied_and_sent():
    found = certified()(lambda p, db: pp.beta(p.laplace(db.count(), epsilon=1), 2)).run([True])
    assert copy.deepcopy(found) == found
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_noisy_statistic_of_a_private_size_is_a_number():
    both = certified(pp.Booleans(adjacency="add_remove"))(lambda p, db: p.laplace([db.count(), db.size], epsilon=FINE))
    assert both.run([True, False, True]) == (2, 3)
    assert all(type(number) is int for number in both.run([True]))


def test_a_value_far_from_0_is_kept():
    clipped = certified()(lambda p, db: p.laplace(pp.maximum(db.count(), 1), epsilon=1000))
    assert clipped.run([True] * 5000) == pytest.approx(5000, abs=0.1)  # 100 times the scale of the noise


@pytest.mark.parametrize(("epsilon", "table"), [("1/2", [True, False]), ("3", [False])])
def test_laplace_noise_on_a_count_is_discrete_laplace(epsilon, table):
    noisy = certified()(lambda p, db: p.laplace(db.count(), epsilon=epsilon) + 0)
    law = {y: math.exp(-float(Fraction(epsilon)) * abs(y - sum(table))) for y in range(-200, 200)}
    assert chi_square(runs(noisy, table, 1000), law) > FALSE_ALARM


@pytest.mark.parametrize(
    ("value", "centre"),
    [(lambda s: s, 1.5), (lambda s: pp.maximum(s, 1), 1.5), (lambda s: pp.minimum(s, 1), 1), (lambda s: 5 - s, 3.5)],
)
def test_laplace_noise_on_a_sum_is_laplace(value, centre):
    noisy = certified(REALS)(lambda p, db: p.laplace(value(db.sum()), epsilon=2, sensitivity=8))
    assert agrees(runs(noisy, [-1.0, 2.5], 700), stats.laplace(centre, 4).cdf)


def test_each_record_gets_normal_noise_of_its_own(monkeypatch):
    monkeypatch.setattr("noiseaware.program.language.nuts.draws", lambda model, records, public: records)

    @certified(REALS, delta="1e-5")
    def told(p, db):
        noisy = db.map(lambda x: p.gaussian(x, epsilon="1/20", delta="1e-5"))
        return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda r, x: pp.normal(pp.exp(r), 1) == x))

    draws, sigma = np.array(told.run([2.5] * 1500)), 20 * math.sqrt(2 * math.log(125_000))
    assert agrees(draws, stats.norm(2.5, sigma).cdf)
    assert abs(draws.mean() - 2.5) < MOST_SIGMAS * sigma / math.sqrt(draws.size)
    assert FALSE_ALARM < stats.chi2.cdf(((draws - 2.5) ** 2).sum() / sigma**2, draws.size) < 1 - FALSE_ALARM


def test_each_record_is_told_as_the_exponential_mechanism_says():
    @certified(FACES)
    def told(p, db):
        return db.map(lambda x: p.exponential(["a", "b", "c"], lambda r: r == x, epsilon=3)).counts()

    law = np.array([1, math.exp(1.5), 1]) / (2 + math.exp(1.5))
    assert stats.chisquare(told.run(["b"] * 1500), 1500 * law).pvalue > FALSE_ALARM


def hellinger(first, second) -> float:
    theta = np.linspace(0, 1, 20_001)
    overlap = np.sqrt(stats.beta.pdf(theta, *first) * stats.beta.pdf(theta, *second))
    return math.sqrt(max(0, 1 - integrate.trapezoid(overlap, theta)))


@pytest.mark.parametrize(
    ("metric", "oracle"), [(pp.l1, lambda a, b: np.abs(np.subtract(a, b)).sum()), (pp.hellinger, hellinger)]
)
def test_a_posterior_is_chosen_as_the_exponential_mechanism_says(metric, oracle):
    @certified()
    def chosen(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(1, 2), lambda r, x: pp.bernoulli(r) == x))
        return p.exponential(pp.posteriors(db, pp.beta(1, 2)), lambda r: -metric(posterior, r), epsilon=3)

    candidates = [(1 + true, 5 - true) for true in range(4)]
    law = {r: math.exp(-3 / 2 * oracle((2, 4), r)) for r in candidates}
    assert chi_square([(r.a, r.b) for r in runs(chosen, [True, False, False], 700)], law) > FALSE_ALARM


@pytest.mark.parametrize("num_runs", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_sample_is_of_the_posterior_on_its_grid(num_runs, monkeypatch):
    @certified()
    def sampled(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(2, "1/2"), lambda r, x: pp.bernoulli(r) == x))
        return p.sample(posterior, within=("1/10", "7/10"))

    grid = np.linspace(0.1, 0.7, 1000)
    masses = stats.beta.pdf(grid, 4, 1.5) / stats.beta.pdf(grid, 4, 1.5).sum()
    draws = np.array(runs(sampled, [True, True, False], num_runs))
    assert np.abs(draws[:, None] - grid).min(1).max() < 1e-12
    assert agrees(draws, lambda theta: np.interp(theta, grid, np.cumsum(masses)))
    monkeypatch.setattr("noiseaware.custodian.exponential.select", choice := Mock(return_value=0))
    assert sampled.run([True, True, False]) == 0.1
    law = softmax(np.array(choice.call_args.args[0]) / choice.call_args.kwargs["scale"])
    assert law == pytest.approx(masses, rel=1e-4)  # 3 records and the prior, each rounded to 2^−20


PUBLIC = {
    "beta": (lambda: pp.beta(2, 5), stats.beta(2, 5)),
    "gamma": (lambda: pp.gamma(3, 4), stats.gamma(3, scale=1 / 4)),
    "normal": (lambda: pp.normal(-1, 4), stats.norm(-1, 2)),
    "poisson": (lambda: pp.poisson(30), stats.poisson(30)),
    "bernoulli": (lambda: pp.bernoulli("1/5"), stats.bernoulli(0.2)),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_ran_draws_from_a_public_distribution(name):
    made, law = PUBLIC[name]
    draws, is_whole = runs(certified()(lambda p, db: pp.ran(made())), [True], 1000), name in ("poisson", "bernoulli")
    assert chi_square(draws, {k: law.pmf(k) for k in range(200)}) > FALSE_ALARM if is_whole else agrees(draws, law.cdf)


@pytest.mark.slow
def test_inference_without_a_formula_is_right():
    @certified(pp.Reals((0, 1), adjacency="replace"), delta="1e-3")
    def any_model(p, db):
        noisy = db.map(lambda x: p.gaussian(x, epsilon="9/10", delta="1e-3"))
        model = pp.observe(noisy, pp.normal(0, 1), lambda r, x: pp.normal(pp.exp(r), 9) == x)
        return pp.infer(model), noisy.sum()

    posterior, total = any_model.run([0.5] * 20)
    r = np.linspace(-8, 6, 20_001)  # the sum is all that the likelihood depends on
    density = stats.norm.pdf(r) * np.exp(-(20 * np.exp(2 * r) - 2 * total * np.exp(r)) / 18)
    cumulative = integrate.cumulative_trapezoid(density, r, initial=0)
    assert agrees(posterior["theta"], lambda x: np.interp(x, r, cumulative / cumulative[-1]), worth=0.2)  # a chain's
