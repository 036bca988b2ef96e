"""The result of a program: copied at the trace, so that it has no mind of its own, and put together when all is public.

Lists, tuples and dicts become Python's own; a named tuple becomes a call of its class. Between the trace and the end
nothing but the language's own types is asked for anything: the person's functions and classes, and the keys of dicts,
which may bring an `__iter__`, `__hash__` or `__new__`, are called last, where no statistic is left to be read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from noiseaware.program.language.distribution import Distribution, Inferred
from noiseaware.program.language.escape import Guarded
from noiseaware.program.language.expression import TERMS, Term
from noiseaware.program.language.frozen import frozen, is_plain
from noiseaware.program.language.mechanism import Applied

_VALUES = TERMS | {Distribution, Inferred}


class Stranger(Exception):
    """An object that has no place in a program: its type, by name."""


def kept(result: Any) -> Any:
    """A copy of a result that is made of the language's values, plain numbers and text, lists, tuples and dicts."""
    copied = _copied(result, kept)
    if type(copied) in _VALUES or type(copied) in (list, tuple, dict, Applied):
        return copied
    if is_plain(copied := frozen(result)):
        return copied
    raise Stranger(type(result).__name__)


def _argument(given: Any) -> Any:
    """A copy of what `apply` hands to a function: any object at all, but nothing else of the language."""
    copied = _copied(given, _argument)
    is_ours = isinstance(given, Guarded) or type(given).__module__.startswith("noiseaware.program")
    if is_ours and type(copied) is not Applied and type(copied) not in _VALUES:
        raise Stranger(type(given).__name__)
    return copied


def _copied(result: Any, each: Any) -> Any:
    """Lists, tuples, dicts and calls of functions, each part copied by `each`; anything else as it is."""
    kind = type(result)
    if issubclass(kind, list | tuple):
        parts = [each(part) for part in result]
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return Applied(kind, tuple(parts))
        return parts if issubclass(kind, list) else tuple(parts)
    if issubclass(kind, dict):
        return {key: each(part) for key, part in result.items()}
    if kind is Applied:
        return Applied(result.function, tuple(_argument(part) for part in result.arguments))
    return result


def values(result: Any) -> Iterator[Any]:
    """The terms, distributions and posteriors without a formula that a result is made of."""
    kind = type(result)
    if kind is list or kind is tuple:
        for part in result:
            yield from values(part)
    elif kind is dict:
        for part in result.values():
            yield from values(part)
    elif kind is Applied:
        yield from values(result.arguments)
    elif kind in _VALUES:
        yield result


def terms(result: Any) -> list[Term]:
    """The terms in a result, and those that its distributions are made of."""
    found: list[Term] = []
    for value in values(result):
        found += value.parameters if type(value) is Distribution else [value] if type(value) in TERMS else []
    return found


def replaced(result: Any, copies: Any) -> Any:
    """A result with the copy of each of its terms, distributions and posteriors in its place."""
    kind = type(result)
    if kind is list or kind is tuple:
        return kind(replaced(part, copies) for part in result)
    if kind is dict:
        return {key: replaced(part, copies) for key, part in result.items()}
    if kind is Applied:
        return Applied(result.function, replaced(result.arguments, copies))
    return copies[result] if kind in _VALUES else result


def inferred(result: Any) -> list[Inferred]:
    """The posteriors without a formula in a result."""
    return [value for value in values(result) if type(value) is Inferred]


def assembled(result: Any, public: Mapping[int, Any]) -> Any:
    """A result, given the public value of each of its parts by the part's id; functions are called here."""
    if id(result) in public:
        return public[id(result)]
    kind = type(result)
    if kind is list or kind is tuple:
        return kind(assembled(part, public) for part in result)
    if kind is dict:
        return {key: assembled(part, public) for key, part in result.items()}
    if kind is Applied:
        return result.function(*(assembled(part, public) for part in result.arguments))
    return result
