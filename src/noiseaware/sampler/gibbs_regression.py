"""The Gibbs samplers of Bernstein & Sheldon 2019, Algorithm 1, for linear regression on any number of covariates.

    µ, Σ ← moments of t                given θ, σ² and the moments of x up to the fourth (_regression_moment)
    s ~ NormProduct(nµ, nΣ, y, diag ω²), projected to a scatter that is positive definite
    θ, σ² ~ NIG given s                by conjugacy; and the mean and covariance of x, where they are unknown
    1/ω_j² ~ InverseGaussian(1/(b|y_j − s_j|), 1/b²)

The variants differ in what they take the moments of x to be: those of a normal law with unknown mean and covariance
(update), those of one record of that law's prior (prior), or noisy ones that were released too (noisy). As corrected:
each unique statistic is noised once, and n not at all. The law of s given θ is normal by the central limit theorem
while θ given s is exact, so that no joint law has both conditionals.
"""

import abc
import functools
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, LinearRegression
from noiseaware.family.linear_regression_fourth import LinearRegressionFourth
from noiseaware.likelihood import regression_moment
from noiseaware.prior import AbstractPrior, Independent, NormalInverseWishart, Numeric
from noiseaware.sampler import markov_chain
from noiseaware.sampler._sampler import Refusal, Route
from noiseaware.triangular import cholesky, solve

_WARMUP, _KEPT = 2000, 5000  # as in the 2018 paper
_JITTER = 1e-12  # of a variance: a covariate of two values has a square that is a line
_LEAST_FREEDOM = 4  # of a Student's t, for its fourth moments


class State(NamedTuple):
    """θ, σ² and, where unknown, the mean and covariance of x, in the units of u; s; and the variance of each noise."""

    theta: Float[Array, " m"]
    s: Float[Array, " k"]
    noise_variance: Float[Array, " k"]


class Info(NamedTuple):
    """How far s was moved to be one that a table could have."""

    moved: Float[Array, ""]


def init(key: Key[Array, ""], evidence: Evidence, prior: Independent) -> State:
    """Start where the naive posterior is: s = y, or the nearest that a table could have; the prior is in units of u."""
    family, n = _regression(evidence.family), evidence.count.value
    s = family.project(evidence.y, n)
    theta = family.update_scaled(prior, *family.split(s, n), n).sample(key)
    return State(theta, s, jnp.full_like(s, 2 * evidence.mechanism.spread**2))


def step(key: Key[Array, ""], state: State, evidence: Evidence, prior: Independent) -> tuple[State, Info]:
    """Make one sweep."""
    key_statistic, key_theta, key_noise = jax.random.split(key, 3)
    family, y, n = _regression(evidence.family), evidence.y, evidence.count.value
    q = family.dimension
    covariate = regression_moment.of_covariates(prior.parts["covariates"], state.theta[q + 1 :])
    mean, covariance = regression_moment.of_record(covariate, state.theta[:q], state.theta[q])
    drawn = _norm_product(key_statistic, n * mean, n * covariance, y, state.noise_variance)
    s = family.project(drawn, n)
    theta = family.update_scaled(prior, *family.split(s, n), n).sample(key_theta)
    noise_variance = evidence.mechanism.mixture.draw_variance(key_noise, y - s)
    return State(theta, s, noise_variance), Info(jnp.abs(s - drawn).max())


def _norm_product(
    key: Key[Array, ""],
    mean: Float[Array, " k"],
    covariance: Float[Array, "k k"],
    y: Float[Array, " k"],
    noise_variance: Float[Array, " k"],
) -> Float[Array, " k"]:
    """s ~ N(mean, A) given y ~ N(s, D): a joint draw is moved by A(A + D)⁻¹ to agree with y (Matheron's rule)."""
    key_statistic, key_noise = jax.random.split(key)
    covariance = covariance + jnp.diag(_JITTER * jnp.diag(covariance) + 1e-250)
    s = mean + cholesky(covariance) @ jax.random.normal(key_statistic, mean.shape)
    noise = jnp.sqrt(noise_variance) * jax.random.normal(key_noise, mean.shape)
    factor = cholesky(covariance + jnp.diag(noise_variance))
    return s + covariance @ solve(factor, solve(factor, (y - s - noise)[:, None]), transposed=True)[:, 0]


# ---- what is taken for the moments of the covariates, in the units of u --------------------------------------------

Believe = Callable[[AbstractFamily, AbstractPrior, Float[Array, " k"], Numeric], AbstractPrior]


def _unknown(family: AbstractFamily, covariates: AbstractPrior, y: Float[Array, " k"], n: Numeric) -> AbstractPrior:
    """Those of a normal law, redrawn in each sweep."""
    if not isinstance(covariates, NormalInverseWishart):
        got = type(covariates).__name__
        raise ValueError(f"covariates must have a NormalInverseWishart prior for gibbs_ss_update, got {got}.")
    return covariates


def _predicted(family: AbstractFamily, covariates: AbstractPrior, y: Float[Array, " k"], n: Numeric) -> AbstractPrior:
    """Those of one record of the prior, or the known ones."""
    if not isinstance(covariates, NormalInverseWishart):
        return covariates
    least = _LEAST_FREEDOM + len(covariates.mean) - 1
    if isinstance(covariates.dof, int | float) and covariates.dof <= least:
        raise ValueError(f"dof must be above {least} for gibbs_ss_prior to have fourth moments, got {covariates.dof}.")
    return regression_moment.predictive(covariates)


def _released(family: AbstractFamily, covariates: AbstractPrior, y: Float[Array, " k"], n: Numeric) -> AbstractPrior:
    """Those that were released with noise."""
    if not isinstance(family, LinearRegressionFourth):
        raise ValueError(f"family must be a LinearRegressionFourth for gibbs_ss_noisy, got {type(family).__name__}.")
    return family.covariate_moments(y, n)


# ---- chains --------------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("believe", "num_draws", "num_warmup", "thin"))
def chains(
    keys: Key[Array, " c"],
    believe: Believe,
    evidence: Evidence,
    prior: AbstractPrior,
    *,
    num_draws: int,
    num_warmup: int = _WARMUP,
    thin: int = 1,
) -> Float[Array, "c num_draws m"]:
    """Return coefficients and variance in the units of x and y, of one chain for each key and y."""
    family, n = evidence.family, evidence.count.value
    regression = _regression(family)
    own = len(regression.query.names)
    # further statistics are read by `believe` alone
    noise = jax.tree.map(lambda leaf: leaf[:own] if jnp.ndim(leaf) else leaf, evidence.law)

    def one(key, y):
        seen = Evidence(regression, noise, y[:own], evidence.count)
        parts = regression.scaled(prior).parts
        covariates = believe(family, parts["covariates"], y, n)
        believed = Independent(regression=parts["regression"], covariates=covariates)
        return markov_chain.run(
            key,
            lambda key: init(key, seen, believed),
            lambda key, state: step(key, state, seen, believed)[0],
            lambda state: regression.unscaled_theta(state.theta[: regression.dimension + 1]),
            num_draws=num_draws,
            num_warmup=num_warmup,
            thin=thin,
        )

    return jax.vmap(one)(keys, evidence.y)


def _regression(family: AbstractFamily) -> LinearRegression:
    """The regression, without further statistics."""
    regression = family.regression if isinstance(family, LinearRegressionFourth) else family
    if not isinstance(regression, LinearRegression):
        raise ValueError(f"family must be a LinearRegression for this sampler, got {type(family).__name__}.")
    return regression


class AbstractGibbsRegression(markov_chain.AbstractChains):
    """One of the samplers of Bernstein & Sheldon 2019, thinned from as many sweeps as in the 2018 paper."""

    @property
    @abc.abstractmethod
    def believe(self) -> Believe:
        """What the moments of the covariates are taken to be."""

    sentence: eqx.AbstractClassVar[str]
    """The approximation in words."""

    def serves(self, family: AbstractFamily) -> bool:
        return isinstance(family, LinearRegression)

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route | Refusal:
        """Return a route with a sentence always: these draws are never exact."""
        try:
            covariates = _regression(evidence.family).completed(prior).parts["covariates"]
            if evidence.y is not None or not isinstance(evidence.family, LinearRegressionFourth):
                self.believe(evidence.family, covariates, evidence.y, evidence.count.value)
        except ValueError as error:
            return Refusal(str(error))
        sentence = f"The statistics are taken as normal given θ (central limit theorem), {self.sentence}."
        if evidence.is_noiseless:
            sentence += " There is no noise."
        elif _regression(evidence.family).query.is_altered:
            sentence += " Records outside the bounds are taken as if they had not been moved to them."
        return Route(self, sentence)

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        return chains(keys, self.believe, evidence, prior, num_draws=num_draws, thin=max(1, _KEPT // num_draws))


class GibbsUpdate(AbstractGibbsRegression):
    """Gibbs-SS-Update: the covariates' moments are those of a normal law, redrawn in each sweep."""

    chains: int = eqx.field(static=True, default=16)
    name: ClassVar[str] = "gibbs_ss_update"
    preference: ClassVar[int | None] = 3
    sentence: ClassVar[str] = "with normal covariates, as in Gibbs-SS-Update of 2019"

    @property
    def believe(self) -> Believe:
        return _unknown


class GibbsPrior(AbstractGibbsRegression):
    """Gibbs-SS-Prior: the covariates' moments are those of one record of the prior."""

    chains: int = eqx.field(static=True, default=16)
    name: ClassVar[str] = "gibbs_ss_prior"
    preference: ClassVar[int | None] = 4
    sentence: ClassVar[str] = "with the covariates' moments of the prior, as in Gibbs-SS-Prior of 2019"

    @property
    def believe(self) -> Believe:
        return _predicted


class GibbsNoisy(AbstractGibbsRegression):
    """Gibbs-SS-Noisy: the covariates' moments are those that were released with noise."""

    chains: int = eqx.field(static=True, default=16)
    name: ClassVar[str] = "gibbs_ss_noisy"
    preference: ClassVar[int | None] = 5
    sentence: ClassVar[str] = (
        "with noisy moments of the covariates taken as the true ones, as in Gibbs-SS-Noisy of 2019"
    )

    @property
    def believe(self) -> Believe:
        return _released

    def serves(self, family: AbstractFamily) -> bool:
        return isinstance(family, LinearRegressionFourth)
