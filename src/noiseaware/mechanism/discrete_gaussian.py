"""The discrete Gaussian mechanism (Canonne, Kamath & Steinke 2020).

    P(k) = e^{−k²/2σ²} / Σ_j e^{−j²/2σ²}        ρ = Δ₂²/2σ²
    φ(t) = Σ_j e^{−σ²(t+2πj)²/2} / Σ_j e^{−σ²(2πj)²/2}        (Poisson summation)

Proof sketch. For integers s, s' the Rényi divergence of order α equals
α(s−s')²/2σ² + log(Σ_k e^{−(k−c)²/2σ²} / Σ_k e^{−k²/2σ²})/(α−1) with c = α(s'−s) + s − s', and the theta
function in the numerator is largest at integer c, where the quotient is 1: at most αΔ₂²/2σ² = ρα.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Key, Num

from noiseaware.mechanism._gaussian import AbstractGaussian, GaussianShape
from noiseaware.mechanism._mechanism import Spread, as_spread, log_less, mirrored
from noiseaware.mechanism.gaussian import Gaussian

# Terms kept in the theta function: the one that converges faster is used, and there the
# first term left out is below e^{−π·8²} of the leading one.
_TERMS = 8
_LISTED = 64  # masses of a tail


class DiscreteGaussian(AbstractGaussian):
    """Discrete Gaussian noise with parameter σ, in units of the release's grid."""

    stddev: Spread = eqx.field(converter=as_spread)
    name: ClassVar[str] = "discrete_gaussian"
    title: ClassVar[str] = "discrete Gaussian"
    is_discrete: ClassVar[bool] = True
    shape: ClassVar[type[GaussianShape]] = GaussianShape

    @property
    def variance(self) -> Spread:
        """σ² to 1e-6 from σ = 1 on; below that Σ k² P(k), which is less."""
        squares = jnp.arange(1.0, _TERMS + 1) ** 2
        masses = jnp.exp(-0.5 * squares / self._column**2 - self._log_normalizer()[..., None])
        return jnp.where(self.stddev < 1, 2 * (squares * masses).sum(-1), self.stddev**2)

    def log_density(self, x: Num[Array, "..."]) -> Float[Array, "..."]:
        return -0.5 * (x / self.stddev) ** 2 - self._log_normalizer()

    def _log_normalizer(self) -> Float[Array, "..."]:
        """log Σ_k e^{−k²/2σ²}: the sum itself for small σ, its Poisson dual for large."""
        squares = jnp.arange(1.0, _TERMS + 1) ** 2
        direct = 1 + 2 * jnp.sum(jnp.exp(-0.5 * squares / self._column**2), axis=-1)
        dual = 1 + 2 * jnp.sum(jnp.exp(-2 * (jnp.pi * self._column) ** 2 * squares), axis=-1)
        log_dual = jnp.log(dual) + jnp.log(self.stddev) + 0.5 * jnp.log(2 * jnp.pi)
        return jnp.where(self.stddev < 0.4, jnp.log(direct), log_dual)

    @property
    def _column(self) -> Spread:
        """σ with an axis for the terms of a sum, where it has axes."""
        return self.stddev if jnp.ndim(self.stddev) == 0 else jnp.asarray(self.stddev)[..., None]

    def log_mass(self, low: Num[Array, "..."], high: Num[Array, "..."]) -> Float[Array, "..."]:
        """From the tails: about 0, 1 less both of them."""
        low, high = mirrored(jnp.ceil(low), jnp.floor(high))
        about = jnp.log1p(-jnp.exp(self._log_tail(high + 1)) - jnp.exp(self._log_tail(1 - jnp.minimum(low, 0.0))))
        below = log_less(self._log_tail(-jnp.minimum(high, 0.0)), self._log_tail(1 - low))
        return jnp.where(high >= 0, about, below)

    def _log_tail(self, start: Num[Array, "..."]) -> Float[Array, "..."]:
        """log P(k ≥ start) for whole start ≥ 0: the first masses one by one, the rest by the midpoint rule.

        Σ_{k≥m} f(k) = ∫_{m−½}^∞ f + f'(m−½)/24 + …; where f has not vanished by then, it changes little in a step.
        """
        k = start[..., None] + jnp.arange(0.0, _LISTED)
        normalizer = self._log_normalizer()
        listed = jax.nn.logsumexp(-0.5 * (k / self._column) ** 2, axis=-1)
        edge = start + _LISTED - 0.5
        integral = jnp.log(self.stddev) + 0.5 * jnp.log(2 * jnp.pi) + log_ndtr(-edge / self.stddev)
        slope = -edge / self.stddev**2 * jnp.exp(-0.5 * (edge / self.stddev) ** 2 - integral) / 24
        rest = integral + jnp.log1p(jnp.maximum(slope, -0.5))
        return jnp.where(jnp.isfinite(edge), jnp.logaddexp(listed, rest), -jnp.inf) - normalizer

    def characteristic_function(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """The Poisson dual for σ above 0.4, else the cosine sum."""
        shifts = 2 * jnp.pi * jnp.arange(-_TERMS, _TERMS + 1.0)
        wrapped = jnp.mod(t + jnp.pi, 2 * jnp.pi) - jnp.pi
        dual = jnp.exp(-0.5 * self._column**2 * (wrapped[..., None] + shifts) ** 2).sum(-1)
        dual = dual / jnp.exp(-0.5 * self._column**2 * shifts**2).sum(-1)
        whole = jnp.arange(-_TERMS, _TERMS + 1.0)
        masses = jnp.exp(-0.5 * (whole / self._column) ** 2 - self._log_normalizer()[..., None])
        direct = (masses * jnp.cos(wrapped[..., None] * whole)).sum(-1)
        return jnp.where(self.stddev < 0.4, direct, dual)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Rejection from the discrete Laplace of scale t = ⌊σ⌋ + 1 (Canonne et al. 2020, algorithm 3)."""
        t = jnp.floor(self.stddev) + 1

        def propose(carry):
            key, noise, accepted = carry
            key, key_waiting, key_accept = jax.random.split(key, 3)
            first, second = jnp.floor(jax.random.exponential(key_waiting, (2, *shape)) * t)
            proposal = first - second
            excess = jnp.abs(proposal) - self.stddev**2 / t
            accept = jnp.log(jax.random.uniform(key_accept, shape)) < -0.5 * (excess / self.stddev) ** 2
            return key, jnp.where(accepted, noise, proposal), accepted | accept

        start = (key, jnp.zeros(shape), jnp.zeros(shape, bool))
        return jax.lax.while_loop(lambda carry: ~carry[2].all(), propose, start)[1]

    def below(self, x: np.ndarray) -> np.ndarray:
        most = int(np.ceil(self.reach * self.stddev)) + 2
        masses = np.exp(-0.5 * (np.arange(-most, most + 1) / self.stddev) ** 2)
        cumulated = np.concatenate([[0.0], np.cumsum(masses / masses.sum())])
        return cumulated[np.clip(np.floor(x) + most + 1, 0, 2 * most + 1).astype(int)]

    def continuous(self, unit: float = 1.0) -> Gaussian:
        return Gaussian(self.stddev * unit)
