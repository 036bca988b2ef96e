"""The three verdicts on a program: certified, refuted, not proved."""

import abc
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from noiseaware.privacy import plain
from noiseaware.program.language.program import Program
from noiseaware.program.proof.certificate import AbstractCertificate
from noiseaware.program.proof.lemma import Lemma
from noiseaware.program.proof.result import assembled

if TYPE_CHECKING:
    from noiseaware.custodian.ledger.ledger import Ledger


@dataclass(frozen=True)
class Obligation:
    """Something that must hold of every pair of neighbours, where it comes from, and whether it was proved."""

    line: str
    statement: str
    is_proved: bool
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Verdict(abc.ABC):
    """The verdict of the check, and the time that it took."""

    program: Program
    obligations: tuple[Obligation, ...] = ()
    lemmas: tuple[Lemma, ...] = ()
    seconds: float = 0.0

    @property
    @abc.abstractmethod
    def verdict(self) -> Literal["certified", "refuted", "not proved"]:
        """In a word."""

    @property
    @abc.abstractmethod
    def reason(self) -> str:
        """In a sentence."""

    @property
    def is_certified(self) -> bool:
        """True if the program was certified, and so may run."""
        return self.verdict == "certified"

    @abc.abstractmethod
    def run(self, table: Any, *, ledger: "str | Ledger | None" = None) -> Any:
        """Run what was checked on a table."""


@dataclass(frozen=True, kw_only=True)
class Certified(Verdict, AbstractCertificate):
    """The program is (ε, δ)-private: its exact cost, and the lemmas that this rests on."""

    verdict = "certified"  # type: ignore[assignment]

    @property
    def reason(self) -> str:
        return f"Every run promises {self.guarantee} for neighbours under {self.program.records.adjacency}."

    def run(self, table: Any, *, ledger: "str | Ledger | None" = None) -> Any:
        """Run the program on a table: charged to the ledger, with exact noise, from the traced terms."""
        from noiseaware.custodian.program.run import execute

        public = execute(self, table, ledger=ledger)
        del table  # a function of the program could look for it on the stack
        return assembled(self.trace.result, public)


class _Refused(Verdict):
    def run(self, table: Any, *, ledger: "str | Ledger | None" = None) -> Any:
        raise ValueError(f"program {self.program.name} must be certified to run, and is {self.verdict}: {self.reason}")


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """Two neighbouring tables, an event, and its probabilities, which no budget of (ε, δ) allows."""

    left: tuple
    right: tuple
    event: str
    probabilities: tuple[float, float]
    exact: tuple[str, str]

    def __str__(self) -> str:
        told = [f"{exact} for {_shown(side)}" for exact, side in zip(self.exact, (self.left, self.right), strict=True)]
        return f"the event “{self.event}” has probability {told[0]} and {told[1]}"


def _shown(records: tuple) -> str:
    return "[" + ", ".join(plain(x) if isinstance(x, Fraction) else str(x) for x in records) + "]"


@dataclass(frozen=True, kw_only=True)
class Refuted(_Refused):
    """The program is not (ε, δ)-private: here are two tables that it tells apart."""

    counterexample: Counterexample

    verdict = "refuted"  # type: ignore[assignment]

    @property
    def reason(self) -> str:
        slack = f" and {plain(self.program.delta)}" if self.program.delta else ""
        rule = f"the first is more than e^{plain(self.program.epsilon)} times the second{slack}"
        failed = next(
            (o for o in self.obligations if not o.is_proved and o.advice.startswith("give sensitivity")), None
        )
        advice = "" if failed is None else f"; {failed.advice}"
        return f"{str(self.counterexample)[0].upper()}{str(self.counterexample)[1:]}: {rule}{advice}."


@dataclass(frozen=True, kw_only=True)
class NotProved(_Refused):
    """An obligation could not be proved: the program may be private, and may not."""

    verdict = "not proved"  # type: ignore[assignment]

    @property
    def reason(self) -> str:
        failed = next(obligation for obligation in self.obligations if not obligation.is_proved)
        return f"{failed.line}: {failed.statement}" + (f"; {failed.advice}." if failed.advice else ".")
