"""Numbers and text of exactly Python's own types: a subclass could say one thing to the check, another to the run."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

PLAIN = (type(None), bool, int, float, complex, str, bytes, Fraction, Decimal)

_OF_SUBCLASSES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int),
    (float, float),
    (complex, complex),
    (str, str.__str__),  # str(x) may be a subclass again
    (bytes, lambda x: bytes(bytearray(x))),
    (Fraction, lambda x: Fraction(int(x.numerator), int(x.denominator))),
    (Decimal, Decimal),
    (np.generic, lambda x: x.item()),
)


def is_plain(value: Any) -> bool:
    """True if a value is None, a number or text, of exactly Python's own type."""
    return type(value) in PLAIN


def frozen(value: Any) -> Any:
    """Return a number or text of a subclass as one of Python's own type; anything else as it is."""
    if is_plain(value):
        return value
    for kind, made in _OF_SUBCLASSES:
        if issubclass(type(value), kind):
            return made(value)
    return value
