"""A gamma with unknown shape, from a table to its posterior: against tables from the prior, weighted by the noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.sampler.weighted import agrees

import noiseaware as na
from noiseaware.cli.prior import parse
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.sampler import _target, adequacy, augmentation

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:The (fit|released|prior):RuntimeWarning")

PRIOR = na.prior.Independent(shape=na.prior.Gamma(4.0, 2.0), rate=na.prior.Gamma(3.0, 1.0))
BOUNDS, DRAWS, TABLES = (0.2, 4.0), 4000, 300_000


def tables(rng, n: int, outside: str) -> tuple[np.ndarray, np.ndarray]:
    """Shape and rate from the prior, and the statistics of a table of each."""
    shape, rate = rng.gamma(4.0, 0.5, TABLES), rng.gamma(3.0, 1.0, TABLES)
    s = np.zeros((TABLES, 2))
    for _ in range(n):
        x = rng.gamma(shape) / rate
        u = (x.clip(*BOUNDS) - np.mean(BOUNDS)) / (np.ptp(BOUNDS) / 2)
        u = np.where((outside == "clamp") | ((x >= BOUNDS[0]) & (x <= BOUNDS[1])), u, 0.0)
        s += np.stack([u, u**2], axis=1)
    return np.stack([shape, rate], axis=1), s


def quarter(draws: np.ndarray) -> float:
    """What draws of a chain are worth at least."""
    return len(draws) / 4


# Noise above, near and below the sampling error; where n is smallest, hmc may be off by what `limit` says.
@pytest.mark.slow
@pytest.mark.parametrize(("n", "scale", "outside"), [(6, 0.3, "clamp"), (20, 3.0, "clamp"), (12, 0.6, "drop")])
def test_both_methods_match_weighted_tables(n, scale, outside, seed):
    family, y = na.family.Gamma(bounds=BOUNDS, outside=outside), np.array([-0.3, 0.4]) * n
    release = na.Release(family=family, values=y, n=n, mechanism=na.mechanism.Laplace(scale))
    theta, s = tables(np.random.default_rng(seed), n, outside)
    for method in ("augmentation", "hmc"):
        found = na.infer(release, PRIOR, method=method, num_draws=DRAWS, seed=1)
        draws, slack = np.stack(list(found.draws.values()), axis=1), 0.0
        if method == "hmc":
            with jax.enable_x64(True):
                slack = adequacy.Adequacy(release.evidence(), PRIOR).doubt.normality
        assert agrees(draws, theta, -np.abs(y - s).sum(1) / scale, quarter, slack=slack), method
        if method == "augmentation":
            assert not agrees(draws, theta, -np.abs(y - s).sum(1) / (2 * scale), quarter)


def test_hmc_knows_the_normal_law_of_the_sums(x64):
    """The log density of its target, against one written out with SciPy, up to a constant; slopes by differences."""
    family, mechanism, n = na.family.Gamma(bounds=BOUNDS), na.mechanism.Gaussian(2.0), 50.0
    y = jnp.asarray([-15.0, 20.0])
    target = _target.of(Evidence(family, mechanism, y, Public(n)), PRIOR)
    height = jax.jit(target.log_density)

    def by_hand(shape, rate):
        x = stats.gamma(shape, scale=1 / rate).ppf((np.arange(20_000) + 0.5) / 20_000).clip(*BOUNDS)
        u = (x - np.mean(BOUNDS)) / (np.ptp(BOUNDS) / 2)
        t = np.stack([u, u**2])
        law = stats.multivariate_normal(n * t.mean(1), n * np.cov(t) + 4 * np.eye(2))
        prior = stats.gamma(4, scale=0.5).logpdf(shape) + stats.gamma(3).logpdf(rate)
        return law.logpdf(np.asarray(y)) + prior + np.log(shape * rate)

    thetas = [(2.0, 1.0), (3.0, 1.7), (1.0, 0.4)]
    off = [float(height(jnp.log(jnp.asarray(theta)))) - by_hand(*theta) for theta in thetas]
    np.testing.assert_allclose(off, off[0], atol=1e-3)
    v, step = jnp.log(jnp.asarray([2.0, 1.0])), 1e-6
    slope = [(height(v + step * side) - height(v - step * side)) / (2 * step) for side in jnp.eye(2)]
    np.testing.assert_allclose(jax.jit(jax.grad(height))(v), slope, rtol=1e-6)


@pytest.mark.slow
def test_a_step_of_augmentation_goes_by_the_records(x64, key):
    """One sweep of chains that start where the law is known keeps it there: noise so wide that it tells nothing."""
    family, mechanism, size = na.family.Gamma(bounds=BOUNDS), na.mechanism.Laplace(1e9), 4000
    y, setting = jnp.zeros(2), augmentation.Setting(block=5, imagined=8)

    @jax.jit
    @jax.vmap
    def swept(key):
        key_theta, key_records, key_step = jax.random.split(key, 3)
        theta = PRIOR.sample(key_theta)
        start = augmentation.State(theta, family.sample(key_records, theta, 10), jnp.asarray(1.0))
        return augmentation.step(key_step, start, Evidence(family, mechanism, y, Public(10)), PRIOR, setting)[0]

    state = swept(jax.random.split(key, size))
    shape, rate = np.asarray(state.theta).T
    ranks = [stats.gamma(4, scale=0.5).cdf(shape), stats.gamma(3).cdf(rate)]
    ranks += list(stats.gamma(shape, scale=1 / rate).cdf(np.asarray(state.x).T))
    for rank in ranks:  # records have the law of the parameters that they were carried to
        assert stats.kstest(rank, "uniform").statistic < 2.7 / size**0.5


def test_from_a_file_to_what_is_believed(tmp_path, seed):
    """Release and inference as a person does both; what no method of the family is, is refused."""
    x = np.random.default_rng(seed).gamma(2.5, 1 / 1.2, 20_000)
    pd.DataFrame({"amount": x}).to_csv(tmp_path / "amounts.csv", index=False)
    family = na.family.Gamma("amount", bounds=(0, 12))
    na.release(tmp_path / "amounts.csv", family, epsilon=2).save(tmp_path / "amounts.json")
    release = na.load(tmp_path / "amounts.json")
    assert release.family == family
    prior = parse("independent(rate=gamma(3, 1), shape=gamma(4, 2))")
    believed = na.infer(release, prior, method="naive", seed=0)
    # few are beyond 12 and the noise is small: the fit of moments is near the truth
    assert believed.summary()["mean"][["shape", "rate"]].tolist() == pytest.approx([2.5, 1.2], rel=0.1)
    assert "simple law about the fit of its moments" in believed.explanation
    with pytest.raises(ValueError, match="method must be one of hmc, augmentation, naive for this gamma family, got"):
        na.infer(release, prior, method="gibbs")


@pytest.mark.slow
def test_auto_takes_what_neglects_least():
    family = na.family.Gamma(bounds=BOUNDS)
    for n, scale, method in ((6, 0.05, "augmentation"), (2000, 5.0, "hmc")):
        y = np.array([-0.3, 0.4]) * n
        release = na.Release(family=family, values=y, n=n, mechanism=na.mechanism.Laplace(scale))
        assert na.infer(release, PRIOR, num_draws=500, seed=0).method == method
