"""Several releases: draws against quadrature, at five levels of the CDF, and what is refused."""

import numpy as np
import pytest
from scipy import stats

import noiseaware as na

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
DRAWS = 20_000
BAND = 4 * np.sqrt(LEVELS * (1 - LEVELS) / DRAWS)  # four standard errors of an empirical CDF


def _release(value, n, scale, family=None, law=na.mechanism.DiscreteLaplace):
    return na.Release(family=family or na.family.Bernoulli(), values=[value], n=n, mechanism=law(scale))


def _quantiles(theta, log_density):
    mass = np.exp(log_density - log_density.max())
    return np.interp(LEVELS, np.cumsum(mass) / mass.sum(), theta)


def _by_enumeration(theta, value, n, log_noise):
    s = np.arange(n + 1)
    return np.log(np.exp(stats.binom.logpmf(s, n, theta[:, None]) + log_noise(value - s)).sum(1))


def _laplace(scale):
    return lambda x: -np.abs(x) / scale


def test_independent_counts_against_enumeration(seed):
    tables = [(4, 50, 2.0), (31, 100, 10.0), (-3, 30, 5.0)]
    theta = np.linspace(0.0005, 0.9995, 4000)
    log_density = stats.beta.logpdf(theta, 1, 3)
    for value, n, scale in tables:
        log_density = log_density + _by_enumeration(theta, value, n, _laplace(scale))
    wanted = _quantiles(theta, log_density)
    posterior = na.infer([_release(*t) for t in tables], na.prior.Beta(1, 3), seed=seed, num_draws=DRAWS)
    found = (posterior.draws["theta"][:, None] < wanted).mean(0)
    assert posterior.is_exact
    assert np.all(np.abs(found - LEVELS) < BAND + 1e-3)  # the grid's step is 1/4000 in θ


def test_the_same_table_twice_against_enumeration(seed):
    values, spreads, n = (12, 25), (4.0, 8.0), 60
    theta = np.linspace(0.0005, 0.9995, 4000)
    s = np.arange(n + 1)
    log_noise = sum(-0.5 * ((y - s) / sd) ** 2 for y, sd in zip(values, spreads, strict=True))
    each = np.exp(stats.binom.logpmf(s, n, theta[:, None]) + log_noise).sum(1)
    wanted = _quantiles(theta, stats.beta.logpdf(theta, 1, 3) + np.log(each))
    releases = [_release(y, n, sd, law=na.mechanism.DiscreteGaussian) for y, sd in zip(values, spreads, strict=True)]
    posterior = na.infer(releases, na.prior.Beta(1, 3), seed=seed, num_draws=DRAWS, same_table=True)
    found = (posterior.draws["theta"][:, None] < wanted).mean(0)
    assert np.all(np.abs(found - LEVELS) < BAND + 1e-3)


@pytest.mark.slow
def test_independent_waiting_times_against_quadrature(seed):
    tables = [(30.0, 10, 7.0), (80.0, 40, 3.0)]
    theta = np.geomspace(0.02, 5, 1500)
    s = np.linspace(0.005, 400, 40_000)
    log_density = stats.gamma.logpdf(theta, 2, scale=1.0) + np.log(theta)  # even steps of log θ
    for value, n, scale in tables:
        joint = stats.gamma.logpdf(s, n, scale=1 / theta[:, None]) + _laplace(scale)(value - s)
        log_density = log_density + np.log(np.exp(joint).sum(1))
    wanted = _quantiles(theta, log_density)
    family, law = na.family.Exponential(), na.mechanism.Laplace
    releases = [_release(*t, family=family, law=law) for t in tables]
    posterior = na.infer(releases, na.prior.Gamma(2, 1), seed=seed, num_draws=DRAWS)
    found = (posterior.draws["theta"][:, None] < wanted).mean(0)
    assert np.all(np.abs(found - LEVELS) < BAND + 4e-3)


def test_summary_plot_report_and_draws_of_several(tmp_path):
    releases = [_release(4, 50, 2.0), _release(31, 100, 10.0)]
    posterior = na.infer(releases, na.prior.Beta(1, 3), seed=0, num_draws=400)
    assert posterior.releases == tuple(releases)
    assert posterior.release == releases[0]
    assert float(posterior.naive.a) == 1 + 35
    assert list(posterior.summary().index) == ["theta"]
    posterior.plot()
    posterior.report(tmp_path / "several.html")
    page = (tmp_path / "several.html").read_text(encoding="utf-8")
    assert "sum = 4" in page
    assert "sum = 31" in page
    assert posterior.to_arviz()["observed_data"]["y"].values.tolist() == [4.0, 31.0]


@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
def test_the_page_tells_of_a_value_that_no_table_has_in_either_place(places, tmp_path):
    releases = [_release(50, 100, 2.0), _release(103, 100, 2.0)]
    na.infer([releases[k] for k in places], na.prior.Beta(1, 1), seed=1, num_draws=200).report(tmp_path / "page.html")
    assert "that no table has: that is the noise" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_list_of_one_is_that_one():
    release, prior = _release(4, 50, 2.0), na.prior.Beta(1, 3)
    one, listed = (na.infer(r, prior, seed=3, num_draws=50).draws["theta"] for r in (release, [release]))
    assert np.array_equal(one, listed)


@pytest.mark.parametrize(
    ("releases", "same_table", "sentence"),
    [
        ([], False, "release must be one release or a list"),
        (3, False, "release must be one release or a list of them, got 3"),
        ("wait.json", False, "got 'wait.json'; noiseaware.load reads a file"),
        ([_release(4, 50, 2.0), _release(4, 50, 2.0, na.family.Poisson())], False, "must be of one family"),
        ([_release(4, 50, 2.0), _release(9, 50, 2.0)], True, "must have Gaussian noise, got DiscreteLaplace"),
        (
            [_release(4, n, 2.0, law=na.mechanism.DiscreteGaussian) for n in (50, 60)],
            True,
            "must have one public n, got 50 and 60",
        ),
    ],
)
def test_refused(releases, same_table, sentence):
    with pytest.raises(ValueError, match=sentence):
        na.infer(releases, na.prior.Beta(1, 3), same_table=same_table)


def test_several_tables_of_levels_are_refused():
    family = na.family.Categorical(levels=["a", "b"])
    release = na.Release(family=family, values=[3, 7], n=10, mechanism=na.mechanism.DiscreteLaplace(2.0))
    with pytest.raises(ValueError, match=r"one parameter, got categorical; .* noiseaware.model.log_likelihood"):
        na.infer([release, release], na.prior.Dirichlet([1, 1]))


def test_another_method_is_refused():
    with pytest.raises(ValueError, match="auto, exact for several tables, got 'hmc'"):
        na.infer([_release(4, 50, 2.0), _release(9, 50, 2.0)], na.prior.Beta(1, 3), method="hmc")
