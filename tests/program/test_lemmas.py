"""Every lemma that a certificate can rest on, against an oracle that does not know of it.

What a lemma costs is asked of the check itself, so that a cost which is too small, or needlessly large, fails here.
"""

import itertools
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.spatial.distance import cityblock
from scipy.special import expit, gammaln
from tests.program import conftest

import noiseaware.program as pp
from noiseaware.program.language.evaluate import evaluate
from noiseaware.program.language.expression import is_private, term
from noiseaware.program.proof import lemma

ROUNDING = 1e-9  # of a few thousand float operations, each off by 1e−16 in parts
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
BOOLEANS = pp.Booleans(adjacency="replace")


def checked(body, records=BOOLEANS, delta=0) -> pp.Verdict:
    return conftest.checked(records, body, delta=delta)


def number(node) -> float:
    """A term that holds constants only."""
    return float(evaluate(node, lambda leaf: pytest.fail(f"{leaf!r} is not a constant")))


def divergence(first, second, epsilon) -> float:
    """max over events of P(E) − e^ε P'(E), the least δ, for two laws given by masses."""
    return float(np.maximum(np.asarray(first) - np.exp(epsilon) * np.asarray(second), 0).sum())


def largest_loss(first, second) -> float:
    """max |log P/P'|."""
    return float(np.abs(np.log(first) - np.log(second)).max())


def weights(scores, rate) -> np.ndarray:
    """Masses ∝ e^{rate·score}."""
    mass = np.exp(rate * (np.asarray(scores, float) - np.max(scores)))
    return mass / mass.sum()


def neighbours(values, adjacency):
    """Every pair of neighbouring databases of up to three records."""
    for rest in [(), *itertools.product(values), *itertools.product(values, repeat=2)]:
        if adjacency == "replace":
            yield from (((*rest, x), (*rest, y)) for x, y in itertools.permutations(values, 2))
        else:
            yield from ((rest, (*rest, x)) for x in values)


def test_every_lemma_has_a_test():
    stems = [re.sub(r"\W+", "_", known.name.lower()) for known in lemma.LEMMAS]
    assert [stem for stem in stems if not any(name.startswith(f"test_{stem}") for name in globals())] == []
    assert set(lemma.LEMMAS) == {value for value in vars(lemma).values() if isinstance(value, lemma.Lemma)}
    assert len(set(stems)) == len(stems)


@pytest.mark.parametrize(("epsilon", "slopes", "width"), [("4", ["1/2"], None), ("1/3", ["2", "-1"], 5)])
def test_laplace(epsilon, slopes, width):
    def body(p, db):
        return p.laplace([Fraction(slope) * db.sum() for slope in slopes], epsilon=epsilon, sensitivity=width)

    verdict = checked(body, pp.Reals((-1, 0), adjacency="replace"))
    assert lemma.LAPLACE in verdict.lemmas
    scale, losses = float(Fraction(width or 1) / Fraction(epsilon)), []
    for k in [abs(float(Fraction(slope))) for slope in slopes]:
        x = np.linspace(-6 * scale, 6 * scale + k, 4001)
        losses.append(np.abs(stats.laplace.logpdf(x, 0, scale) - stats.laplace.logpdf(x, k, scale)).max())
        assert math.log(stats.laplace.sf(k, k, scale) / stats.laplace.sf(k, 0, scale)) == pytest.approx(losses[-1])
    assert float(verdict.epsilon) == pytest.approx(sum(losses), rel=ROUNDING)


def gaussian_delta(epsilon, k, sigma) -> float:
    """The least δ of normal noise on a value that moves by k (Balle & Wang 2018, theorem 8)."""
    near, far = k / 2 / sigma - epsilon * sigma / k, -k / 2 / sigma - epsilon * sigma / k
    return stats.norm.cdf(near) - math.exp(epsilon) * stats.norm.cdf(far)


def test_gaussian():
    deltas = [*np.logspace(-12, -1, 12), 0.3, 0.6, 0.9, 0.99]
    for delta, cost, k in itertools.product(deltas, np.linspace(0.01, 0.999, 60), (1, 0.4)):
        assert gaussian_delta(cost, k, k / cost * math.sqrt(2 * math.log(1.25 / delta))) <= delta
    for delta in (1e-5, 1e-2):  # far above 1 it does not hold
        assert any(gaussian_delta(cost, 1, math.sqrt(2 * math.log(1.25 / delta)) / cost) > delta for cost in (10, 40))
    p, q, epsilon = stats.norm(1.5, 2), stats.norm(0, 2), 0.7  # the oracle is ∫ p − e^ε q from where they meet
    excess, _ = integrate.quad(lambda x: p.pdf(x) - math.exp(epsilon) * q.pdf(x), epsilon * 4 / 1.5 + 0.75, 30)
    assert gaussian_delta(epsilon, 1.5, 2) == pytest.approx(excess, rel=1e-7)


def test_gaussian_costs_epsilon_k_and_needs_it_below_one():
    def verdict(epsilon, width, budget="1e-5"):
        given = {"epsilon": epsilon, "delta": "1e-5", "sensitivity": width}
        return checked(lambda p, db: p.gaussian(2 * db.count(), **given), delta=budget)

    found = verdict("4/5", 5)
    assert (found.epsilon, found.delta) == (Fraction(8, 25), Fraction(1, 10**5))
    assert lemma.GAUSSIAN in found.lemmas
    assert verdict("0.999", 2).is_certified
    assert not any(refused.is_certified for refused in (verdict(1, 2), verdict("1/2", None), verdict("4/5", 5, "1e-6")))


def test_exponential(seed):
    rng = np.random.default_rng(seed)
    for _ in range(2000):
        epsilon, k, width = rng.uniform(0.1, 3), rng.uniform(0.1, 2), rng.uniform(0.1, 2)
        scores = rng.normal(0, 3, rng.integers(2, 9))
        moved = scores + rng.choice([-k, k, rng.uniform(-k, k)], scores.size)
        laws = weights(scores, epsilon / 2 / width), weights(moved, epsilon / 2 / width)
        assert largest_loss(*laws) <= epsilon * k / width + ROUNDING
    scores, moved = [0.0] * 51, [1.0] * 50 + [-1.0]  # one goes down while all others go up: the factor ½ is needed
    halved, whole = (largest_loss(weights(scores, rate), weights(moved, rate)) for rate in (0.5, 1.0))
    assert 0.97 < halved <= 1 < 1.9 < whole


@pytest.mark.parametrize(("score", "k"), [(lambda r, c: -3 * abs(r - c), 3), (lambda r, c: r == c, 1)])
def test_exponential_costs_what_the_score_moves(score, k):
    verdict = checked(lambda p, db: p.exponential([0, 1, 2], lambda r: score(r, db.count()), epsilon=1))
    assert verdict.epsilon == k
    assert lemma.EXPONENTIAL in verdict.lemmas
    for pair in itertools.pairwise(range(4)):
        scores = [[number(score(term(r), term(count))) for r in range(3)] for count in pair]
        assert np.abs(np.subtract(*scores)).max() == k
        assert largest_loss(*(weights(own, 0.5) for own in scores)) <= k


@pytest.mark.parametrize(("low", "high"), [("1/5", "4/5"), ("1/10", "1/2"), ("1/100", "99/100"), ("2/5", "3/5")])
@pytest.mark.parametrize("prior", [(1, 1), (0.5, 0.5), (3, 0.2)])
def test_posterior_sample(low, high, prior):
    cost = float(lemma.sample_cost(Fraction(low), Fraction(high)))
    low, high = float(Fraction(low)), float(Fraction(high))
    theta, worst = np.linspace(low, high, 101), 0.0
    for n in range(1, 9):
        laws = [stats.beta(prior[0] + true, prior[1] + n - true) for true in range(n + 1)]
        densities = [law.logpdf(theta) - math.log(law.cdf(high) - law.cdf(low)) for law in laws]
        losses = [np.abs(first - second).max() for first, second in itertools.pairwise(densities)]
        assert max(losses) <= cost + ROUNDING
        worst = max(worst, *losses)
    assert worst > 0.5 * cost  # with few records, and nearly all of it with many:
    many = []
    for law in [stats.beta(prior[0] + true, prior[1] + 2000 - true) for true in (1999, 2000)]:
        mass = integrate.quad(lambda t, law=law: math.exp(law.logpdf(t) - law.logpdf(high)), low, high)[0]
        many.append(law.logpdf(low) - law.logpdf(high) - math.log(mass))
    assert 0.97 * cost < abs(many[0] - many[1]) <= cost + 1e-6  # 1e−6 of the quadrature


def test_posterior_sample_is_charged_in_full_and_never_rounded_down():
    def body(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
        return p.sample(posterior, within=("1/5", "4/5"))

    verdict = checked(body)
    assert lemma.SAMPLE in verdict.lemmas
    assert verdict.epsilon == lemma.sample_cost(Fraction(1, 5), Fraction(4, 5))
    with mpmath.workdps(50):
        for low, high in itertools.combinations([Fraction(j, 23) for j in range(1, 23)], 2):
            odds, cost = high / (1 - high) / (low / (1 - low)), lemma.sample_cost(low, high)
            exact = mpmath.log(odds.numerator) - mpmath.log(odds.denominator)
            assert 0 <= mpmath.mpf(cost.numerator) / cost.denominator - exact < 1e-14


def test_composition(seed):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        first, second = rng.dirichlet(np.full(4, rng.uniform(0.3, 5)), 2)
        later = rng.dirichlet(np.ones(3), (2, 4))  # the second mechanism may depend on what the first gave
        joint = first[:, None] * later[0], second[:, None] * later[1]
        own, then = largest_loss(first, second), largest_loss(later[0], later[1])
        assert largest_loss(*joint) <= own + then + ROUNDING
        for share in (0.3, 0.8):
            delta = divergence(first, second, share * own)
            delta += max(divergence(*pair, share * then) for pair in zip(*later, strict=True))
            assert divergence(*joint, share * (own + then)) <= delta + ROUNDING


def test_composition_is_attained_and_a_draw_used_again_is_free():
    law, moved = weights([0, 1], 1.0), weights([1, 0], 1.0)
    twice = np.multiply.outer(law, law), np.multiply.outer(moved, moved)
    assert largest_loss(*twice) == pytest.approx(2 * largest_loss(law, moved))
    for epsilon in (0, 0.5, 1):  # (y, y) tells as much as y
        assert divergence(np.diag(law), np.diag(moved), epsilon) == pytest.approx(divergence(law, moved, epsilon))

    def body(p, db):
        noisy = p.laplace(db.count(), epsilon="1/3")
        return noisy, noisy + 1, pp.beta(noisy, noisy * noisy), p.gaussian(db.count(), epsilon="1/4", delta="1e-6")

    verdict = checked(body, delta="1e-6")
    assert (verdict.epsilon, verdict.delta) == (Fraction(7, 12), Fraction(1, 10**6))
    assert lemma.COMPOSITION in verdict.lemmas


def test_post_processing(seed):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        first, second = rng.dirichlet(np.full(5, rng.uniform(0.3, 5)), 2)
        kernel = rng.dirichlet(np.full(4, 0.5), 5)  # what each outcome is turned into, with randomness of its own
        for epsilon in (0.0, 0.2, 1.0, largest_loss(first, second)):
            assert divergence(first @ kernel, second @ kernel, epsilon) <= divergence(first, second, epsilon) + ROUNDING
    after = checked(lambda p, db: pp.apply(math.exp, 9 * p.laplace(db.count(), epsilon=1)))
    before = checked(lambda p, db: p.laplace(9 * db.count(), epsilon=1))
    assert (after.epsilon, before.epsilon) == (1, 9)
    assert lemma.POST_PROCESSING in after.lemmas


@pytest.mark.parametrize("levels", [("a", "b"), ("a", "b", "c")])
def test_each_record(levels):
    def body(p, db):
        return db.map(lambda x: p.exponential(list(levels), lambda r: r == x, epsilon="3/2")).counts()

    verdict = checked(body, pp.Categories(levels, adjacency="replace"))
    assert lemma.EACH_RECORD in verdict.lemmas
    told = {x: weights([x == level for level in levels], 0.75) for x in levels}
    for left, right in neighbours(levels, "replace"):
        joint = [np.stack(np.meshgrid(*(told[x] for x in side))).prod(0).ravel() for side in (left, right)]
        assert largest_loss(*joint) == pytest.approx(largest_loss(told[left[-1]], told[right[-1]]), rel=ROUNDING)
        assert largest_loss(*joint) <= verdict.epsilon
    assert verdict.epsilon == Fraction(3, 2)
    assert not checked(body, pp.Categories(levels, adjacency="add_remove")).is_certified


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("prices", [(1, 1, 1), (1, 2, 4), (3, 0, 1)])
def test_counts(adjacency, prices):
    levels = ["a", "b", "c"]

    def body(p, db):
        return [p.laplace(count, epsilon=price) for count, price in zip(db.counts(), prices, strict=True) if price]

    verdict = checked(body, pp.Categories(levels, adjacency=adjacency))
    counted = [[[side.count(x) for x in levels] for side in pair] for pair in neighbours(levels, adjacency)]
    moves = {tuple(np.abs(np.subtract(left, right))) for left, right in counted}
    assert {tuple(sorted(move)) for move in moves} == {(0, 1, 1) if adjacency == "replace" else (0, 0, 1)}
    assert verdict.epsilon == max(np.dot(prices, move) for move in moves)
    assert lemma.COUNTS in verdict.lemmas


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(("kind", "bounds"), [(pp.Reals, (-3, 1)), (pp.Reals, (2, 5)), (pp.Counts, (0, 4))])
def test_clamped_sum(kind, bounds, adjacency):
    verdict = checked(lambda p, db: p.laplace(db.sum(), epsilon=1), kind(bounds, adjacency=adjacency))
    pairs = neighbours(np.linspace(*bounds, 4).tolist(), adjacency)
    moves = [abs(math.fsum(left) - math.fsum(right)) for left, right in pairs]
    assert float(verdict.epsilon) == pytest.approx(max(moves), rel=ROUNDING)
    assert lemma.SUM in verdict.lemmas
    assert not checked(lambda p, db: p.laplace(db.sum(), epsilon=1), kind(adjacency=adjacency)).is_certified


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("d", [2, 3])
def test_second_moments(d, adjacency):
    columns, grid = ["x", "z", "y"][-d:], np.array([-1, -0.5, -1 / 3, -0.25, 0, 0.5, 1])
    records = pp.Rows(columns[:-1], "y", bounds=dict.fromkeys(columns, (-1, 1)), adjacency=adjacency)
    rows = np.array([*itertools.product(grid, repeat=d)])
    first, second = np.triu_indices(d)
    moments = np.hstack([rows, rows[:, first] * rows[:, second]])
    others = moments if adjacency == "replace" else np.zeros((1, moments.shape[1]))
    move = max(np.abs(moments - other).sum(1).max() for other in others)
    verdict = checked(lambda p, db: p.laplace(db.moments(), epsilon=1), records)
    assert float(verdict.epsilon) == pytest.approx(move, rel=ROUNDING)
    assert lemma.MOMENTS in verdict.lemmas


def parameters(prior, model, records, table) -> list[float]:
    """What a program says of a posterior under an ε of 10¹², when noise is less than a step."""

    def body(p, db):
        posterior = pp.infer(pp.observe(db, prior(), model))
        return [p.laplace(own, epsilon=10**12) + 0 if is_private(own) else own for own in posterior.parameters]

    verdict = checked(body, records)
    assert lemma.CONJUGATE in verdict.lemmas
    return verdict.run(table)


def beta_density(v, x):
    """log p(θ) p(x | θ) in v = logit θ."""
    yes, no = -np.logaddexp(0, -v), -np.logaddexp(0, v)
    return yes / 2 + no / 4 + np.sum(x) * yes + (np.size(x) - np.sum(x)) * no


def normal_density(v, x):
    return stats.norm.logpdf(v, 1, 1.5) + stats.norm.logpdf(x, v[:, None], 5**0.5).sum(1)


def gamma_density(v, x):
    """In v = log θ."""
    return stats.gamma.logpdf(np.exp(v), 1.5, scale=0.5) + v + stats.poisson.logpmf(x, np.exp(v)[:, None]).sum(1)


REALS, COUNTS = pp.Reals((-2, 4), adjacency="replace"), pp.Counts((0, 12), adjacency="replace")
BETA = (lambda: pp.beta("1/2", "1/4"), lambda r, x: pp.bernoulli(r) == x, BOOLEANS)
NORMAL = (lambda: pp.normal(1, "9/4"), lambda mean, x: pp.normal(mean, 5) == x, REALS)
GAMMA = (lambda: pp.gamma("3/2", 2), lambda rate, x: pp.poisson(rate) == x, COUNTS)
# the model in a program; its density in v, the range of v, and θ(v); the posterior's law in SciPy; tables
MODELS = [
    (BETA, (beta_density, -90, 90, expit), stats.beta, ([True], [False, False, True], [True] * 6)),
    (NORMAL, (normal_density, -20, 20, np.positive), lambda m, v: stats.norm(m, v**0.5), ([0.5], [-2, 3.75], [4] * 7)),
    (GAMMA, (gamma_density, -20, 5, np.exp), lambda a, b: stats.gamma(a, scale=1 / b), ([0], [3, 9, 1], [12] * 5)),
]


@pytest.mark.parametrize(("model", "density", "law", "table"), [(*m[:3], table) for m in MODELS for table in m[3]])
def test_conjugate_posterior(model, density, law, table):
    log_density, low, high, coordinate = density
    v = np.linspace(low, high, 40_001)
    logs = log_density(v, table)
    cumulative = integrate.cumulative_trapezoid(np.exp(logs - logs.max()), v, initial=0)
    share = np.interp(law(*parameters(*model, table)).ppf(LEVELS), coordinate(v), cumulative / cumulative[-1])
    assert share == pytest.approx(LEVELS, abs=1e-5)  # of the trapezoids


@pytest.mark.parametrize("table", [["a"], ["a", "c", "c", "b"], ["c"] * 5])
def test_conjugate_posterior_of_categories(seed, table):
    prior, levels = [0.5, 2, 1], ["a", "b", "c"]
    records = pp.Categories(levels, adjacency="replace")
    found = parameters(lambda: pp.dirichlet(prior), lambda r, x: pp.categorical(r) == x, records, table)
    theta = np.random.default_rng(seed).dirichlet(np.ones(3), 200)
    likelihood = np.log(theta)[:, [levels.index(x) for x in table]].sum(1)
    rest = stats.dirichlet.logpdf(theta.T, prior) + likelihood - stats.dirichlet.logpdf(theta.T, found)
    assert np.ptp(rest) < ROUNDING  # what is left is log p(x), the same for every θ


def hellinger_by_quadrature(first, second) -> float:
    """√(1 − ∫ √(p q)) of two beta distributions, in logit θ, where no density is infinite; off by 1e−6 at most."""
    edge = 60 / min(*first, *second)
    v = np.linspace(-edge, edge, 20_001)
    logs = [a * v - (a + b) * np.logaddexp(0, v) for a, b in (first, second)]
    p, q = (np.exp(own - own.max()) for own in logs)
    overlap = integrate.trapezoid(np.sqrt(p * q), v)
    return math.sqrt(max(0, 1 - overlap / math.sqrt(integrate.trapezoid(p, v) * integrate.trapezoid(q, v))))


def hellinger_by_gammas(first, second) -> float:
    """The same for Dirichlet distributions of any size."""
    logs = [gammaln(a).sum() - gammaln(a.sum()) for a in (first, second, np.add(first, second) / 2)]
    return math.sqrt(max(0, 1 - math.exp(logs[2] - (logs[0] + logs[1]) / 2)))


def distances(metric, triple) -> list[float]:
    """The three sides of a triangle, as a program measures them."""
    make = pp.beta if len(triple[0]) == 2 else pp.dirichlet
    laws = [make(*(Fraction(float(a)) for a in corner)) for corner in triple]
    return [number(metric(*pair)) for pair in itertools.combinations(laws, 2)]


@pytest.mark.parametrize(
    ("metric", "size", "measure"),
    [(pp.l1, 4, cityblock), (pp.hellinger, 2, hellinger_by_quadrature), (pp.hellinger, 5, hellinger_by_gammas)],
)
def test_triangle_inequality(seed, metric, size, measure):
    for triple in np.exp(np.random.default_rng(seed).normal(0, 1, (100, 3, size))):
        expected = [measure(*pair) for pair in itertools.combinations(triple, 2)]
        assert distances(metric, triple) == pytest.approx(expected, abs=1e-5)
        assert 2 * max(expected) <= sum(expected) + 1e-5
    squares = [side**2 for side in distances(pp.hellinger, [(1, 3), (2, 2), (3, 1)])]
    assert 2 * max(squares) > sum(squares) + 0.1  # why they are refused


@pytest.mark.parametrize(
    "prior", [(1, 1), (0.5, 0.5), (0.1, 0.1), (2, 0.25), (5, 3), (1, 1, 1), (0.25, 4, 0.5), (2, 0.1, 3, 0.1)]
)
def test_hellinger_distance_of_neighbours(prior):
    bound, apart = float(lemma.hellinger_bound([Fraction(str(own)) for own in prior])), []
    measure = hellinger_by_quadrature if len(prior) == 2 else hellinger_by_gammas
    for rest in itertools.product(range(7 if len(prior) == 2 else 3), repeat=len(prior)):
        moved = [np.add(prior, rest) + unit for unit in np.eye(len(prior))]
        apart.append(max(measure(*pair) for pair in itertools.combinations(moved, 2)))
    assert apart[0] == pytest.approx(bound, abs=1e-6)  # the least counts come first, and are the worst
    assert max(apart) <= bound + 1e-6


def test_hellinger_distance_of_neighbours_has_the_known_values_and_is_charged():
    half, bound = Fraction(1, 2), lemma.hellinger_bound([Fraction(1)] * 6)
    with mpmath.workdps(40):  # rounded up, never down
        assert 0 <= mpmath.mpf(bound.numerator) / bound.denominator - mpmath.sqrt(1 - mpmath.pi / 4) < 1e-14
    assert float(lemma.hellinger_bound([half, half])) == pytest.approx(0.603, abs=5e-4)
    assert float(lemma.hellinger_bound([Fraction(1, 10)] * 2)) == pytest.approx(0.869, abs=5e-4)

    def body(p, db):
        posterior = pp.infer(pp.observe(db, pp.beta(half, 2), lambda r, x: pp.bernoulli(r) == x))
        return p.exponential(pp.posteriors(db, pp.beta(1, 1)), lambda r: -pp.hellinger(posterior, r), epsilon=3)

    verdict = checked(body)
    assert verdict.epsilon == 3 * lemma.hellinger_bound([half, Fraction(2)])
    assert {lemma.TRIANGLE, lemma.HELLINGER} <= set(verdict.lemmas)
