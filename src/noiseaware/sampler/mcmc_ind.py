"""MCMC-Ind of Bernstein & Sheldon 2019: every record of the table is a latent variable, walked on by NUTS (NumPyro).

    σ² ~ InverseGamma,  θ | σ² ~ Normal,  T⁻¹ ~ Wishart,  µ | T ~ Normal        the prior
    x_i = µ + R e_i,  RRᵀ = T                                                   e_i, e'_i ~ Normal(0, 1)
    y_i = θᵀ(x_i, 1) + σ e'_i
    released = Σ t(clamped x_i, y_i) + noise                                    by the density of the noise

Everything is standardised, so that what the noise hides is walked on as under the prior, and T is never degenerate
however few the records. It is exact, records outside the bounds included, and slow: it costs n latent records a step.
"""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily, LinearRegression
from noiseaware.prior import AbstractPrior, Independent, NormalInverseWishart
from noiseaware.sampler import exact, markov_chain
from noiseaware.sampler._sampler import Refusal, Route

_WARMUP = 500
_ACCEPT = 0.9  # Laplace noise has a kink at 0, which long steps pass by


@functools.partial(jax.jit, static_argnames=("n", "num_draws"))
def _chains(
    keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, *, n: int, num_draws: int
) -> Float[Array, "b num_draws m"]:
    from numpyro.infer import MCMC, NUTS, init_to_sample

    family: LinearRegression = evidence.family  # type: ignore[assignment]

    def one(key_and_y):
        key, y = key_and_y
        kernel = NUTS(
            lambda: _model(evidence.at(y), family.scaled(prior), n),
            target_accept_prob=_ACCEPT,
            init_strategy=init_to_sample,
        )
        sampler = MCMC(kernel, num_warmup=_WARMUP, num_samples=num_draws, progress_bar=False)
        sampler.run(key)
        return family.unscaled_theta(sampler.get_samples()["theta"])

    return jax.lax.map(one, (keys, evidence.y))


def _model(evidence: Evidence, prior: Independent, n: int) -> None:
    """Lay down the joint law of parameters, records and release, in the units of u."""
    import numpyro

    family: LinearRegression = evidence.family  # type: ignore[assignment]

    theta, variance = _regression(prior.parts["regression"])
    numpyro.deterministic("theta", jnp.append(theta, variance))
    mean, root = _covariates(prior.parts["covariates"])
    e = _normal("records", family.dimension, n)
    x = mean[:, None] + root @ e[:-1]
    u = [*x, theta[:-1] @ x + theta[-1] + jnp.sqrt(variance) * e[-1]]
    if family.query.intervals is not None:
        u = [column.clip(-1.0, 1.0) for column in u]
    s = jnp.stack([column.sum() for column in family.query.monomials(u)])
    numpyro.factor("release", evidence.mechanism.log_density(evidence.y - s).sum())


def _regression(prior) -> tuple[Float[Array, " q"], Float[Array, ""]]:
    """θ and σ²."""
    precision, centre = jnp.asarray(prior.precision), jnp.asarray(prior.mean)
    variance = prior.scale / _gamma("precision", jnp.asarray(prior.shape, float))
    z = _normal("coefficients", centre.size)
    away = solve_triangular(jnp.linalg.cholesky(precision), z, trans=1, lower=True)
    return centre + jnp.sqrt(variance) * away, variance


def _covariates(prior) -> tuple[Float[Array, " p"], Float[Array, "p p"]]:
    """µ and a root R of T: LA⁻ᵀ with LLᵀ the prior's scale and A Bartlett's factor of a standard Wishart matrix."""
    centre = jnp.asarray(prior.mean)
    p = centre.size
    squares = 2 * _gamma("squares", 0.5 * (prior.dof - jnp.arange(0.0, p)))
    below = _normal("below", p * (p - 1) // 2)
    factor = jnp.diag(jnp.sqrt(squares)).at[np.tril_indices(p, -1)].set(below)
    root = solve_triangular(factor, jnp.linalg.cholesky(jnp.asarray(prior.scale)).T, lower=True).T
    return centre + root @ _normal("centre", p) / jnp.sqrt(prior.count), root


def _normal(name: str, *shape: int) -> Float[Array, "*shape"]:
    """Standard normal latents."""
    import numpyro
    import numpyro.distributions as dist

    return jnp.asarray(numpyro.sample(name, dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape))))


def _gamma(name: str, shape: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """Gamma latents of rate 1."""
    import numpyro
    import numpyro.distributions as dist

    return jnp.asarray(numpyro.sample(name, dist.Gamma(shape, 1.0).to_event(shape.ndim)))


class MCMCInd(markov_chain.AbstractChains):
    """MCMC-Ind of Bernstein & Sheldon 2019, by NumPyro's NUTS: exact in law, bounds included, and slow."""

    chains: int = eqx.field(static=True, default=4)
    name: ClassVar[str] = "mcmc_ind"
    preference: ClassVar[int | None] = 7

    def serves(self, family: AbstractFamily) -> bool:
        return isinstance(family, LinearRegression)

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route | Refusal:
        try:
            import numpyro  # noqa: F401
        except ImportError:
            raise ImportError("method mcmc_ind needs numpyro; install noiseaware[numpyro].") from None
        family: Any = evidence.family
        if not isinstance(family, LinearRegression):
            return Refusal(f"family must be a LinearRegression for mcmc_ind, got {type(family).__name__}.")
        covariates = family.completed(prior).parts["covariates"]
        if not isinstance(covariates, NormalInverseWishart):
            got = type(covariates).__name__
            return Refusal(f"covariates must have a NormalInverseWishart prior for mcmc_ind, got {got}.")
        if evidence.is_noiseless:
            return Refusal("mechanism must have noise for mcmc_ind, got Identity; use naive.")
        return Route(self, exact.explanation(evidence))

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        """Return draws for a batch of releases that differ in y alone, one release after another."""
        with jax.numpy_dtype_promotion("standard"):  # NumPyro's own arithmetic mixes types
            return _chains(keys, evidence, prior, n=int(evidence.n), num_draws=num_draws)
