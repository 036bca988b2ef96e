"""A posterior for each of many releases."""

import numpy as np
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.evidence.release import Origin

PRIOR = na.prior.Gamma(2, 0.1)


def count(y, mechanism, **options) -> na.Release:
    return na.Release(family=na.family.Poisson(), values=[y], n=1, mechanism=mechanism, **options)


@pytest.mark.parametrize("num", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_each_is_as_by_itself_and_in_its_place(num, seed):
    """Of several laws, with and without intervals, in one list; without noise or with a private n, by itself."""
    noisy = na.mechanism.DiscreteLaplace(3.0)
    releases = [
        count(40, noisy),
        count(0, noisy, within=[(-np.inf, 0)]),
        count(3.2, na.mechanism.Laplace(1.5)),
        count(90, noisy),
        count(7, na.mechanism.Identity()),
        na.Release(family=na.family.Exponential(), values=[3.0], n=20, mechanism=na.mechanism.Gaussian(2.0)),
        count(12, noisy, n_mechanism=na.mechanism.DiscreteLaplace(0.2)),
    ][:num]
    posteriors = na.infer_each(releases, PRIOR, num_draws=4000, seed=seed)
    assert [p.release for p in posteriors] == releases
    for release, posterior in zip(releases, posteriors, strict=True):
        alone = na.infer(release, PRIOR, seed=seed + 1)
        found = stats.ks_2samp(posterior.draws["theta"], alone.draws["theta"]).statistic
        assert found < 2.5 * (2 / 4000) ** 0.5  # the 1e-5 point for two samples
        assert (posterior.method, posterior.is_exact) == (alone.method, alone.is_exact)


def test_the_seed_decides_and_no_two_share_their_draws(seed):
    releases = [count(40, na.mechanism.DiscreteLaplace(3.0))] * 3
    first, again = (na.infer_each(releases, PRIOR, num_draws=50, seed=seed) for _ in range(2))
    drawn = [p.draws["theta"] for p in first]
    np.testing.assert_array_equal(drawn, [p.draws["theta"] for p in again])
    assert len({draws[0] for draws in drawn}) == 3


def test_many_go_through_in_batches_and_each_is_told(seed, monkeypatch):
    releases = [count(y, na.mechanism.DiscreteLaplace(3.0)) for y in range(12)]
    whole, told = na.infer_each(releases, PRIOR, num_draws=50, seed=seed), []
    monkeypatch.setattr("noiseaware.posterior.each._AT_A_TIME", 5)
    progress = lambda done, total: told.append((done, total))  # noqa: E731
    parts = na.infer_each(releases, PRIOR, num_draws=50, seed=seed, progress=progress)
    assert told == [(done, 12) for done in range(1, 13)]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.draws["theta"], other.draws["theta"], rtol=1e-9)


def test_refusals():
    with pytest.raises(ValueError, match="release must be"):
        na.infer_each(["wait.json"], PRIOR)
    with pytest.raises(ValueError, match="prior must be a Gamma"):
        na.infer_each([count(3, na.mechanism.Laplace(1.0))], na.prior.Beta(1, 1))
    with pytest.raises(ValueError, match="num_draws must be"):
        na.infer_each([count(3, na.mechanism.Laplace(1.0))], PRIOR, num_draws=0)
    assert na.infer_each([], PRIOR) == []


def test_one_warning_counts_the_releases_that_have_concerns(seed):
    """One for all of them, whether they go through together or by themselves, and it quotes the first."""
    noisy = na.mechanism.DiscreteLaplace(3.0)
    values = [(40, noisy), (-60, noisy), (200, noisy), (200, na.mechanism.Identity())]
    releases = [count(y, mechanism, origin=Origin(group=(("place", y),))) for y, mechanism in values]
    with pytest.warns(RuntimeWarning) as told:
        posteriors = na.infer_each(releases, PRIOR, num_draws=50, seed=seed)
    (sentence,) = (str(one.message) for one in told)
    assert sentence.startswith("3 of 4 releases speak against what is taken for granted; the first is number 2 (place")
    assert sentence.endswith(posteriors[1].concerns[0])
    assert [bool(posterior.concerns) for posterior in posteriors] == [False, True, True, True]
    with pytest.warns(RuntimeWarning) as alone:
        assert na.infer(releases[1], PRIOR, num_draws=50, seed=seed).concerns == posteriors[1].concerns
    assert [str(one.message) for one in alone] == list(posteriors[1].concerns)


def test_what_missing_cells_count_as_is_told_of_each(seed):
    origin = Origin(bounds="private", missing=(("wait", 0.0),))
    family = na.family.Exponential("wait", (0, 9))
    release = na.Release(family=family, values=[8.0], n=20, mechanism=na.mechanism.Laplace(2.0), origin=origin)
    (each,) = na.infer_each([release], na.prior.Gamma(1, 1), num_draws=50, seed=seed)
    assert each.explanation == na.infer(release, na.prior.Gamma(1, 1), num_draws=50, seed=seed).explanation
    assert each.explanation.endswith("counts as 0, the lower bound.")
