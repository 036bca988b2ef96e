"""Calibration finds what is right and what is wrong."""

import dataclasses
import importlib.util
import pathlib

import numpy as np
import pytest

import noiseaware as na

SCRIPT = pathlib.Path(__file__).parent.parent / "benchmarks" / "calibration.py"


def settings() -> dict:
    spec = importlib.util.spec_from_file_location("calibration_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.SETTINGS


def test_the_exact_posterior_of_rare_events_is_calibrated_and_the_naive_is_not(seed):
    setting = {"n": 1000, "epsilon": 0.1, "num_trials": 500, "seed": seed}
    right = na.calibrate(na.family.Bernoulli(), na.prior.Beta(0.5, 100), **setting)
    wrong = na.calibrate(na.family.Bernoulli(), na.prior.Beta(0.5, 100), method="naive", **setting)
    assert right.ks < 1.95 / 500**0.5  # the 0.1 % level
    assert wrong.by_parameter["theta"] > 1.95 / 500**0.5
    # 4.5 standard errors of a share of 0.9 among 500
    assert right.coverage(0.9)["theta"] == pytest.approx(0.9, abs=4.5 * (0.09 / 500) ** 0.5)
    assert set(right.ranks) == {"theta", "log_likelihood"}
    assert right.plot().axes


def test_a_posterior_that_ignores_the_data_is_found_by_the_likelihood(seed, monkeypatch):
    import jax

    from noiseaware import calibration

    def ignore(keys, family, prior, mechanism, y, n, *, num_draws):
        return jax.vmap(lambda key: prior.sample(key, (num_draws,)))(keys)

    monkeypatch.setitem(calibration.METHODS, "exact", dataclasses.replace(calibration.METHODS["exact"], batch=ignore))
    found = na.calibrate(na.family.Bernoulli(), na.prior.Beta(2, 3), n=100, epsilon=1, num_trials=500, seed=seed)
    assert found.by_parameter["theta"] < 1.95 / 500**0.5
    assert found.by_parameter["log_likelihood"] > 1.95 / 500**0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", settings())
def test_every_exact_posterior_is_calibrated(name, seed):
    """One point of the grid of benchmarks/calibration.py, which takes hours."""
    family, prior = settings()[name]
    trials = 100
    found = na.calibrate(family, prior, n=100, epsilon=1, num_trials=trials, seed=seed)
    assert found.ks < 2.4 / trials**0.5  # of some 30 distances, one passes this in 1600 runs
    assert np.isfinite(list(found.coverage(0.5).values())).all()


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="method must be"):
        na.calibrate(na.family.Bernoulli(), na.prior.Beta(1, 1), n=10, epsilon=1, method="magic")
    with pytest.raises(ValueError, match="exactly one"):
        na.calibrate(na.family.Bernoulli(), na.prior.Beta(1, 1), n=10)
