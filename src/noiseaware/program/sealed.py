"""A trace is sealed: all that the check reads, and the run computes with, is of the language's own types.

    the program's records and budget, what p was asked for, what is returned → every field of each, to its leaves

Each object is of exactly one of these types, with the fields of that type and no others, and its leaves are numbers and
text of Python's own types. So nothing can answer the check one thing, and the run another; and none of it runs code
that the author wrote.
"""

import dataclasses
from typing import Any

from noiseaware.program.database import Database, Mapped, Records
from noiseaware.program.distribution import Distribution, Inferred, Likelihood, Observation, Posteriors
from noiseaware.program.frozen import is_plain
from noiseaware.program.mechanism import Mechanism, Mechanisms
from noiseaware.program.result import Stranger, values
from noiseaware.program.term import TERMS

_KINDS = frozenset({Database, Mapped, Records, Distribution, Inferred, Likelihood, Observation, Posteriors, Mechanism})
_FIELDS = {kind: {field.name for field in dataclasses.fields(kind)} for kind in _KINDS | TERMS}


def check_sealed(settings: tuple[Any, ...], mechanisms: Mechanisms, result: Any) -> None:
    """Raise Stranger for an object of no known type, under a program's settings, its mechanisms or its result."""
    lists = ((mechanisms.drawn, Mechanism), (mechanisms.maps, Mapped), (mechanisms.observations, Observation))
    for odd in (one for listed, kind in lists for one in listed if type(one) is not kind):
        raise Stranger(type(odd).__name__)
    stack: list[Any] = [settings, *mechanisms.drawn, *mechanisms.maps, *mechanisms.observations, *values(result)]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if is_plain(node) or type(node) is Mechanisms or id(node) in seen:
            continue
        seen.add(id(node))
        stack.extend(_fields(node))


def _fields(node: Any) -> tuple[Any, ...]:
    """The parts of an object of a known type."""
    if type(node) is tuple:
        return node
    held = vars(node) if type(node) in _FIELDS else None
    if type(held) is not dict or held.keys() != _FIELDS[type(node)]:
        raise Stranger(type(node).__name__)
    return tuple(held.values())
