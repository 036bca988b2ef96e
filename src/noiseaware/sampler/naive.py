"""The naive posterior as a sampler: it takes the released values for the true ones, and is never taken by auto."""

from typing import ClassVar

from jaxtyping import Array, Float, Key

from noiseaware.baseline import naive
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.prior import AbstractPrior
from noiseaware.sampler._sampler import AbstractSampler, Draws, Route


class Naive(AbstractSampler):
    """Draws of someone who does not know of the noise, for comparison."""

    name: ClassVar[str] = "naive"
    preference: ClassVar[int | None] = None
    is_chain: ClassVar[bool] = False

    @property
    def takes_private_n(self) -> bool:
        return True

    @property
    def takes_interval(self) -> bool:
        return True

    @property
    def is_aware(self) -> bool:
        return False

    def serves(self, family: AbstractFamily) -> bool:
        return True

    def route(self, evidence: Evidence, prior: AbstractPrior) -> Route:
        return Route(self, naive.explanation(evidence, prior))

    def draws(
        self, key: Key[Array, ""], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Draws:
        return Draws(naive.draws(key, evidence, prior, num_draws))

    def batch(
        self, keys: Key[Array, " b"], evidence: Evidence, prior: AbstractPrior, route: Route, num_draws: int
    ) -> Float[Array, "b num_draws ..."]:
        return naive.batch(keys, evidence, prior, num_draws=num_draws)
