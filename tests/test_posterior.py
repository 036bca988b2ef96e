"""infer and Posterior: what is checked, what is recorded, and what other tools can read."""

import json
import math
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.sampler.stand_in import drawing, stand_in

import noiseaware as na
from noiseaware.family.linear_regression_fourth import LinearRegressionFourth
from noiseaware.sampler import method as method_module
from noiseaware.study.utility import utility

COUNT = na.Release(
    family=na.family.Bernoulli("ill"), values=[231], n=1000, mechanism=na.mechanism.DiscreteLaplace(10.0)
)
CELLS = na.Release(
    family=na.family.Categorical("ward", levels=["a", "b", "c"]),
    values=[300, -5, 720],
    n=1000,
    mechanism=na.mechanism.DiscreteLaplace(20.0),
)
MEAN = na.Release(
    family=na.family.Normal("bp", variance=25.0), values=[12050.0], n=100, mechanism=na.mechanism.Laplace(300.0)
)
LINE = na.Release(
    family=na.family.LinearRegression(["age", "bmi"], "pressure", bounds=[(0, 100), (10, 60), (60, 220)]),
    values=[3.0, -40.0, 20.0, 30.0, 1.0, 9.0, 25.0, 4.0, 20.0],
    n=200,
    mechanism=na.mechanism.Laplace(0.5),
)
JOINT = na.Release(
    family=na.family.MultivariateNormal(["a", "b"]),
    values=[3.0, -40.0, 230.0, 31.0, 260.0],
    n=200,
    mechanism=na.mechanism.Gaussian([3.0, 3.0, 3.0, 2.0, 3.0]),
)
ABOUT_LINE = na.prior.NormalInverseGamma([0.5, 1.0, 90.0], [10.0, 5.0, 0.1], 3.0, 200.0)
ABOUT_JOINT = na.prior.NormalInverseWishart([0, 0], 1, 3, 5)
UNIFORM = na.prior.Beta(1, 1)
FLAT = na.prior.Dirichlet([1, 1, 1])


@pytest.mark.parametrize(("release", "prior"), [(COUNT, UNIFORM), (CELLS, FLAT), (MEAN, na.prior.Normal(100, 400))])
def test_naive_draws_follow_the_conjugate_posterior(release, prior, seed):
    posterior = na.infer(release, prior, method="naive", num_draws=20_000, seed=seed)
    for estimate, closed in zip(posterior.estimates(0.9), posterior.naive_estimates(0.9), strict=True):
        tolerance = 5 * closed.sd / math.sqrt(20_000)
        assert abs(estimate.mean - closed.mean) < tolerance
        # A 5 % quantile of a normal has standard error 2.1 sd/√draws; a skewed one somewhat more.
        assert abs(estimate.low - closed.low) < 3 * tolerance
        assert abs(estimate.high - closed.high) < 3 * tolerance


def test_closed_form_agrees_with_scipy():
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=10, seed=0)
    assert (posterior.num_draws, posterior.is_chain) == (10, False)
    assert [type(marginal) for marginal in posterior.naive_marginals()] == [na.prior.Beta] * 3
    counts = np.array([300, 0, 720]) * 1000 / 1020
    for estimate, count in zip(posterior.naive_estimates(), counts, strict=True):
        oracle = stats.beta(1 + count, 2 + 1000 - count)
        assert estimate.mean == pytest.approx(oracle.mean())
        assert estimate.sd == pytest.approx(oracle.std())
        assert (estimate.low, estimate.high) == pytest.approx(oracle.interval(0.95))


def test_exact_interval_is_wider_than_the_naive_one_and_says_exact(seed):
    posterior = na.infer(COUNT, UNIFORM, seed=seed)
    (own,), (naive,) = posterior.estimates(), posterior.naive_estimates()
    assert (posterior.method, posterior.is_exact, posterior.explanation) == ("exact", True, None)
    # Noise of scale 10 (variance 200) on a binomial of variance 178: √(1 + 200/178) = 1.46 times as wide.
    assert 1.3 < own.width / naive.width < 1.65


def test_same_seed_same_draws_and_a_fresh_one_is_recorded():
    first = na.infer(COUNT, UNIFORM, method="naive", seed=3).draws["theta"]
    again = na.infer(COUNT, UNIFORM, method="naive", seed=3).draws["theta"]
    np.testing.assert_array_equal(first, again)
    one, other = (na.infer(COUNT, UNIFORM, method="naive") for _ in range(2))
    assert one.seed != other.seed
    repeated = na.infer(COUNT, UNIFORM, method="naive", seed=one.seed)
    np.testing.assert_array_equal(one.draws["theta"], repeated.draws["theta"])


def test_float64_inside_and_the_users_setting_untouched():
    assert not jax.config.jax_enable_x64
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=7, seed=0)
    assert posterior.draws["theta"].dtype == np.float64
    assert posterior.draws["theta"].shape == (7, 3)
    assert np.abs(posterior.draws["theta"].sum(-1) - 1).max() < 1e-12  # float32 would be off by 1e-7
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    ("release", "prior", "options", "sentence"),
    [
        (COUNT, UNIFORM, {"method": "magic"}, "method must be one of auto, exact, hmc, gibbs, gibbs_ss_update,"),
        (COUNT, UNIFORM, {"method": "mcmc_ind"}, "one of exact, hmc, gibbs, augmentation, naive for this bernoulli"),
        (COUNT, na.prior.Gamma(1, 1), {}, "prior must be a Beta for the bernoulli family, got Gamma"),
        (COUNT, "beta(1, 1)", {}, "prior must be a Beta for the bernoulli family, got str"),
        (CELLS, na.prior.Dirichlet([1, 1]), {}, "prior must have 3 concentrations, one a level, got 2"),
        (LINE, UNIFORM, {}, "prior must be a NormalInverseGamma for the linear_regression family, got Beta"),
        (LINE, na.prior.NormalInverseGamma([0, 0], 1, 3, 3), {}, "prior must have a mean of 3 entries, one a"),
        (LINE, na.prior.NormalInverseGamma(0, 1, 3, 3), {}, "mean of 3 entries, one a coefficient, got one"),
        (LINE, na.prior.Independent(rate=na.prior.Gamma(1, 1)), {}, "prior must have the parts regression and"),
        (
            LINE,
            na.prior.Independent(regression=ABOUT_LINE, covariates=na.prior.Normal(0, 1)),
            {},
            "covariates must be a NormalInverseWishart or CovariateMoments, got Normal",
        ),
        (
            LINE,
            na.prior.Independent(regression=ABOUT_LINE, covariates=na.prior.NormalInverseWishart([0], 1, 1, 5)),
            {},
            "covariates prior must have a mean of 2 entries, one a covariate, got 1",
        ),
        (
            LINE,
            na.prior.Independent(regression=ABOUT_LINE, covariates=na.prior.CovariateMoments.of(np.arange(9.0))),
            {},
            "must have a mean of 5 entries, one a moment up to the second, got 2",
        ),
        (LINE, ABOUT_LINE, {"method": "exact"}, "method must be one of hmc, gibbs_ss_update"),
        (JOINT, na.prior.NormalInverseGamma([0, 0], 1, 3, 3), {}, "prior must be a NormalInverseWishart"),
        (JOINT, na.prior.NormalInverseWishart([0, 0, 0], 1, 1, 5), {}, "must have a mean of 2 entries, one a column"),
        (JOINT, ABOUT_JOINT, {"method": "gibbs"}, "one of hmc, augmentation, naive for this multivariate_normal"),
        (COUNT, UNIFORM, {"num_draws": 0}, "num_draws must be a whole number from 1 to 10,000,000, got 0"),
        (COUNT, UNIFORM, {"num_draws": 10**12}, "num_draws must be a whole number"),
        (COUNT, UNIFORM, {"num_draws": 2.5}, "num_draws must be a whole number"),
        (COUNT, UNIFORM, {"num_draws": True}, "num_draws must be a whole number"),
        (COUNT, UNIFORM, {"seed": -1}, "seed must be a whole number"),
        (COUNT, UNIFORM, {"seed": 2**64}, "seed must be a whole number"),
    ],
)
def test_refusals_are_one_sentence(release, prior, options, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")) as refusal:
        na.infer(release, prior, **options)
    assert str(refusal.value).count("\n") == 0
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"family": "bernoulli"}, r"family must be one of noiseaware\.family, such as Bernoulli\(\), got 'bernoulli'"),
        ({"mechanism": "laplace"}, r"mechanism must be one of noiseaware\.mechanism, .* got 'laplace'"),
    ],
)
def test_a_release_of_what_is_none_is_refused(change, sentence):
    given = {"family": na.family.Bernoulli(), "values": [3], "n": 9, "mechanism": na.mechanism.Laplace(1.0)}
    with pytest.raises(ValueError, match=sentence):
        na.Release(**given | change)


def test_draws_that_are_not_finite_are_an_error(monkeypatch):
    def broken(key, num_draws):
        return jax.numpy.full(num_draws, jax.numpy.nan).at[0].set(0.5)

    methods = method_module.METHODS
    monkeypatch.setitem(methods, "exact", drawing(methods["exact"], broken))
    with pytest.raises(RuntimeError, match="gave 9 draws of theta that are not finite"):
        na.infer(COUNT, UNIFORM, num_draws=10, seed=0)


FOURTH = LinearRegressionFourth(na.family.LinearRegression("age", "stay", bounds=(-1, 1)))


def test_auto_never_takes_what_ignores_the_noise(monkeypatch):
    """Of a regression with fourth moments a private n is known to no method; of another family nothing is."""
    release = na.Release(
        family=FOURTH,
        values=[0.5] * len(FOURTH.query.names),
        n=40,
        mechanism=na.mechanism.Laplace(1.0),
        n_mechanism=na.mechanism.DiscreteLaplace(1.0),
    )
    prior = na.prior.NormalInverseGamma([0, 0], 1, 3, 1)
    served = (
        r"n must be public .* gibbs_ss_noisy and augmentation then serve, got a private one; method='naive' ignores"
    )
    with pytest.raises(ValueError, match=served):
        na.infer(release, prior)
    with pytest.raises(ValueError, match=served):
        na.infer_each([release], prior)
    with pytest.raises(ValueError, match=served):
        na.calibrate(FOURTH, prior, n=40, epsilon=1, neighbours="add_remove")
    assert method_module.checked_method("naive", FOURTH, has_private_n=True).name == "naive"
    methods = {"exact": stand_in(method_module.METHODS["exact"], serves=lambda self, family: False)}
    monkeypatch.setattr(method_module, "METHODS", methods | {"naive": method_module.METHODS["naive"]})
    with pytest.raises(ValueError, match="family must be one that a method serves, got bernoulli; method='naive'"):
        na.infer(COUNT, UNIFORM)


def test_naive_is_approximate_unless_there_was_no_noise():
    assert not na.infer(COUNT, UNIFORM, method="naive", num_draws=1, seed=0).is_exact
    plain = na.Release(family=na.family.Bernoulli(), values=[231], n=1000, mechanism=na.mechanism.Identity())
    assert na.infer(plain, UNIFORM, method="naive", num_draws=1, seed=0).is_exact
    cut = na.Release(family=na.family.Poisson(bounds=(0, 3)), values=[900], n=1000, mechanism=na.mechanism.Identity())
    assert not na.infer(cut, na.prior.Gamma(1, 1), method="naive", num_draws=1, seed=0).is_exact


def test_summary_has_arvizs_names_and_independent_draws_show_as_such(seed):
    table = na.infer(CELLS, FLAT, method="naive", seed=seed).summary()
    assert list(table.index) == ["theta[a]", "theta[b]", "theta[c]"]
    assert list(table.columns) == [
        "mean", "sd", "eti95_lb", "eti95_ub", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat",
    ]  # fmt: skip
    # For 4000 independent draws the ESS estimates scatter by a tenth or so, and R-hat by a few thousandths.
    assert (abs(table["r_hat"] - 1) < 0.01).all()
    assert table[["ess_bulk", "ess_tail"]].map(lambda ess: 3000 < ess < 5000).all(axis=None)
    np.testing.assert_allclose(table["mcse_mean"], table["sd"] / math.sqrt(4000), rtol=0.15)


def test_summary_of_few_draws_says_that_diagnostics_are_unknown():
    table = na.infer(COUNT, UNIFORM, method="naive", num_draws=1, seed=0).summary()
    assert table[["sd", "ess_bulk", "r_hat"]].isna().all(axis=None)


@pytest.mark.parametrize(("num_draws", "chains"), [(4000, 4), (9, 3), (10, 2), (7, 1)])
def test_to_arviz_keeps_every_draw_in_order(num_draws, chains):
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=num_draws, seed=0)
    theta = posterior.to_arviz()["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "level")
    assert theta.sizes["chain"] == chains
    assert list(theta["level"].values) == ["a", "b", "c"]
    np.testing.assert_array_equal(theta.values.reshape(num_draws, 3), posterior.draws["theta"])


def test_saved_draws_come_back(tmp_path):
    import xarray as xr

    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=100, seed=5)
    path = tmp_path / "posterior.nc"
    posterior.save(path)
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"].values.reshape(100, 3), posterior.draws["theta"])
        np.testing.assert_array_equal(tree["observed_data"]["y"].values, [300, -5, 720])
        attributes = tree["posterior"].attrs
        assert (attributes["method"], attributes["seed"], attributes["is_exact"]) == ("naive", 5, 0)
        assert json.loads(attributes["release"])["n"] == 1000
    with pytest.raises(ValueError, match="exists already"):
        posterior.save(path)
    posterior.save(path, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.nc"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
def test_draws_are_saved_as_a_table_with_a_row_for_each_and_the_names_of_the_summary(suffix, tmp_path):
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=100, seed=5)
    path = tmp_path / f"draws{suffix}"
    posterior.save(path)
    read = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path, dtype=str).astype(float)
    assert list(read.columns) == list(posterior.summary().index)
    np.testing.assert_array_equal(read.to_numpy(), posterior.draws["theta"])
    with pytest.raises(ValueError, match="exists already"):
        posterior.save(path)
    posterior.save(path, force=True)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["draws", "draws.txt", "draws.h5", "draws.csv.gz", "draws.json"])
def test_draws_in_a_form_that_no_suffix_says_are_refused(name, tmp_path):
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=10, seed=0)
    with pytest.raises(
        ValueError, match=r"^output must end in \.nc \(netCDF\), \.csv or \.parquet, which is its form, got "
    ):
        posterior.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=10, seed=0)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'^this needs pyarrow, .*: pip install "noiseaware\[parquet\]"\.$'):
        posterior.save(tmp_path / "draws.parquet")


def test_truth_by_value_or_by_name():
    posterior = na.infer(CELLS, FLAT, method="naive", num_draws=10, seed=0)
    assert posterior.truths({"theta": [0.3, 0.0, 0.7]}) == {"theta[a]": 0.3, "theta[b]": 0.0, "theta[c]": 0.7}
    with pytest.raises(ValueError, match="truth of theta must be 3 finite numbers"):
        posterior.truths(0.3)
    with pytest.raises(ValueError, match="truth must name parameters"):
        posterior.truths({"rate": 0.3})


NUMBERS = {
    "line": (
        LINE,
        ABOUT_LINE,
        ["coefficients[age]", "coefficients[bmi]", "coefficients[intercept]", "variance"],
        {"coefficients": ("chain", "draw", "coefficient"), "variance": ("chain", "draw")},
        {"coefficients": [0.6, 0.9, 90.0], "variance": 100.0},
    ),
    "joint": (
        JOINT,
        ABOUT_JOINT,
        ["mean[a]", "mean[b]", "covariance[a, a]", "covariance[a, b]", "covariance[b, b]"],
        {"mean": ("chain", "draw", "column"), "covariance": ("chain", "draw", "column", "other_column")},
        {"mean": [0.0, -0.2], "covariance": [[1.1, 0.2], [0.2, 1.3]]},
    ),
}


RANKED = ("log_likelihood", "residual")  # besides the numbers of θ


@pytest.mark.parametrize(
    ("release", "prior"),
    [pytest.param(CELLS, FLAT, id="cells"), pytest.param(JOINT, ABOUT_JOINT, id="joint", marks=pytest.mark.slow)],
)
def test_numbers_have_one_name_everywhere(release, prior):
    family = release.family
    if release is JOINT:
        family = na.family.MultivariateNormal(["a", "b"], bounds=[(-9, 9), (-9, 9)])
    names = list(na.infer(release, prior, method="naive", num_draws=4, seed=0).summary().index)
    setting = {"n": 50, "epsilon": 5, "method": "naive", "num_trials": 2, "seed": 0}
    assert [name for name in na.calibrate(family, prior, **setting).ranks if name not in RANKED] == names
    assert list(utility(family, prior, num_draws=9, **setting).mmd_squared) == names
    assert list(na.plan(family, prior, n=50, epsilon=5).by_parameter) == names


@pytest.mark.parametrize("name", NUMBERS)
def test_vectors_and_matrices_go_to_other_tools_and_back(name, tmp_path):
    import xarray as xr

    release, prior, numbers, dims, truth = NUMBERS[name]
    posterior = na.infer(release, prior, method="naive", num_draws=400, seed=1)
    assert list(posterior.marginals()) == numbers == list(posterior.summary().index)
    assert [estimate.name for estimate in posterior.naive_estimates()] == numbers
    posterior.save(tmp_path / "posterior.nc")
    with xr.open_datatree(tmp_path / "posterior.nc", engine="h5netcdf") as tree:
        for parameter, draws in posterior.draws.items():
            array = tree["posterior"][parameter]
            assert array.dims == dims[parameter]
            np.testing.assert_array_equal(array.values.reshape(draws.shape), draws)
        assert list(tree["observed_data"]["statistic"].values) == list(release.query.names)
        assert json.loads(tree["posterior"].attrs["release"])["n"] == 200
    truths = posterior.truths(truth)
    assert list(truths) == numbers
    assert truths[numbers[-1]] == np.ravel(list(truth.values())[-1])[-1]
    with pytest.raises(ValueError, match="finite numbers, got"):
        posterior.truths({next(iter(truth)): 1.0})


@pytest.mark.parametrize("name", NUMBERS)
def test_naive_draws_of_vectors_follow_their_closed_forms(name, seed):
    release, prior, *_ = NUMBERS[name]
    posterior = na.infer(release, prior, method="naive", num_draws=20_000, seed=seed)
    for estimate, closed in zip(posterior.estimates(0.9), posterior.naive_estimates(0.9), strict=True):
        # As above; where the closed form of a covariance is itself 20 000 draws, √2 times as much.
        tolerance = 5 * 2**0.5 * closed.sd / math.sqrt(20_000)
        assert abs(estimate.mean - closed.mean) < tolerance
        assert abs(estimate.low - closed.low) < 3 * tolerance
        assert abs(estimate.high - closed.high) < 3 * tolerance


READ = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import arviz as az
    data = az.from_netcdf(sys.argv[1])
    theta = data["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "level"), theta.dims
    assert theta.shape == (4, 1000, 3), theta.shape
    assert list(data["posterior"]["level"].values) == ["a", "b", "c"]
    table = az.summary(data)
    assert list(table.index) == ["theta[a]", "theta[b]", "theta[c]"], table
    print(az.__version__, repr(float(theta.sum())))
"""


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["arviz==0.23.*", "arviz>=1"])
def test_arviz_reads_the_file(tmp_path, wanted):
    if wanted == "arviz>=1" and sys.version_info < (3, 12):
        pytest.skip("ArviZ 1 needs Python 3.12")
    posterior = na.infer(CELLS, FLAT, method="naive", seed=0)
    posterior.save(tmp_path / "posterior.nc")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", wanted, "h5netcdf", "h5py"], check=True)
    read = [python, "-c", textwrap.dedent(READ), tmp_path / "posterior.nc"]
    done = subprocess.run(read, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version, total = done.stdout.split()
    assert version.startswith("0.23" if "==" in wanted else "1.")
    assert float(total) == pytest.approx(posterior.draws["theta"].sum())


def test_two_parameters_go_all_the_way_to_the_page(tmp_path):
    """A mean and a variance: named, summarised, told in words, drawn and exported."""
    release = na.Release(
        family=na.family.Normal("weight", bounds=(40, 120)),
        values=[-90.0, 160.0],
        n=1000,
        mechanism=na.mechanism.Laplace(9.0),
    )
    prior = na.prior.NormalInverseGamma(75.0, 1.0, 3.0, 400.0)
    posterior = na.infer(release, prior, method="naive", num_draws=4000, seed=3)
    assert list(posterior.summary().index) == ["recorded mean", "recorded variance", "mean", "variance"]
    right = stats.t(2 * 503, *_location_and_scale(release, prior))
    estimate, naive = posterior.estimates()[0], posterior.naive_estimates()[0]
    assert naive.low == pytest.approx(right.ppf(0.025))
    assert estimate.mean == pytest.approx(right.mean(), abs=4.5 * right.std() / 4000**0.5)
    posterior.report(tmp_path / "weight.html", truth={"mean": 76.0, "variance": 250.0})
    page = (tmp_path / "weight.html").read_text(encoding="utf-8")
    assert "the mean of the values as recorded within the bounds lies between" in page
    assert "the mean of the normal law behind the bounds lies between" in page
    assert "the variance of the normal law behind the bounds lies between" in page
    assert len(posterior.plot().axes) == 4
    assert set(posterior.to_arviz()["posterior"].data_vars) == {"mean", "variance"}


def _location_and_scale(release, prior) -> tuple[float, float]:
    """Of the mean given Σu and Σu², with u = (x − 80)/40, in the units of x."""
    n, (s1, s2) = release.n, release.values
    x, square = 40 * s1 + 80 * n, 1600 * s2 + 2 * 80 * 40 * s1 + 80**2 * n
    precision, shape = prior.precision + n, prior.shape + n / 2
    location = (prior.precision * prior.mean + x) / precision
    scale = prior.scale + 0.5 * (square + prior.precision * prior.mean**2 - precision * location**2)
    return location, (scale / (shape * precision)) ** 0.5


def test_neighbours_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="neighbours must be 'replace' or 'add_remove', got 'foo'"):
        na.Release(family=na.family.Bernoulli(), values=[1], n=2, mechanism=na.mechanism.Laplace(1.0), neighbours="foo")
