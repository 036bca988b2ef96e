"""A person's own code, by the module or the file that it is in: my_package.my_family:Wait, or my_family.py:Wait."""

import __future__

import ast
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Failed:
    """A name that a file should have defined and could not, and why, with file and line."""

    name: str
    file: str
    reason: str


def definitions(path: str, option: str, maker: str) -> tuple[ModuleType, list[Failed]]:
    """The module in a file, and what `maker` could not make in it: whatever else the file defines is there.

    The file is run statement by statement; a failure of any other statement is a failure of the file.
    """
    place = Path(path)
    module, failed = ModuleType(place.stem), []
    module.__file__ = str(place)
    sys.modules.setdefault(place.stem, module)
    try:
        statements = ast.parse(place.read_bytes(), str(place)).body
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"{option} must be a Python file that can be read, got {path}: {error}") from error
    flags = functools.reduce(int.__or__, map(_flags, statements), 0)
    for statement in statements:
        code = compile(ast.Module([statement], []), str(place), "exec", flags=flags, dont_inherit=True)
        try:
            exec(code, vars(module))
        except Exception as error:  # whatever the person's own code raises
            told, name = located(error, str(place), f"{place.name}, line {statement.lineno}"), _made(statement, maker)
            if name is None:
                raise ValueError(f"{option} must be a Python file that runs, got {told}") from error
            failed.append(Failed(name, place.name, told))
    return module, failed


def _made(statement: ast.stmt, maker: str) -> str | None:
    """The name that a statement defines by a maker: by a decorator, or by a call of what it gives."""
    makers = {getattr(node, "attr", getattr(node, "id", None)) for node in ast.walk(statement)}
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name if statement.decorator_list and maker in makers else None
    is_named = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and maker in makers
    return statement.targets[0].id if is_named else None  # type: ignore[attr-defined]


def _flags(statement: ast.stmt) -> int:
    """Compiler flags of the file's `from __future__ import …` lines."""
    if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__":
        return 0
    return functools.reduce(int.__or__, (getattr(__future__, name.name).compiler_flag for name in statement.names))


def line_of(error: BaseException, path: str) -> int | None:
    """The last line of a file that an error passed through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


def located(error: BaseException, path: str, otherwise: str) -> str:
    """The words of an error, with the last line of the file that it passed through, unless it names one itself."""
    told, line = _told(error), line_of(error, path)
    if told.startswith(f"{Path(path).name}, line "):
        return told
    return f"{otherwise if line is None else f'{Path(path).name}, line {line}'}: {told}"


def _told(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return said if isinstance(error, ValueError) and said else f"{type(error).__name__}: {said}"


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
