"""Questions of the check about what a term is made of."""

from noiseaware.program.language.database import Database
from noiseaware.program.language.expression import (
    Constant,
    Distance,
    Operation,
    Record,
    Size,
    Statistic,
    Term,
    is_private,
    walk,
)

Count = tuple[int, int]
"""A count: its database, and its place there."""


def one_count(value: Term) -> Count | None:
    """The one count that a value depends on, if it is one."""
    leaves = [n for n in walk([value]) if isinstance(n, Statistic | Size | Record | Distance) and is_private(n)]
    counts = [n for n in leaves if isinstance(n, Statistic) and n.database.records.levels]
    keys = {(id(node.database), node.index) for node in counts}
    return keys.pop() if len(counts) == len(leaves) and len(keys) == 1 else None


def all_moments(values: tuple[Term, ...]) -> Database | None:
    """The rows of which the values are all the moments, each once."""
    statistics = [value for value in values if isinstance(value, Statistic) and value.database.mapped is None]
    databases = {id(statistic.database): statistic.database for statistic in statistics}
    if len(statistics) < len(values) or len(databases) != 1:
        return None
    (database,) = databases.values()
    places = sorted(statistic.index for statistic in statistics)
    return database if database.records.columns and places == list(range(database.records.num_statistics)) else None


def is_linear(node: Term, distance: Distance) -> bool:
    """True if a term holds a distance as a sum and constant multiple only."""
    if node is distance or not any(inner is distance for inner in walk([node])):
        return True
    if not isinstance(node, Operation):
        return False
    holding = [a for a in node.arguments if any(inner is distance for inner in walk([a]))]
    if node.name in ("+", "-"):
        return all(is_linear(a, distance) for a in holding)
    others = [a for a in node.arguments if not any(a is own for own in holding)]
    is_scaled = node.name == "*" or (node.name == "/" and holding[0] is node.arguments[0])
    is_constant = len(holding) == 1 and all(isinstance(a, Constant) for a in others)
    return is_scaled and is_constant and is_linear(holding[0], distance)
