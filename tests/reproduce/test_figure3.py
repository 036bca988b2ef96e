"""Figure 3 of the 2019 paper: its shape at full size, and its parts at a small one."""

import dataclasses

import jax
import numpy as np
import pytest

from noiseaware.reproduce import figure3
from noiseaware.reproduce.figure3 import FAMILIES, FULL, PRIOR, Setting

SMALL = figure3.Size((Setting(10, 0.1), Setting(10, 10.0)), ("naive", "nonprivate"), 60, 0, 2, num_draws=40)


@pytest.mark.slow
def test_a_small_figure_has_every_method_and_number():
    points = figure3.compute(SMALL)
    assert [(p.method, p.setting) for p in points] == [(m, s) for s in SMALL.settings for m in SMALL.methods]
    for p in points:
        assert all(((r > 0) & (r < 1)).all() and r.size == 60 for r in p.ranks.values())
        if p.method == "nonprivate":
            assert p.ks < figure3.critical(60)
            assert abs(p.mmd_squared["slope"].mean()) < 0.02
        else:
            assert p.ks > 0.25
            assert p.worst_coverage(0.95) < 0.6
    rows = list(figure3.rows(points))
    assert len(rows) == len(points) * len(figure3.PARAMETERS)
    assert all(len(row) == len(figure3.HEADER) and np.isfinite(row[5:]).all() for row in rows)
    (picture,) = figure3.draw(points).values()
    assert len(picture.axes) == 6


@pytest.mark.slow
def test_methods_see_tables_of_the_same_records():
    """The release with fourth moments begins with the statistics of the other."""
    with jax.enable_x64(True):
        key = figure3._key(0, Setting(10, 0.1))
        own, fourth = (
            figure3.simulate(key, family, PRIOR, mechanism, 10, 3)
            for family, mechanism in (figure3.noisy_family(m, FAMILIES["wide"], 0.1) for m in ("hmc", "gibbs_ss_noisy"))
        )
    np.testing.assert_array_equal(own.theta, fourth.theta)
    np.testing.assert_allclose(own.s, fourth.s[:, :5], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("bounds", "share", "tolerance"), [("wide", 0.00122, 0.0006), ("narrow", 0.1, 0.006)])
def test_bounds_clamp_the_stated_share_of_records(bounds, share, tolerance):
    """20 000 records of as many parameters: the tolerance is near three standard errors."""
    with jax.enable_x64(True):
        key_theta, key_records = jax.random.split(jax.random.key(3))
        theta = PRIOR.sample(key_theta, (20_000,))
        sample = jax.vmap(lambda k, t: FAMILIES[bounds].sample(k, t, 1))
        records = np.asarray(sample(jax.random.split(key_records, 20_000), theta))[..., 0]
    (low, high) = FAMILIES[bounds].intervals[1]
    assert abs(np.mean((records[:, 1] < low) | (records[:, 1] > high)) - share) < tolerance


@pytest.mark.slow
def test_the_shape_of_the_paper():
    """n = 10 and ε = 0.1, where noise is largest: ours is right, the naive posterior is not."""
    methods = ("hmc", "gibbs_ss_update", "naive", "nonprivate")
    size = dataclasses.replace(FULL, settings=(Setting(10, 0.1),), methods=methods, num_trials=500)
    points = {p.method: p for p in figure3.compute(size)}
    for method in ("hmc", "nonprivate"):
        assert points[method].ks < figure3.critical(500)
        assert abs(points[method].worst_coverage(0.95) - 0.95) < 0.04  # four standard errors
    assert points["naive"].ks > 0.5
    assert points["naive"].worst_coverage(0.95) < 0.3
    assert points["gibbs_ss_update"].ks < 0.5 * points["naive"].ks
    assert points["hmc"].mmd_squared["slope"].mean() < points["naive"].mmd_squared["slope"].mean()


@pytest.mark.slow
def test_latent_records_are_calibrated():
    size = dataclasses.replace(FULL, settings=(Setting(10, 0.1),), methods=("mcmc_ind",), num_individual=100)
    (point,) = figure3.compute(size)
    assert point.num_trials == 100
    assert point.ks < figure3.critical(100)
