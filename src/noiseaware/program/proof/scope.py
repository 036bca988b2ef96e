"""Rules of place: a program uses its own p and database, and records, candidates and parameters in their own place.

Nothing of this is about privacy by itself. A term out of its place has no value when the program runs, or one that no
account is kept of.
"""

from collections.abc import Iterable, Iterator, Sequence

from noiseaware.privacy import plain
from noiseaware.program.language.database import Database, Mapped, told
from noiseaware.program.language.distribution import Distribution, Inferred, Observation, Posteriors
from noiseaware.program.language.expression import (
    Distance,
    Draw,
    Record,
    Sample,
    Size,
    Statistic,
    Term,
    Variable,
    constant,
    is_private,
    walk,
)
from noiseaware.program.language.mechanism import Mechanism
from noiseaware.program.language.program import Trace
from noiseaware.program.proof.result import inferred, terms

Breach = tuple[str, str, str]
"""A broken rule: its place, its name, and the next step."""

# What the sampler of nuts.py knows: where records come from, and the parameter.
_LIKELIHOODS = ("bernoulli", "categorical", "beta", "normal", "gamma", "poisson")
_PRIORS = ("beta", "dirichlet", "gamma", "normal")


def used(trace: Trace) -> list[Mechanism]:
    """Every mechanism, those that run on each record too."""
    return [*trace.mechanisms.drawn, *(each for mapped in trace.mechanisms.maps for each in mapped.mechanisms)]


def models(trace: Trace) -> list[Observation]:
    """Every model whose posterior may be used."""
    distances = [n for m in used(trace) for n in walk(m.inputs) if isinstance(n, Distance)]
    sides = [side for distance in distances for side in (distance.left, distance.right)]
    posteriors = [m.posterior for m in used(trace) if m.posterior is not None]
    origins = [found.origin for found in (*inferred(trace.result), *posteriors, *sides) if found.origin is not None]
    return list({id(model): model for model in (*trace.mechanisms.observations, *origins)}.values())


def forgeries(trace: Trace) -> Iterator[Breach]:
    """Objects that no use of the language makes; the author of a program can make and change objects by hand."""
    whole = f"{trace.program.file}, {trace.program.name}"
    yield from ((whole, rule, "") for rule in _no_records(trace))
    kept = [(mapped.line, [mapped.result]) for mapped in trace.mechanisms.maps]
    for line, roots in [*((line, roots) for line, roots, _ in _places(trace)), *kept]:
        if not all(map(_is_in_place, walk(roots))):
            yield line, "a statistic or a draw must be one that the database or p gives, and its number is none", ""
    for mechanism in used(trace):
        yield from ((mechanism.line, rule, "") for rule in _no_numbers(mechanism))


def breaches(trace: Trace) -> Iterator[Breach]:
    """Objects that are used out of their place."""
    whole = f"{trace.program.file}, {trace.program.name}"
    is_strange = any(_is_strange(trace, node) for _, roots, _ in _places(trace) for node in walk(roots))
    is_strange |= not all(_is_own(trace, database) for database in _databases(trace))
    if is_strange or any(_is_forged(trace, mapped) for mapped in trace.mechanisms.maps):
        yield whole, "a program must use its own p and database, and not another's", ""
    for line, roots, bound in _places(trace):
        for node in walk(roots):
            if isinstance(node, Variable) and not any(node is own for own in bound):
                yield line, "a candidate must not be used outside its score, nor a parameter outside its model", ""
            if isinstance(node, Sample) and _is_of_data(node.distribution.parameters):
                yield line, "ran: the distribution must not depend on the data, and does", "make it public first"
    for line, roots in _computed(trace):
        if any(isinstance(node, Distance) and node.metric == "kl" for node in walk(roots)):
            said = "the Kullback–Leibler divergence is not computed outside a score, where it is refused"
            yield line, said, "use pp.hellinger or pp.l1"
    for posterior in inferred(trace.result):
        yield from _unknown_to_the_sampler(posterior)


def is_public_model(model: Observation) -> bool:
    """True if a model of noisy records holds nothing of the table, nor of another record."""
    nodes = list(walk([model.likelihood.target, *model.likelihood.distribution.parameters]))
    others = [node for node in nodes if isinstance(node, Record) and node is not model.record]
    return not others and not is_private(*nodes) and not any(map(_is_of_one_record, nodes))


def _places(trace: Trace) -> Iterator[tuple[str, Sequence[Term], Sequence[Term]]]:
    """Each line with the terms that are used there, and the symbols that stand for something there."""
    for mechanism in used(trace):
        values, symbol = set(map(id, mechanism.values)), mechanism.candidate
        symbols = symbol.parameters if isinstance(symbol, Distribution) else [] if symbol is None else [symbol]
        yield mechanism.line, mechanism.values, symbols
        yield mechanism.line, [term for term in mechanism.inputs if id(term) not in values], []
    for model in models(trace):
        yield model.line, model.prior.parameters, []
        yield model.line, [model.likelihood.target, *model.likelihood.distribution.parameters], model.parameter
    yield f"{trace.program.file}, the result", terms(trace.result), []


def _computed(trace: Trace) -> Iterator[tuple[str, Sequence[Term]]]:
    """Terms that are computed when the program runs, except scores."""
    for mechanism in used(trace):
        values = mechanism.values if mechanism.name != "exponential" else ()
        yield mechanism.line, [*values, *mechanism.listed, mechanism.width]
    for model in models(trace):
        yield model.line, [*model.prior.parameters, model.likelihood.target, *model.likelihood.distribution.parameters]
    yield f"{trace.program.file}, the result", terms(trace.result)


def _is_in_place(node: Term) -> bool:
    """True if a term's place counts from 0: −1 would be the last count by another name, its cost kept apart."""
    if not isinstance(node, Statistic | Draw):
        return True
    count = node.database.records.num_statistics if isinstance(node, Statistic) else _num_draws(node.mechanism)
    return type(node.index) is int and 0 <= node.index < count


def _num_draws(mechanism: Mechanism) -> int:
    chosen = mechanism.candidate
    return len(chosen.parameters) if isinstance(chosen, Distribution) else max(1, len(mechanism.values))


def _is_strange(trace: Trace, node: Term) -> bool:
    """True if a term is of another program, or of a mechanism that is hidden from the account."""
    if isinstance(node, Draw):
        return not any(node.mechanism is own for own in used(trace))
    return isinstance(node, Size | Statistic | Record) and not _is_own(trace, node.database)


def _is_own(trace: Trace, database: Database) -> bool:
    """True if a database is the program's, as it was declared, or what a map made of it."""
    if database.mapped is None:
        return database is trace.database and database.records == trace.program.records
    is_known = any(database.mapped is own for own in trace.mechanisms.maps)
    return is_known and database.records == told(database.mapped.result.mechanism, trace.program.records)


def _databases(trace: Trace) -> Iterator[Database]:
    """The program's database, and those that its models and candidates are of."""
    yield trace.database
    for model in models(trace):
        yield from (model.database, model.record.database)
    for mechanism in used(trace):
        if isinstance(mechanism.candidates, Posteriors):
            yield mechanism.candidates.database


def _no_records(trace: Trace) -> Iterator[str]:
    """Why what the program says of its records can be of no table: it may have been changed since it was said."""
    try:
        trace.program.records.check()
    except ValueError as error:
        yield str(error).rstrip(".")


def _is_forged(trace: Trace, mapped: Mapped) -> bool:
    """True if a map is of another database, or keeps what none of its mechanisms gave."""
    kept = any(mapped.result.mechanism is own and own.record is mapped.record for own in mapped.mechanisms)
    return mapped.source is not trace.database or mapped.record.database is not trace.database or not kept


def _no_numbers(mechanism: Mechanism) -> Iterator[str]:
    """Check a mechanism's numbers as p does; they may have been changed since."""
    for name, value in (("epsilon", mechanism.epsilon), ("the sensitivity", mechanism.width)):
        known = constant(value)
        if known is not None and known <= 0:
            yield f"{name} must be positive, and is {plain(known)}"
    if not (0 < mechanism.delta < 1 if mechanism.name == "gaussian" else mechanism.delta == 0):
        yield f"delta must be between 0 and 1, and 0 without Gaussian noise, and is {plain(mechanism.delta)}"
    if mechanism.within is not None and not 0 < mechanism.within[0] < mechanism.within[1] < 1:
        yield "within must be two numbers between 0 and 1 in order"


def _is_of_one_record(node: Term) -> bool:
    return isinstance(node, Draw) and node.mechanism.record is not None


def _is_of_data(values: Iterable[Term]) -> bool:
    nodes = list(walk(list(values)))
    return is_private(*nodes) or any(isinstance(node, Record) or _is_of_one_record(node) for node in nodes)


def _unknown_to_the_sampler(posterior: Inferred) -> Iterator[Breach]:
    """Uses that the sampler of a model without a formula cannot serve."""
    model = posterior.origin
    likelihood, own = model.likelihood, (*model.parameter, model.record)
    if likelihood.distribution.name not in _LIKELIHOODS:
        yield model.line, f"infer: a record must not come from a {likelihood.distribution.name} distribution", ""
    if model.prior.name not in _PRIORS:
        yield model.line, f"infer: the prior must be {', '.join(_PRIORS)}, and is {model.prior.name}", ""
    for node in walk([likelihood.target, *likelihood.distribution.parameters]):
        if isinstance(node, Distance | Sample) and any(inner is leaf for inner in walk([node]) for leaf in own):
            yield model.line, "infer: a model must hold no distance, and no draw, of its own parameter or record", ""
