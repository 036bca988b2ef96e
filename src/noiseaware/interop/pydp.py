"""Google's differential privacy library, and PyDP over it.

Continuous noise is drawn on a very fine grid and added to a float as it is; added to an integer it is first rounded to
a whole number, which gives P(0) = 1 − e^{−1/2b} and P(k) = sinh(1/2b) e^{−|k|/b}: not the discrete Laplace law.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, release, rounded
from noiseaware.interop._rows import label, number, positive
from noiseaware.mechanism import Gaussian, Laplace


def pydp(
    values: Iterable[float] | Mapping[str, float],
    *,
    scale: float,
    noise: Literal["laplace", "gaussian"] = "laplace",
    is_integer: bool = True,
    family: AbstractFamily = CELL,
    n: int = 1,
    version: str | None = None,
) -> list[Release]:
    """A release for each value, with the noise's scale (Laplace: sensitivity/ε) or standard deviation (Gaussian).

    `is_integer`: whether the library was asked for integers (`dtype="int"`), and rounded its noise.
    """
    if noise not in ("laplace", "gaussian"):
        raise ValueError(f"noise must be 'laplace' or 'gaussian', got {noise!r}.")
    spread = positive({"scale": scale}, "scale")
    mechanism = Laplace(spread) if noise == "laplace" else Gaussian(spread)
    named = values.items() if isinstance(values, Mapping) else ((None, value) for value in values)
    found = []
    for place, (name, given) in enumerate(named, 1):
        value = number({"value": given}, "value", place)
        if is_integer and value != round(value):
            raise ValueError(f"row {place}: value must be a whole number where is_integer, got {value}.")
        group = () if name is None else (("group", label(name)),)
        about = {"family": family, "n": n, "tool": "Google DP", "version": version, "group": group}
        found.append(release(value, rounded(value) if is_integer else None, mechanism, **about))
    if not found:
        raise ValueError("values must be at least one, got none.")
    return found
