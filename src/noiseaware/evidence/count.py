"""The number of records n as an analyst knows it: public, or private and released with noise of its own.

    private    p(ñ | n) = noise(ñ − n)        n = 0, 1, 2, …, all equally probable before ñ was seen

All that a likelihood or a sampler asks of n is a method here: one number to reckon with, p(ñ | n), the numbers at which
a likelihood is evaluated before it is summed over n, a real coordinate for chains, and the tilt of a sum of counts.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noiseaware.mechanism import AbstractMechanism
from noiseaware.prior import Numeric

_FEW = 64  # whole numbers that are all listed
_BULK = 5.0  # scales of the noise of n in which nodes are evenly spread
_FINER = 8  # interpolated points from one node to the next; every whole number where these are nearer
_ROUGH = 5  # nodes that show where the mass is

Nodes = Float[Array, " k"]
LogNoise = Callable[[AbstractMechanism, Any], Float[Array, ""]]
"""A log density of noise: the law itself, or one that is smooth."""


def _number(value: Any) -> Any:
    """Return a number of Python as a float, and what JAX traces as it is."""
    return float(value) if isinstance(value, int | np.integer) else value


class AbstractCount(eqx.Module):
    """The number of records of a table."""

    is_public: eqx.AbstractClassVar[bool]
    """True if n itself is known."""
    value: eqx.AbstractVar[Numeric]
    """The published number: n, or n with noise."""
    likely: eqx.AbstractVar[Numeric]
    """The number of records to reckon with where only one will do."""
    most: eqx.AbstractVar[Numeric]
    """The greatest number of records that there may be."""
    nodes: eqx.AbstractVar[Nodes]
    """Numbers of records at which a likelihood is evaluated (see `placed`)."""
    points: eqx.AbstractVar[Nodes]
    """Numbers of records between which it is summed."""

    @property
    @abc.abstractmethod
    def variance(self) -> float:
        """The variance of the noise of n."""

    @property
    @abc.abstractmethod
    def scale(self) -> float:
        """The scale or standard deviation of the noise of n."""

    @abc.abstractmethod
    def log_density(self, n: Any) -> Float[Array, "..."] | float:
        """Return log p(ñ | n)."""

    @abc.abstractmethod
    def sample(self, key: Array, size: int) -> Float[np.ndarray, " size"]:
        """Return true numbers of records that may be behind the published one."""

    # ---- nodes to sum over -----------------------------------------------------------------------------------

    @abc.abstractmethod
    def placed(self, hidden: float | None) -> "AbstractCount":
        """Return this count with its nodes, given how many records the noise of y hides, None where unknown.

        Their number is static: it depends on all but y. Call it outside of `jit`.
        """

    @abc.abstractmethod
    def fewer(self) -> "AbstractCount":
        """Return this count with just enough nodes to see where the mass is."""

    # ---- the coordinate of a chain ---------------------------------------------------------------------------

    @abc.abstractmethod
    def above(self, least: float) -> "AbstractCount":
        """Return this count knowing that n is greater than `least`, as where a density exists only from there on."""

    @abc.abstractmethod
    def of(self, v: Float[Array, " k"]) -> tuple[Float[Array, " j"], Numeric]:
        """Return the coordinates of all else, and n."""

    @abc.abstractmethod
    def appended(self, v: Float[Array, " j"]) -> Float[Array, " k"]:
        """Return coordinates of all else with those of the likely n."""

    @abc.abstractmethod
    def log_density_real(self, v: Float[Array, " k"], noise: LogNoise) -> Float[Array, ""] | float:
        """Return log p(ñ | n) plus the measure of n's coordinate."""

    # ---- the total of counts ---------------------------------------------------------------------------------

    @abc.abstractmethod
    def wanted(self, tilt: Float[Array, ""]) -> Numeric:
        """Return the n at which log p(ñ | n) has this slope; of Laplace noise, the kink."""

    @abc.abstractmethod
    def limited(self, tilt: Float[Array, ""]) -> Float[Array, ""]:
        """Return the tilt, limited to the slopes that log p(ñ | n) has."""


class Public(AbstractCount):
    """A number of records that is known."""

    is_public: ClassVar[bool] = True
    value: Numeric

    def __init__(self, value: Numeric) -> None:
        self.value = _number(value)

    @property
    def likely(self) -> Numeric:
        return self.value

    @property
    def nodes(self) -> Nodes:
        return jnp.asarray(self.value)[None]

    @property
    def points(self) -> Nodes:
        return self.nodes

    @property
    def most(self) -> Numeric:
        return self.value

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def scale(self) -> float:
        return 0.0

    def log_density(self, n: Any) -> float:
        return 0.0

    def sample(self, key: Array, size: int) -> Float[np.ndarray, " size"]:
        return np.full(size, float(self.value))

    def placed(self, hidden: float | None) -> "Public":
        return self

    def fewer(self) -> "Public":
        return self

    def above(self, least: float) -> "Public":
        return self

    def of(self, v: Float[Array, " k"]) -> tuple[Float[Array, " k"], Numeric]:
        return v, self.value

    def appended(self, v: Float[Array, " j"]) -> Float[Array, " j"]:
        return v

    def log_density_real(self, v: Float[Array, " k"], noise: LogNoise) -> float:
        return 0.0

    def wanted(self, tilt: Float[Array, ""]) -> Numeric:
        return self.value

    def limited(self, tilt: Float[Array, ""]) -> Float[Array, ""]:
        return tilt


class Private(AbstractCount):
    """A number of records of which only a noisy one is known, and the law of its noise."""

    is_public: ClassVar[bool] = False
    value: Numeric
    mechanism: AbstractMechanism
    least: Numeric
    """The number that n is greater than."""
    nodes: Nodes
    points: Nodes
    likely: Numeric
    most: Numeric

    def __init__(
        self,
        value: Numeric,
        mechanism: AbstractMechanism,
        least: Numeric = -1.0,
        nodes: Any = None,
        points: Any = None,
    ) -> None:
        self.value, self.mechanism, self.least = _number(value), mechanism, least
        none: Any = np.zeros(0)
        self.nodes, self.points = (none if some is None else some for some in (nodes, points))
        self.likely = max(self.value, least + 2)
        self.most = self.likely + math.ceil(self.mechanism.reach * self.scale)

    @property
    def variance(self) -> float:
        return float(np.asarray(self.mechanism.variance))

    @property
    def scale(self) -> float:
        return float(np.asarray(self.mechanism.spread))

    def log_density(self, n: Any) -> Float[Array, "..."]:
        return self.mechanism.log_density(self.value - n)

    def sample(self, key: Array, size: int) -> Float[np.ndarray, " size"]:
        found = np.zeros(0)
        while found.size < size:
            key, key_noise = jax.random.split(key)
            drawn = self.value - np.round(np.asarray(self.mechanism.sample(key_noise, (4 * size,))))
            found = np.append(found, drawn[drawn > self.least])
        return found[:size]

    def placed(self, hidden: float | None) -> "Private":
        value, scale, reach = float(self.value), self.scale, self.mechanism.reach
        first = max(1.0, np.ceil(value - reach * scale))
        last = max(1.0, np.ceil(max(value, 1.0) + reach * scale))
        if last - first < _FEW:
            nodes = np.arange(first, last + 1)
        else:
            nodes = _spread(max(1.0, value), scale, reach, _spacing(hidden, scale))
            nodes = np.unique(np.append(first, np.clip(np.round(nodes), first, last)))
        between = np.linspace(nodes[:-1], nodes[1:], _FINER + 1).ravel()
        points = np.unique(np.append(np.round(between), nodes))
        return Private(self.value, self.mechanism, self.least, nodes, points)

    def fewer(self) -> "Private":
        every = np.unique(np.round(np.linspace(0, self.nodes.size - 1, _ROUGH)).astype(int))
        return eqx.tree_at(lambda count: count.nodes, self, self.nodes[every])

    def above(self, least: float) -> "Private":
        return Private(self.value, self.mechanism, least, self.nodes, self.points)

    def of(self, v: Float[Array, " k"]) -> tuple[Float[Array, " j"], Numeric]:
        return v[:-1], self.least + jnp.exp(v[-1])

    def appended(self, v: Float[Array, " j"]) -> Float[Array, " k"]:
        return jnp.append(v, jnp.log(self.likely - self.least))

    def log_density_real(self, v: Float[Array, " k"], noise: LogNoise) -> Float[Array, ""]:
        return noise(self.mechanism, self.value - self.of(v)[1]) + v[-1]

    def wanted(self, tilt: Float[Array, ""]) -> Numeric:
        return self.likely - self.mechanism.continuous().tilt.place(tilt)

    def limited(self, tilt: Float[Array, ""]) -> Float[Array, ""]:
        return self.mechanism.continuous().tilt.limited(tilt)


def _spacing(hidden: float | None, scale: float) -> float:
    """Return the distance of nodes in scales of the noise of n: 0.7 of the records that the noise of y hides."""
    return 0.25 if hidden is None else float(np.clip(0.7 * (hidden / scale), 1 / 16, 1 / 2))


def _spread(centre: float, scale: float, reach: float, spacing: float) -> Float[np.ndarray, " k"]:
    """Return nodes on both sides of the centre: evenly at first, then ever further apart."""
    steps = np.arange(0.0, min(_BULK, reach) + spacing, spacing)
    while steps[-1] < reach:
        steps = np.append(steps, steps[-1] + max(spacing, 0.25 * (steps[-1] - _BULK + 1)))
    return centre + scale * np.concatenate([-steps[::-1], steps[1:]])
