"""Independent priors of several parameters, each under a name.

Where all of them have real coordinates, so have they together, one after another.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.check import kind
from noiseaware.prior._prior import AbstractPrior, AbstractRealPrior, AbstractScalarPrior


class Independent(AbstractRealPrior):
    """Independent(name=prior, …); draws lie one after another on the last axis, in the order of the names."""

    names: tuple[str, ...] = eqx.field(static=True)  # a dictionary would be sorted on its way through jax.jit
    priors: tuple[AbstractPrior, ...]

    def __init__(self, /, **parts: AbstractPrior) -> None:
        self.names, self.priors = tuple(parts), tuple(parts.values())

    def __check_init__(self) -> None:
        if not self.names:
            raise ValueError("Independent must have one or more priors, as name=prior, got none.")
        for name, part in self.parts.items():
            if not isinstance(part, AbstractPrior):
                raise ValueError(f"{name} must be one of noiseaware.prior, got {kind(part)}.")

    @property
    def parts(self) -> dict[str, Any]:
        return dict(zip(self.names, self.priors, strict=True))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape k"]:
        keys = jax.random.split(key, len(self.parts))
        draws = [part.sample(k, shape) for k, part in zip(keys, self.parts.values(), strict=True)]
        return jnp.concatenate([d if d.ndim > len(shape) else d[..., None] for d in draws], axis=-1)

    def log_density(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape"]:
        return self._summed("log_density", theta, self._sizes)

    def _summed(self, name: str, values: Float[Array, "*shape k"], sizes: list[int]) -> Float[Array, "*shape"]:
        """A function of each part's own numbers, summed."""
        total = jnp.zeros(values.shape[:-1])
        for part, piece in zip(self.priors, _cut(values, sizes), strict=True):
            total = total + getattr(part, name)(piece[..., 0] if _is_number(part) else piece)
        return total

    def _joined(self, name: str, values: Float[Array, "*shape k"], sizes: list[int]) -> Float[Array, "*shape m"]:
        """A function of each part's own numbers, one after another."""
        pieces = [
            getattr(part, name)(piece[..., 0])[..., None] if _is_number(part) else getattr(part, name)(piece)
            for part, piece in zip(self.priors, _cut(values, sizes), strict=True)
        ]
        return jnp.concatenate(pieces, axis=-1)

    @property
    def _sizes(self) -> list[int]:
        return [math.prod(_shape(part)) for part in self.priors]

    @property
    def _coordinates(self) -> list[int]:
        return [part.num_coordinates for part in self.parts.values()]

    @property
    def num_coordinates(self) -> int:
        return sum(self._coordinates)

    def to_real(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape m"]:
        return self._joined("to_real", theta, self._sizes)

    def from_real(self, v: Float[Array, "*shape m"]) -> Float[Array, "*shape k"]:
        return self._joined("from_real", v, self._coordinates)

    def log_density_real(self, v: Float[Array, "*shape m"]) -> Float[Array, "*shape"]:
        return self._summed("log_density_real", v, self._coordinates)

    def marginals(self) -> tuple[AbstractScalarPrior, ...]:
        return tuple(marginal for part in self.priors for marginal in part.marginals())

    def __str__(self) -> str:
        return f"Independent({', '.join(f'{name}={part}' for name, part in self.parts.items())})"

    def log_normalizer(self) -> Float[Array, ""]:
        return sum((part.log_normalizer() for part in self.parts.values()), start=jnp.zeros(()))


def _shape(part: AbstractPrior) -> tuple[int, ...]:
    return jax.eval_shape(part.sample, jax.random.key(0)).shape


def _is_number(part: AbstractPrior) -> bool:
    return _shape(part) == ()


def _cut(values: Float[Array, "*shape k"], sizes: list[int]) -> list[Float[Array, "*shape m"]]:
    """Numbers of the last axis, so many to each part; what nobody asked for may follow."""
    ends = list(itertools.accumulate(sizes))
    return [values[..., end - size : end] for size, end in zip(sizes, ends, strict=True)]
