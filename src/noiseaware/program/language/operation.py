"""The operations of the language, written once: in exact fractions, in JAX and in z3 they mean the same.

An algebra chooses between two values by a condition, and knows e^x and log x. Every operation follows from these and
the plain operators, and none can fail: x/0 is 0, and log x is −10⁶ where x is not positive, since nothing must fail
after the charge for a value in the table.
"""

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

LARGEST_EXPONENT = 700  # e^700 is still a float
LOG_OF_NOTHING = -(10**6)
TRANSCENDENTAL = ("exp", "log")
"""Functions that are rounded when they are computed, and unknown to a proof."""


def operations(
    choose: Callable[[Any, Any, Any], Any],
    exp: Callable[[Any], Any] | None = None,
    log: Callable[[Any], Any] | None = None,
) -> Mapping[str, Callable[..., Any]]:
    """Each operation by its name, in the algebra of `choose(condition, value, otherwise)`, which has both values made.

    Both branches are computed, as in JAX and z3, so an argument that has no value is replaced before it is used.
    """
    table: dict[str, Callable[..., Any]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": lambda a, b: choose(b == 0, 0, a / choose(b == 0, 1, b)),
        "<": lambda a, b: choose(a < b, 1, 0),
        "<=": lambda a, b: choose(a <= b, 1, 0),
        "==": lambda a, b: choose(a == b, 1, 0),
        "abs": lambda a: choose(a >= 0, a, -a),
        "min": lambda a, b: choose(a <= b, a, b),
        "max": lambda a, b: choose(a >= b, a, b),
    }
    if exp is not None and log is not None:
        limit = LARGEST_EXPONENT
        table["exp"] = lambda x: exp(choose(x > limit, limit, choose(x < -limit, -limit, x)))
        table["log"] = lambda x: choose(x > 0, log(choose(x > 0, x, 1)), LOG_OF_NOTHING)
    return MappingProxyType(table)  # a program's author must not change what its terms mean
