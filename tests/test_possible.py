"""How far a release is from what tables can have: the findings' cases, honest tables, and what is said."""

import math

import jax
import numpy as np
import pytest

import noiseaware as na
from noiseaware.evidence import possible
from noiseaware.report.release_words import impossible

F, M = na.family, na.mechanism
SEVERAL = F.MultivariateNormal(["a", "b"], bounds=(-1, 1))
LOGISTIC = F.LogisticRegression(["t"], "y", bounds={"t": (0, 1)})


def released(family, values, mechanism, n=1000, **others) -> na.Release:
    return na.Release(family=family, values=values, n=n, mechanism=mechanism, **others)


IMPOSSIBLE = {
    "too many successes": (F.Bernoulli(), [1100], M.DiscreteLaplace(1.0), 100),
    "a negative count": (F.Bernoulli(), [-80], M.DiscreteLaplace(1.0), 80),
    "of trials": (F.Binomial(trials=3), [3200], M.DiscreteGaussian(10.0), 20),
    "a mean beyond its bounds": (F.Normal("x", (0, 1)), [2000.0, 1000.0], M.Laplace(2.25), 444.4),
    "squares beyond theirs": (F.Normal("x", (0, 1)), [0.0, 1500.0], M.Laplace(2.25), 222.2),
    "below the lower bound": (F.Normal("x", (5, 9), variance=1.0), [4000.0], M.Laplace(5.0), 200),
    "counts beyond bounds": (F.Poisson("x", (0, 10)), [10_900], M.DiscreteLaplace(10.0), 90),
    "a negative sum": (F.Poisson("x"), [-500], M.DiscreteLaplace(20.0), 25),
    "negative waits": (F.Exponential("x", (0, 48)), [-500.0], M.Laplace(10.0), 50),
    "a negative amount": (F.Gamma("x", (0, 4)), [-1100.0, 900.0], M.Laplace(5.0), 20),
    "counts that do not add up": (F.Categorical(levels=["a", "b"]), [300, 400], M.DiscreteLaplace(2.0), 106.1),
    "a product beyond n": (SEVERAL, [0.0, 0.0, 900.0, 1100.0, 900.0], M.Laplace(2.0), 50),
    "a regression": (F.LinearRegression(["t"], "y", bounds=(-1, 1)), [0, 0, 400.0, 0, 1200.0], M.Laplace(2.0), 100),
    "a logistic one": (LOGISTIC, [0.0, 1500.0, 900.0, 0.0], M.Laplace(2.0), 250),
    "no bounds": (F.Normal("x"), [0.0, -90.0], M.Laplace(2.0), 45),
    "dropped": (F.Normal("x", (5, 9), variance=1.0, outside="drop"), [9300.0], M.Laplace(5.0), 60),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_it_is_told_in_scales_of_noise_and_never_called_noise(name):
    family, values, mechanism, distance = IMPOSSIBLE[name]
    release = released(family, values, mechanism)
    assert possible.farthest(release).distance == pytest.approx(distance, rel=0.01)
    said = impossible(release)
    assert said.endswith("n, the bounds or the noise scale of this release are wrong.")
    assert "that is the noise" not in said


@pytest.mark.parametrize(
    ("family", "values", "n"),
    [
        (F.Normal("x", (0, 1)), [900.0, 700.0], 1000),
        (SEVERAL, [0.0, 0.0, 100.0, 190.0, 100.0], 1000),
        (F.MultivariateNormal(["a", "b"]), [0.0, 0.0, 1e4, 1.9e4, 1e4], 1000),
    ],
)
def test_a_negative_variance_is_no_farther_than_the_nearest_table(family, values, n):
    """A lower bound on the distance: some table has moments as near as 20 times that, in every statistic."""
    release = released(family, values, M.Laplace(2.0), n)
    found = possible.farthest(release)
    assert found.statistic is None
    d = family.query.degrees.count(1)
    moments = np.zeros((d + 1, d + 1))
    moments[np.triu_indices(d + 1)] = [n, *values]
    moments = moments + np.triu(moments, 1).T
    least, vectors = np.linalg.eigh(moments)
    nearest = (vectors * np.maximum(least, 0)) @ vectors.T
    away = np.sqrt(np.square((nearest - moments)[np.triu_indices(d + 1)][1:] / 2).sum())
    assert possible.FAR < found.distance < away < 20 * found.distance


def test_near_misses_are_the_noise():
    release = released(F.Poisson("x"), [-30], M.DiscreteLaplace(20.0))
    assert impossible(release) == "The released sum of −30 is one that no table has: that is the noise."
    assert impossible(released(F.Bernoulli(), [3], M.DiscreteLaplace(2.0), 10)) is None
    assert possible.farthest(released(F.Bernoulli(), [3], M.DiscreteLaplace(2.0), 10)) is None


def test_a_private_number_of_records_has_noise_too():
    noisy = {"n_mechanism": M.DiscreteLaplace(50.0), "neighbours": "add_remove"}
    assert impossible(released(F.Bernoulli(), [1100], M.DiscreteLaplace(1.0), **noisy)) is None
    far = released(F.Bernoulli(), [3100], M.DiscreteLaplace(1.0), **noisy)
    assert possible.farthest(far).distance == pytest.approx(42, abs=0.1)
    assert "are wrong" in impossible(far)


def test_without_noise_nothing_beyond_is_possible():
    release = released(F.Bernoulli(), [12], M.Identity(), 10)
    assert possible.farthest(release).distance == math.inf
    assert "no noise made it" in impossible(release)
    x = np.linspace(-1, 1, 7)
    release = released(F.Normal("x", (-1, 1)), [x.sum(), (x**2).sum()], M.Identity(), 7)
    assert possible.farthest(release) is None
    release = released(F.Normal("x", (-1, 1)), [6 * 0.3, 6 * 0.09], M.Identity(), 6)  # a constant column
    assert possible.farthest(release) is None


def test_an_interval_that_reaches_what_is_possible_is_possible():
    release = released(F.Poisson("x"), [-40], M.DiscreteLaplace(1.0), within=[(-math.inf, 5.0)])
    assert possible.farthest(release) is None


@pytest.mark.parametrize("d", [1, 3, 8, 20])
def test_honest_tables_stay_near_whatever_their_size(d, seed):
    """Columns that are nearly the same, so that the true scatter has no room: the worst that noise can meet."""
    rng, family, farthest = np.random.default_rng(seed), F.MultivariateNormal(dimension=d, bounds=(-1, 1)), []
    scale = float(family.query.sensitivity())
    for n in (3, 50, 1000):
        for _ in range(10):
            u = np.clip(rng.normal(0, 0.5, (n, 1)) + 1e-3 * rng.normal(size=(n, d)), -1, 1)
            s = np.concatenate([u.sum(0), (u.T @ u)[np.triu_indices(d)]])
            release = released(family, s + rng.laplace(scale=scale, size=s.size), M.Laplace(scale), n)
            found = possible.farthest(release)
            farthest.append(found.distance if found else 0.0)
    assert max(farthest) < possible.FAR - 2


def test_honest_counts_stay_near(seed):
    """A thousand levels, most of them empty."""
    rng = np.random.default_rng(seed)
    family = F.Categorical(levels=[f"{i}" for i in range(1000)])
    counts = np.bincount(rng.integers(0, 5, 200), minlength=1000)
    with jax.enable_x64(True):
        noise = np.round(rng.laplace(scale=3.0, size=1000)).astype(int)
    release = released(family, (counts + noise).tolist(), M.DiscreteLaplace(3.0), 200)
    assert possible.farthest(release).distance < possible.FAR


@pytest.mark.filterwarnings("ignore:The prior and the release disagree:RuntimeWarning")
def test_infer_warns_and_the_page_says_so_once(tmp_path):
    release = released(F.Bernoulli("ill"), [1100], M.DiscreteLaplace(1.0))
    with pytest.warns(RuntimeWarning, match="100 noise scales beyond any that a table of n records has"):
        posterior = na.infer(release, na.prior.Beta(1, 1), num_draws=400, seed=1)
    assert posterior.concerns[0] == impossible(release)
    posterior.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("noise scales beyond") == 1
    assert "that is the noise" not in page
