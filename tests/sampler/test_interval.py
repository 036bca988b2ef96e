"""Counts of which an interval is known: draws against an enumeration of every sum by SciPy."""

import numpy as np
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.sampler import exact

# bounds that cut deep, releases that no table has and priors that a release refutes are here on purpose
pytestmark = pytest.mark.filterwarnings("ignore:(The (fit|released|prior)|1 of 2 releases):RuntimeWarning")

DRAWS = 20_000
INFINITE = np.inf


def mass(law: str, scale: float, low: float, high: float, s: np.ndarray) -> np.ndarray:
    """P(low ≤ s + noise ≤ high)."""
    if law == "Identity":
        return ((s >= low) & (s <= high)).astype(float)
    if law == "DiscreteGaussian":
        k = np.arange(-40 * int(scale), 40 * int(scale) + 1)
        weight = np.exp(-0.5 * (k / scale) ** 2)
        inside = (s[:, None] + k >= low) & (s[:, None] + k <= high)
        return inside @ weight / weight.sum()
    noise = {"Laplace": stats.laplace(scale=scale or 1), "Gaussian": stats.norm(scale=scale or 1)}.get(law)
    if noise is None:
        noise, low, high = stats.dlaplace(1 / scale), np.ceil(low) - 1, np.floor(high)
    above, below = noise.sf(low - s) - noise.sf(high - s), noise.cdf(high - s) - noise.cdf(low - s)
    return np.where(s < low, above, below)


def poisson(n, top):
    s = np.arange(top)
    log_mass = stats.nbinom.logpmf(s, 0.5, 0.02 / (0.02 + n))
    return s, log_mass, lambda x, s: stats.gamma.cdf(x, 0.5 + s, scale=1 / (0.02 + n))


def bernoulli(n, top):
    s = np.arange(n + 1)
    return s, stats.betabinom.logpmf(s, n, 2, 3), lambda x, s: stats.beta.cdf(x, 2 + s, 3 + n - s)


def geometric(n, top):
    s = np.arange(top)
    log_mass = stats.betanbinom.logpmf(s, n, 2, 3)  # of s failures before n successes
    return s, log_mass, lambda x, s: stats.beta.cdf(x, 2 + n, 3 + s)


FAMILIES = {
    "poisson": (na.family.Poisson(), na.prior.Gamma(0.5, 0.02), 1, poisson),
    "bernoulli": (na.family.Bernoulli(), na.prior.Beta(2, 3), 1000, bernoulli),
    "geometric": (na.family.Geometric(), na.prior.Beta(2, 3), 20, geometric),
}
PUBLISHED = {
    "clamped": (0, (-INFINITE, 0)),
    "truncated": (5, (5, 6)),
    "suppressed": (10, (-INFINITE, 10)),
    "rounded": (10, (7.5, 12.5)),
    "coarse": (60, (50, 99)),
    "top": (200, (200, INFINITE)),
}
LAWS = [("Laplace", 2.0), ("DiscreteLaplace", 7.3), ("Gaussian", 3.0), ("DiscreteGaussian", 4.0), ("Identity", 0.0)]


QUICK = [("poisson", LAWS[1]), ("poisson", LAWS[3]), ("poisson", LAWS[4])]
PAIRS = [(name, law) for name in FAMILIES for law in LAWS]


@pytest.mark.parametrize(
    ("name", "law"),
    [pair if pair in QUICK else pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_draws_match_an_enumeration(name, law, matches, seed):
    family, prior, n, sums = FAMILIES[name]
    mechanism = getattr(na.mechanism, law[0])
    s, log_prior, cdf = sums(n, 20_000)
    releases = [
        na.Release(family=family, values=[y], n=n, mechanism=mechanism(law[1]) if law[1] else mechanism(), within=[w])
        for y, w in PUBLISHED.values()
    ]
    posteriors = na.infer_each(releases, prior, num_draws=DRAWS, seed=seed)
    for posterior, (_, (low, high)) in zip(posteriors, PUBLISHED.values(), strict=True):
        with np.errstate(divide="ignore"):
            log_weight = log_prior + np.log(mass(*law, low, high, s))
        weight = np.exp(log_weight - log_weight.max())
        kept = weight > 1e-13
        weight, held = weight[kept] / weight[kept].sum(), s[kept]
        matches(posterior.draws["theta"], lambda t, w=weight, k=held: np.array([w @ cdf(x, k) for x in t]))
        assert posterior.is_exact


def test_one_by_one_as_all_at_once(matches, seed):
    """infer sizes the computation for one value; the top one of a wide interval goes through nodes."""
    family, prior, n, sums = FAMILIES["poisson"]
    release = na.Release(
        family=family, values=[9000], n=n, mechanism=na.mechanism.Laplace(300.0), within=[(-INFINITE, 9000)]
    )
    draws = na.infer(release, prior, num_draws=DRAWS, seed=seed).draws["theta"]
    s, log_prior, cdf = sums(n, 40_000)
    weight = np.exp(log_prior) * mass("Laplace", 300.0, -INFINITE, 9000, s)
    weight, s = weight[weight > 1e-13] / weight.sum(), s[weight > 1e-13]
    matches(draws, lambda t: np.array([weight @ cdf(x, s) for x in t]), slack=1e-4)


@pytest.mark.parametrize("law", [("DiscreteLaplace", 2.0), ("Identity", 0.0)], ids=lambda law: law[0])
def test_counts_of_levels_with_intervals(law, matches, seed):
    """Three levels of 12 records: one suppressed, one rounded, one as it is; all counts listed."""
    family, n, alpha = na.family.Categorical(levels=["a", "b", "c"]), 12, np.array([1.0, 2.0, 0.5])
    within = [(-INFINITE, 3), (3, 7), None]
    mechanism = na.mechanism.DiscreteLaplace(law[1]) if law[1] else na.mechanism.Identity()
    release = na.Release(family=family, values=[3, 5, 4], n=n, mechanism=mechanism, within=within)
    theta = na.infer(release, na.prior.Dirichlet(alpha), num_draws=DRAWS, seed=seed).draws["theta"]
    counts = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    log_weight = stats.dirichlet_multinomial.logpmf(counts, alpha, n)
    for column, (low, high) in enumerate([(-INFINITE, 3), (3, 7), (4, 4)]):
        with np.errstate(divide="ignore"):
            log_weight = log_weight + np.log(mass(*law, low, high, counts[:, column]))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    rest = alpha.sum() + n
    for j in range(3):

        def cdf(t, j=j):
            return np.array(
                [weight @ stats.beta.cdf(x, alpha[j] + counts[:, j], rest - alpha[j] - counts[:, j]) for x in t]
            )

        matches(theta[:, j], cdf)


def test_what_cannot_be_served_is_refused_in_a_sentence():
    noise = na.mechanism.Laplace(1.0)
    wide = na.Release(family=na.family.Exponential(), values=[5.0], n=3, mechanism=noise, within=[(0.0, 10.0)])
    with pytest.raises(ValueError, match="intervals are served for counts"):
        na.infer(wide, na.prior.Gamma(2, 2))
    bounded = na.Release(family=na.family.Poisson(bounds=(0, 9)), values=[5], n=3, mechanism=noise, within=[(4, 6)])
    with pytest.raises(ValueError, match="without bounds"):
        na.infer(bounded, na.prior.Gamma(2, 2))
    count = na.Release(family=na.family.Poisson(), values=[5], n=1, mechanism=noise, within=[(4, 6)])
    with pytest.raises(ValueError, match="must be one of exact, naive where values have an interval"):
        na.infer(count, na.prior.Gamma(2, 2), method="gibbs")
    with pytest.raises(ValueError, match="values and not intervals"):
        na.infer([count, count], na.prior.Gamma(2, 2))
    with pytest.raises(ValueError, match="values and not intervals"):
        na.model.log_likelihood(count, np.array(2.0))
    none = na.mechanism.Identity()
    for family, values, within in [
        (na.family.Poisson(), [-3], [(-4, -2)]),
        (na.family.Bernoulli(), [20], [(15, 25)]),
        (na.family.Categorical(levels=["a", "b"]), [1, 2], [(0, 2), (1, 3)]),
    ]:
        release = na.Release(family=family, values=values, n=10, mechanism=none, within=within)
        prior = {"poisson": na.prior.Gamma(1, 1), "bernoulli": na.prior.Beta(1, 1)}.get(family.name)
        with pytest.raises(ValueError, match="must hold counts that 10 records can have"):
            na.infer(release, prior or na.prior.Dirichlet([1.0, 1.0]))


def test_rounding_that_the_noise_hides_is_served_for_any_family(key, x64):
    family, noise = na.family.Exponential(), na.mechanism.Laplace(50.0)
    plain = na.Release(family=family, values=[500.0], n=100, mechanism=noise)
    rounded = na.Release(family=family, values=[500.0], n=100, mechanism=noise, within=[(499.5, 500.5)])
    draws = [exact.draws(key, r.evidence(), na.prior.Gamma(2, 2), 100) for r in (plain, rounded)]
    np.testing.assert_array_equal(*draws)


def test_a_count_on_a_fine_grid_has_continuous_noise(key, x64):
    """Floats on a grid of 2^−10: the scale counts steps, and the statistic is still a whole number."""
    fine = na.mechanism.DiscreteLaplace(2.0 * 1024)
    gridded = na.Release(family=na.family.Poisson(), values=[7 * 1024 + 256], n=1, mechanism=fine, grid=2.0**-10)
    plain = na.Release(family=na.family.Poisson(), values=[7.25], n=1, mechanism=na.mechanism.Laplace(2.0))
    draws = [exact.draws(key, r.evidence(), na.prior.Gamma(2, 0.2), 100) for r in (gridded, plain)]
    np.testing.assert_allclose(*draws, rtol=1e-9)


def test_counts_far_from_what_is_possible_and_from_the_prior(matches, seed):
    """A noisy count a hundred scales below 0 among others is as by enumeration; one that neither noise nor prior can
    explain, whose sum lies between the two, is refused rather than answered wrongly."""
    table = na.Release(family=na.family.Poisson(), values=[-200], n=1, mechanism=na.mechanism.DiscreteLaplace(2.0))
    rows = [table, na.Release(family=na.family.Poisson(), values=[3], n=1, mechanism=na.mechanism.DiscreteLaplace(2.0))]
    found = na.infer_each(rows, na.prior.Gamma(0.5, 0.02), num_draws=DRAWS, seed=seed)
    s, log_mass, cdf = poisson(1, 400)
    weight = np.exp(log_mass - s / 2.0)
    matches(found[0].draws["theta"], lambda t: np.array([weight @ cdf(q, s) / weight.sum() for q in t]))
    with pytest.raises(RuntimeError, match="not finite"):
        na.infer_each(rows, na.prior.Gamma(1e6, 2e3), num_draws=10, seed=seed)
