"""The Dirichlet prior of a vector of probabilities.

p(θ) = Γ(Σ_j α_j) Π_j θ_j^{α_j−1} / Γ(α_j)        v_j = log θ_j/θ_J
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Float, Key

from noiseaware.prior._prior import AbstractRealPrior, check_number, log_positive
from noiseaware.prior.beta import Beta


def _as_parameter(concentration) -> tuple[float, ...] | Array:
    """A list of numbers as a tuple, so that a prior of plain numbers is hashable; arrays pass."""
    if isinstance(concentration, jax.Array):
        return concentration
    is_list = isinstance(concentration, list | tuple) or (isinstance(concentration, np.ndarray) and concentration.ndim)
    if not is_list or not all(_is_number(a) for a in concentration):
        raise ValueError(f"concentration must be a list of numbers, one for each level, got {concentration!r}.")
    return tuple(float(a) for a in concentration)


def _is_number(value: object) -> bool:
    is_known = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_known or (isinstance(value, jax.Array) and value.ndim == 0)


class Dirichlet(AbstractRealPrior):
    """Dirichlet(concentration), one entry a category."""

    concentration: tuple[float, ...] | Float[Array, "... categories"]

    def __init__(self, concentration) -> None:
        self.concentration = _as_parameter(concentration)

    def __check_init__(self) -> None:
        if isinstance(self.concentration, tuple):
            if len(self.concentration) < 2:
                raise ValueError(f"concentration must have two or more entries, got {len(self.concentration)}.")
            for a in self.concentration:
                check_number("concentration", a, positive=True)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "... categories"]:
        concentration = jnp.asarray(self.concentration)
        shape = (*shape, concentration.shape[-1])
        return jax.nn.softmax(jax.random.loggamma(key, jnp.broadcast_to(concentration, shape)), axis=-1)

    def log_density(self, theta: Float[Array, "... categories"]) -> Float[Array, "..."]:
        return xlogy(jnp.asarray(self.concentration) - 1, theta).sum(-1) - self.log_normalizer()

    def log_normalizer(self) -> Float[Array, "..."]:
        concentration = jnp.asarray(self.concentration)
        return gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))

    def __str__(self) -> str:
        return f"Dirichlet({', '.join(f'{float(a):g}' for a in self.concentration)})"

    def marginals(self) -> tuple[Beta, ...]:
        concentration = np.asarray(self.concentration, dtype=float)
        return tuple(Beta(float(a), float(concentration.sum() - a)) for a in concentration)

    @property
    def num_coordinates(self) -> int:
        return jnp.shape(jnp.asarray(self.concentration))[-1] - 1

    def to_real(self, theta: Float[Array, "... categories"]) -> Float[Array, "... others"]:
        logs = log_positive(theta)
        return logs[..., :-1] - logs[..., -1:]

    def from_real(self, v: Float[Array, "... others"]) -> Float[Array, "... categories"]:
        return jax.nn.softmax(_with_last(v), axis=-1)

    def log_density_real(self, v: Float[Array, "... others"]) -> Float[Array, "..."]:
        shares = jnp.asarray(self.concentration) * jax.nn.log_softmax(_with_last(v), axis=-1)
        return shares.sum(-1) - self.log_normalizer()


def _with_last(v: Float[Array, "... others"]) -> Float[Array, "... categories"]:
    """The coordinate of the last category is 0."""
    return jnp.concatenate([v, jnp.zeros_like(v[..., :1])], axis=-1)
