"""The loader of the developers' pages runs, and its releases say what the tool did."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import noiseaware as na

SKELETON = Path(__file__).parents[2] / "docs" / "developer" / "skeletons" / "loader.py"


@pytest.fixture
def loaded():
    return runpy.run_path(str(SKELETON))["loaded"]


def test_the_posterior_is_that_of_a_rounded_count(loaded, seed):
    """Against the sum over all counts that noise and rounding can have led to 15, at five levels of the CDF."""
    (release,) = loaded([15], scale=2.0)
    draws = na.infer(release, na.prior.Gamma(2, 0.1), seed=seed, num_draws=20_000).draws["theta"]
    counts, published = np.arange(200), np.arange(13, 18)
    of_count = stats.dlaplace(1 / 2.0).pmf(published[:, None] - counts).sum(0)
    prior = stats.nbinom(2, 0.1 / 1.1).pmf(counts) * of_count
    weights = prior / prior.sum()
    cdf = (weights * stats.gamma.cdf(draws[:, None], 2 + counts, scale=1 / 1.1)).sum(1)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        share = (cdf < level).mean()
        assert abs(share - level) < 4.5 * np.sqrt(level * (1 - level) / len(draws)), level


def test_a_row_that_the_tool_cannot_have_written_is_refused(loaded):
    with pytest.raises(ValueError, match=r"^row 2: count must be a multiple of 5, got 12\.$"):
        loaded([10, 12], scale=2.0)
