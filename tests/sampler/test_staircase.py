"""Posteriors under staircase noise against enumeration, and what refuses it."""

import numpy as np
import pytest
from scipy import special, stats

import noiseaware as na
from noiseaware.mechanism import Staircase

LAWS = [Staircase(8.0, 8, 3), Staircase(5.0, 4, 4), Staircase(3.0, 9, 1), Staircase(2.0, 1, 1)]


@pytest.mark.parametrize("y", [-3, 4, 11, 14])
@pytest.mark.parametrize("law", LAWS)
def test_a_noisy_count_of_ten_is_inferred_by_enumeration(law, y, matches, seed):
    """p(θ | y) is a mixture of Beta(1 + s, 2 + 10 − s) over s, with the weights that listing gives."""
    release = na.Release(family=na.family.Bernoulli(), values=[y], n=10, mechanism=law)
    posterior = na.infer(release, na.prior.Beta(1, 2), num_draws=20_000, seed=seed)
    assert posterior.is_exact
    s = np.arange(11.0)
    weight = special.binom(10, s) * special.beta(1 + s, 2 + 10 - s)
    weight *= np.exp(-law.exponent(y - s))
    weight /= weight.sum()
    matches(
        posterior.draws["theta"],
        lambda t: sum(w * stats.beta(1 + k, 12 - k).cdf(t) for w, k in zip(weight, s, strict=True)),
    )


def test_a_noisy_count_without_a_bound_is_inferred_by_enumeration(matches, seed):
    """Counts of Poisson(λ): s | λ is listed to 4000, where nothing is left of prior or noise."""
    law, y, shape, rate = Staircase(40.0, 60, 20), 130, 2.0, 0.02
    release = na.Release(family=na.family.Poisson(), values=[y], n=2, mechanism=law)
    posterior = na.infer(release, na.prior.Gamma(shape, rate), num_draws=20_000, seed=seed)
    s = np.arange(4000.0)
    log_weight = special.gammaln(shape + s) - special.gammaln(s + 1) + s * np.log(2) - (shape + s) * np.log(rate + 2)
    log_weight -= law.exponent(y - s)
    weight = np.exp(log_weight - log_weight.max())
    near = weight > 1e-9 * weight.max()
    weight, s = weight[near] / weight[near].sum(), s[near]
    name = next(iter(posterior.draws))
    matches(
        posterior.draws[name],
        lambda t: (weight * stats.gamma(shape + s, scale=1 / (rate + 2)).cdf(np.asarray(t)[..., None])).sum(-1),
    )


def test_noisy_levels_are_inferred_by_enumeration(matches, seed):
    law, y, n = Staircase(3.0, 4, 2), (5, 1, -2), 6
    family = na.family.Categorical(levels=("a", "b", "c"))
    release = na.Release(family=family, values=list(y), n=n, mechanism=law)
    posterior = na.infer(release, na.prior.Dirichlet([1.0, 1.0, 2.0]), num_draws=20_000, seed=seed)
    ways = [(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]
    k, alpha = np.array(ways, dtype=float), np.array([1.0, 1.0, 2.0])
    log_weight = special.gammaln(alpha + k) - special.gammaln(k + 1) - law.exponent(np.array(y) - k)
    weight = np.exp(log_weight.sum(axis=1))
    weight /= weight.sum()
    draws = next(iter(posterior.draws.values()))
    first = draws[:, 0] if draws.ndim == 2 else posterior.draws["theta[a]"]
    matches(
        first,
        lambda t: sum(w * stats.beta(1 + way[0], 3 + n - way[0]).cdf(t) for w, way in zip(weight, ways, strict=True)),
    )


def test_what_needs_a_smooth_law_is_refused_in_a_sentence(seed):
    law = Staircase(8.0, 8, 3)
    normal = na.Release(family=na.family.Exponential("x", bounds=(0, 8)), values=[30], n=20, mechanism=law, grid=0.5)
    with pytest.raises(ValueError, match=r"mechanism must be smooth for a grid of 0\.5, got staircase noise"):
        na.infer(normal, na.prior.Gamma(1, 1), seed=seed)
    clamped = na.Release(family=na.family.Poisson("x", bounds=(0, 3)), values=[30], n=20, mechanism=law)
    with pytest.raises(ValueError, match="use augmentation"):
        na.infer(clamped, na.prior.Gamma(1, 1), seed=seed)
