"""Independent priors of several parameters, each under a name."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractPrior


class Independent(AbstractPrior):
    """Independent(name=prior, …); draws lie one after another on the last axis, in the order of the names."""

    names: tuple[str, ...] = eqx.field(static=True)  # a dictionary would be sorted on its way through jax.jit
    priors: tuple[AbstractPrior, ...]

    def __init__(self, **parts: AbstractPrior) -> None:
        self.names, self.priors = tuple(parts), tuple(parts.values())

    def __check_init__(self) -> None:
        if not self.names:
            raise ValueError("Independent must have one or more priors, as name=prior, got none.")
        for name, part in self.parts.items():
            if not isinstance(part, AbstractPrior):
                raise ValueError(f"{name} must be one of noiseaware.prior, got {type(part).__name__}.")

    @property
    def parts(self) -> dict[str, Any]:
        return dict(zip(self.names, self.priors, strict=True))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape k"]:
        keys = jax.random.split(key, len(self.parts))
        draws = [part.sample(k, shape) for k, part in zip(keys, self.parts.values(), strict=True)]
        return jnp.concatenate([d if d.ndim > len(shape) else d[..., None] for d in draws], axis=-1)

    def log_density(self, theta: Float[Array, "*shape k"]) -> Float[Array, "*shape"]:
        total, start = jnp.zeros(theta.shape[:-1]), 0
        for part in self.parts.values():
            own = jax.eval_shape(part.sample, jax.random.key(0)).shape
            piece = theta[..., start : start + math.prod(own)]
            total = total + part.log_density(piece if own else piece[..., 0])
            start += math.prod(own)
        return total

    def log_normalizer(self) -> Float[Array, ""]:
        return sum((part.log_normalizer() for part in self.parts.values()), start=jnp.zeros(()))
