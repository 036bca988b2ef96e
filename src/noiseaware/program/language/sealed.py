"""A trace is sealed: all that the check reads, and the run computes with, is a copy of the language's own types.

    the program's records and budget, what p was asked for, what is returned → every field of each, to its leaves

Each object is of exactly one of these types, with the fields of that type and no others, and its leaves are numbers and
text of Python's own types. So nothing can answer the check one thing, and the run another; and none of it runs code
that the author wrote. Nor does the author hold any of it: what is changed after the check, by another program or a
function given to `pp.apply`, is not what was checked. What was shared is shared in the copy too.
"""

import dataclasses
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from noiseaware.program.language.database import Database, Mapped, Records
from noiseaware.program.language.distribution import Distribution, Inferred, Likelihood, Observation, Posteriors
from noiseaware.program.language.expression import TERMS
from noiseaware.program.language.frozen import is_plain
from noiseaware.program.language.mechanism import Mechanism, Mechanisms
from noiseaware.program.proof.result import Stranger, replaced, values

_KINDS = frozenset({Database, Mapped, Records, Distribution, Inferred, Likelihood, Observation, Posteriors, Mechanism})
_FIELDS = {kind: {field.name for field in dataclasses.fields(kind)} for kind in _KINDS | TERMS}


def sealed_settings(*settings: Any) -> tuple[Any, ...]:
    """Copies of a program's records and budget; Stranger for an object of no known type."""
    copies = _Copies(settings)
    return tuple(copies[setting] for setting in settings)


def sealed(database: Database, mechanisms: Mechanisms, result: Any) -> tuple[Database, Mechanisms, Any]:
    """Copies of a program's database, its mechanisms and its result; Stranger for an object of no known type."""
    lists = ((mechanisms.drawn, Mechanism), (mechanisms.maps, Mapped), (mechanisms.observations, Observation))
    for odd in (one for listed, kind in lists for one in listed if type(one) is not kind):
        raise Stranger(type(odd).__name__)
    listed = [part for parts, _ in lists for part in parts]
    copies = _Copies([database, mechanisms, *listed, *values(result)])
    own: Mechanisms = copies[mechanisms]
    own.drawn, own.maps, own.observations = ([copies[part] for part in parts] for parts, _ in lists)
    return copies[database], own, replaced(result, copies)


class _Copies:
    """The copy of each object under some roots, one of each."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # with what it is a copy of, whose id nothing else has meanwhile
        fields: list[tuple[Any, dict[str, Any]]] = []
        stack = list(roots)
        while stack:
            node = stack.pop()
            if type(node) is tuple:
                stack.extend(node)
            elif not is_plain(node) and id(node) not in self._made:
                held = {} if type(node) is Mechanisms else _fields(node)
                copy = Mechanisms() if type(node) is Mechanisms else object.__new__(type(node))
                self._made[id(node)] = (node, copy)
                fields.append((copy, held))
                stack.extend(held.values())
        for copy, held in fields:
            for name, value in held.items():
                object.__setattr__(copy, name, self[value])

    def __getitem__(self, node: Any) -> Any:
        if type(node) is Fraction:
            return _fraction(node)
        if type(node) is tuple:
            return tuple(self[part] for part in node)
        return node if is_plain(node) else self._made[id(node)][1]


def _fields(node: Any) -> dict[str, Any]:
    """The parts of an object of a known type, as they are now."""
    held = vars(node) if type(node) in _FIELDS else None
    if type(held) is not dict or held.keys() != _FIELDS[type(node)]:
        raise Stranger(type(node).__name__)
    return dict(held)


def _fraction(value: Fraction) -> Fraction:
    """Copy a number, since a Fraction can be changed in place, by its parts."""
    above, below = value.numerator, value.denominator
    if type(above) is not int or type(below) is not int or below <= 0:
        raise Stranger("Fraction")
    return Fraction(above, below)
