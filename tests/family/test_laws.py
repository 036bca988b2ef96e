"""What every family must do, against SciPy and against enumeration of neighbours."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import noiseaware.family as family
from noiseaware.family._special import log_gammainc, log_gammaincc
from noiseaware.prior import Beta, Dirichlet, Gamma, Normal, NormalInverseGamma
from noiseaware.privacy import check_neighbours

# name: (family, θ, law of a record)
SCALAR = {
    "bernoulli": (family.Bernoulli(), 0.3, stats.bernoulli(0.3)),
    "binomial": (family.Binomial(trials=4), 0.3, stats.binom(4, 0.3)),
    "poisson": (family.Poisson(bounds=(1, 6)), 2.5, stats.poisson(2.5)),
    "geometric": (family.Geometric(bounds=(0, 6)), 0.3, stats.geom(0.3, loc=-1)),
    "exponential": (family.Exponential(bounds=(0.5, 3)), 0.7, stats.expon(scale=1 / 0.7)),
    "gamma": (family.Gamma(bounds=(0.5, 3), shape=2.5), 0.7, stats.gamma(2.5, scale=1 / 0.7)),
    "normal": (family.Normal(bounds=(-1, 3), variance=2.0), 0.7, stats.norm(0.7, 2**0.5)),
}
UNBOUNDED = ["poisson", "geometric", "exponential", "gamma", "normal"]
PRIORS = {Beta: Beta(2.0, 3.0), Gamma: Gamma(2.0, 3.0), Normal: Normal(1.0, 3.0)}


@pytest.mark.parametrize("name", SCALAR)
def test_moments_follow_from_the_log_partition(name, x64):
    member, theta, law = SCALAR[name]
    np.testing.assert_allclose(member.mean(jnp.asarray(theta))[0], law.mean(), rtol=1e-9)
    np.testing.assert_allclose(member.covariance(jnp.asarray(theta))[0, 0], law.var(), rtol=1e-9)


@pytest.mark.parametrize("name", SCALAR)
def test_simulated_records_have_the_law(name, x64, key):
    member, theta, law = SCALAR[name]
    x = np.sort(np.asarray(member.sample(key, jnp.asarray(theta), 50_000)))
    at = np.unique(np.quantile(x, np.linspace(0.01, 0.99, 50)))
    assert np.abs(np.searchsorted(x, at, side="right") / x.size - law.cdf(at)).max() < 2.7 / x.size**0.5


@pytest.mark.parametrize("name", SCALAR)
def test_the_sum_has_the_natural_form(name, x64):
    """h_n(s) exp(ηs − nA(η)) is a law: it sums or integrates to 1, for three records."""
    member, theta, _ = SCALAR[name]
    eta = member.natural(jnp.asarray(theta))

    def density(s):
        s = jnp.asarray(s, float)
        return np.exp(np.asarray(member.log_base(s, 3) + eta[0] * s - 3 * member.log_partition(eta)))

    if member.query.is_whole:
        top = min(member.possible(3.0)[1], 200)
        assert density(np.arange(0, top + 1)).sum() == pytest.approx(1, abs=1e-9)
    else:
        low = max(member.possible(3.0)[0], -40.0)
        assert integrate.quad(lambda s: float(density(s)), low, 80, limit=200)[0] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", SCALAR)
def test_update_is_bayes(name, x64):
    """log p(θ | s) − log p(θ) − log p(s | θ) does not depend on θ."""
    member, theta, _ = SCALAR[name]
    prior, s, n = PRIORS[member.conjugate], jnp.asarray([2.0]), 3
    constant = []
    for t in (0.5 * theta, theta, 1.3 * theta):
        t = jnp.asarray(t)
        eta = member.natural(t)
        likelihood = eta[0] * s[0] - n * member.log_partition(eta)
        constant.append(member.update(prior, s, n).log_density(t) - prior.log_density(t) - likelihood)
    np.testing.assert_allclose(constant, constant[0], rtol=1e-9)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_record_density_and_tails(name, x64):
    member, theta, law = SCALAR[name]
    t = jnp.asarray(theta)
    x = np.array([1.0, 2.0, 5.0])
    right = law.logpmf(x) if member.query.is_whole else law.logpdf(x)
    np.testing.assert_allclose(member.log_density(jnp.asarray(x), t), right, rtol=1e-9)
    for edge in (1.0, 3.0, 40.0):
        np.testing.assert_allclose(member.log_below(edge, t), law.logcdf(edge), rtol=1e-8, atol=1e-12)
        above = law.logsf(edge - 1) if member.query.is_whole else law.logsf(edge)
        np.testing.assert_allclose(member.log_above(edge, t), above, rtol=1e-6)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_from_natural_is_the_inverse(name, x64):
    member, theta, _ = SCALAR[name]
    assert float(member.from_natural(member.natural(jnp.asarray(theta)))) == pytest.approx(theta)


@pytest.mark.parametrize("bounds", [None, (-1.0, 4.0)])
def test_normal_with_unknown_variance(bounds, x64, key):
    """t(x) = (u, u²): moments, conjugacy and records against SciPy."""
    member, theta = family.Normal(bounds=bounds), jnp.asarray([0.7, 2.0])
    centre, half = (0.0, 1.0) if bounds is None else (1.5, 2.5)
    u = stats.norm((0.7 - centre) / half, 2**0.5 / half)
    np.testing.assert_allclose(member.mean(theta), [u.moment(1), u.moment(2)], rtol=1e-9)
    cross = u.moment(3) - u.moment(1) * u.moment(2)
    wanted = [[u.var(), cross], [cross, u.moment(4) - u.moment(2) ** 2]]
    np.testing.assert_allclose(member.covariance(theta), wanted, rtol=1e-9)
    np.testing.assert_allclose(member.from_natural(member.natural(theta)), theta, rtol=1e-12)
    prior = NormalInverseGamma(0.5, 2.0, 3.0, 4.0)
    x = np.asarray(member.sample(key, theta, 20))
    s = jnp.stack([jnp.asarray(t).sum() for t in member.query.statistic(x)])
    constant = []
    for t in ([0.5, 1.0], [0.7, 2.0], [1.5, 0.7]):
        likelihood = stats.norm(t[0], t[1] ** 0.5).logpdf(x).sum()
        t = jnp.asarray(t)
        constant.append(member.update(prior, s, 20).log_density(t) - prior.log_density(t) - likelihood)
    np.testing.assert_allclose(constant, constant[0], rtol=1e-9)
    assert float(member.project(jnp.asarray([4.0, 0.1]), 2)[1]) == 8.0


@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_sensitivity_of_mean_and_variance(outside):
    member = family.Normal("x", (-3.0, 5.0), outside=outside)
    t = np.stack([np.asarray(c) for c in member.query.alter(jnp.linspace(-6.0, 8.0, 281))], axis=1)
    apart = t[:, None] - t[None]
    assert member.query.sensitivity() == pytest.approx(np.abs(apart).sum(-1).max(), rel=1e-6)
    assert member.query.sensitivity("replace", 2) == pytest.approx((apart**2).sum(-1).max(), rel=1e-6)
    assert member.query.sensitivity("add_remove") == pytest.approx(np.abs(t).sum(-1).max(), rel=1e-6)
    assert member.query.sensitivity("add_remove", 2) == pytest.approx((t**2).sum(-1).max(), rel=1e-6)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_window_holds_nearly_all(name, x64):
    member, theta, law = SCALAR[name]
    low, high = (float(edge) for edge in member.window(jnp.asarray(theta)))
    assert law.cdf(low - 1e-9) < 1e-15
    assert law.sf(high) < 1e-15


def test_incomplete_gammas_in_the_tails(x64):
    import mpmath

    for k, z in [(0.5, 1e-12), (0.5, 900.0), (3.0, 1e-30), (3.0, 2000.0), (40.0, 0.01), (40.0, 900.0), (2.5, 2.0)]:
        lower = mpmath.log(mpmath.gammainc(k, 0, z, regularized=True))
        upper = mpmath.log(mpmath.gammainc(k, z, mpmath.inf, regularized=True))
        np.testing.assert_allclose(log_gammainc(jnp.asarray(k), jnp.asarray(z)), float(lower), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(log_gammaincc(jnp.asarray(k), jnp.asarray(z)), float(upper), rtol=1e-10, atol=1e-14)


MAKE = {
    "poisson": lambda outside: family.Poisson("x", (2, 9), outside),
    "exponential": lambda outside: family.Exponential("x", (0.5, 4), outside),
    "normal": lambda outside: family.Normal("x", (-3, 2), variance=1.0, outside=outside),
}


@pytest.mark.parametrize("outside", ["clamp", "drop"])
@pytest.mark.parametrize("name", MAKE)
def test_sensitivity_is_the_most_that_a_neighbour_moves_the_sum(name, outside):
    member = MAKE[name](outside)
    x = jnp.linspace(-12.0, 20.0, 33)
    (summed,) = (np.asarray(t) for t in member.query.alter(x))
    replaced = max(abs(a - b) for a, b in itertools.product(summed, summed))
    assert member.query.sensitivity("replace") == pytest.approx(replaced)
    assert member.query.sensitivity("add_remove") == pytest.approx(np.abs(summed).max())
    assert member.query.sensitivity("replace", 2) == pytest.approx(replaced**2)


def test_replacing_a_category_moves_two_cells():
    member = family.Categorical("x", levels=["a", "b", "c"])
    cells = np.eye(3)
    assert (
        member.query.sensitivity("replace") == max(np.abs(a - b).sum() for a, b in itertools.product(cells, cells)) == 2
    )
    assert member.query.sensitivity("replace", 2) == 2
    assert member.query.sensitivity("add_remove") == 1


def test_categorical_update_and_projection(x64):
    member = family.Categorical(levels=["a", "b", "c"])
    updated = member.update(Dirichlet([1, 2, 3]), jnp.asarray([4.0, 0.0, 1.0]), 5)
    np.testing.assert_allclose(updated.concentration, [5, 2, 4])
    np.testing.assert_allclose(member.project(jnp.asarray([-3.0, 4.0, 4.0]), 10), [0, 5, 5])
    np.testing.assert_allclose(jax.numpy.sum(member.project(jnp.asarray([-3.0, -4.0, -4.0]), 10)), 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: family.Exponential("x", (5, 1)), "low < high"),
        (lambda: family.Exponential("x", (0, float("inf"))), "finite"),
        (lambda: family.Exponential("x", (0, float("nan"))), "finite"),
        (lambda: family.Exponential("x", 3), "two numbers"),
        (lambda: family.Exponential("x", (0, 1), outside="ignore"), "clamp"),
        (lambda: family.Poisson("x", (0, 2.5)), "whole numbers"),
        (lambda: family.Normal("x", (0, 1), variance=-1.0), "variance must be positive"),
        (lambda: family.Gamma("x", (0, 1), shape=0.0), "shape must be positive"),
        (lambda: family.Gamma("x", (-2, 0)), r"bounds must reach above 0 for a gamma family, got \(-2.0, 0.0\)"),
        (lambda: family.Binomial("x", trials=0), "at least 1"),
        (lambda: family.Categorical("x", levels=["a"]), "two or more"),
        (lambda: family.Categorical("x", levels=["a", "a"]), "distinct"),
        (lambda: family.Categorical("x", levels=["a", 1]), "all text or all whole"),
        (lambda: family.Categorical("x", levels=["a", "\udfff"]), "texts that UTF-8 can hold"),
        (lambda: family.Categorical("x", levels=[True, False]), "all text or all whole"),
        (lambda: family.Exponential("x").query.sensitivity(), "bounds must be given"),
        (lambda: check_neighbours("nobody"), "neighbours must be"),
    ],
)
def test_bad_families_are_refused_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
