"""The contract of a prior: a conjugate distribution with its normalising constant.

A prior is data, and so is the posterior that a family's `update` makes of it. A real prior also carries the
coordinate v = g(θ) that takes its support to the whole line or space, in which posteriors are integrated or walked.
"""

import abc
from dataclasses import fields
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from noiseaware.check import shown

Numeric = Float[Array, "..."] | float
"""A number, or a batch of them."""


class AbstractPrior(eqx.Module):
    """A distribution of θ with density exp(… − log_normalizer())."""

    def __repr__(self) -> str:
        return eqx.tree_pformat(self, short_arrays=False)

    def __str__(self) -> str:
        """Write the prior as its author would: NormalInverseGamma([1, 0], 0.25, 20, 0.5)."""
        numbers = (np.asarray(getattr(self, field.name), dtype=float) for field in fields(self))
        return f"{type(self).__name__}({', '.join(map(_written, numbers))})"

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Return independent draws; `shape` must broadcast with the prior's own parameters."""

    @abc.abstractmethod
    def log_density(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(θ)."""

    @abc.abstractmethod
    def log_normalizer(self) -> Float[Array, "..."]:
        """log of the integral of the unnormalised density."""

    @abc.abstractmethod
    def marginals(self) -> "tuple[AbstractScalarPrior, ...]":
        """Return the prior of each number by itself, in the order of the draws; of a symmetric matrix, the upper half.

        Their parameters are plain numbers.
        """


class AbstractRealPrior(AbstractPrior):
    """A prior with coordinates in which every real number, or vector of them, is a parameter."""

    @property
    @abc.abstractmethod
    def num_coordinates(self) -> int:
        """The number of real numbers in v."""

    @abc.abstractmethod
    def to_real(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """The coordinate v of θ; of a θ that has rounded to a bound, the nearest that is finite."""

    @abc.abstractmethod
    def from_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        """θ at the unconstrained coordinate v."""

    @abc.abstractmethod
    def log_density_real(self, v: Float[Array, "..."]) -> Float[Array, "..."]:
        """log density of v, written so that it stays finite where θ itself would round to a bound."""


class AbstractScalarPrior(AbstractRealPrior):
    """A prior on one number, which logit, log or nothing takes to the whole line, as its support has two ends or fewer.

    Moments and quantiles are those of a prior whose parameters are plain numbers.
    """

    support: eqx.AbstractClassVar[tuple[float, float]]
    """The ends of the numbers that are possible."""

    @abc.abstractmethod
    def moments(self) -> tuple[float, float]:
        """Return mean and standard deviation, infinite or NaN where the integral is."""

    @abc.abstractmethod
    def quantile(self, q: float) -> float:
        """Return the number below which θ lies with probability q."""

    @property
    def num_coordinates(self) -> int:
        return 1

    def marginals(self) -> tuple[Self, ...]:
        return (jax.tree.map(float, self),)


def mean_vector(value) -> np.ndarray | Float[Array, " d"]:
    """The mean of several numbers from a list of them, or from one."""
    if isinstance(value, jax.Array):
        return value
    try:
        given = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"mean must be a number, or a list of them, got {shown(value)}.") from None
    if given.ndim != 1:
        raise ValueError(f"mean must be a number, or a list of them, got {shown(value)}.")
    check_number("mean", given, positive=False)
    return given


def precision_matrix(value, size: int, *, name: str = "precision") -> np.ndarray | Float[Array, "d d"]:
    """A positive definite matrix from itself, from its diagonal or from a number times the identity."""
    if isinstance(value, jax.Array):
        return value
    try:
        given = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, {size} of them, or a matrix of them, got {value!r}.") from None
    if given.ndim < 2 and given.shape in ((), (1,), (size,)):
        given = np.diag(np.broadcast_to(given, (size,)))
    if given.shape != (size, size):
        raise ValueError(f"{name} must be {size} × {size}, got {' × '.join(map(str, given.shape))}.")
    if not np.isfinite(given).all() or not np.allclose(given, given.T) or np.linalg.eigvalsh(given)[0] <= 0:
        raise ValueError(f"{name} must be symmetric and positive definite, got {given.tolist()}.")
    return given


def check_number(name: str, value: Any, *, positive: bool, is_single: bool = False) -> None:
    """Refuse a parameter that is not finite (or not positive); what JAX holds passes, and a matrix need not be > 0.

    Most may be an array, of a prior for each of several; one that is single may not.
    """
    if isinstance(value, jax.Array):
        return
    rule = "positive and finite" if positive else "finite"
    if is_single and np.ndim(value):
        raise ValueError(f"{name} must be one number, {rule}, got {shown(value)}.")
    try:
        given = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {rule}, got {value!r}.") from None
    if not np.isfinite(given).all() or (positive and given.ndim < 2 and not (given > 0).all()):
        raise ValueError(f"{name} must be {rule}, got {given.tolist() if given.ndim else value}.")


def log_positive(theta: Float[Array, "..."]) -> Float[Array, "..."]:
    """log θ, finite also where θ has rounded to 0."""
    return jax.numpy.log(jax.numpy.maximum(theta, np.finfo(float).tiny))


def _written(value: np.ndarray) -> str:
    """Write a number, a list, or a matrix: a diagonal one as its diagonal, and equal entries of that as one number."""
    if value.ndim == 2 and np.array_equal(value, np.diag(np.diag(value))):
        diagonal = np.diag(value)
        return _written(diagonal[0] if len(set(diagonal)) == 1 else diagonal)
    if value.ndim == 0:
        return f"{value:g}"
    return f"[{', '.join(map(_written, value))}]"
