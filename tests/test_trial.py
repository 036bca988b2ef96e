"""Simulated trials: the law of what is simulated, and what each baseline sees of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import Bernoulli, Exponential
from noiseaware.mechanism import Gaussian, Laplace
from noiseaware.prior import Beta, Gamma
from noiseaware.study import simulate

pytestmark = pytest.mark.usefixtures("x64")

FAMILY, PRIOR, NOISE, N = Exponential(bounds=(0, 0.5)), Gamma(8.0, 2.0), Laplace(0.7), 40
PLANNED = Evidence(FAMILY, NOISE, None, Public(N))


@pytest.fixture
def trials(key):
    return simulate.simulate(key, PLANNED, PRIOR, 2000)


def test_a_trial_has_the_law_of_the_model(trials):
    theta, s, altered_s, y = (np.asarray(values) for values in trials)
    gamma = scipy.stats.gamma(8, scale=1 / 2)
    assert scipy.stats.kstest(theta, gamma.cdf).pvalue > 1e-4
    # a sum of 40 waits times its rate is Gamma(40)
    assert scipy.stats.kstest(s[:, 0] * theta, scipy.stats.gamma(N).cdf).pvalue > 1e-4
    assert scipy.stats.kstest((y - altered_s)[:, 0], scipy.stats.laplace(scale=0.7).cdf).pvalue > 1e-4
    clamped = N * (1 - np.exp(-0.5 * theta)) / theta  # E min(x, 0.5)
    assert altered_s[:, 0].mean() == pytest.approx(clamped.mean(), rel=0.02)
    assert (altered_s <= s).all()


def test_a_table_too_large_for_one_go_gives_the_same_law(key, monkeypatch):
    whole = simulate.simulate(key, Evidence(FAMILY, NOISE, None, Public(50)), PRIOR, 7)
    simulate._simulate.clear_cache()
    monkeypatch.setattr(simulate, "_RECORDS", 100)
    pieces = simulate.simulate(key, Evidence(FAMILY, NOISE, None, Public(50)), PRIOR, 7)
    simulate._simulate.clear_cache()
    for one, other in zip(whole, pieces, strict=True):
        assert np.asarray(one) == pytest.approx(np.asarray(other), rel=1e-12)


def ranks(key, name: str, trials: simulate.Trials) -> np.ndarray:
    drawn = simulate.draws(key, simulate.evaluated(name, FAMILY), PLANNED, PRIOR, trials, num_draws=199)
    return np.asarray((drawn < trials.theta[:, None]).mean(axis=1))


def test_each_baseline_sees_what_it_should(key, trials):
    """Right with the true sum, off with its noise, and far off when the clamped records are missing too."""
    far = [scipy.stats.kstest(ranks(key, name, trials), "uniform").statistic for name in ("nonprivate", "naive")]
    assert far[0] < 1.95 / 2000**0.5 + 1 / 200
    assert far[1] > 0.3
    # what the cheating one is given is the unaltered sum with the very noise of the release
    seen = np.asarray(simulate.EVALUATED["cheating"].seen(trials))
    assert seen - np.asarray(trials.s) == pytest.approx(np.asarray(trials.y - trials.altered_s))
    quiet = trials._replace(y=trials.altered_s)
    assert scipy.stats.kstest(ranks(key, "cheating", quiet), "uniform").statistic < 1.95 / 2000**0.5 + 1 / 200


def test_a_fixed_parameter_is_that_of_all_trials(key):
    held = simulate.fixed(Bernoulli(), Beta(1.0, 1.0), 0.25)
    trials = simulate.simulate(
        key, Evidence(Bernoulli(), Gaussian(1.0), None, Public(8)), Beta(1.0, 1.0), 3000, theta=held
    )
    assert set(np.asarray(trials.theta)) == {0.25}
    counts = np.bincount(np.asarray(trials.s, dtype=int)[:, 0], minlength=9)
    wanted = 3000 * scipy.stats.binom.pmf(np.arange(9), 8, 0.25)
    assert scipy.stats.chisquare(np.append(counts[:6], counts[6:].sum()), [*wanted[:6], wanted[6:].sum()]).pvalue > 1e-4


def test_noise_follows_from_the_promise():
    assert simulate.noise(FAMILY, epsilon="0.1", rho=None, mechanism=None) == Laplace(5.0)
    assert simulate.noise(FAMILY, epsilon=None, rho=0.125, mechanism=None) == Gaussian(1.0)
    assert simulate.noise(FAMILY, epsilon=None, rho=None, mechanism=NOISE) is NOISE


def test_batches_are_equal_and_enough():
    size, keys = simulate.chunks(1100, 0, "simulating")
    assert (size, len(list(keys))) == (220, 5)
    assert jnp.array_equal(
        jax.random.key_data(next(iter(simulate.chunks(3, 5, "simulating")[1]))),
        jax.random.key_data(jax.random.split(jax.random.key(5), 1)[0]),
    )
