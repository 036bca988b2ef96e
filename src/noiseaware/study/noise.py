"""The noise of a release, or of one that is planned, as far as the width of an interval depends on it."""

from typing import NamedTuple

import jax
import numpy as np

from noiseaware.evidence.evidence import Evidence
from noiseaware.mechanism import AbstractShape


class Noise(NamedTuple):
    """The noise of each released sum, and of a private n."""

    variance: np.ndarray
    shape: type[AbstractShape]
    variance_of_n: float

    @classmethod
    def of(cls, evidence: Evidence) -> "Noise":
        """Return the noise of this evidence, whose y is not asked."""
        mechanism = evidence.mechanism
        with jax.enable_x64(True):
            variance = np.atleast_1d(np.asarray(mechanism.variance, dtype=float))
            return cls(variance, mechanism.shape, evidence.count.variance)

    def less(self, factor: float) -> "Noise":
        return self._replace(variance=self.variance * factor)
