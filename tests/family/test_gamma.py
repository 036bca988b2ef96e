"""The gamma family with unknown shape: moments against mpmath, θ given records against a grid, and what is refused."""

import json

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special, stats

import noiseaware as na
from noiseaware.evidence.release import from_json
from noiseaware.family import _clipped_gamma

PRIOR = na.prior.Independent(shape=na.prior.Gamma(4.0, 2.0), rate=na.prior.Gamma(3.0, 1.0))
# shape, rate, bounds: hardly cut; a few percent; cut on both sides; nearly all beyond; narrow and far from 0; below 0
CASES = [
    (2.5, 1.2, (0.0, 30.0)),
    (0.05, 0.7, (0.0, 0.4)),
    (2.5, 1.2, (1.0, 4.0)),
    (1.3, 1e-3, (0.0, 2.0)),
    (4000.0, 40.0, (99.0, 102.0)),
    (2.5, 1.2, (-3.0, 5.0)),
]


def by_mpmath(shape, rate, bounds, *, keeps: bool) -> np.ndarray:
    """Means and covariances of (u, u²) with 50 digits: E x^k between bounds by incomplete gamma functions."""
    with mpmath.workdps(50):
        shape, rate, low, high = map(mpmath.mpf, (shape, rate, *bounds))
        centre, half, low = (low + high) / 2, (high - low) / 2, max(low, mpmath.mpf(0))

        def part(k, x):
            return mpmath.gammainc(shape + k, 0, rate * x, regularized=True) * mpmath.rf(shape, k) / rate**k

        raw = [part(k, high) - part(k, low) for k in range(5)]
        choose = mpmath.binomial
        u = [sum(choose(k, j) * (-centre) ** (k - j) * raw[j] for j in range(k + 1)) / half**k for k in range(5)]
        if keeps:
            u = [u[k] + (-1) ** k * part(0, low) + 1 - part(0, high) for k in range(5)]
        return np.array([u[1], u[2], u[2] - u[1] ** 2, u[3] - u[1] * u[2], u[4] - u[2] ** 2])


def listed(moments) -> jax.Array:
    mean, covariance = moments
    return jnp.append(mean, covariance[jnp.triu_indices(2)])


@pytest.mark.parametrize(("shape", "rate", "bounds"), CASES)
@pytest.mark.parametrize("keeps", [True, False])
def test_moments_and_slopes_of_clipped_records(shape, rate, bounds, keeps, x64):
    def found(theta):
        return listed(_clipped_gamma.moments(theta[0], theta[1], bounds, keeps_outside=keeps))

    theta = jnp.array([shape, rate])
    wanted = by_mpmath(shape, rate, bounds, keeps=keeps)
    np.testing.assert_allclose(found(theta), wanted.astype(float), atol=1e-10)
    step = mpmath.mpf(10) ** -15
    with mpmath.workdps(50):
        higher = (shape * (1 + step), rate), (shape, rate * (1 + step))
        slopes = [((by_mpmath(*t, bounds, keeps=keeps) - wanted) / step).astype(float) for t in higher]
    np.testing.assert_allclose((jax.jacfwd(found)(theta) * theta).T, slopes, atol=1e-8)


@pytest.mark.parametrize("bounds", [None, (-1.0, 4.0)])
def test_moments_of_records_as_they_are(bounds, x64):
    member, theta = na.family.Gamma(bounds=bounds), jnp.asarray([2.5, 1.2])
    centre, half = (0.0, 1.0) if bounds is None else (1.5, 2.5)
    u = stats.gamma(2.5, loc=-centre / half, scale=1 / (1.2 * half))
    one, two, three, four = (u.moment(k) for k in range(1, 5))
    np.testing.assert_allclose(member.mean(theta), [one, two], rtol=1e-9)
    wanted = [[two - one**2, three - one * two], [three - one * two, four - two**2]]
    np.testing.assert_allclose(member.covariance(theta), wanted, rtol=1e-9)


@pytest.mark.parametrize("theta", [(1e-3, 1e3), (1e-3, 1e-6), (1e6, 1e-6), (1e6, 1e6), (2.0, 1e-200), (2.0, 1e200)])
def test_moments_stay_numbers_anywhere(theta, x64):
    for outside in ("clamp", "drop"):
        member = na.family.Gamma(bounds=(0.5, 3), outside=outside)
        found, slopes = (f(jnp.asarray(theta)) for f in (member.released_moments, jax.jacfwd(member.released_moments)))
        assert all(np.isfinite(part).all() for part in (*found, *slopes))
        assert np.linalg.eigvalsh(found[1])[0] >= -1e-15


def shapes_on_a_grid(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shapes, and the CDF of p(shape | x) under PRIOR with the rate integrated out by hand."""
    shape = np.geomspace(1e-3, 50, 20_001)
    log_density = stats.gamma(4, scale=0.5).logpdf(shape) + special.gammaln(3 + x.size * shape)
    log_density += shape * np.log(x).sum() - x.size * special.gammaln(shape)
    log_density -= (3 + x.size * shape) * np.log(1 + x.sum())
    density = np.exp(log_density - log_density.max())
    mass = 0.5 * (density[1:] + density[:-1]) * np.diff(shape)
    return shape, np.append(0, np.cumsum(mass)) / mass.sum()


@jax.jit
def drawn(keys, x, is_counted):
    return jax.vmap(lambda key: na.family.Gamma().given_records(key, PRIOR, x, is_counted))(keys)


@pytest.mark.parametrize("counted", [0, 1, 30])
def test_parameters_given_records(counted, x64, key, seed):
    """The shape against a grid, the rate given the shape against SciPy: KS at the level of one in a million."""
    x, size = np.random.default_rng(seed).gamma(2.5, 1 / 1.2, 30), 4000
    shape, rate = np.asarray(drawn(jax.random.split(key, size), jnp.asarray(x), jnp.arange(30) < counted)).T
    grid, cdf = shapes_on_a_grid(x[:counted])
    for ranks in (
        np.interp(shape, grid, cdf),
        stats.gamma(3 + counted * shape, scale=1 / (1 + x[:counted].sum())).cdf(rate),
    ):
        assert stats.kstest(ranks, "uniform").statistic < 2.7 / size**0.5


def test_the_naive_law_is_about_the_fit(x64):
    """Shape m²/v and rate m/v with the spread of a fit of moments; whatever the noise has left, it is a law."""
    member, n = na.family.Gamma(bounds=(0, 8)), 40_000
    x = stats.gamma(2.5, scale=1 / 1.2).ppf((np.arange(n) + 0.5) / n)
    s = jnp.stack([jnp.asarray(t).sum() for t in member.query.statistic(jnp.asarray(x))])
    parts = member.update(PRIOR, s, n).parts
    for name, truth, spread in (("shape", 2.5, 2 + 2 / 2.5), ("rate", 1.2, 2 + 3 / 2.5)):
        law = parts[name]
        assert float(law.shape / law.rate) == pytest.approx(truth, rel=2e-3)
        assert float(law.shape) ** -0.5 == pytest.approx((spread / n) ** 0.5, rel=1e-2)
    for noisy in ([-300.0, 90.0], [-300.0, -90.0], [500.0, 10.0], [0.0, 0.0]):
        made = member.update(PRIOR, member.project(jnp.asarray(noisy), 100.0), 100.0)
        assert all(0 < float(number) < np.inf for part in made.priors for number in (part.shape, part.rate))


def test_a_given_shape_is_known_and_stays_in_the_file():
    known, unknown = na.family.Gamma("x", (0, 9), shape=2.0), na.family.Gamma("x", (0, 9), outside="drop")
    assert (known.parameters, unknown.parameters) == (("rate",), ("shape", "rate"))
    for member, values, fields in ((known, [5.0], {"shape"}), (unknown, [5.0, 6.0], set())):
        release = na.Release(family=member, values=values, n=9, mechanism=na.mechanism.Laplace(1.0))
        part = json.loads(release.to_json())["family"]
        assert set(part) == {"name", "column", "bounds", "outside"} | fields
        assert from_json(release.to_json()).family == member


@pytest.mark.parametrize(
    ("prior", "got"),
    [
        (na.prior.Gamma(8, 2), "Gamma"),
        (na.prior.Independent(shape=na.prior.Gamma(8, 2)), r"Independent\(shape=Gamma\)"),
        (
            na.prior.Independent(shape=na.prior.Gamma(8, 2), rate=na.prior.Normal(1, 1)),
            r"Independent\(shape=Gamma, rate=Normal\)",
        ),
        (
            na.prior.Independent(shape=na.prior.Gamma(8, 2), scale=na.prior.Gamma(8, 2)),
            r"Independent\(shape=Gamma, scale=Gamma\)",
        ),
    ],
)
def test_other_priors_are_refused_in_a_sentence(prior, got):
    release = na.Release(family=na.family.Gamma(), values=[9.0, 20.0], n=9, mechanism=na.mechanism.Laplace(1.0))
    sentence = rf"prior must be Independent\(shape=Gamma\(…\), rate=Gamma\(…\)\) .* unknown shape, got {got}\.$"
    with pytest.raises(ValueError, match=sentence):
        na.infer(release, prior)


def test_parts_of_a_prior_may_come_in_any_order():
    turned = na.prior.Independent(rate=PRIOR.parts["rate"], shape=PRIOR.parts["shape"])
    release = na.Release(family=na.family.Gamma(), values=[90.0, 200.0], n=50, mechanism=na.mechanism.Laplace(1.0))
    first, second = (na.infer(release, prior, method="naive", seed=0).draws for prior in (PRIOR, turned))
    assert all((first[name] == second[name]).all() for name in ("shape", "rate"))
