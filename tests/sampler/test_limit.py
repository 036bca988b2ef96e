"""When what HMC neglects shows, and when it does not; and what auto then takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.sampler.stand_in import drawing

import noiseaware as na
from noiseaware.evidence.count import Public
from noiseaware.evidence.evidence import Evidence
from noiseaware.sampler import adequacy, augmentation

PRIOR = na.prior.NormalInverseGamma(0.5, 2.0, 4.0, 3.0)
LINE = na.prior.NormalInverseGamma([0, 0], 1.0, 3.0, 0.1)


def released(family, x: np.ndarray, epsilon: float, rng) -> na.Release:
    """A release of records x as a custodian would make it, but for who draws the noise."""
    scale = float(family.query.sensitivity()) / epsilon
    s = np.array([float(column.sum()) for column in family.query.alter(jnp.asarray(x))])
    values = s + rng.laplace(scale=scale, size=s.size)
    return na.Release(family=family, values=values, n=x.shape[-1], mechanism=na.mechanism.Laplace(scale))


def doubt_of(release: na.Release, prior) -> adequacy.Doubt:
    prior = release.family.completed(prior)
    return adequacy.Adequacy(release.evidence(), prior).doubt


# n, ε and whether the limit theorem shows: the settings in which it was measured to, or not to
@pytest.mark.parametrize(
    ("n", "epsilon", "shows"), [(3, 0.5, False), (10, 2.0, False), (10, 10.0, True), (300, 10.0, False)]
)
def test_few_records_and_little_noise_show(n, epsilon, shows, x64, seed):
    rng = np.random.default_rng(seed)
    release = released(na.family.Normal(bounds=(-1, 2)), rng.normal(0.3, 0.9, n), epsilon, rng)
    found = doubt_of(release, PRIOR)
    assert found.clamping == 0
    assert (found.reason is not None) == shows, found


@pytest.mark.parametrize(
    ("n", "sd", "shows"), [pytest.param(1000, 0.2, False, marks=pytest.mark.slow), (1000, 0.5, True), (20, 0.5, False)]
)
def test_bounds_that_cut_deep_show(n, sd, shows, x64, seed):
    """Of a regression: with bounds at five sd none is moved, at two many are. Then hmc takes them as moved, or says so
    where of the covariates only moments are believed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, sd, n)
    family = na.family.LinearRegression(["x"], "y", bounds=(-1, 1))
    release = released(family, np.stack([x, 0.6 * x + 0.8 * rng.normal(0, sd, n)]), 0.5, rng)
    assert adequacy.Adequacy(release.evidence(), family.completed(LINE)).clips == shows
    assert doubt_of(release, LINE).reason is None


def test_nothing_is_in_doubt_where_hmc_neglects_nothing(x64):
    for family, mechanism in (
        (na.family.Normal(), na.mechanism.Laplace(0.01)),
        (na.family.Normal(bounds=(-1, 2)), na.mechanism.Identity()),
    ):
        assert adequacy.Adequacy(Evidence(family, mechanism, jnp.zeros(2), Public(3)), PRIOR).doubt == (0.0, 0.0)


@pytest.mark.slow
def test_auto_takes_what_the_doubt_says(monkeypatch, seed):
    """The draws are stood in for: what counts is who is asked for them, and what is said."""
    from noiseaware.sampler import method as methods

    def blank(key, num_draws):
        return 1 + jax.random.uniform(key, (num_draws, 2))

    for name in ("hmc", "augmentation"):
        monkeypatch.setitem(methods.METHODS, name, drawing(methods.METHODS[name], blank))
    rng = np.random.default_rng(seed)
    family = na.family.Normal(bounds=(-1, 2))
    with jax.enable_x64(True):
        few = released(family, rng.normal(0.3, 0.9, 10), 20.0, rng)
        some = released(family, rng.normal(0.3, 0.9, 10), 0.5, rng)
    found = na.infer(few, PRIOR, num_draws=400, seed=1)
    assert (found.method, found.is_exact) == ("augmentation", True)
    assert "too far from normal" in found.choice
    assert na.infer(few, PRIOR, method="hmc", num_draws=400, seed=1).choice is None
    found = na.infer(some, PRIOR, num_draws=400, seed=1)
    assert (found.method, found.is_exact, found.choice) == ("hmc", False, None)
    monkeypatch.setattr(augmentation, "QUICK_RECORDS", 5)
    found = na.infer(few, PRIOR, num_draws=400, seed=1)
    assert (found.method, found.is_exact) == ("hmc", False)
    assert found.route.explanation in found.explanation
    assert "method='augmentation'" in found.explanation
