"""The prior predictive tail: uniform under the prior, right where a closed form is known, and warned of when tiny."""

import math

import numpy as np
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.posterior import predictive

F, P, M = na.family, na.prior, na.mechanism


def released(family, values, n, scale: float, mechanism=M.Laplace, **others) -> na.Release:
    return na.Release(family=family, values=values, n=n, mechanism=mechanism(scale), **others)


def tables(name: str, rng, size: int):
    """Releases of the prior: family, prior and values; noise above, near or below what sums vary by."""
    match name:
        case "poisson":
            family, prior, n, scale = F.Poisson(), P.Gamma(2, 4), 20, 3.0
            y = rng.poisson(20 * rng.gamma(2, 0.25, size))[:, None]
        case "rare":
            family, prior, n, scale = F.Bernoulli(), P.Beta(0.5, 50), 500, 4.0
            y = rng.binomial(500, rng.beta(0.5, 50, size))[:, None]
        case "waits":
            family, prior, n, scale = F.Exponential("x", (0, 3)), P.Gamma(3, 2), 8, 2.0
            y = rng.exponential(1 / rng.gamma(3, 0.5, (size, 1)), (size, 8)).clip(0, 3).sum(1)[:, None]
        case "dropped":
            family, prior, n, scale = F.Normal("x", (-1, 2), variance=1.0, outside="drop"), P.Normal(0, 4), 30, 0.5
            x = rng.normal(rng.normal(0, 2, (size, 1)), 1, (size, 30))
            y = np.where((x >= -1) & (x <= 2), x, 0).sum(1)[:, None]
        case "normal":
            family, prior, n, scale = F.Normal("x", (-2, 2)), P.NormalInverseGamma(0.3, 2, 4, 3), 100, 2.0
            v = stats.invgamma(4, scale=3).rvs((size, 1), random_state=rng)
            x = rng.normal(rng.normal(0.3, np.sqrt(v / 2)), np.sqrt(v), (size, 100)).clip(-2, 2) / 2
            y = np.column_stack([x.sum(1), (x**2).sum(1)])
    integer = name in ("poisson", "rare")
    noise = rng.laplace(scale=scale, size=y.shape)
    return family, prior, (y + np.round(noise)).astype(int) if integer else y + noise, n, scale


@pytest.mark.parametrize("name", ["poisson", "rare", "waits", "dropped", "normal"])
def test_it_is_uniform_under_the_prior(name, seed):
    """To four standard errors; of two sums no more than uniform, since the worse counts twice."""
    size = 80 if name == "normal" else 300
    family, prior, values, n, scale = tables(name, np.random.default_rng(seed), size)
    mechanism = M.DiscreteLaplace if name in ("poisson", "rare") else M.Laplace
    tails = np.array([predictive.tail(released(family, row, n, scale, mechanism), prior) for row in values])
    for level in (0.01, 0.05, 0.25, 0.5):
        share = (tails < level).mean()
        slack = 4 * math.sqrt(level * (1 - level) / size) + 0.01
        assert share < level + slack, (level, share)
        assert name == "normal" or share > level - slack, (level, share)


@pytest.mark.parametrize("y", [-40.0, 0.0, 300.0, 900.0])
def test_a_normal_sum_has_a_closed_form(y):
    """Prior, records and Gaussian noise are all normal; also far in the tail."""
    release = released(F.Normal("x", variance=4.0), [y], 50, 15.0, M.Gaussian)
    right = 2 * stats.norm(50 * 3, math.sqrt(50**2 * 1.5 + 50 * 4 + 15**2)).sf(abs(y - 150) + 150)
    assert predictive.tail(release, P.Normal(3, 1.5)) == pytest.approx(right, rel=0.02)


def test_laplace_noise_has_its_own_tails():
    """Where it is all there is: P(|noise| ≥ 12 scales) = e⁻¹², of which a normal tail would be 10⁻¹⁷."""
    release = released(F.Normal("x", variance=1e-6), [60.0], 4, 5.0)
    assert predictive.tail(release, P.Normal(0, 1e-8)) == pytest.approx(math.exp(-12), rel=0.02)


CONFLICTS = {
    "a rare event that is not": (F.Bernoulli(), P.Beta(1, 100), [700], 1000),
    "a rate": (F.Exponential(), P.Gamma(1000, 1000), [30_000.0], 1000),
    "a mean": (F.Normal("x", (0, 100)), P.NormalInverseGamma(20, 50, 30, 3000), [0.0, 42.0], 1000),
    "amounts": (F.Gamma("x", (0, 8)), P.Independent(shape=P.Gamma(90, 30), rate=P.Gamma(90, 30)), [500, 500.0], 1000),
    "a level": (F.Categorical(levels=["a", "b", "c"]), P.Dirichlet([900, 50, 50]), [100, 450, 450], 1000),
    "covariances": (
        F.MultivariateNormal(["a", "b"], bounds=(-1, 1)),
        P.NormalInverseWishart([0, 0], 100, 4.0, 100), [0.0, 900.0, 50.0, 0.0, 850.0], 1000,
    ),
    "an intercept": (
        F.LinearRegression(["t"], "y", bounds={"t": (-4, 4), "y": (0, 25)}),
        P.NormalInverseGamma([0, 2], [100, 100], 30, 60), [0.0, 700.0, 60.0, 0.0, 520.0], 1000,
    ),
    "a private n": (F.Bernoulli(), P.Beta(1, 1000), [700], 1000),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_prior_that_the_release_refutes_is_spoken_of(name):
    family, prior, values, n = CONFLICTS[name]
    others = {"n_mechanism": M.Laplace(5.0), "neighbours": "add_remove"} if "private" in name else {}
    release = released(family, values, n, 2.0, **others)
    draws = {
        parameter: np.ones((8, *np.ones(len(family.axes.get(parameter, ())), int))) for parameter in family.parameters
    }
    posterior = na.Posterior(draws, release, family.completed(prior), "naive", None, 0)
    assert posterior.tail < predictive.LEAST
    assert any(said.startswith("The prior and the release disagree") for said in posterior.concerns)


def test_infer_warns_and_the_command_and_the_page_show_it(tmp_path):
    release = released(F.Bernoulli("ill"), [700], 1000, 2.0)
    with pytest.warns(RuntimeWarning, match="^The prior and the release disagree: .* is below 10⁻¹², and"):
        posterior = na.infer(release, P.Beta(1, 100), seed=1, num_draws=400)
    posterior.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Under the prior, the probability of a release as extreme as this one is less than 10⁻¹²." in page
    assert posterior.to_arviz().attrs["prior_predictive_tail"] == posterior.tail
    alike = na.infer(release, P.Beta(1, 1), seed=1, num_draws=400)
    assert alike.concerns == ()
    assert alike.tail == pytest.approx(0.6, abs=0.02)


def test_an_interval_is_as_extreme_as_its_nearer_end():
    known = released(F.Poisson(), [3], 100, 1.0, M.DiscreteLaplace, within=[(-math.inf, 5.0)])
    at_most = predictive.tail(known, P.Gamma(400, 4000))
    assert at_most == pytest.approx(2 * stats.poisson(10).cdf(5), rel=0.5)


RARE = {
    "no case in one": (F.Poisson(), P.Gamma(1, 1e5), 0, 1, M.Identity(), None, 1.0),
    "suppressed": (F.Poisson(), P.Gamma(1, 1e5), 9, 1, M.Identity(), (0, 9), 1.0),
    "a midpoint of 0": (F.Poisson(), P.Gamma(1, 1e4), 0, 1, M.Identity(), (0, 0), 1.0),
    "one case": (F.Poisson(), P.Gamma(30, 1e4), 1, 1, M.Identity(), None, 0.00599),
    "a little noise": (F.Poisson(), P.Gamma(400, 8000), -1, 1, M.DiscreteLaplace(0.2), None, 0.012733),
    "a little normal noise": (F.Poisson(), P.Gamma(400, 8000), -1, 1, M.DiscreteGaussian(0.3), None, 0.0073),
    "of very few": (F.Bernoulli(), P.Beta(1, 1e6), 0, 1000, M.DiscreteLaplace(0.05), None, 1.0),
    "of fewer": (F.Bernoulli(), P.Beta(1, 1e7), 0, 1000, M.DiscreteLaplace(0.1), None, 1.0),
}


@pytest.mark.parametrize("name", RARE)
def test_small_counts_are_no_disagreement(name):
    """Noise of a whole count takes whole steps, and a sum at the end of what there is has nothing beyond it."""
    family, prior, y, n, mechanism, within, right = RARE[name]
    others = {} if within is None else {"within": [within]}
    release = na.Release(family=family, values=[y], n=n, mechanism=mechanism, **others)
    assert predictive.tail(release, prior) == pytest.approx(right, rel=0.01)


LAWS = {
    "successes": (F.Binomial(trials=3), P.Beta(0.7, 9), 4, stats.betabinom(12, 0.7, 9)),
    "counts": (F.Poisson(), P.Gamma(0.4, 2), 3, stats.nbinom(0.4, 2 / 5)),
    "failures": (F.Geometric(), P.Beta(3, 2), 2, None),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    "mechanism", [M.DiscreteLaplace(0.6), M.DiscreteGaussian(1.3), M.Laplace(0.4), M.Gaussian(2.0)]
)
def test_noisy_counts_against_enumeration(name, mechanism):
    family, prior, n, law = LAWS[name]
    s = np.arange(0, 4000)
    if law is None:
        theta = stats.beta(3, 2).ppf((np.arange(4000) + 0.5) / 4000)
        masses = np.array([stats.nbinom(2, theta).pmf(k).mean() for k in s[:1200]])
        s = s[:1200]
    else:
        masses = law.pmf(s)
    k = np.arange(-60, 61)
    match mechanism:
        case M.DiscreteLaplace() | M.DiscreteGaussian():
            weights = np.exp(np.asarray(mechanism.log_density(k.astype(float)), dtype=float))
            below = lambda x: weights[k <= x].sum() / weights.sum()  # noqa: E731
        case _:
            below = (stats.laplace(scale=0.4) if mechanism.name == "laplace" else stats.norm(scale=2.0)).cdf
    for y in (-2, 0, 1, 5, 11):
        under = sum(mass * below(y - one) for mass, one in zip(masses, s, strict=True))
        over = sum(mass * below(one - y) for mass, one in zip(masses, s, strict=True))
        found = predictive.tail(na.Release(family=family, values=[y], n=n, mechanism=mechanism), prior)
        assert found == pytest.approx(min(1.0, 2 * min(under, over)), rel=0.03)


def honest(name: str, rng, size: int):
    """Small counts and very skewed sums of the prior."""
    small = lambda: np.round(rng.laplace(scale=0.2, size=size)).astype(int)  # noqa: E731
    match name:
        case "very skewed waits" | "very skewed waits of three":
            n = 3 if "three" in name else 1
            y = rng.gamma(0.01 * n, 1 / rng.gamma(2, 0.5, size)) + rng.laplace(scale=1e-5, size=size)
            return F.Gamma("x", shape=0.01), P.Gamma(2, 2), n, M.Laplace(1e-5), y, {}
        case "very skewed within bounds":
            y = rng.gamma(0.01, 1 / rng.gamma(2, 0.5, size)).clip(0, 2) + rng.laplace(scale=1e-3, size=size)
            return F.Gamma("x", (0, 2), shape=0.01), P.Gamma(2, 2), 1, M.Laplace(1e-3), y, {}
        case "areas":
            y = rng.binomial(200, rng.beta(2, 20_000, size))
            return F.Bernoulli(), P.Beta(2, 20_000), 200, M.Identity(), y, {}
        case "failures":
            y = rng.negative_binomial(2, rng.beta(2, 1, size)) + small()
            return F.Geometric(), P.Beta(2, 1), 2, M.DiscreteLaplace(0.2), y, {}
        case "counts within bounds":
            y = rng.poisson(rng.gamma(0.1, 1, (size, 4))[:, :1] * np.ones(4)).clip(0, 5).sum(1) + small()
            return F.Poisson("x", (0, 5)), P.Gamma(0.1, 1), 4, M.DiscreteLaplace(0.2), y, {}
    n = np.round(20 + rng.laplace(scale=2, size=size)).astype(int).clip(0)
    y = rng.binomial(20, rng.beta(1, 500, size)) + small()
    options = {"n_mechanism": M.DiscreteLaplace(2.0), "neighbours": "add_remove"}
    return F.Bernoulli(), P.Beta(1, 500), n, M.DiscreteLaplace(0.2), y, options


@pytest.mark.parametrize(
    "name",
    ["very skewed waits", "very skewed waits of three", "very skewed within bounds", "areas", "failures",
     "counts within bounds", "a private n"],
)  # fmt: skip
def test_honest_small_tables_are_seldom_extreme(name, seed):
    """No more often than the tail says: whole numbers make it less often."""
    size = 400
    family, prior, n, mechanism, values, options = honest(name, np.random.default_rng(seed), size)
    found: dict[tuple, float | None] = {}
    tails = []
    for y, size_of in zip(values.tolist(), np.broadcast_to(n, size).tolist(), strict=True):
        if (y, size_of) not in found:
            release = na.Release(family=family, values=[y], n=max(size_of, 1), mechanism=mechanism, **options)
            found[y, size_of] = predictive.tail(release, prior)
        tails.append(found[y, size_of])
    for level in (1e-4, 0.01, 0.05, 0.25):
        assert (np.array(tails) < level).mean() < level + 4 * math.sqrt(level * (1 - level) / size) + 0.003
