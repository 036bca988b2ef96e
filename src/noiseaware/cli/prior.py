"""A prior from the words of a person: beta(0.5, 100), gamma(8, 2), normal_inverse_gamma([1, 0], 0.25, 20, 0.5).

Of several parameters, independent(shape=gamma(4, 2), rate=gamma(3, 1)).
"""

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noiseaware.prior import AbstractPrior

_PARAMETERS = {
    "beta": ("a", "b"),
    "dirichlet": None,
    "gamma": ("shape", "rate"),
    "normal": ("mean", "variance"),
    "normal_inverse_gamma": ("mean", "precision", "shape", "scale"),
    "normal_inverse_wishart": ("mean", "count", "scale", "dof"),
}
# Parameters that may be lists, and whether also a list of lists.
_LISTS = {"normal_inverse_gamma": {"mean": 1, "precision": 2}, "normal_inverse_wishart": {"mean": 1, "scale": 2}}
_CALL = re.compile(r"\s*([A-Za-z_]+)\s*\(([^()]*)\)\s*")
_PART = rf"\s*([A-Za-z_]+)\s*=({_CALL.pattern})"
_PARTS = re.compile(rf"\s*independent\s*\(({_PART}(?:,{_PART})*)\)\s*", re.IGNORECASE)
_WORD = r"[^\[\],\s]+"
EXAMPLES = "beta(0.5, 100), dirichlet(1, 1), gamma(8, 2), normal(0, 4), normal_inverse_gamma([1, 0], 0.25, 20, 0.5) "
EXAMPLES += "or independent(shape=gamma(4, 2), rate=gamma(3, 1))"

Argument = float | list


def parse(text: str) -> "AbstractPrior":
    """The prior that a text such as gamma(8, 2) names."""
    import noiseaware.prior as priors

    if (several := _PARTS.fullmatch(text)) is not None:
        found = [(part[1], parse(part[2])) for part in re.finditer(_PART, several[1])]
        if len(dict(found)) < len(found):
            raise ValueError(f"--prior must name each part once, got {text!r}.")
        return priors.Independent(**dict(found))
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(f"--prior must look like {EXAMPLES}, got {text!r}.")
    if (name := call[1].lower()) == "independent":
        raise ValueError(f"--prior independent takes a prior for each name: shape=gamma(4, 2), got {text!r}.")
    if name not in _PARAMETERS:
        raise ValueError(f"--prior must be one of {', '.join(_PARAMETERS)}, independent, got {name!r} in {text!r}.")
    parameters, arguments = _PARAMETERS[name], _arguments(text, call[2])
    if parameters is None:
        numbers = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
        _check_depth(text, "each level", numbers, 1)
        return priors.Dirichlet(numbers)
    if len(arguments) != len(parameters):
        raise ValueError(f"--prior {name} takes {len(parameters)} numbers ({', '.join(parameters)}), got {text!r}.")
    lists = _LISTS.get(name, {})
    for parameter, argument in zip(parameters, arguments, strict=True):
        most = lists.get(parameter, 0) if parameter == "mean" or isinstance(arguments[0], list) else 0
        _check_depth(text, parameter, argument, most)
    return getattr(priors, name.title().replace("_", ""))(*arguments)


def _arguments(text: str, inside: str) -> list[Argument]:
    """Numbers between commas, and lists of them in brackets: JSON, but for how numbers are written."""
    try:
        return _floats(json.loads(f"[{re.sub(_WORD, lambda word: json.dumps(word[0]), inside)}]"))
    except (ValueError, RecursionError):
        raise ValueError(f"--prior must have numbers between commas, got {text!r}.") from None


def _floats(words: list) -> list[Argument]:
    if not words:
        raise ValueError("a list is empty")
    return [_floats(word) if isinstance(word, list) else float(word) for word in words]


def _depth(argument: Argument) -> int:
    return 1 + max(map(_depth, argument)) if isinstance(argument, list) else 0


def _check_depth(text: str, parameter: str, argument: Argument, most: int) -> None:
    if _depth(argument) > most:
        raise ValueError(f"--prior must have a number for {parameter}, got {text!r}.")
