"""The contract of a sampler: a way to draw θ from p(θ | evidence), as a value with options of its own.

    route    decide once, before anything is drawn: can it be done, by which approximation, and how good is that
    draws    draw, as the route says; `batch` for releases that differ in y alone

A sampler of one's own is a subclass; `infer(…, method=…)` takes it as it takes a name.
"""

import abc
import dataclasses
from collections.abc import Mapping

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.prior import AbstractPrior
from noiseaware.sampler.adequacy import Adequacy


@dataclasses.dataclass(frozen=True)
class Draws:
    """Draws of θ, and how drawing them went."""

    theta: Float[Array, "num_draws ..."]
    info: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Numbers by name, such as the share of steps accepted (acceptance) and of those that diverged (divergences)."""


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A sampler cannot draw from this evidence, and the sentence that says why."""

    sentence: str


@dataclasses.dataclass(frozen=True)
class Route:
    """A decision made once: the sampler, the approximation it makes, and how good that is."""

    sampler: "AbstractSampler"
    explanation: str | None = None
    """A sentence on why the draws are approximate; None where they are of the posterior itself."""
    clips: bool = False
    """True if the approximation knows what bounds did to records."""
    adequacy: Adequacy | None = None
    """The errors of the approximation, each computed when first asked for, and then once."""
    choice: str | None = None
    """A sentence on why another sampler than the first was taken, or would be better."""


class AbstractSampler(eqx.Module):
    """A way to draw θ from p(θ | evidence)."""

    name: eqx.AbstractClassVar[str]
    """The word for it, as in `infer(method=…)`."""
    preference: eqx.AbstractClassVar[int | None]
    """The place in the order of those that auto takes, the least first; None: never by auto."""
    is_chain: eqx.AbstractClassVar[bool]
    """True if draws depend on those before them, and may not have forgotten where they started."""

    @property
    def takes_private_n(self) -> bool:
        """True if the number of records may be private."""
        return False

    @property
    def takes_interval(self) -> bool:
        """True if an interval may be all that is known of a count."""
        return False

    @property
    def is_aware(self) -> bool:
        """True if it knows of the noise, and of what bounds did to records."""
        return True

    @abc.abstractmethod
    def serves(self, family: AbstractFamily) -> bool:
        """Return True if it can draw the parameters of the family."""

    @abc.abstractmethod
    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route | Refusal:
        """Return the decision on how to draw, or a refusal; without values, that for a batch."""

    @abc.abstractmethod
    def draws(
        self, key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Draws:
        """Return draws of θ as the route says, under float64."""

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        """Return draws for a batch of releases that differ in y alone."""

        def one(key: Key[Array, ""], y: Float[Array, " k"]) -> Float[Array, "num_draws ..."]:
            return self.draws(key, evidence.at(y), prior, route, num_draws).theta

        return jax.vmap(one)(keys, evidence.y)
