"""The question that a program's release answers: the family that the program models its table by, with its query."""

from collections.abc import Callable, Iterable

from noiseaware.family import Bernoulli, Categorical, LinearRegression, Normal, Poisson
from noiseaware.program.language.database import Records
from noiseaware.program.language.distribution import Observation
from noiseaware.program.language.expression import Term
from noiseaware.query import AbstractQuestion


def question_of(
    records: Records, observations: Iterable[Observation], number: Callable[[Term], float]
) -> AbstractQuestion | None:
    """Return the family that records of levels, and rows, have by themselves, or that a program observes numbers by.

    None where no observation models the numbers, or where there is no such family: a line without a covariate, counts
    with bounds that are not whole, a variance that noise has made impossible. By then the run is paid for.
    """
    try:
        return _modelled(records, observations, number)
    except ValueError:
        return None


def _modelled(
    records: Records, observations: Iterable[Observation], number: Callable[[Term], float]
) -> AbstractQuestion | None:
    query = records.query
    match records.kind:
        case "booleans":
            return Bernoulli(records.column)
        case "categories":
            return Categorical(records.column, levels=list(records.levels))
        case "rows":
            return LinearRegression(x=query.columns[:-1], y=query.columns[-1], bounds=query.intervals)
    (bounds,) = query.intervals or (None,)
    for observation in observations:
        likelihood = observation.likelihood.distribution
        if observation.database.mapped is None and likelihood.name == "normal":
            return Normal(records.column, bounds, number(likelihood.parameters[1]))
        if observation.database.mapped is None and likelihood.name == "poisson":
            return Poisson(records.column, bounds)
    return None
