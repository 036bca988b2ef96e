"""Plans: the width that is foretold is that of simulated tables, and what is found gives what was wanted."""

import numpy as np
import pytest

import noiseaware as na
from noiseaware.mechanism import Gaussian, Laplace
from noiseaware.study import tally, weighting
from noiseaware.study.plan import plan
from noiseaware.study.width import TAILS, Noise, records_worth

family, prior = na.family, na.prior
SETTINGS = {
    "bernoulli": (family.Bernoulli(), prior.Beta(1, 9)),
    "exponential": (family.Exponential(bounds=(0, 10)), prior.Gamma(8, 10)),
    "normal": (family.Normal(bounds=(-3, 3), variance=1.0), prior.Normal(0, 4)),
    "poisson": (family.Poisson(bounds=(0, 20)), prior.Gamma(3, 1)),
    "categorical": (family.Categorical(levels=["a", "b", "c"]), prior.Dirichlet([1, 2, 3])),
}


def _check(name, n, epsilon, num_trials, seed):
    foretold = plan(*SETTINGS[name], n=n, epsilon=epsilon)
    simulated = foretold.simulated(num_trials, seed)
    assert foretold.by_parameter.keys() == simulated.keys()
    for number, width in foretold.by_parameter.items():
        found, error = simulated[number]
        assert abs(width / found - 1) < foretold.error + 2 * error / found, (number, width, found, error)


@pytest.mark.slow
def test_the_width_is_that_of_simulated_tables(seed):
    _check("bernoulli", 200, 0.2, 200, seed)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5])
@pytest.mark.parametrize("n", [30, 1000, 100_000])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_width_is_that_of_simulated_tables_over_the_grid(name, n, epsilon, seed):
    _check(name, n, epsilon, 300, seed)


@pytest.mark.slow
def test_the_width_is_that_of_simulated_tables_of_a_private_number(seed):
    foretold = plan(*SETTINGS["bernoulli"], n=300, epsilon=0.3, neighbours="add_remove")
    found, error = foretold.simulated(100, seed)["theta"]
    assert abs(foretold.width / found - 1) < foretold.error + 2 * error / found


def test_rare_levels_are_narrower_for_what_the_others_say():
    """1000 simulated tables had 0.3592 ± 0.0020 over all levels (benchmarks/plan.py); each level alone has 0.389."""
    foretold = plan(family.Categorical(levels=list("abcdef")), prior.Dirichlet([0.3] * 6), n=80, epsilon=0.2)
    assert foretold.width == pytest.approx(0.3592, rel=0.05)
    assert len(set(foretold.by_parameter.values())) == 1


def test_a_clamped_gamma_of_some_tables_that_say_next_to_nothing():
    """1000 simulated tables had 0.5512 ± 0.0101."""
    foretold = plan(family.Gamma(bounds=(1, 4), shape=3.0), prior.Gamma(6, 4), n=150, rho=0.02)
    assert abs(foretold.width / 0.5512 - 1) < foretold.error == 0.05


def test_two_numbers_of_skewed_priors():
    """1000 simulated tables had 2.204 ± 0.018 and 1.300 ± 0.018; the information alone foretells a shape of 1.875."""
    believed = prior.Independent(shape=prior.Gamma(4, 2), rate=prior.Gamma(4, 4))
    foretold = plan(family.Gamma(bounds=(0, 20)), believed, n=200, epsilon=1)
    assert foretold.error == 0.1
    assert foretold.by_parameter == pytest.approx({"shape": 2.204, "rate": 1.300}, rel=0.1)


def test_a_plan_of_rare_events_and_little_noise_says_that_it_is_less_sure():
    setting = (family.Bernoulli(), prior.Beta(0.5, 100))
    assert plan(*setting, n=30, epsilon=5).error == 0.2
    assert plan(*setting, n=30, epsilon=0.5).error == 0.05
    assert "± 20%" in repr(plan(*setting, n=30, epsilon=5))


def test_counts_known_together_are_those_of_listing_them_all(seed):
    """p(k_j | y) by every way in which three counts make 12."""
    n, rng, concentration = 12, np.random.default_rng(seed), np.array([0.5, 1, 3])
    k = np.arange(n + 1.0)
    y = rng.uniform(-3, 15, (2, 3))
    log_g = tally._log_count(k, 1, concentration) + tally._log_noise(
        y[:, :, None] - k, 2.0, Noise(np.array([4.0]), Laplace.shape, 0.0)
    )
    found = np.exp(log_g) * tally._others(np.exp(log_g))[:, :, ::-1]
    wanted = np.zeros_like(found)
    for a in range(n + 1):
        for b in range(n + 1 - a):
            mass = np.exp(log_g[:, 0, a] + log_g[:, 1, b] + log_g[:, 2, n - a - b])
            for level, count in enumerate((a, b, n - a - b)):
                wanted[:, level, count] += mass
    shares = [mass / mass.sum(axis=2, keepdims=True) for mass in (found, wanted)]
    np.testing.assert_allclose(*shares, atol=1e-12)


def test_a_cell_of_several_counts_has_their_masses():
    concentration = np.array([0.3, 2.0])
    cells = tally._log_count(np.arange(5) * 4.0, 4, concentration)
    each = np.exp(tally._log_count(np.arange(18.0), 1, concentration))
    wanted = np.stack([each[:, :2].sum(1), *(each[:, 4 * i - 2 : 4 * i + 2].sum(1) for i in range(1, 5))], axis=1)
    np.testing.assert_allclose(np.exp(cells), wanted, rtol=1e-9)


@pytest.mark.parametrize("law", [Gaussian, Laplace])
def test_weighted_draws_of_a_normal_mean_have_its_interval(law, seed):
    """θ ~ N(0, 1), y ~ N(10 θ, 10) and noise of variance 300; of Laplace noise, by a grid of θ."""
    theta = np.random.default_rng(seed).normal(size=20_000)
    noise = Noise(np.array([300.0]), law.shape, 0.0)
    ones = np.ones((len(theta), 1, 1))
    found, is_known = weighting.widths({"mean": theta}, theta[:, None], ones, np.arange(400), 10.0, noise, TAILS)
    assert is_known.all()
    wanted = 2 * 1.959964 * (1 + 100 / 310) ** -0.5
    if law is Laplace:  # peaked noise says more
        assert 0.85 * wanted < found["mean"].mean() < 0.99 * wanted
    else:
        assert found["mean"].mean() == pytest.approx(wanted, rel=0.01)


def test_the_width_of_a_normal_mean_without_noise_is_its_formula():
    """The posterior of n records of variance 1 under Normal(0, 4) has variance 1/(n + 1/4), whatever they are."""
    foretold = plan(family.Normal(bounds=(-1e3, 1e3), variance=1.0), prior.Normal(0, 4), n=50, epsilon=1e6)
    assert foretold.width == pytest.approx(2 * 1.959964 / (50 + 0.25) ** 0.5, rel=0.005)


def test_all_noise_leaves_the_prior():
    wide = plan(*SETTINGS["bernoulli"], n=100, epsilon=1e-5).width
    from scipy.stats import beta

    assert wide == pytest.approx(beta(1, 9).ppf(0.975) - beta(1, 9).ppf(0.025), rel=0.01)


def test_the_smallest_epsilon_and_the_fewest_records_have_the_wanted_width():
    setting = SETTINGS["bernoulli"]
    found = plan(*setting, n=5000, width=0.02)
    assert found.width <= 0.02 < plan(*setting, n=5000, epsilon=0.9 * float(found.epsilon)).width
    few = plan(*setting, epsilon=0.5, width=0.02)
    assert few.width <= 0.02 * 1.001
    assert plan(*setting, n=int(0.95 * few.n), epsilon=0.5).width > 0.02


def test_more_of_anything_is_narrower_and_never_narrower_than_without_noise():
    frame = plan(*SETTINGS["exponential"], n=1000, epsilon=0.5).table()
    assert (np.diff(frame.to_numpy(), axis=0) < 1e-9).all()
    assert (np.diff(frame.to_numpy(), axis=1) < 0).all()
    found = plan(*SETTINGS["exponential"], n=1000, epsilon=0.5)
    assert found.floor < found.width
    assert 1 < found.records_worth < 1000


@pytest.mark.parametrize("epsilon", [3, 30, 50, 100, 1e4])
def test_next_to_no_noise_is_no_noise(epsilon):
    found = plan(*SETTINGS["bernoulli"], n=1000, epsilon=epsilon)
    assert found.width == pytest.approx(found.floor, rel=0.01)


def test_a_width_that_no_epsilon_gives_is_refused_with_what_it_takes():
    with pytest.raises(ValueError, match=r"width must be at least 0\.\d+, .* it takes [\d,]+ records"):
        plan(*SETTINGS["bernoulli"], n=100, width=0.001)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n": 10}, "give two of n, a promise"),
        ({"n": 10, "epsilon": 1, "width": 0.1}, "give two of n, a promise"),
        ({"n": 0, "epsilon": 1}, "n must be a whole number of at least 1"),
        ({"n": 10, "width": -1}, "width must be positive"),
        ({"n": 10, "epsilon": 1, "neighbours": "both"}, "neighbours must be"),
        ({"n": 10, "epsilon": 1, "parameter": "sigma"}, "parameter must be one of theta, got 'sigma'"),
    ],
)
def test_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        _ = plan(*SETTINGS["bernoulli"], **given).width


def test_the_best_share_for_a_private_number_is_between_all_and_nothing():
    found = plan(*SETTINGS["bernoulli"], n=1000, epsilon=0.05, neighbours="add_remove")
    shares = dict(found.best_n_share())
    best = found.best_n_share()[0]
    assert best.width == min(shares.values())
    assert min(shares) < best.what < max(shares)
    with pytest.raises(ValueError, match="n_share must be left alone"):
        plan(*SETTINGS["bernoulli"], n=1000, epsilon=0.05).best_n_share()


@pytest.mark.slow
def test_the_best_bounds_cut_more_where_noise_is_stronger():
    def best(epsilon):
        return plan(family.Exponential(bounds=(0, 10)), prior.Gamma(8, 10), n=300, epsilon=epsilon).best_bounds()[0]

    assert best(0.05).what[1] < best(20).what[1]
    assert best(0.05).what[0] == 0


def test_records_worth_by_hand():
    """n² θ′²/(n v + D) against n′ θ′²/v: of a yes or no at θ, n′ = n · n v/(n v + 2 b²) for wide noise."""
    release = na.Release(family=family.Bernoulli(), values=[100], n=1000, mechanism=na.mechanism.Laplace(10.0))
    own = 1000 * 0.09
    assert records_worth(release, np.asarray(0.1))["theta"] == pytest.approx(1000 * own / (own + 200))


def test_the_picture_shows_the_plan():
    figure = plan(*SETTINGS["bernoulli"], n=5000, width=0.02).plot()
    (axes,) = figure.axes
    assert {"n = 500", "n = 5,000", "n = 50,000", "wanted"} <= {line.get_label() for line in axes.lines}


def test_a_share_for_a_private_n_is_less_than_all():
    with pytest.raises(ValueError, match="n_share must be between 0 and 1, got 1"):
        na.plan(na.family.Bernoulli(), na.prior.Beta(1, 1), n=100, epsilon=1, neighbours="add_remove", n_share=1)
