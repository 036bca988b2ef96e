"""A person's own code, by the module or the file that it is in: my_package.my_family:Wait, or my_family.py:Wait."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily


def family(where: str, given: dict[str, Any]) -> "AbstractFamily":
    """The family that `where` names, with the options that it takes."""
    from noiseaware.family import AbstractFamily

    make, name = named(where), where.rpartition(":")[2]
    known = inspect.signature(make).parameters
    if surplus := sorted(set(given) - set(known)):
        raise ValueError(f"{surplus[0]} must not be given for {name}, got {given[surplus[0]]}.")
    fixed = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [p.name for p in known.values() if p.default is p.empty and p.kind in fixed]
    if missing := [need for need in needed if need not in given]:
        raise ValueError(f"{missing[0]} must be given for {name}, got nothing.")
    made = make(**given)
    if not isinstance(made, AbstractFamily):
        raise ValueError(f"--family must name a family, got {where}, which makes a {type(made).__name__}.")
    return made


def named(where: str) -> Callable[..., Any]:
    """The class that `where` names."""
    place, _, name = where.rpartition(":")
    found = getattr(module(place, "--family", where), name, None)
    if not callable(found):
        raise ValueError(f"--family must name a class in {place}, got {name!r}.")
    return found


def module(place: str, option: str, where: str) -> ModuleType:
    """The module at a place, which an option names by `where`."""
    try:
        return _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
    except Exception as error:  # whatever the person's own module raises
        told = f"{type(error).__name__}: {error}"
        raise ValueError(f"{option} must name a module or a .py file that imports, got {where}: {told}") from error


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # equinox and dataclasses look a class's module up
    spec.loader.exec_module(module)
    return module


def _from_path(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it
    return importlib.import_module(name)
