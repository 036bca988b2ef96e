"""The categorical family: one of several levels.

t_j(x) = 1{x = j}        η_j = log θ_j        A(η) = log Σ_j e^{η_j}
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Int, Key, Num

from noiseaware.family._family import AbstractFamily, check_conjugate
from noiseaware.family.glossary import Meaning
from noiseaware.prior import Dirichlet, Numeric
from noiseaware.query import Counts


class Categorical(AbstractFamily):
    """Categorical(θ) over public levels. In a table, whatever is not a level is missing, and counts as the first one
    unless `missing` of the release says otherwise."""

    query: Counts = eqx.field(static=True)
    name: ClassVar[str] = "categorical"
    records: ClassVar[str] = "one of several levels (categorical)"
    glossary: ClassVar[Mapping[str, Meaning]] = {
        "theta": Meaning("the probability of the level", entry="the probability of {}")
    }
    is_choice: ClassVar[bool] = True
    conjugate: ClassVar[type] = Dirichlet
    parameters: ClassVar[tuple[str, ...]] = ("theta",)

    def __init__(self, column: str | None = None, *, levels) -> None:
        self.query = Counts(column, levels=levels)

    @property
    def exact_by(self) -> Literal["sum", "counts"] | None:
        return "counts"

    @property
    def is_count(self) -> bool:
        return True

    def allows(self, low: Float[np.ndarray, " k"], high: Float[np.ndarray, " k"], n: float) -> bool:
        return bool(np.maximum(low, 0).sum() <= n <= high.sum()) and bool((high >= 0).all())

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        return {"theta": (("level", self.query.levels),)}

    def natural(self, theta: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.log(theta)

    def log_partition(self, eta: Inexact[Array, " k"]) -> Inexact[Array, ""]:
        return jax.nn.logsumexp(eta)

    def sample(self, key: Key[Array, ""], theta: Float[Array, " k"], n: int) -> Int[Array, " n"]:
        return jax.random.categorical(key, jnp.log(theta), shape=(n,))

    def check_prior(self, prior: object) -> None:
        check_conjugate(self, prior)
        if len(prior.concentration) != len(self.query.levels):  # type: ignore[attr-defined]
            got = len(prior.concentration)  # type: ignore[attr-defined]
            raise ValueError(f"prior must have {len(self.query.levels)} concentrations, one a level, got {got}.")

    def carried(
        self, key: Key[Array, ""], x: Num[Array, " n"], theta: Float[Array, " k"], other: Float[Array, " k"]
    ) -> Num[Array, " n"]:
        """A record keeps its level with probability min(1, θ'/θ), or goes to one whose probability rises."""
        key_kept, key_new = jax.random.split(key)
        is_kept = jax.random.uniform(key_kept, x.shape) * theta[x] < other[x]
        gains = jnp.maximum(other - theta, jnp.finfo(theta.dtype).tiny)
        return jnp.where(is_kept, x, jax.random.categorical(key_new, jnp.log(gains), shape=x.shape))

    def update(self, prior: Dirichlet, s: Num[Array, "*batch k"], n: Numeric) -> Dirichlet:
        return Dirichlet(jnp.asarray(prior.concentration) + s)

    def project(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """Negative counts become 0, and the rest is scaled to the total n."""
        positive = jnp.maximum(s, 0)
        total = positive.sum()
        return jnp.where(total > 0, positive * n / jnp.where(total > 0, total, 1), n / len(self.query.levels))
