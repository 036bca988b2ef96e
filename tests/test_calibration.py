"""Calibration finds what is right and what is wrong."""

import importlib.util
import io
import pathlib
import sys

import jax
import numpy as np
import pytest
import scipy.stats
from tests.sampler.stand_in import stand_in

import noiseaware as na
from noiseaware.sampler.method import METHODS
from noiseaware.study import calibration, ecdf
from noiseaware.study.calibration import Calibration

SCRIPT = pathlib.Path(__file__).parent.parent / "benchmarks" / "calibration.py"


def settings() -> dict:
    spec = importlib.util.spec_from_file_location("calibration_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.SETTINGS


@pytest.mark.slow
def test_the_exact_posterior_of_rare_events_is_calibrated_and_the_naive_is_not(seed):
    setting = {"n": 1000, "epsilon": 0.1, "num_trials": 250, "seed": seed}
    right = na.calibrate(na.family.Bernoulli(), na.prior.Beta(0.5, 100), **setting)
    wrong = na.calibrate(na.family.Bernoulli(), na.prior.Beta(0.5, 100), method="naive", **setting)
    assert right.ks < 1.95 / 250**0.5  # the 0.1 % level
    assert wrong.by_parameter["theta"] > 1.95 / 250**0.5
    # 4.5 standard errors of a share of 0.9 among 250
    assert right.coverage(0.9)["theta"] == pytest.approx(0.9, abs=4.5 * (0.09 / 250) ** 0.5)
    assert set(right.ranks) == {"theta", "log_likelihood", "residual"}
    assert right.plot().axes


@pytest.fixture
def replaced(monkeypatch):
    """Put another method in the place of the exact one."""

    def replace(batch):
        monkeypatch.setitem(METHODS, "exact", stand_in(METHODS["exact"], batch=batch))

    return replace


def test_a_posterior_that_ignores_the_data_is_found_by_what_depends_on_it(seed, replaced):
    def ignore(self, keys, evidence, prior, route, num_draws):
        return jax.vmap(lambda key: prior.sample(key, (num_draws,)))(keys)

    replaced(ignore)
    found = na.calibrate(na.family.Bernoulli(), na.prior.Beta(2, 3), n=100, epsilon=1, num_trials=500, seed=seed)
    assert found.by_parameter["theta"] < 1.95 / 500**0.5
    assert found.by_parameter["log_likelihood"] > 1.95 / 500**0.5
    assert found.by_parameter["residual"] > 1.95 / 500**0.5


def test_a_broken_method_is_loud(replaced):
    replaced(
        lambda self, keys, evidence, prior, route, num_draws: jax.numpy.full((len(keys), num_draws), jax.numpy.nan)
    )
    with pytest.raises(RuntimeError, match="not finite"):
        na.calibrate(na.family.Bernoulli(), na.prior.Beta(2, 3), n=100, epsilon=1, num_trials=250, seed=0)


@pytest.mark.slow
def test_the_baselines_that_see_the_records(seed):
    """The non-private posterior is right; one-posterior sampling is so wide that the truth lies in its middle."""
    setting = {"n": 1000, "epsilon": 0.1, "num_trials": 500, "seed": seed}
    right = na.calibrate(na.family.Bernoulli(), na.prior.Beta(10, 10), method="nonprivate", **setting)
    wide = na.calibrate(na.family.Bernoulli(), na.prior.Beta(10, 10), method="ops", **setting)
    assert right.ks < right.critical(0.999)
    assert wide.by_parameter["theta"] > wide.critical(0.999)
    assert wide.coverage(0.5)["theta"] > 0.8


@pytest.mark.parametrize(("u", "rank"), [(0.0, 0.2), (0.5, 0.5), (1.0, 0.8)])
def test_a_rank_is_spread_over_its_ties(u, rank):
    """Of four draws one is below the truth and two are equal to it."""
    assert calibration._rank("theta", np.array([[1.0, 0.0, 1.0, 1.0, 2.0]]), np.array([u])) == pytest.approx(rank)


def exact_coverage(level: float, theta: float, n: int, a: float, b: float, num_draws: int) -> float:
    """Of the central interval of Beta(a + k, b + n − k) as its draws show it, summed over every count k."""
    k, below = np.arange(n + 1), np.arange(num_draws + 1)
    u = scipy.stats.beta.cdf(theta, a + k, b + n - k)
    low, high = ((1 - level) / 2 * (num_draws + 1), (1 + level) / 2 * (num_draws + 1))
    inside = np.clip(np.minimum(below + 1, high) - np.maximum(below, low), 0, 1)
    return float(scipy.stats.binom.pmf(k, n, theta) @ (scipy.stats.binom.pmf(below, num_draws, u[:, None]) @ inside))


def test_coverage_at_a_fixed_parameter_is_that_of_enumeration(seed):
    """At θ = 0.02 and 50 records a Beta(2, 3) prior pulls all intervals upwards."""
    found = na.calibrate(
        na.family.Bernoulli(), na.prior.Beta(2, 3), n=50, epsilon=1, method="nonprivate", theta=0.02,
        num_trials=2000, seed=seed,
    )  # fmt: skip
    for level in (0.5, 0.9):
        wanted = exact_coverage(level, 0.02, 50, 2, 3, 63)
        assert abs(wanted - level) > 0.05
        assert found.coverage(level)["theta"] == pytest.approx(wanted, abs=4.5 * (wanted * (1 - wanted) / 2000) ** 0.5)
        assert found.coverage_error(level)["theta"] == pytest.approx((wanted * (1 - wanted) / 2000) ** 0.5, rel=0.2)
    assert set(found.ranks) == {"theta"}
    with pytest.raises(ValueError, match="at a fixed theta, see coverage"):
        found.ks
    assert found.plot().axes[0].get_xlabel() == "level of the interval"


def test_error_of_a_coverage_that_was_never_missed_is_not_zero():
    always = Calibration({"theta": np.full(100, 0.5)})
    assert always.coverage(0.9) == {"theta": 1.0}
    assert 0.005 < always.coverage_error(0.9)["theta"] < 0.03


@pytest.mark.parametrize("size", [20, 1000])
def test_the_band_holds_whole_samples(size, seed):
    z, low, high = ecdf.band(size, 0.95)
    samples = np.random.default_rng(seed).random((4000, size))
    shares = (samples[:, :, None] <= z).mean(axis=1) if size < 100 else np.array(
        [np.searchsorted(np.sort(row), z, side="right") / size for row in samples]
    )  # fmt: skip
    inside = ((shares >= low - 1e-12) & (shares <= high + 1e-12)).all(axis=1).mean()
    # 4.5 standard errors of the share, and of the band's own simulation; small samples can only step over 95 %
    assert inside == pytest.approx(0.95, abs=4.5 * 0.0475**0.5 * (1 / 4000 + 1 / 5000) ** 0.5 + 0.3 / size)
    pointwise = scipy.stats.binom.ppf([0.025, 0.975], size, 0.5) / size
    assert low[49] < pointwise[0]
    assert high[49] > pointwise[1]


def test_the_critical_value_is_that_of_the_largest_distance(seed):
    """Bonferroni over independent rows: 5 % of right methods are over, a little less in fact."""
    rng = np.random.default_rng(seed)
    rows = [Calibration({"a": rng.random(200), "b": rng.random(200)}) for _ in range(2000)]
    over = np.mean([row.ks > row.critical(0.95) for row in rows])
    assert over == pytest.approx(0.05, abs=4.5 * (0.0475 / 2000) ** 0.5)
    assert Calibration({"a": rng.random(1500)}).critical(0.95) == pytest.approx(1.358 / 1500**0.5, rel=0.01)


def test_trials_are_as_many_as_asked_and_a_bar_shows_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    setting = {"n": 10, "epsilon": 1, "method": "nonprivate", "theta": 0.3, "num_trials": 251, "seed": 3}
    quiet = na.calibrate(na.family.Bernoulli(), na.prior.Beta(2, 3), **setting)
    assert quiet.num_trials == 251
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    shown = na.calibrate(na.family.Bernoulli(), na.prior.Beta(2, 3), **setting)
    assert "calibrating" in terminal.getvalue()
    assert (shown.ranks["theta"] == quiet.ranks["theta"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", settings())
def test_every_exact_posterior_is_calibrated(name, seed):
    """One point of the grid of benchmarks/calibration.py, which takes hours."""
    family, prior = settings()[name]
    trials = 100
    found = na.calibrate(family, prior, n=100, epsilon=1, num_trials=trials, seed=seed)
    assert found.ks < 2.4 / trials**0.5  # of some 45 distances, one passes this in 1100 runs
    assert np.isfinite(list(found.coverage(0.5).values())).all()


REFUSED = [
    ({"method": "magic"}, "method must be one of auto, exact"),
    ({"epsilon": None}, "exactly one"),
    ({"rho": 1, "mechanism": na.mechanism.Laplace(1.0)}, "give one of"),
    ({"n": 0}, "n must be"),
    ({"num_trials": 0}, "num_trials must be"),
    ({"prior": na.prior.Gamma(1, 1)}, "prior must be a Beta"),
    ({"theta": 1.5}, "theta must be possible"),
    ({"theta": [0.1, 0.9]}, "theta must have 1 entries"),
    ({"theta": "half"}, "theta must be a number"),
    ({"method": "ops", "epsilon": None, "rho": 1}, "ops must be given epsilon"),
]


@pytest.mark.parametrize(("change", "rule"), REFUSED)
def test_bad_settings_are_refused(change, rule):
    given = {"prior": na.prior.Beta(1, 1), "n": 10, "epsilon": 1, "num_trials": 250} | change
    with pytest.raises(ValueError, match=rule):
        na.calibrate(na.family.Bernoulli(), **given)
