"""What a run needs of a certificate: the program that was checked, its trace and its exact cost."""

import abc
from dataclasses import dataclass, field
from fractions import Fraction

from noiseaware.privacy import Approximate, Promise, Pure
from noiseaware.program.language.program import Program, Trace


@dataclass(frozen=True, kw_only=True)
class AbstractCertificate(abc.ABC):
    """A program that is (ε, δ)-private, with the trace that was checked."""

    program: Program
    epsilon: Fraction
    delta: Fraction
    trace: Trace = field(repr=False)
    moves: "dict[tuple[int, int], Fraction | None]" = field(repr=False, default_factory=dict)

    @property
    def guarantee(self) -> Promise:
        """The promise and the price of one run."""
        epsilon, delta = Fraction(self.epsilon), Fraction(self.delta)  # a function of the program may be given them
        return Pure(epsilon) if delta == 0 else Approximate(epsilon, delta)
