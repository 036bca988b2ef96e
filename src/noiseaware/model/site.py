"""Sites for a NumPyro model.

noisy_statistics(name, release, theta)    the release's likelihood, with the unseen statistic summed out
NoisySum(s, mechanism)                    the law of what is released of a statistic s that the model has itself
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

try:
    import numpyro
    from numpyro import distributions
    from numpyro.distributions import constraints
except ImportError:
    raise ImportError("a site in a NumPyro model needs numpyro; install noiseaware[numpyro].") from None

from noiseaware.evidence.release import Release
from noiseaware.mechanism import AbstractMechanism
from noiseaware.model.likelihood import log_likelihood, needs_weights


def noisy_statistics(name: str, release: Release | Sequence[Release], theta: Any) -> None:
    """Add log p(y | θ) to a model: of one release, or of several with a θ for each or one for all.

    Where the central limit theorem meets Laplace noise, its weights are a site `name_weight` besides.
    """
    releases = [release] if isinstance(release, Release) else list(release)
    weights = None
    if releases and needs_weights(releases[0]):
        shape = (len(releases), len(releases[0].query.names))
        weights = numpyro.sample(f"{name}_weight", distributions.Exponential(1.0).expand(shape).to_event(2))
    numpyro.factor(name, log_likelihood(release, theta, weights=weights).sum())


class NoisySum(distributions.Distribution):
    """What is released of a statistic s: s and the mechanism's noise, in the units of the noise's scale.

    A model that draws s itself observes the release with `numpyro.sample("y", NoisySum(s, mechanism), obs=y)`.
    """

    arg_constraints = {"s": constraints.real}
    support = constraints.real  # type: ignore[assignment]
    pytree_data_fields = ("s", "mechanism")

    def __init__(self, s: Any, mechanism: AbstractMechanism, *, validate_args: bool | None = None) -> None:
        if not mechanism.is_noisy:
            raise ValueError("mechanism must have noise: a statistic without it is observed as it is.")
        self.mechanism, self.s = mechanism, jnp.asarray(s)
        shape = jax.lax.broadcast_shapes(self.s.shape, jnp.shape(mechanism.spread))
        super().__init__(batch_shape=shape, validate_args=validate_args)

    def sample(self, key: jax.Array | None, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws for simulations. Never add these to a private value."""
        assert key is not None
        return self.s + self.mechanism.sample(key, (*sample_shape, *self.batch_shape))

    def log_prob(self, value: Any, intermediates: Any = None) -> jax.Array:
        return self.mechanism.log_density(value - self.s)

    @property
    def mean(self) -> jax.Array:
        return jnp.broadcast_to(self.s, self.batch_shape)
