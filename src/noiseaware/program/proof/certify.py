"""The check: a program is traced, its obligations are put to z3 on pairs of runs, and the verdict tells its reasons.

    1  every noise scale, prior and set of candidates is the same for neighbours
    2  neighbours move what a mechanism is given by k at most        → it costs ε·k/Δ
    3  the costs of all mechanisms together are within the budget
    4  what is returned is the same for neighbours, given the draws

A count that does not move costs nothing, so costs are added by the counts that one record can move: of all counts the
two dearest where a record is replaced, the dearest where it comes or goes. A proof that takes too long is no proof.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

try:
    import mpmath  # noqa: F401 - the lemmas and counterexamples need it
    import z3  # noqa: F401 - asked by prover.py; missed here, it is told in one sentence
except ModuleNotFoundError as missing:
    raise ImportError(f"checking a program needs {missing.name}; install noiseaware[program].") from None

from noiseaware.privacy import plain
from noiseaware.program.language.database import Mapped, Records
from noiseaware.program.language.distribution import Distribution, Observation
from noiseaware.program.language.evaluate import rounded
from noiseaware.program.language.expression import (
    Constant,
    Distance,
    Draw,
    Operation,
    Record,
    Sample,
    Size,
    Statistic,
    Term,
    constant,
    is_private,
    walk,
)
from noiseaware.program.language.mechanism import Mechanism
from noiseaware.program.language.pattern import Count, all_moments, is_linear, one_count
from noiseaware.program.language.program import Program, Trace, trace
from noiseaware.program.proof import lemma, scope
from noiseaware.program.proof.cost import Costs
from noiseaware.program.proof.prover import Prover
from noiseaware.program.proof.refute import counterexample
from noiseaware.program.proof.result import inferred, terms
from noiseaware.program.proof.verdict import Certified, NotProved, Obligation, Refuted, Verdict

_SECONDS = 10.0
_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian", "exponential": "exponential", "sample": "posterior sample"}
_LEMMAS = {"laplace": lemma.LAPLACE, "gaussian": lemma.GAUSSIAN, "exponential": lemma.EXPONENTIAL}


def check(program: Program, *, seconds: float = _SECONDS) -> Verdict:
    """The verdict on a program: certified with its exact cost, refuted, or not proved; no data anywhere."""
    start = time.perf_counter()
    traced = trace(program)
    proof = _Proof(traced, Prover(start + seconds))
    proof.run()
    told = {"program": traced.program, "obligations": tuple(proof.obligations)}
    if all(obligation.is_proved for obligation in proof.obligations):
        told |= {"epsilon": proof.epsilon, "delta": proof.delta, "trace": traced, "moves": proof.moves}
        told |= {"lemmas": tuple(known for known in lemma.LEMMAS if known in proof.lemmas)}
        return Certified(**told, seconds=time.perf_counter() - start)  # type: ignore[arg-type]
    broken = None if proof.is_forged else counterexample(traced, proof.suspects, start + 2 * seconds)
    if broken is not None:
        return Refuted(**told, counterexample=broken, seconds=time.perf_counter() - start)  # type: ignore[arg-type]
    return NotProved(**told, seconds=time.perf_counter() - start)  # type: ignore[arg-type]


@dataclass
class _Proof:
    """The obligations of one traced program, and what they cost."""

    trace: Trace
    prover: Prover
    obligations: list[Obligation] = field(default_factory=list)
    lemmas: set[lemma.Lemma] = field(default_factory=set)
    moves: dict[tuple[int, int], Fraction | None] = field(default_factory=dict)
    suspects: list[Term] = field(default_factory=list)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    is_bounded: bool = True
    is_forged: bool = False

    def __post_init__(self) -> None:
        self.costs = Costs(self.trace.program.records.adjacency)

    def run(self) -> None:
        for forgery in scope.forgeries(self.trace):
            self._failed(*forgery)
        if self.obligations:
            self.is_forged = True  # of terms that no program can lead to nothing can be said
            return
        for breach in scope.breaches(self.trace):
            self._failed(*breach)
        for observation in scope.models(self.trace):
            self._model(observation)
        for mechanism in self.trace.mechanisms.drawn:
            self._mechanism(mechanism)
        for mapped in self.trace.mechanisms.maps:
            self._each_record(mapped)
        self._budget()
        self._result()
        self.obligations = list(dict.fromkeys(self.obligations))  # one line for entries of which the same holds

    def _proved(self, line: str, statement: str) -> None:
        self.obligations.append(Obligation(line, statement, is_proved=True))

    def _failed(self, line: str, statement: str, advice: str = "", *, suspect: Term | None = None) -> None:
        self.obligations.append(Obligation(line, statement, is_proved=False, advice=advice))
        if suspect is not None:
            self.suspects.append(suspect)

    @property
    def _used(self) -> list[Mechanism]:
        return scope.used(self.trace)

    # ---- what must be the same for neighbours ---------------------------------------------------------------------

    def _model(self, observation: Observation) -> None:
        self._same("the prior", observation.prior.parameters, observation.line)
        if observation.database.mapped is None:
            self._same("the model", observation.likelihood.distribution.parameters, observation.line)
            self.lemmas.add(lemma.CONJUGATE)
        elif not scope.is_public_model(observation):
            self._failed(observation.line, "infer: a model of public records must not depend on the data, and does")

    def _same(self, what: str, values: Iterable[Term], line: str) -> None:
        for value in values:
            if not isinstance(value, Constant) and not self._is_same(value):
                self._failed(line, f"{what} must not depend on the data, and does", suspect=value)

    def _is_same(self, value: Term) -> bool:
        nodes = list(walk([value]))
        if any(isinstance(n, Record) or (isinstance(n, Draw) and n.mechanism.record is not None) for n in nodes):
            return False  # of no record in particular
        if not is_private(value) and not any(isinstance(node, Sample) for node in nodes):
            return True
        return self.prover.is_same(value)

    def _divisions(self, values: Iterable[Term], line: str) -> None:
        for node in walk(list(values)):
            is_risky = isinstance(node, Operation) and node.name == "/" and is_private(node.arguments[1])
            if is_risky and not self.prover.is_never_zero(node.arguments[1]):
                self._failed(line, "a private value that can be 0 must not be divided by", suspect=node)

    def _result(self) -> None:
        where = f"{self.trace.program.file}, the result"
        for posterior in inferred(self.trace.result):
            if posterior.origin.database.mapped is None:
                said = "infer: a model without a conjugate posterior needs public records"
                self._failed(posterior.origin.line, said, "make them public with .map, or use a conjugate pair")
        returned = terms(self.trace.result)
        self._divisions(returned, where)
        for value in returned:
            if not self._is_same(value):
                said, advice = "the result must be the same for neighbours, given the draws", "return what p made of it"
                self._failed(where, said, advice, suspect=value)
                return
        self._proved(where, "the result is the same for neighbours, given the draws")
        self.lemmas.add(lemma.POST_PROCESSING)

    # ---- the mechanisms ---------------------------------------------------------------------------------------------

    def _mechanism(self, mechanism: Mechanism) -> None:
        self._settings(mechanism)
        self._divisions(mechanism.values, mechanism.line)
        self._records_alone(mechanism)
        if mechanism.name == "sample":
            self._sample(mechanism)
            return
        if mechanism.name == "exponential":
            self._score(mechanism)
        self.lemmas.add(_LEMMAS[mechanism.name])
        if mechanism.name == "laplace" and (database := all_moments(mechanism.values)) is not None:
            self._moments(mechanism, database.records)
            return
        for place, value in enumerate(mechanism.values):
            self._value(mechanism, place, value)

    def _moments(self, mechanism: Mechanism, records: Records) -> None:
        """All moments of rows together: how far one row moves them has a closed form."""
        k = records.query.sensitivity(records.adjacency)
        width, epsilon = constant(mechanism.width), constant(mechanism.epsilon)
        self.lemmas.add(lemma.MOMENTS)
        if width is None or epsilon is None or (mechanism.sensitivity is not None and k > width):
            self._failed(mechanism.line, *_unbounded(mechanism, k, width), suspect=mechanism.values[0])
            self.is_bounded = False
            return
        for place, value in enumerate(mechanism.values):
            self.moves[id(mechanism), place] = self.prover.largest_move(value)
        self._proved(mechanism.line, _bounded(mechanism, k, epsilon * k / width))
        self.costs.add(epsilon * k / width, None)

    def _settings(self, mechanism: Mechanism) -> None:
        """Epsilon is a number; the sensitivity and the candidates are public."""
        if not isinstance(mechanism.epsilon, Constant):
            self._same("epsilon", [mechanism.epsilon], mechanism.line)
            self._failed(mechanism.line, "epsilon must be a number that is known before the program runs")
        if mechanism.sensitivity is not None:
            self._same("the sensitivity", [mechanism.sensitivity], mechanism.line)
            if not isinstance(mechanism.sensitivity, Constant) and not self.prover.is_positive(mechanism.sensitivity):
                self._failed(mechanism.line, "the sensitivity must be positive whatever the size")
        self._same("the set of candidates", mechanism.listed, mechanism.line)

    def _records_alone(self, mechanism: Mechanism) -> None:
        """Within map the record alone may be private; outside, no record may be."""
        found = list(walk(mechanism.inputs))
        records = [node for node in found if isinstance(node, Record)]
        records += [n.mechanism.record for n in found if isinstance(n, Draw) and n.mechanism.record is not None]
        if any(record is not mechanism.record for record in records):
            self._failed(mechanism.line, "a record, and what is drawn from it, must not be used outside its map")
        if mechanism.record is not None and any(isinstance(node, Statistic) and is_private(node) for node in found):
            self._failed(mechanism.line, "map: only the record may be private in a mechanism that runs on each record")

    def _value(self, mechanism: Mechanism, place: int, value: Term) -> None:
        """Neighbours move a value by k at most: z3 finds k, and proves it; or it proves that the sensitivity holds."""
        width, epsilon = constant(mechanism.width), constant(mechanism.epsilon)
        if width is None:
            k, is_within = None, self.prover.is_within(value, mechanism.width)
        else:
            k = self.prover.largest_move(value)
            is_within = k is not None and (mechanism.sensitivity is None or k <= width)
        self.moves[id(mechanism), place] = k
        self._rest_on(value)
        if not is_within or epsilon is None:
            self._failed(mechanism.line, *_unbounded(mechanism, k, width), suspect=value)
            self.is_bounded = False
            return
        cost = epsilon if k is None or width is None else epsilon * k / width
        self._proved(mechanism.line, _bounded(mechanism, k, cost))
        self._charge(mechanism, cost, one_count(value))

    def _charge(self, mechanism: Mechanism, cost: Fraction, count: Count | None) -> None:
        if mechanism.name == "gaussian":
            self.delta += mechanism.delta
            count = None  # costs with a δ are added one by one
            if cost >= 1:
                said = f"Gaussian: ε·k must be below 1, and is {plain(cost)}"
                self._failed(mechanism.line, said, "lower epsilon", suspect=mechanism.values[0])
            else:
                self._proved(mechanism.line, f"Gaussian: ε·k = {plain(cost)} is below 1")
        self.costs.add(cost, count)

    def _rest_on(self, value: Term) -> None:
        databases = [node.database for node in walk([value]) if isinstance(node, Statistic | Record)]
        self.lemmas.update(lemma.COUNTS if database.records.levels else lemma.SUM for database in databases)

    def _sample(self, mechanism: Mechanism) -> None:
        posterior, within = mechanism.posterior, mechanism.within
        assert posterior is not None
        assert within is not None
        origin = posterior.origin
        if origin is None or origin.database.mapped is not None or origin.database.records.kind != "booleans":
            self._failed(mechanism.line, "sample must be given the posterior of the database, as pp.infer gives it")
            self.is_bounded = False
            return
        self.lemmas.add(lemma.SAMPLE)
        cost = lemma.sample_cost(*within)
        low, high = map(plain, within)
        self._proved(mechanism.line, f"posterior sample: kept within {low} and {high}, for ε = {_rounded(cost)}")
        self.costs.add(cost, None)

    def _each_record(self, mapped: Mapped) -> None:
        self.lemmas.add(lemma.EACH_RECORD)
        if mapped.source.records.adjacency == "replace":
            self._proved(mapped.line, "map: the number of noisy records is public")
        else:
            said = "map: the number of noisy records must be public, and under add_remove it is private"
            self._failed(mapped.line, said, "use adjacency='replace'", suspect=Size(mapped.source))
        for mechanism in mapped.mechanisms:
            self._mechanism(mechanism)

    # ---- scores ---------------------------------------------------------------------------------------------------

    def _score(self, mechanism: Mechanism) -> None:
        """A score may hold metrics, as sums and multiples only: these obey the triangle inequality."""
        (score,) = mechanism.values
        for distance in (node for node in walk([score]) if isinstance(node, Distance)):
            if distance.metric == "kl" or not is_linear(score, distance):
                found = "the Kullback–Leibler divergence" if distance.metric == "kl" else "a function of a distance"
                said = f"exponential: the score holds {found}, which is no metric and obeys no triangle inequality"
                self._failed(mechanism.line, said, "score with −pp.hellinger or −pp.l1 themselves", suspect=score)
            elif (apart := self._neighbours_apart(distance)) is not None:
                self.lemmas.add(lemma.TRIANGLE)
                self.prover.distances[id(distance)] = apart

    def _neighbours_apart(self, distance: Distance) -> Fraction | None:
        """Bound the distance of neighbours' posteriors, where one side alone is private."""
        private = [side for side in (distance.left, distance.right) if is_private(*side.parameters)]
        if len(private) != 1:
            return None if private else Fraction(0)
        return self._apart_l1(private[0]) if distance.metric == "l1" else self._apart_hellinger(private[0])

    def _apart_l1(self, posterior: Distribution) -> Fraction | None:
        costs = Costs(self.trace.program.records.adjacency)
        for parameter in posterior.parameters:
            k = self.prover.largest_move(parameter)
            if k is None:
                return None
            costs.add(k, one_count(parameter))
            self._rest_on(parameter)
        return costs.total

    def _apart_hellinger(self, posterior: Distribution) -> Fraction | None:
        origin = posterior.origin
        if origin is None or posterior.name not in ("beta", "dirichlet") or not _is_of_counts(posterior, origin):
            return None
        prior = [a for a in map(constant, origin.prior.parameters) if a is not None]
        if origin.database.records.adjacency != "replace" or len(prior) < len(origin.prior.parameters):
            return None
        if min(prior) <= 0:
            return None  # changed since: pp refuses it
        self.lemmas.update({lemma.HELLINGER, lemma.COUNTS})
        return lemma.hellinger_bound(prior)

    # ---- the budget -------------------------------------------------------------------------------------------------

    def _budget(self) -> None:
        program, where = self.trace.program, f"{self.trace.program.file}, the budget"
        self.epsilon = self.costs.total
        if len(self._used) > 1:
            self.lemmas.add(lemma.COMPOSITION)
        if not self.is_bounded:
            return
        if self.epsilon > program.epsilon:
            said = f"the cost, ε = {_rounded(self.epsilon)}, must be within the budget of {plain(program.epsilon)}"
            self._failed(where, said, self._cheaper())
            self.suspects += [value for mechanism in self._used for value in mechanism.values if is_private(value)]
        else:
            self._proved(where, f"the cost, ε = {_rounded(self.epsilon)}, is within {plain(program.epsilon)}")
        if self.delta > program.delta:
            said = f"the cost, δ = {plain(self.delta)}, must be within the budget of {plain(program.delta)}"
            self._failed(where, said, "give the program a delta, or use Laplace noise")
        elif self.delta:
            self._proved(where, f"the cost, δ = {plain(self.delta)}, is within {plain(program.delta)}")

    def _cheaper(self) -> str:
        """Words for a way to a lower cost: first a sensitivity that was left out, and is taken for 1."""
        for mechanism in self._used:
            k = _larger(mechanism, [self.moves.get((id(mechanism), place)) for place in range(len(mechanism.values))])
            if k is not None:
                return f"give sensitivity={_rounded(k)} to {mechanism.name} in {mechanism.line}, or ask less"
        return "add noise, or ask less"


# ---- words ------------------------------------------------------------------------------------------------------


def _rounded(cost: Fraction) -> str:
    """A cost as a person reads it: exact where that is short."""
    exact = plain(cost)
    if len(exact) <= 8:
        return exact
    near = rounded(cost)
    return f"{near if near and math.isfinite(near) else Decimal(cost.numerator) / cost.denominator:.7g}"


def _larger(mechanism: Mechanism, moves: Sequence[Fraction | None]) -> Fraction | None:
    """The sensitivity that a mechanism was not given, where it is more than the 1 that it then is."""
    if mechanism.sensitivity is not None or mechanism.name == "sample":
        return None
    database = all_moments(mechanism.values) if mechanism.name == "laplace" else None
    if database is not None:
        known = [database.records.query.sensitivity(database.records.adjacency)]
    else:
        known = [k for k in moves if k is not None]
    return max(known) if known and max(known) > 1 else None


def _is_of_counts(posterior: Distribution, origin: Observation) -> bool:
    """True if each parameter is the prior's and a count of its own, as `infer` makes it: the author can make others."""
    parts = [own.arguments for own in posterior.parameters if isinstance(own, Operation) and own.name == "+"]
    counts = [part[1] for part in parts if isinstance(part[1], Statistic) and part[1].database is origin.database]
    first = origin.prior.parameters
    is_prior = len(parts) == len(first) and all(part[0] is own for part, own in zip(parts, first, strict=True))
    return is_prior and sorted(count.index for count in counts) == [*range(len(posterior.parameters))]


def _what(mechanism: Mechanism) -> str:
    if mechanism.name == "exponential":
        return "the score"
    if all_moments(mechanism.values) is not None:
        return "all entries together"
    return "the value" if len(mechanism.values) == 1 else "an entry"


def _bounded(mechanism: Mechanism, k: Fraction | None, cost: Fraction) -> str:
    """Words for a bound that was proved, and its price."""
    bound = "the stated sensitivity" if k is None else _rounded(k)
    if k is not None and mechanism.sensitivity is not None:
        bound += f", within the sensitivity of {plain(constant(mechanism.width) or Fraction(1))}"
    if mechanism.sensitivity is None and k is not None and k > 1:
        bound += ", where the sensitivity is 1 unless given"
    price = f"ε = {_rounded(cost)}" + (f", δ = {plain(mechanism.delta)}" if mechanism.delta else "")
    return f"{_NAMES[mechanism.name]}: neighbours move {_what(mechanism)} by at most {bound}, for {price}"


def _unbounded(mechanism: Mechanism, k: Fraction | None, width: Fraction | None) -> tuple[str, str]:
    """Words for a bound that was not proved, and the next step."""
    name, what = _NAMES[mechanism.name], _what(mechanism)
    if k is not None and width is not None:
        said = f"{name}: neighbours must move {what} by at most {plain(width)}, and move it by {_rounded(k)}"
        return said, "state the larger sensitivity"
    if width is None:
        return f"{name}: neighbours must move {what} by at most the sensitivity", "state one that z3 can prove"
    said = f"{name}: no bound was found on how far neighbours move {what}"
    return said, "clip it, give the records bounds, or state a sensitivity"
