"""The values as recorded within bounds, against SciPy's laws record by record."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import noiseaware as na

F = na.family
LAWS = {
    "normal": (lambda b, o: F.Normal("x", b, outside=o), lambda t: stats.norm(t["mean"], t["variance"] ** 0.5)),
    "known": (lambda b, o: F.Normal("x", b, variance=4.0, outside=o), lambda t: stats.norm(t["mean"], 2.0)),
    "gamma": (lambda b, o: F.Gamma("x", b, outside=o), lambda t: stats.gamma(t["shape"], scale=1 / t["rate"])),
    "rate": (lambda b, o: F.Gamma("x", b, shape=0.4, outside=o), lambda t: stats.gamma(0.4, scale=1 / t["rate"])),
    "exponential": (lambda b, o: F.Exponential("x", b, outside=o), lambda t: stats.expon(scale=1 / t["theta"])),
    "poisson": (lambda b, o: F.Poisson("x", b, outside=o), lambda t: stats.poisson(t["theta"])),
    "geometric": (lambda b, o: F.Geometric("x", b, outside=o), lambda t: stats.geom(t["theta"], loc=-1)),
}
THETA = {
    "normal": {"mean": [3.0, -20.0, 40.0, 5.0], "variance": [4.0, 30.0, 9.0, 4000.0]},
    "known": {"mean": [3.0, -3.0, 12.0, 1.0]},
    "gamma": {"shape": [0.3, 2.0, 40.0, 1.0], "rate": [0.1, 0.5, 2.0, 9.0]},
    "rate": {"rate": [0.01, 0.5, 2.0, 9.0]},
    "exponential": {"theta": [0.01, 0.5, 2.0, 1e-5]},
    "poisson": {"theta": [0.02, 2.0, 9.0, 60.0]},
    "geometric": {"theta": [1e-6, 0.01, 0.4, 0.99]},
}


def oracle(law, bounds: tuple[float, float], outside: str) -> tuple[float, float, float]:
    """Mean, variance and the share moved, by a sum over counts or by quadrature between quantiles."""
    low, high = bounds
    is_count = not hasattr(law.dist, "pdf")
    below, above = law.cdf(low - 1 if is_count else low), law.sf(high)
    if is_count:
        x = np.arange(max(low, 0), high + 1)
        inside = [(x**k * law.pmf(x)).sum() for k in range(3)]
    else:
        cuts = [low, *(q for q in law.ppf([1e-14, 1e-9, 1e-5, 0.01, 0.5, 0.99, 1 - 1e-9]) if low < q < high), high]
        inside: list = [
            sum(
                integrate.quad(lambda x, k=k: x**k * law.pdf(x), a, b, epsabs=0, limit=200)[0]
                for a, b in itertools.pairwise(cuts)
            )
            for k in range(3)
        ]
        inside[0] = law.cdf(high) - law.cdf(low)
    if outside == "drop":
        mean, second = inside[1] / inside[0], inside[2] / inside[0]
    else:
        mean = inside[1] + low * below + high * above
        second = inside[2] + low**2 * below + high**2 * above
    return mean, second - mean**2, below + above


@pytest.mark.parametrize("outside", ["clamp", "drop"])
@pytest.mark.parametrize("bounds", [(0, 8), (2, 5), (1, 300)])
@pytest.mark.parametrize("name", LAWS)
def test_mean_variance_and_share_are_those_of_the_law(name, bounds, outside):
    make, law_of = LAWS[name]
    draws = {key: np.array(values) for key, values in THETA[name].items()}
    found = make(bounds, outside).recorded(draws)
    for i in range(4):
        law = law_of({key: values[i] for key, values in draws.items()})
        mean, variance, moved = oracle(law, bounds, outside)
        if outside == "drop" and moved > 1 - 1e-9:
            assert bounds[0] <= found.mean[i] <= bounds[1]
            continue
        assert found.mean[i] == pytest.approx(mean, rel=1e-6, abs=1e-9)
        assert found.variance[i] == pytest.approx(variance, rel=1e-5, abs=1e-9 * bounds[1] ** 2)
        assert found.moved[i] == pytest.approx(moved, rel=1e-6, abs=1e-12)
    unaltered = make(bounds, outside).recorded(draws, is_altered=False)
    law = law_of({key: values[1] for key, values in draws.items()})
    assert (unaltered.mean[1], unaltered.variance[1], unaltered.moved[1]) == pytest.approx((law.mean(), law.var(), 0))


@pytest.mark.parametrize("name", ["normal", "known", "gamma", "rate", "exponential", "poisson", "geometric"])
def test_what_no_bound_cuts_into_is_not_told_twice(name):
    assert LAWS[name][0](None, "clamp").recorded({key: np.array(v) for key, v in THETA[name].items()}) is None


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_draws_as_far_away_as_noise_may_send_them_have_an_answer(name, outside):
    far = {"mean": [-1e6, 1e6], "variance": [1.0, 1e9], "shape": [1e-3, 1e5], "rate": [1e-9, 1e9]}
    far["theta"] = [1e-12, 1 - 1e-9] if name == "geometric" else [1e-12, 1e6]
    found = LAWS[name][0]((2, 9), outside).recorded({key: np.array(far[key]) for key in THETA[name]})
    assert ((found.mean >= 2) & (found.mean <= 9)).all()
    assert ((found.variance >= 0) & (found.variance <= 12.26)).all()


def test_parameters_that_vague_priors_have_put_every_record_at_an_end():
    """Rates that are 0, counts beyond all numbers, and normal laws far wider than the bounds."""
    rates = np.array([0.0, 1e-320, 1e-200, 1e-150])
    for family, draws in (
        (F.Exponential("x", (0, 3)), {"theta": rates}),
        (F.Gamma("x", (0, 3), shape=2.0), {"rate": rates}),
        (F.Gamma("x", (0, 3)), {"shape": np.full(4, 2.0), "rate": rates}),
        (F.Poisson("x", (0, 3)), {"theta": np.array([1e150, 1e200, 1e300, np.inf])}),
        (F.Geometric("x", (0, 3)), {"theta": rates}),
    ):
        with np.errstate(all="ignore"):
            found = family.recorded(draws)
        np.testing.assert_allclose(found.mean, 3.0, rtol=1e-6)
        np.testing.assert_allclose(found.variance, 0.0, atol=1e-6)
        np.testing.assert_allclose(found.above, 1.0)
    wide = F.Normal("x", (0, 8)).recorded(
        {"mean": np.full(4, 3.0), "variance": np.array([0.99e10, 1.01e10, 1e30, np.inf]) * 16}
    )
    np.testing.assert_allclose(wide.mean, 4.0, atol=1e-4)
    np.testing.assert_allclose(wide.variance, 16.0, rtol=2e-5)


def test_each_column_of_several_is_told_by_itself():
    family = F.MultivariateNormal(["a", "b"], bounds={"a": (0, 8), "b": (-1, 1)})
    mean, covariance = np.array([[3.0, 0.5]]), np.array([[[4.0, 0.3], [0.3, 2.0]]])
    found = family.recorded({"mean": mean, "covariance": covariance})
    for j, (bounds, variance) in enumerate(zip(family.query.intervals, (4.0, 2.0), strict=True)):
        law = stats.norm(mean[0, j], variance**0.5)
        assert (found.mean[0, j], found.variance[0, j], found.moved[0, j]) == pytest.approx(
            oracle(law, bounds, "clamp")
        )
