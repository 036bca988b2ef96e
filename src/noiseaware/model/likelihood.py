"""log p(y | θ) of noisy statistics, for a model of one's own.

    one parameter, categorical    the exact engine: every record, every bound and the noise as they are; counts of few
                                  records are listed
    several statistics            y ~ Normal(n E r(θ), n Cov r(θ) + D), the central limit theorem (see sampler/_target)

Of the second kind, Laplace noise of scale b is normal of variance 2b²w with w ~ Exp(1), and D needs the weights w.
It runs in float64 whatever the user's own JAX setting is, and answers in the type of θ. Slopes are taken in forward
mode, inside, since the engine's loops look for contours and windows that the answer does not depend on; to JAX it
is a function like any other, for `grad`, `jit` and `vmap`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.evidence.evidence import Evidence
from noiseaware.evidence.release import Release
from noiseaware.likelihood import counts, gaussian, moment, plain_sum
from noiseaware.prior import Dirichlet
from noiseaware.sampler import exact, scalar_posterior

_MOST_LISTED = 4096  # sums, which is quicker than a contour: what does not depend on θ is worked out once

One = Callable[..., Float[Array, ""]]


def log_likelihood(release: Release | Sequence[Release], theta: Any, *, weights: Any = None) -> Float[Array, "..."]:
    """log p(y | θ), of one release or of several tables, differentiable in θ.

    θ is one number for a family of one parameter, else a vector as in a posterior: probabilities, (mean, variance).
    An axis before that is one θ after another or, with several releases, one θ for each; then the answer has it too.
    """
    releases = [release] if isinstance(release, Release) else list(release)
    if not releases:
        raise ValueError("release must be one or more, got none.")
    for each in releases:
        _check(each, weights)
    theta = jnp.asarray(theta)
    own = {0 if each.family.exact_by == "sum" else 1 for each in releases}
    if len(own) > 1 or theta.ndim not in (min(own), min(own) + 1):
        raise ValueError(f"theta must be one, or one for each release, got an array of shape {theta.shape}.")
    rows = theta if theta.ndim > min(own) else theta[None]
    if len(releases) > 1 and len(rows) not in (1, len(releases)):
        raise ValueError(f"theta must be one, or one for each of {len(releases)} releases, got {len(rows)}.")
    size = max(len(rows), len(releases))
    rows = jnp.broadcast_to(rows, (size, *rows.shape[1:]))
    weights = jnp.zeros((size, 0), rows.dtype) if weights is None else _rows_of(weights, releases[0], size, rows.dtype)
    if len(releases) == 1:
        found = _of_group(releases * size, rows, weights)
        return found if theta.ndim > min(own) else found[0]
    groups = _groups(releases)
    parts = [_of_group([releases[i] for i in g], rows[np.array(g)], weights[np.array(g)]) for g in groups]
    return jnp.concatenate(parts)[np.argsort(np.concatenate(groups))]


def is_exact(release: Release) -> bool:
    """Whether log_likelihood is that of the records themselves, or that of the central limit theorem."""
    evidence = release.evidence()
    return evidence.family.exact_by is not None and exact.explanation(evidence) is None


def needs_weights(release: Release) -> bool:
    """Whether the central limit theorem meets Laplace noise."""
    release.evidence()  # refuses a release without a family
    return release.family.exact_by is None and release.mechanism.shape.is_random


def _check(release: Release, weights: Any) -> None:
    if not release.mechanism.is_noisy:
        raise ValueError("release must have noise: without it, the likelihood is the family's own.")
    release.evidence()  # refuses a release without a family
    name = release.family.name
    if release.within is not None:
        raise ValueError(f"release must have values and not intervals, got within {release.within}; use infer.")
    if "coefficients" in release.family.parameters:
        raise ValueError(f"release must be of a family without covariates, got {name}; use noiseaware.infer.")
    if needs_weights(release) != (weights is not None):
        wanted = "must be given" if weights is None else "must be left out"
        raise ValueError(f"weights {wanted} for {type(release.mechanism).__name__} noise on the {name} family.")
    if release.n_mechanism is not None and release.family.exact_by is None:
        raise ValueError(f"n must be public for the {name} family, got a noisy one; use noiseaware.infer.")


def _rows_of(weights: Any, release: Release, size: int, dtype) -> Float[Array, "b k"]:
    return jnp.broadcast_to(jnp.asarray(weights, dtype), (size, len(release.query.names)))


def _groups(releases: list[Release]) -> list[list[int]]:
    """Places of releases that differ in numbers only, and can be gone through at once."""

    def alike(a: Release, b: Release) -> bool:
        if a is b:
            return True
        is_public = a.n_mechanism is None and b.n_mechanism is None
        same_n = a.n == b.n or a.family.exact_by != "counts"
        same_noise = type(a.mechanism) is type(b.mechanism) and np.shape(a.noise_scale) == np.shape(b.noise_scale)
        return is_public and same_n and same_noise and bool(eqx.tree_equal(a.family, b.family))

    groups: list[list[int]] = []
    for i, release in enumerate(releases):
        home = next((group for group in groups if alike(releases[group[0]], release)), None)
        groups.append([i]) if home is None else home.append(i)
    return groups


def _of_group(
    releases: list[Release], theta: Float[Array, "b ..."], weights: Float[Array, "b k"]
) -> Float[Array, " b"]:
    """log p(y | θ) of alike releases, with its slopes."""

    def value(theta, weights):
        return _cast(_each(releases, theta, weights, _value), theta.dtype)

    def tangent(primals, tangents):
        found, slopes = _each(releases, primals[0], primals[1], _with_slopes)
        rises = [
            (_cast(slope, dot.dtype) * dot).reshape(len(releases), -1).sum(1)
            for slope, dot in zip(slopes, tangents, strict=True)
        ]
        return _cast(found, primals[0].dtype), rises[0] + rises[1]

    differentiable = jax.custom_jvp(value)
    differentiable.defjvp(tangent)
    return differentiable(theta, weights)


def _cast(x: Array, dtype) -> Array:
    with jax.enable_x64(True):
        return jax.lax.convert_element_type(x, dtype)


def _value(one: One, theta, weights):
    return one(theta, weights)


def _with_slopes(one: One, theta, weights):
    """log p and its slopes in θ and in the weights."""

    def twice(*at):
        found = one(*at)
        return found, found

    slopes, found = jax.jacfwd(twice, argnums=(0, 1), has_aux=True)(theta, weights)
    return found, slopes


def _each(releases: list[Release], theta, weights, look: Callable):
    """`look` at the likelihood of each release, in float64."""
    first = releases[0]
    with jax.enable_x64(True):
        theta, weights = (jax.lax.convert_element_type(at, jnp.float64) for at in (theta, weights))
        own = first.evidence()
        if not own.count.is_public:  # all are the same release
            one = _one(own, own.y[None])
            return jax.lax.map(lambda at: look(lambda *a: one(own, *a), *at), (theta, weights))
        with jax.ensure_compile_time_eval():
            all_of_them = jax.tree.map(_stacked, *(dataclasses.replace(r.evidence(), neglected=None) for r in releases))
        if listed := _num_listed(releases):
            one, data = _listed(first.family, listed), (_log_terms(all_of_them, listed), all_of_them.count.value)
        else:
            one, data = _one(own, all_of_them.y), (all_of_them,)
        return jax.vmap(lambda data, *at: look(lambda *a: one(*data, *a), *at))(data, theta, weights)


def _stacked(*leaves: Any) -> Array:
    return jnp.asarray(np.stack([np.asarray(leaf, float) for leaf in leaves]))


def _num_listed(releases: list[Release]) -> int:
    """How many sums to list of every release; 0 where they are not."""
    family: Any = releases[0].family
    if family.exact_by != "sum":
        return 0
    return plain_sum.num_listed(family, max(r.n for r in releases), _MOST_LISTED)


def _log_terms(evidence: Evidence, listed: int) -> Float[Array, "b listed"]:
    def one(own: Evidence) -> Float[Array, " listed"]:
        family: Any = own.family
        return plain_sum.log_terms(family, own.mechanism, own.y[0], own.count.value, listed)

    with jax.ensure_compile_time_eval():
        return jax.vmap(one)(evidence)


def _listed(family, listed: int) -> Callable[..., Float[Array, ""]]:
    def one(terms, n, theta, _):
        return plain_sum.summed(family, terms, jnp.arange(0.0, listed), n, family.natural(theta))

    return one


def _one(evidence: Evidence, y: Float[Array | np.ndarray, "b k"]) -> Callable[..., Float[Array, ""]]:
    """Return the function (evidence, θ, weights) → log p(y | θ) of releases that are like this one."""
    family = evidence.family
    if family.exact_by == "counts":
        total = evidence.count
        shape = counts.shape_for(Dirichlet(np.ones(len(family.query.names))), evidence.mechanism, y, total)
        return lambda own, theta, _: counts.log_likelihood(own.law, own.y, total, theta[None], shape=shape)[0]
    if family.exact_by == "sum":
        placed = evidence.placed().count
        return lambda own, theta, _: scalar_posterior.log_likelihood(
            own if own.count.is_public else dataclasses.replace(own, count=placed), theta[None]
        )[0]

    def limit(own: Evidence, theta, weights):
        """Return the normal law, with the sum integrated out."""
        n, y = own.count.value, own.y
        mean, covariance = moment.released(own.family, theta)
        added = jnp.broadcast_to(own.mechanism.spread**2 * (2 * weights if weights.size else 1.0), y.shape)
        return gaussian.log_density(y - n * mean, n * covariance, added) - 0.5 * y.size * jnp.log(2 * jnp.pi)

    return limit
