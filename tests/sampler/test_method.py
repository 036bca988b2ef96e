"""Samplers by name and as values: whose options are used, who is taken by auto, and what a route carries."""

import subprocess
import sys
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.sampler.stand_in import stand_in

import noiseaware as na
from noiseaware.posterior import infer as verb
from noiseaware.posterior.diagnostic import MOST_DIVERGENCES, diverged
from noiseaware.sampler import adequacy
from noiseaware.sampler.method import METHODS

COUNT = na.Release(family=na.family.Bernoulli(), values=[12], n=50, mechanism=na.mechanism.DiscreteLaplace(4.0))
UNIFORM = na.prior.Beta(1, 1)
WAITS = na.Release(family=na.family.Normal("x", (-3, 3)), values=[1.0, 4.0], n=12, mechanism=na.mechanism.Laplace(0.5))
VAGUE = na.prior.NormalInverseGamma(0, 1, 3, 3)


class Rejection(na.method.AbstractSampler):
    """A user's own sampler: θ from the prior until its release is near the one at hand."""

    near: int = 1
    name: ClassVar[str] = "rejection"
    preference: ClassVar[int | None] = None
    is_chain: ClassVar[bool] = False

    def serves(self, family) -> bool:
        return family.name == "bernoulli"

    def route(self, evidence, prior):
        if evidence.is_noiseless:
            return na.method.Refusal("mechanism must have noise for rejection, got none.")
        return na.method.Route(self, "The release is matched but roughly.")

    def draws(self, key, evidence, prior, route, num_draws):
        key_theta, key_count, key_noise = jax.random.split(key, 3)
        theta = prior.sample(key_theta, (200 * num_draws,))
        s = jax.random.binomial(key_count, evidence.n, theta)
        y = s + evidence.mechanism.sample(key_noise, s.shape)
        order = jnp.argsort(jnp.abs(y - evidence.y[0]) > self.near, stable=True)
        return na.method.Draws(theta[order[:num_draws]], {"near": float(self.near)})


def test_a_sampler_of_ones_own_needs_nothing_private():
    own = na.infer(COUNT, UNIFORM, method=Rejection(), num_draws=2000, seed=1)
    assert (own.method, own.is_exact, own.is_chain, own.info) == ("rejection", False, False, {"near": 1.0})
    assert own.explanation == "The release is matched but roughly."
    exact = na.infer(COUNT, UNIFORM, num_draws=2000, seed=1)
    # 4.5 standard errors of two means of 2000 draws
    assert own.draws["theta"].mean() == pytest.approx(exact.draws["theta"].mean(), abs=4.5 * 0.15 * (2 / 2000) ** 0.5)
    poisson = na.Release(family=na.family.Poisson(), values=[3], n=9, mechanism=na.mechanism.Laplace(1.0))
    with pytest.raises(ValueError, match="this poisson family, got 'rejection'"):
        na.infer(poisson, na.prior.Gamma(2, 1), method=Rejection())
    plain = na.Release(family=na.family.Bernoulli(), values=[3], n=9, mechanism=na.mechanism.Identity())
    with pytest.raises(ValueError, match=r"must have noise for rejection, got none\."):
        na.infer(plain, UNIFORM, method=Rejection())


def test_a_sampler_of_ones_own_is_calibrated_by_vmap(seed):
    found = na.calibrate(na.family.Bernoulli(), UNIFORM, n=50, epsilon=1, method=Fixed(), num_trials=40, seed=seed)
    assert found.num_trials == 40
    assert found.by_parameter["theta"] < 1.95 / 40**0.5  # draws of the prior are calibrated in theta


class Fixed(Rejection):
    """Draws of the prior."""

    name: ClassVar[str] = "fixed"

    def draws(self, key, evidence, prior, route, num_draws):
        return na.method.Draws(prior.sample(key, (num_draws,)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_options_of_a_sampler_are_used():
    default, same, fewer = (
        na.infer(COUNT, UNIFORM, method=method, num_draws=64, seed=1).draws["theta"]
        for method in ("hmc", na.method.HMC(chains=64), na.method.HMC(chains=8))
    )
    np.testing.assert_array_equal(default, same)
    assert not np.array_equal(default, fewer)
    with pytest.raises(ValueError, match="chains must be"):
        na.method.HMC(chains=0)


def test_auto_follows_the_preferences_and_not_the_order_of_the_table(monkeypatch):
    monkeypatch.setitem(METHODS, "exact", stand_in(METHODS["exact"], preference=9))
    evidence = COUNT.evidence()
    assert na.method.method_for(evidence, "auto").name == "hmc"
    names = [name for name, sampler in METHODS.items() if sampler.preference is None]
    assert names == ["naive"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("method", ["auto", "hmc"])
def test_the_adequacy_of_an_approximation_is_computed_once(method, monkeypatch):
    """By auto, which asks whether it shows; for its clips, its choice and its sentence, all of which it decides."""
    calls, right = [], adequacy._errors
    monkeypatch.setattr(adequacy, "_errors", lambda *given: calls.append(1) or right(*given))
    blank = stand_in(
        METHODS["hmc"], draws=lambda self, key, *_: na.method.Draws(1 + jax.random.uniform(key, (_[-1], 3)))
    )
    monkeypatch.setitem(METHODS, "hmc", blank)
    family = na.family.LinearRegression(["x"], "y", bounds=(-1, 1))
    release = na.Release(family=family, values=[1.0, 2.0, 40.0, 20.0, 45.0], n=400, mechanism=na.mechanism.Laplace(4.0))
    found = verb.infer(release, na.prior.NormalInverseGamma([0, 0], 1.0, 3.0, 0.1), method=method, num_draws=64, seed=1)
    assert found.route is not None
    assert found.route.adequacy is not None
    assert len(calls) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_how_chains_went_reaches_the_person_who_asked():
    found = na.infer(WAITS, VAGUE, method="hmc", num_draws=64, seed=1)
    assert 0.5 < found.info["acceptance"] <= 1
    assert 0 <= found.info["divergences"] <= MOST_DIVERGENCES
    assert found.summary().attrs == found.info
    assert na.infer(COUNT, UNIFORM, num_draws=64, seed=1).info == {}


def test_chains_that_diverge_are_not_relied_on(monkeypatch):
    assert diverged({"divergences": 0.5 * MOST_DIVERGENCES}) is None
    draws = lambda self, key, *_: na.method.Draws(jax.random.uniform(key, (_[-1],)), {"divergences": 0.2})  # noqa: E731
    monkeypatch.setitem(METHODS, "hmc", stand_in(METHODS["hmc"], draws=draws))
    with pytest.warns(RuntimeWarning, match="20 % of the steps of the chains diverged"):
        found = na.infer(COUNT, UNIFORM, method="hmc", num_draws=4000, seed=1)
    assert "diverged" in str(found.explanation)


def test_what_is_no_method_is_refused_in_a_sentence():
    """Outside the checks of types under which tests run."""
    code = """
import noiseaware as na
release = na.Release(family=na.family.Bernoulli(), values=[31.0], n=200, mechanism=na.mechanism.Laplace(9.0))
for method in (5, None, ["hmc"], na.method.HMC):
    try:
        na.infer(release, na.prior.Beta(1, 1), method=method)
    except ValueError as error:
        print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split(", got ")[1] for line in told] == ["int.", "NoneType.", "list.", "the class HMC."]


def test_the_exact_sampler_as_a_value_takes_several_tables():
    release = na.Release(family=na.family.Bernoulli(), values=[31.0], n=200, mechanism=na.mechanism.Laplace(9.0))
    by_name, by_value = (
        na.infer([release, release], na.prior.Beta(1, 1), method=method, num_draws=20, seed=1).draws["theta"]
        for method in ("exact", na.method.Exact())
    )
    assert (by_name == by_value).all()


def test_a_regression_by_chains_says_what_it_takes_for_granted():
    family = na.family.LinearRegression(x=["age"], y="pressure", bounds={"age": (0, 100), "pressure": (60, 200)})
    noise = na.mechanism.Laplace(2.0)
    release = na.Release(family=family, values=[0.0, 0.0, 18.0, 9.0, 15.0], n=300, mechanism=noise)
    prior = family.checked_prior(na.prior.NormalInverseGamma([0, 120], [100, 0.1], 3, 200))
    with jax.enable_x64(True):
        said = na.method.HMC().route(release.evidence(), prior).explanation
    assert said == "Records outside the bounds are taken as if they had not been moved to them."
