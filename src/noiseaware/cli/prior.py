"""A prior from the words of a person: beta(0.5, 100), dirichlet(1, 1, 1), gamma(8, 2), normal(0, 4)."""

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
}
_CALL = re.compile(r"\s*([A-Za-z_]+)\s*\(\s*(\[?)([^()\[\]]*)(\]?)\s*\)\s*")
EXAMPLES = "beta(0.5, 100), dirichlet(1, 1, 1), gamma(8, 2) or normal(0, 4)"


def parse(text: str) -> "AbstractPrior":
    """The prior that a text such as gamma(8, 2) names."""
    import noiseaware.prior as priors

    call = _CALL.fullmatch(text)
    if call is None or bool(call[2]) != bool(call[4]):
        raise ValueError(f"--prior must look like {EXAMPLES}, got {text!r}.")
    name, numbers = call[1].lower(), _numbers(text, call[3])
    if name not in _PARAMETERS:
        raise ValueError(f"--prior must be one of {', '.join(_PARAMETERS)}, got {name!r} in {text!r}.")
    parameters = _PARAMETERS[name]
    if parameters is None:
        return priors.Dirichlet(numbers)
    if call[2] or len(numbers) != len(parameters):
        raise ValueError(f"--prior {name} takes {len(parameters)} numbers ({', '.join(parameters)}), got {text!r}.")
    return getattr(priors, name.title().replace("_", ""))(*numbers)


def _numbers(text: str, inside: str) -> list[float]:
    try:
        return [float(part) for part in inside.split(",")]
    except ValueError:
        raise ValueError(f"--prior must have numbers between commas, got {text!r}.") from None
