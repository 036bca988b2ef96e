"""The mean and variance of the values as recorded within bounds: named, first everywhere, and what is warned of."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import noiseaware as na
from noiseaware.cli import app
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.report.number import number
from noiseaware.report.plot import curves
from noiseaware.report.posterior_words import behind, naive_headline
from noiseaware.sampler import hmc

F, P = na.family, na.prior
LAPLACE = na.mechanism.Laplace(5.0)
CASES = {
    "normal": (F.Normal("x", (0, 10)), P.NormalInverseGamma(5, 1, 3, 9), [-30.0, 60.0]),
    "known": (F.Normal("x", (0, 10), variance=4.0), P.Normal(5, 9), [900.0]),
    "gamma": (F.Gamma("x", (0, 10)), P.Independent(shape=P.Gamma(4, 2), rate=P.Gamma(3, 1)), [-30.0, 60.0]),
    "rate": (F.Gamma("x", (0, 10), shape=2.0), P.Gamma(3, 1), [900.0]),
    "exponential": (F.Exponential("x", (0, 10)), P.Gamma(3, 1), [600.0]),
    "poisson": (F.Poisson("x", (0, 10)), P.Gamma(3, 1), [600.0]),
    "geometric": (F.Geometric("x", (0, 10)), P.Beta(2, 2), [600.0]),
    "several": (
        F.MultivariateNormal(["a", "b"], bounds={"a": (0, 10), "b": (-2, 2)}),
        P.NormalInverseWishart([5, 0], 1, [[9, 0], [0, 1]], 6),
        [-30.0, 5.0, 60.0, 2.0, 50.0],
    ),
}
HAS_SQUARES = {"normal", "gamma", "several"}


def posterior_of(name: str, *, method: str = "hmc", share: float | None = None) -> na.Posterior:
    """Draws of the prior, or of laws that take a share for moved: only what follows from them is looked at."""
    family, prior, values = CASES[name]
    release = na.Release(family=family, values=values, n=200, mechanism=LAPLACE)
    with jax.enable_x64(True):
        drawn = np.asarray(prior.sample(jax.random.key(0), (400,)), dtype=float)
    if share is not None:
        sd = np.array(10 / (2 * stats.norm.isf(share / 2)))
        drawn = np.stack([np.full(400, 5.0), np.full(400, sd**2)], axis=1)
    return na.Posterior(family.named(drawn), release, family.completed(prior), method, None, 0)


@pytest.mark.parametrize("name", CASES)
def test_they_stand_first_and_under_one_name_everywhere(name):
    posterior = posterior_of(name)
    columns = ["[a]", "[b]"] if name == "several" else [""]
    first = [f"recorded {kind}{c}" for kind in ("mean", "variance")[: 1 + (name in HAS_SQUARES)] for c in columns]
    names = list(posterior.marginals())
    assert names[: len(first)] == first == list(posterior.recorded)
    assert not any("recorded" in other for other in names[len(first) :])
    assert names == list(posterior.summary().index)
    for estimates in (posterior.estimates(), posterior.naive_estimates()):
        assert [e.name for e in estimates] == names
    assert len(posterior.prior_marginals()) == len(names)
    assert set(posterior.draws) == set(posterior.release.family.parameters)


@pytest.mark.parametrize("name", CASES)
def test_the_naive_number_beside_it_is_that_of_the_released_sums(name):
    """With a prior worth a few of 200 records; gamma's is that of the sums alone."""
    posterior = posterior_of(name)
    family, values = posterior.release.family, posterior.release.values / 200
    if len(values) > 1:
        means = family.query.centre + family.query.half * values[: family.query.degrees.count(1)]
    else:
        means = values
    found = posterior.naive_estimates()[: len(means)]
    assert [e.mean for e in found] == pytest.approx(list(means), rel=0.05, abs=0.02)
    assert all(0.05 < e.sd < 0.5 for e in found)
    if name == "gamma":
        variance = 25 * (values[1] - values[0] ** 2)
        assert posterior.naive_estimates()[1].mean == pytest.approx(variance, rel=0.02)


def test_the_naive_method_takes_no_record_for_moved():
    naive = posterior_of("normal", method="naive")
    np.testing.assert_array_equal(naive.recorded["recorded mean"], naive.draws["mean"])
    np.testing.assert_array_equal(naive.recorded["recorded variance"], naive.draws["variance"])
    assert naive.moved == {}
    assert naive.concerns == ()


def test_without_bounds_or_without_a_cut_there_is_none():
    for family in (F.Normal(), F.Poisson(), F.Bernoulli("x"), F.Exponential()):
        values = [3.0] * len(family.query.names)
        release = na.Release(family=family, values=values, n=20, mechanism=na.mechanism.Laplace(2.0))
        draws = {name: np.full(8, 0.5) for name in family.parameters}
        posterior = na.Posterior(draws, release, P.Gamma(1, 1), "exact", None, 0)
        assert posterior.recorded == {}
        assert behind(release) is None


@pytest.mark.parametrize(("share", "warns"), [(0.09, False), (0.11, True)])
def test_a_tenth_taken_for_moved_is_spoken_of(share, warns):
    posterior = posterior_of("normal", share=share)
    assert sum(posterior.moved["x"]) == pytest.approx(share, rel=1e-6)
    assert bool(posterior.concerns) == warns
    if warns:
        (said,) = posterior.concerns
        for text in ("takes 11 % of x", "moved to the bound (5 % below 0 and 5 % above 10)", "gamma family"):
            assert text in said, said
        posterior = posterior_of("several")
        assert all("column is not of this family" in one for one in posterior.concerns)


def test_what_few_records_leave_open_is_not_spoken_of():
    """Half of the draws take 2 % for moved, and half 40 %: of this the release says nothing."""
    few, many = (posterior_of("normal", share=share) for share in (0.02, 0.4))
    draws = {name: np.concatenate([few.draws[name], many.draws[name]]) for name in few.draws}
    posterior = dataclasses.replace(few, draws=draws)
    assert sum(posterior.moved["x"]) == pytest.approx(0.21, rel=1e-6)
    assert posterior.concerns == ()


def test_honest_small_tables_are_not_spoken_of(seed):
    """Hardly any of thirty, each of ten records of N(50, 10²) within three standard deviations."""
    rng, n, scale = np.random.default_rng(seed), 10, 120.0
    family, noise = F.Normal("x", (20, 80), variance=100), na.mechanism.Laplace(scale)
    sums = rng.normal(50, 10, (30, n)).clip(20, 80).sum(1) + rng.laplace(scale=scale, size=30)
    releases = [na.Release(family=family, values=[value], n=n, mechanism=noise) for value in sums]
    found = na.infer_each(releases, P.Normal(50, 400), num_draws=400, seed=1)
    assert sum("takes" in concern for posterior in found for concern in posterior.concerns) <= 2


@pytest.mark.parametrize(("prior", "warns"), [(P.Gamma(8, 2), False), (P.Gamma(80, 8), True)])
def test_of_one_sum_only_what_the_prior_did_not_expect_is_spoken_of(prior, warns):
    """Waits of rate 4 have 14 % above 0.5, and of rate 10 almost none."""
    family = F.Exponential("x", (0, 0.5))
    release = na.Release(family=family, values=[216.0], n=1000, mechanism=na.mechanism.Laplace(1.0))
    posterior = na.Posterior({"theta": np.full(400, 4.0)}, release, prior, "exact", None, 0)
    assert any("takes 14 % of x" in concern for concern in posterior.concerns) == warns


def test_dropped_records_have_no_recorded_numbers():
    """A sum does not say whether records were left out as values of the law, or as sentinels, or as empty cells."""
    for family, prior, values in (
        (F.Normal("x", (0, 100), variance=225, outside="drop"), P.Normal(45, 100), [180_000.0]),
        (F.Normal("x", (0, 100), outside="drop"), P.NormalInverseGamma(45, 1, 3, 900), [-100.0, 900.0]),
    ):
        release = na.Release(family=family, values=values, n=5000, mechanism=na.mechanism.Laplace(50.0))
        draws = {"mean": np.full(400, 90.0), "variance": np.full(400, 225.0)}
        draws = {name: draws[name] for name in family.parameters}
        for method in ("hmc", "naive"):
            posterior = na.Posterior(draws, release, prior, method, None, 0)
            assert posterior.recorded == {}
            assert list(posterior.marginals()) == list(family.parameters)
            assert len(posterior.prior_marginals()) == len(posterior.naive_marginals()) == len(family.parameters)
            assert set(posterior.truths(dict.fromkeys(draws, 40.0))) == set(family.parameters)
        posterior = na.Posterior(draws, release, prior, "hmc", None, 0)
        assert posterior.moved["x"][1] == pytest.approx(stats.norm.sf(10 / 15))
        (said,) = [concern for concern in posterior.concerns if "takes 25 % of x" in concern]
        assert "or has empty or sentinel cells: missing='leave_out' leaves those out" in said
        assert "recorded numbers" not in said


VAGUE = {
    "exponential": (F.Exponential("x", (0, 24)), P.Gamma(0.01, 0.01), [7700.0], "exact"),
    "rate": (F.Gamma("x", (0, 24), shape=2.0), P.Gamma(0.001, 0.001), [7700.0], "exact"),
    "geometric": (F.Geometric("x", (0, 24)), P.Beta(0.01, 0.01), [3000.0], "naive"),
    "normal": (F.Normal("x", (0, 24)), P.NormalInverseGamma(0, 0.01, 0.01, 0.01), [10.0, 300.0], "naive"),
}


@pytest.mark.parametrize("name", VAGUE)
def test_priors_that_floating_point_numbers_cannot_hold_have_curves_all_the_same(name):
    """Of rates that are 0 and variances that are infinite, as one draw in a few is."""
    family, prior, values, method = VAGUE[name]
    release = na.Release(family=family, values=values, n=1000, mechanism=na.mechanism.Laplace(48.0))
    rng = np.random.default_rng(0)
    draws = {name: rng.gamma(50.0, 0.002, 200) for name in family.parameters}
    posterior = na.Posterior(draws, release, prior, method, None, 0)
    for believed in posterior.prior_marginals()[: len(posterior.recorded)]:
        assert isinstance(believed, P.Empirical)
        assert np.isfinite(believed.draws).all()
        with jax.enable_x64(True):
            assert np.isfinite(believed.log_density(jax.numpy.array([3.0, 5.0]))).all()
    assert {number.name for number in curves(posterior, {})} == set(posterior.marginals())


def test_infer_warns_and_the_page_and_the_command_say_so(tmp_path):
    """A count of which half lies beyond the bound; exact for the family all the same."""
    release = na.Release(family=F.Poisson("visits", (0, 2)), values=[160], n=100, mechanism=na.mechanism.Laplace(2.0))
    with pytest.warns(RuntimeWarning, match=r"^The fit takes \d\d % of visits for values beyond the bounds, moved"):
        posterior = na.infer(release, P.Gamma(2, 1), num_draws=400, seed=1)
    assert posterior.is_exact
    assert posterior.explanation is None
    assert "more than the prior expected" in posterior.concerns[0]
    assert "Wider bounds" not in posterior.concerns[0]
    posterior.report(tmp_path / "page.html", truth=2.0)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (
        "The fit takes", "exact for this family", "then the mean count of the poisson law behind the bounds",
        f"recorded mean = {number(posterior.truths(2.0)['recorded mean'])}",
    ):  # fmt: skip
        assert text in page, text
    release.save(tmp_path / "release.json")
    arguments = ["infer", str(tmp_path / "release.json"), "--prior", "gamma(2, 1)", "--seed", "1", "--quiet"]
    told = CliRunner().invoke(app, arguments)
    assert told.stdout.index("recorded mean") < told.stdout.index("theta")
    assert "The fit takes" in told.stdout
    assert "RuntimeWarning" not in told.stderr
    document = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert [next(iter(document[part])) for part in ("parameters", "naive")] == ["recorded mean"] * 2
    assert document["concerns"][0].startswith("The fit takes")


def test_the_truth_of_a_recorded_number_follows_from_the_parameters():
    posterior = posterior_of("normal")
    found = posterior.truths({"mean": 9.0, "variance": 4.0})
    law = stats.norm(9, 2).rvs(400_000, random_state=np.random.default_rng(0)).clip(0, 10)
    assert found["recorded mean"] == pytest.approx(law.mean(), abs=0.02)
    assert found["recorded variance"] == pytest.approx(law.var(), abs=0.02)
    assert "recorded mean" not in posterior.truths({"mean": 9.0})


def test_the_naive_interval_is_held_against_what_the_noise_did_and_not_the_clamping():
    """Of a regression that takes many for moved, nothing is said of the two widths."""
    said = naive_headline(posterior_of("normal", share=0.3))
    assert "the mean of the values as recorded within the bounds" in said
    family = F.LinearRegression(["t"], "y", bounds=(-1, 1))
    s = 500 * np.array([0.0, 0.0, 0.36, 0.1, 0.2])
    release = na.Release(family=family, values=s, n=500, mechanism=na.mechanism.Laplace(5.0))
    rng = np.random.default_rng(0)
    draws = {"coefficients": rng.normal(size=(400, 2)), "variance": rng.gamma(9.0, size=400)}
    prior = family.completed(P.NormalInverseGamma([0.0, 0.0], 1.0, 3.0, 3.0))
    posterior = na.Posterior(draws, release, prior, "hmc", None, 0)
    assert sum(posterior.moved["t"]) > 0.1
    assert "interval" not in naive_headline(posterior)
    assert "then slopes may be wrong. Wider bounds would help." in posterior.concerns[0]


def laws(rng, n: int) -> dict[str, tuple[np.ndarray, tuple[float, float]]]:
    """Columns that are not normal, with the bounds that a person would give."""
    zeros = rng.random(n) < 0.7
    return {
        "incomes": (rng.lognormal(np.log(60), 0.9, n), (0.0, 500.0)),
        "exponential": (rng.exponential(2.0, n), (0.0, 8.0)),
        "zeros": (np.where(zeros, 0.0, rng.exponential(3.0, n)), (0.0, 8.0)),
        "bimodal": (rng.choice([1.0, 7.0], n, p=[0.3, 0.7]) + 0.4 * rng.normal(size=n), (0.0, 8.0)),
        "yes or no": ((rng.random(n) < 0.3).astype(float), (0.0, 1.0)),
        "normal": (rng.normal(4.0, 1.0, n), (0.0, 8.0)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["incomes", "exponential", "zeros", "bimodal", "yes or no", "normal"])
def test_nine_intervals_in_ten_hold_the_recorded_mean_whatever_the_law(name, seed):
    """Of 100 tables each: 90 % intervals hold E clip(x) in 90 ± 3 %, and that of the mean of the law almost never."""
    rng, n, trials, scale = np.random.default_rng(seed), 1000, 100, 2.25
    big, bounds = laws(rng, 2_000_000)[name]
    truth, centre, half = big.clip(*bounds).mean(), np.mean(bounds), np.ptp(bounds) / 2
    u = (np.stack([laws(rng, n)[name][0] for _ in range(trials)]).clip(*bounds) - centre) / half
    y = np.column_stack([u.sum(1), (u**2).sum(1)]) + rng.laplace(scale=scale, size=(trials, 2))
    family = F.Normal("x", bounds)
    prior = P.NormalInverseGamma(centre, 0.1, 2.0, 2 * (half / 2) ** 2)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed % 2**31), trials)
        noise = na.mechanism.Laplace(scale)
        drawn = np.asarray(
            hmc.batch(keys, Evidence(family, noise, jax.numpy.asarray(y), Public(n)), prior, num_draws=400)
        )
    held = {"recorded mean": 0, "mean": 0}
    for row, theta in zip(y, drawn, strict=True):
        release = na.Release(family=family, values=row, n=n, mechanism=na.mechanism.Laplace(scale))
        posterior = na.Posterior(family.named(theta), release, prior, "hmc", None, 0)
        for own, draws in posterior.marginals().items():
            if own in held:
                low, high = np.quantile(draws, (0.05, 0.95))
                held[own] += low <= (truth if own == "recorded mean" else big.mean()) <= high
    assert held["recorded mean"] >= 78, held
    if name not in ("normal", "yes or no"):
        assert held["mean"] <= 20, held
