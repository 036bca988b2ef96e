"""Measures of how the source hangs together: counted from its syntax, and held by test_measures.py."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
PACKAGE = SRC / "noiseaware"
_COUNTS = {"NoisyCount", "PublicCount", "PrivateCount", "AbstractCount", "Sizes", "Total", "Public", "Private"}
_OPENINGS = ("What", "Whether", "How", "Where", "The same", "Of")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of each module, by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return found


def outside(folder: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node of a module that does not lie in a folder of the package."""
    for name, tree in modules().items():
        if not f"{name}.".startswith(f"noiseaware.{folder}."):
            yield from ((name, node) for node in ast.walk(tree))


def _is_call(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _names(node: ast.AST) -> set[str]:
    """The last part of each name in an expression."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


def classes_of(folder: str) -> set[str]:
    """The names of all classes that a folder defines."""
    inside = (tree for name, tree in modules().items() if name.startswith(f"noiseaware.{folder}."))
    return {node.name for tree in inside for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def isinstance_on_families() -> list[str]:
    """Places outside family/ that ask which family they were given."""
    kinds = classes_of("family") - {"AbstractFamily"}
    asked = ((name, n) for name, n in outside("family") if _is_call(n, "isinstance"))
    return [f"{name}:{n.lineno}" for name, n in asked if _names(n.args[1]) & kinds]  # type: ignore[attr-defined]


def getattr_on_families() -> list[str]:
    """Places that ask a family or a query for something that its contract may not have."""
    found = []
    for name, node in outside("family"):
        if _is_call(node, "getattr", "hasattr"):
            asked = node.args[0]  # type: ignore[attr-defined]
            last = asked.id if isinstance(asked, ast.Name) else getattr(asked, "attr", "")
            if last in ("family", "query"):
                found.append(f"{name}:{node.lineno}")  # type: ignore[attr-defined]
    return found


def functions_with_the_bundle() -> list[str]:
    """Functions that are handed family, prior and mechanism side by side."""
    found = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                given = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
                if {"family", "prior", "mechanism"} <= given:
                    found.append(f"{name}.{node.name}")
    return found


def isinstance_on_counts() -> list[str]:
    """Places that ask which kind of n they were given."""
    asked = ((name, n) for name, tree in modules().items() for n in ast.walk(tree) if _is_call(n, "isinstance"))
    return [f"{name}:{n.lineno}" for name, n in asked if _names(n.args[1]) & _COUNTS]


def imports_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each import of the package's own as (module, name), lazy ones and those for type checking included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "noiseaware":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.split(".")[0] == "noiseaware")


def private_imports() -> list[str]:
    """Imports of an underscored module or name from outside its folder."""
    found = []
    for name, tree in modules().items():
        path = PACKAGE.parent / Path(*name.split("."))
        home = name if path.is_dir() else name.rpartition(".")[0]
        for module, item in imports_of(tree):
            parts = [*module.split("."), item]
            at = next((i for i, p in enumerate(parts) if p.startswith("_") and not p.startswith("__")), None)
            if at is not None and ".".join(parts[:at]) not in (home, name):
                found.append(f"{name}: {'.'.join(parts)}")
    return found


def root_modules() -> list[str]:
    """Modules that lie in no folder."""
    return [p.stem for p in sorted(PACKAGE.glob("*.py")) if p.stem not in ("__init__", "__main__")]


def type_ignores() -> int:
    """Comments that silence the type checker."""
    return sum(len(re.findall(r"#\s*(type|pyright): ?ignore", p.read_text())) for p in PACKAGE.rglob("*.py"))


def docstrings() -> Iterator[tuple[str, str]]:
    """Each docstring, those of attributes too, with the place where it stands."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield f"{name}:{node.lineno}", text.strip()


def weak_openings() -> list[str]:
    """Docstrings that open with a word that leads nowhere."""
    return [place for place, text in docstrings() if re.match(rf"({'|'.join(_OPENINGS)})\b", text)]


def cycles() -> list[list[str]]:
    """Knots of modules that import one another."""
    trees = modules()
    graph = {
        name: {f"{m}.{i}" if f"{m}.{i}" in trees else m for m, i in imports_of(tree)} & set(trees)
        for name, tree in trees.items()
    }
    for name, others in graph.items():
        others.discard(name)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            knot = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(knot) > 1:
                found.append(sorted(knot))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def long_files(most: int = 500) -> list[str]:
    """Files that are worth a look."""
    return [str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if len(p.read_text().splitlines()) > most]


def long_functions(most: int = 80) -> list[str]:
    """Functions that are worth a look."""
    return [
        f"{name}.{n.name}"
        for name, tree in modules().items()
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef) and (n.end_lineno or n.lineno) - n.lineno >= most
    ]


if __name__ == "__main__":
    for measure in (
        isinstance_on_families,
        getattr_on_families,
        functions_with_the_bundle,
        isinstance_on_counts,
        private_imports,
        root_modules,
        weak_openings,
        cycles,
        long_files,
        long_functions,
    ):
        listed = measure()
        print(f"{measure.__name__}: {len(listed)}", *listed[:8], sep="\n    ")
    print(f"type_ignores: {type_ignores()}")
    print(f"lines: {sum(len(p.read_text().splitlines()) for p in PACKAGE.rglob('*.py'))}")
