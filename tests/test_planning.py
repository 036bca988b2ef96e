"""Plans: the width that is foretold is that of simulated tables, and what is found gives what was wanted."""

import numpy as np
import pytest

import noiseaware as na
from noiseaware.planning import plan
from noiseaware.width import records_worth

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
        assert abs(width / found - 1) < 0.1 + 2 * error / found, (number, width, found, error)


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
    assert abs(foretold.width / found - 1) < 0.1 + 2 * error / found


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
