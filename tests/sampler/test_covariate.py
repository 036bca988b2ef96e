"""Covariates that the clamped normal model would take for moved: how many, and that it is then not asked."""

import time

import jax
import numpy as np
import pytest
from scipy import stats
from tests.sampler.stand_in import drawing

import noiseaware as na
from noiseaware.report.posterior_words import exactness
from noiseaware.sampler import covariate
from noiseaware.sampler import method as methods

# a prior of covariates that a yes/no column refutes is here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The prior and the release disagree:RuntimeWarning")

BOUNDS = {"t": (0, 1), "y": (0, 25)}
FAMILIES = {
    "linear": na.family.LinearRegression(["t"], "y", bounds=BOUNDS),
    "logistic": na.family.LogisticRegression(["t"], "y", bounds={"t": (0, 1)}),
    "poisson": na.family.PoissonRegression(["t"], "y", bounds=BOUNDS),
}
LINE = na.prior.NormalInverseGamma([0, 10], [4 / 25, 4 / 100], 3, 8)
PRIORS = {"linear": LINE, "logistic": na.prior.Normal(0, 4), "poisson": na.prior.Normal(0, 4)}
METHODS = ["auto", "hmc", "augmentation", "mcmc_ind", "gibbs_ss_update", "gibbs_ss_prior"]
CASES = [*(("linear", method) for method in METHODS), ("logistic", "auto"), ("poisson", "hmc")]


def released(family, x: np.ndarray, epsilon: float, rng) -> na.Release:
    """Of columns x, by NumPy alone."""
    bounds = np.array(family.query.intervals)
    u = (x.clip(*bounds.T[:, :, None]) - bounds.mean(1)[:, None]) / (np.ptp(bounds, axis=1)[:, None] / 2)
    s = np.array([column.sum() for column in family.query.monomials(list(u))])
    scale = family.query.sensitivity() / epsilon
    values = s + rng.laplace(scale=scale, size=s.size)
    return na.Release(family=family, values=values, n=x.shape[1], mechanism=na.mechanism.Laplace(scale))


def yes_or_no(name: str, rng, n: int = 1000) -> na.Release:
    t = (rng.random(n) < 0.3).astype(float)
    y = {
        "linear": 10 + 5 * t + 2 * rng.normal(size=n),
        "logistic": (rng.random(n) < 0.3 + 0.2 * t).astype(float),
        "poisson": rng.poisson(2 + t).astype(float),
    }[name]
    return released(FAMILIES[name], np.stack([t, y]), 2.0, rng)


@pytest.mark.parametrize(("name", "method"), CASES)
def test_a_yes_or_no_within_its_bounds_is_refused_before_any_chain_runs(name, method, monkeypatch, seed):
    def never(*_):
        raise AssertionError("a chain ran")

    for each, known in methods.METHODS.items():
        monkeypatch.setitem(methods.METHODS, each, drawing(known, never))
    release, begun = yes_or_no(name, np.random.default_rng(seed)), time.monotonic()
    with pytest.raises(ValueError, match=r"^bounds of 't' must hold.*such as \(-1, 2\) for a yes/no") as refusal:
        na.infer(release, PRIORS[name], method=method, seed=1)
    assert time.monotonic() - begun < 5
    assert str(refusal.value).endswith("or release the two groups apart with by=.")


def test_who_takes_no_record_for_moved_is_not_refused(seed):
    """The naive analyst, a belief in moments alone, and a release without noise."""
    release = yes_or_no("linear", np.random.default_rng(seed))
    naive = na.infer(release, LINE, method="naive", seed=1)
    assert naive.draws["coefficients"][:, 0].mean() == pytest.approx(5, abs=2)
    about_t = na.prior.CovariateMoments.of(np.array([0.0, 0, 0, 1]))
    prior = na.prior.Independent(regression=LINE, covariates=about_t)
    assert covariate.moved(release.evidence(), prior) == {}
    assert covariate.assumption(release.evidence(), prior) is None
    plain = na.Release(family=release.family, values=release.values, n=release.n, mechanism=na.mechanism.Identity())
    covariate.check(plain.evidence(), LINE)


def test_bounds_as_wide_as_the_sentence_says_are_taken(seed):
    rng = np.random.default_rng(seed)
    t = (rng.random(1000) < 0.3).astype(float)
    family = na.family.LinearRegression(["t"], "y", bounds={"t": (-1, 2), "y": (0, 25)})
    release = released(family, np.stack([t, 10 + 5 * t + 2 * rng.normal(size=1000)]), 2.0, rng)
    assert sum(covariate.moved(release.evidence(), LINE)["t"]) < 0.02


@pytest.mark.parametrize(
    ("law", "share"),
    [
        (stats.norm(0, 0.25), 0.0001),
        (stats.norm(0, 0.5), 0.0455),
        (stats.norm(0.3, 1.0), 0.34),
        (stats.uniform(-1, 2), 0.122),
        (stats.expon(-1, 0.5), 0.243),
    ],
)
def test_the_share_is_that_of_the_law_with_the_moments_released(law, share, seed):
    """Normal records are taken for what they are; of others, the share that statistics_several found of hmc's draws."""
    rng, n = np.random.default_rng(seed), 50_000
    family = na.family.LinearRegression(["t"], "y", bounds=(-1, 1))
    x = np.stack([law.rvs(n, random_state=rng), rng.normal(0, 0.2, n)])
    found = covariate.moved(released(family, x, 5.0, rng).evidence(), na.prior.NormalInverseGamma([0, 0], 1, 3, 3))
    assert sum(found["t"]) == pytest.approx(share, abs=0.015)
    assert sum(found["y"]) < 0.001


@pytest.mark.parametrize(("n", "epsilon"), [(60, 0.3), (60, 3.0), (400, 1.0)])
def test_the_share_is_that_of_weighted_draws_of_the_prior(n, epsilon, seed):
    """Where noise is above, near and below what the records tell: SciPy's prior, and moments of a normal on a grid."""
    rng = np.random.default_rng(seed)
    family = na.family.LinearRegression(["t"], "y", bounds={"t": (2, 6), "y": (-1, 1)})
    x = np.stack([rng.normal(4.4, 1.6, n), rng.normal(0, 0.2, n)])
    about_t = na.prior.NormalInverseWishart([4.2], 2.0, 9.0, 7.0)
    prior = na.prior.Independent(regression=na.prior.NormalInverseGamma([0, 0], 1, 3, 3), covariates=about_t)
    release = released(family, x, epsilon, rng)
    variance = stats.invgamma(3.5, scale=4.5).rvs(20_000, random_state=rng)
    mean = 4.2 + np.sqrt(variance / 2) * rng.standard_normal(20_000)
    law = stats.norm(mean[:, None], np.sqrt(variance)[:, None])
    edges = np.linspace(2, 6, 401)
    mass = np.diff(law.cdf(edges), axis=1)
    u = np.concatenate([[-1.0], (edges[:-1] + edges[1:]) / 4 - 2, [1.0]])
    mass = np.column_stack([law.cdf(2.0), mass, law.sf(6.0)])
    one, two, three, four = (mass @ u**k for k in range(1, 5))
    noise = 2 * (family.query.sensitivity() / epsilon) ** 2
    aa, bb, ab = n * (two - one**2) + noise, n * (four - two**2) + noise, n * (three - one * two)
    a, b = release.values[0] - n * one, release.values[2] - n * two
    size = aa * bb - ab**2
    log_weight = -0.5 * np.log(size) - 0.5 * (bb * a**2 - 2 * ab * a * b + aa * b**2) / size
    weight = np.exp(log_weight - log_weight.max())
    right = (weight * (mass[:, 0] + mass[:, -1])).sum() / weight.sum()
    worth = weight.sum() ** 2 / (weight**2).sum()
    assert sum(covariate.moved(release.evidence(), prior)["t"]) == pytest.approx(right, abs=1.5 / worth**0.5)


def test_a_private_number_of_records_is_reckoned_with(seed):
    """Its noise hides what the squares tell."""
    release = yes_or_no("linear", np.random.default_rng(seed), n=300)
    loud = na.Release(
        family=release.family, values=release.values, n=300, mechanism=release.mechanism,
        n_mechanism=na.mechanism.Laplace(300.0), neighbours="add_remove",
    )  # fmt: skip
    assert sum(covariate.moved(loud.evidence(), LINE)["t"]) < 0.8 * sum(covariate.moved(release.evidence(), LINE)["t"])


def test_a_linear_regression_says_what_it_takes_its_covariates_for(monkeypatch, seed):
    """With chains stood in for: what is said does not hang on the draws."""

    def blank(key, num_draws):
        return 1 + jax.random.uniform(key, (num_draws, 3))

    for name, known in methods.METHODS.items():
        monkeypatch.setitem(methods.METHODS, name, drawing(known, blank))
    values = np.random.default_rng(seed).normal(60, 3, 5)
    family = na.family.LinearRegression(["t"], "y")
    release = na.Release(family=family, values=values, n=100, mechanism=na.mechanism.Gaussian(3.0))
    for method in ("hmc", "augmentation", "mcmc_ind"):
        posterior = na.infer(release, LINE, seed=1, num_draws=400, method=method)
        assert (posterior.explanation, posterior.is_exact) == ("The covariates are taken as normal.", True)
        assert "Exact for this family in the limit" in exactness(posterior)
        assert exactness(posterior).endswith("The covariates are taken as normal.")
    assert "taken as normal" not in str(na.infer(release, LINE, seed=1, num_draws=400, method="naive").explanation)
