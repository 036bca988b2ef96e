"""OpenDP: a measurement as OpenDP serialises it, and the value that it released.

    make_laplace, make_gaussian, make_geometric    on whole numbers, the discrete laws; on floats, the continuous ones
    bounds of make_geometric                       the noisy value is clamped to them

The JSON is read as data: nothing in it is called. Float noise of granularity 2^k is discrete on that grid, which by
default is far too fine to be seen.
"""

import json
from collections.abc import Mapping
from typing import Any

from noiseaware.check import shown, whole
from noiseaware.evidence.json import Origin
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, Within, clamped
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace

MOST_CHARACTERS = 1_000_000
_MOST_DEPTH = 200
_LAWS = {
    "make_laplace": (DiscreteLaplace, Laplace),
    "make_gaussian": (DiscreteGaussian, Gaussian),
    "make_geometric": (DiscreteLaplace, DiscreteLaplace),
}
_WHOLE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "usize", "int")


def opendp(measurement: str, value: Any, *, family: AbstractFamily = CELL, n: int = 1) -> Release:
    """The release of `value` by a measurement, given as the JSON text that `opendp.mod.serialize` gives."""
    node = _leaf(_parsed(measurement))
    arguments = node["__kwargs__"]
    scale = arguments.get("scale")
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1e150:
        raise ValueError(f"measurement.scale must be a positive number of at most 1e150, got {shown(scale)}.")
    is_whole = node["__function__"] == "make_geometric" or _is_whole(arguments.get("input_domain"))
    mechanism, grid = _noise(node["__function__"], float(scale), is_whole, arguments.get("k"))
    values = list(value) if isinstance(value, list | tuple) else [value]
    for v in values:
        if isinstance(v, bool) or not isinstance(v, int | float):
            raise ValueError(f"value must be a number or a list of numbers, got {shown(value)}.")
    bounds = arguments.get("bounds")
    within = None if bounds is None else [_clamped(v, bounds) for v in values]
    version = node.get("__version__")
    return Release(
        family=family,
        values=[v if grid == 1 else v / grid for v in values],
        n=n,
        mechanism=mechanism,
        within=within if within and any(within) else None,
        grid=grid,
        neighbours="add_remove",
        origin=Origin(tool="OpenDP", version=version if isinstance(version, str) else None),
    )


def _noise(function: str, scale: float, is_whole: bool, k: object) -> tuple[AbstractMechanism, float]:
    """The law and its grid: 1 for whole numbers and, where no granularity was asked for, for floats."""
    discrete, continuous = _LAWS[function]
    if is_whole or k is None:
        return (discrete if is_whole else continuous)(scale), 1.0
    step = 2.0 ** whole("measurement.k", k, -400, 400)
    return discrete(scale / step), step


def _clamped(value: float, bounds: Any) -> Within | None:
    ends = bounds.get("__tuple__") if isinstance(bounds, Mapping) else bounds
    if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, int | float) for end in ends):
        raise ValueError(f"measurement.bounds must be two numbers, got {shown(bounds)}.")
    return clamped(value, least=ends[0], most=ends[1])


def _parsed(text: object) -> Any:
    if not isinstance(text, str):
        raise ValueError(f"measurement must be the text that opendp.mod.serialize gives, got {shown(text)}.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"measurement must have at most {MOST_CHARACTERS:,} characters, got {len(text):,}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"measurement must be JSON, got {shown(text)}.") from None


def _leaf(node: Any) -> Mapping[str, Any]:
    """The measurement that adds the noise, through the transformations before it."""
    for _ in range(_MOST_DEPTH):
        if not isinstance(node, Mapping) or not isinstance(node.get("__kwargs__"), Mapping):
            raise ValueError(f"measurement must be a serialised OpenDP measurement, got {shown(node)}.")
        function = node.get("__function__")
        if function in _LAWS:
            return node
        if function != "make_chain_mt":
            served = ", ".join(_LAWS)
            raise ValueError(f"measurement must end in one of {served}, got {shown(function)}.")
        node = node["__kwargs__"].get("measurement1")
    raise ValueError(f"measurement must have at most {_MOST_DEPTH} steps, got more.")


def _is_whole(domain: Any) -> bool:
    """True if the noise was added to whole numbers: the type of a domain, or of what a transformation gives."""
    for _ in range(_MOST_DEPTH):
        arguments = domain.get("__kwargs__") if isinstance(domain, Mapping) else None
        if not isinstance(arguments, Mapping):
            break
        named = [arguments[name] for name in ("T", "TO", "TOA") if isinstance(arguments.get(name), str)]
        if named:
            return named[0] in _WHOLE
        nested = ("atom_domain", "this", "transformation1", "input_domain")
        domain = next((arguments[name] for name in nested if name in arguments), None)
    raise ValueError("measurement.input_domain must tell the type of the numbers, got none.")
