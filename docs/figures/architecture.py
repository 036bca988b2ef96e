"""The pictures of docs/developer/design.md, drawn from the code itself: who imports whom, and the way of one table.

The first reads the layers from pyproject.toml and the imports from every file. The second releases a small table,
infers and writes a report with a tracer on, and lists the files in the order in which they are first entered.
"""

import ast
import inspect
import io
import sys
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr
from itertools import chain
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

import noiseaware as na

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "noiseaware"
STATIC = ROOT / "docs" / "_static"
BLUE, RED, GREY = "#1f5a94", "#b3332b", "#6b7280"
WIDTH, STEP, BOX = 12.0, 0.72, (1.9, 0.4)  # of the layers: how wide, from row to row, and each box
_TRIES = 40


# ---- who imports whom ----------------------------------------------------------------------------------------


def layers() -> list[list[str]]:
    """Files and folders, from the top layer down, as import-linter holds them."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    rows = [row.replace(":", "|").split("|") for row in contract["layers"]]
    return [[name.strip(" ()") for name in row] for row in rows]


def imports() -> dict[str, set[str]]:
    """For each file or folder of the package, the others that it imports when it runs, lazily too."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        checked = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ]
        only_checked = {id(inner) for node in checked for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and id(node) not in only_checked:
                package, *rest = node.module.split(".")
                names = rest[:1] or [alias.name for alias in node.names]
                if package == "noiseaware":
                    found.setdefault(part, set()).update(name for name in names if name != part)
    return found


def direct(edges: dict[str, set[str]], rows: list[list[str]]) -> list[tuple[str, str]]:
    """Edges to rows below that no longer way replaces: the rest would only hide them."""
    beside = {name: set(row) for row in rows for name in row}  # rooms of one row may import each other
    down = {name: others - beside.get(name, set()) for name, others in edges.items()}

    def reached(name: str) -> set[str]:
        return {name}.union(*(reached(other) for other in down.get(name, ())))

    below = {name: set().union(*(reached(other) - {other} for other in others)) for name, others in down.items()}
    kept = [(name, other) for name, others in down.items() for other in others if other not in below[name]]
    return kept


def draw_layers(path: Path) -> None:
    rows = [[name for name in row if name != "__main__"] for row in layers()]
    rows = [row for row in rows if row]
    arrows = [(name, other) for name, other in direct(imports(), rows) if {name, other} <= {*chain(*rows)}]
    places, bends = arranged(rows, arrows)
    figure, axes = plt.subplots(figsize=(10, 8), layout="constrained")
    boxes = {}
    for name, (x, y) in places.items():
        shown, colour = f"{name}/" if (SOURCE / name).is_dir() else name, RED if name == "custodian" else BLUE
        boxes[name] = _box(axes, x, y, shown, colour)
    for (name, other), bend in zip(arrows, bends, strict=True):
        arrow = {"arrowstyle": "-|>", "color": GREY, "alpha": 0.7, "lw": 0.9, "shrinkA": 0, "shrinkB": 1}
        arrow |= {"connectionstyle": f"arc3,rad={bend}", "patchA": boxes[name], "patchB": boxes[other]}
        axes.annotate("", xy=places[other], xytext=places[name], arrowprops=arrow, zorder=2)
    axes.set(xlim=(-0.1, WIDTH + 0.1), ylim=(-len(rows) * STEP, 0), aspect="equal")
    axes.axis("off")
    figure.savefig(path, dpi=140)
    plt.close(figure)


def arranged(
    rows: list[list[str]], arrows: list[tuple[str, str]]
) -> tuple[dict[str, tuple[float, float]], list[float]]:
    """Where each box stands in its row, and how each arrow bends, so that few arrows pass behind a box."""
    names, rng = [*chain(*rows)], np.random.default_rng(3)
    places = np.array(
        [((j + 0.5) / len(row) * WIDTH, -(i + 0.5) * STEP) for i, row in enumerate(rows) for j in range(len(row))]
    )
    ends = np.array([(names.index(name), names.index(other)) for name, other in arrows])
    least, bends = _bent(places, ends)
    for k in np.tile(np.arange(len(names)), _TRIES):
        tried = places.copy()
        tried[k, 0] = rng.uniform(BOX[0] / 2, WIDTH - BOX[0] / 2)
        beside = (tried[:, 1] == tried[k, 1]) & (np.arange(len(names)) != k)
        if (abs(tried[beside, 0] - tried[k, 0]) > BOX[0] + 0.25).all():
            cost, found = _bent(tried, ends)
            if cost < least:
                places, least, bends = tried, cost, found
    return dict(zip(names, map(tuple, places.tolist()), strict=True)), bends.tolist()


def _bent(places: np.ndarray, ends: np.ndarray) -> tuple[float, np.ndarray]:
    """The bend of each arrow that meets the fewest boxes, and how bad all of them are: boxes met, then length."""
    start, end = (places[side][:, None, None] for side in ends.T)
    bends, t = np.linspace(-0.6, 0.6, 17)[:, None, None], np.linspace(0, 1, 17)[:, None]
    middle = (start + end) / 2 + bends * ((end - start) @ [[0, -1], [1, 0]])
    curves = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
    inside = (abs(curves[..., None, :] - places) < np.array(BOX) / 2 + 0.12).all(axis=-1)
    own = (np.arange(len(places)) == ends[..., None]).any(axis=1)
    met = (inside & ~own[:, None, None]).sum(axis=(2, 3))
    is_below = curves[..., 1] < places[:, 1].min() - STEP / 2
    outside = (is_below | (abs(curves[..., 0] - WIDTH / 2) > WIDTH / 2)).sum(axis=2)
    cost = 30 * (met + outside) + np.linalg.norm(np.diff(curves, axis=2), axis=-1).sum(axis=2)
    return float(cost.min(axis=1).sum()), bends[cost.argmin(axis=1), 0, 0]


def _box(axes, x: float, y: float, text: str, colour: str) -> FancyBboxPatch:
    (width, height), corner = BOX, (x - BOX[0] / 2, y - BOX[1] / 2)
    style = {"boxstyle": "round,pad=0.02,rounding_size=0.12", "fc": "white", "ec": colour, "lw": 1.6}
    box = axes.add_patch(FancyBboxPatch(corner, width, height, zorder=3, **style))
    axes.text(x, y, text, ha="center", va="center", fontsize=10, color=colour, zorder=4)
    return box


# ---- the way of one table ------------------------------------------------------------------------------------


def entered(work: Callable[[], object]) -> list[tuple[str, str]]:
    """The files of the package in the order in which their functions are first called, each with that function."""
    seen: dict[str, str] = {}

    def look(frame, event: str, _) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith(("_", "<"))
        if event == "call" and is_function and code.co_filename.startswith(str(SOURCE)):
            seen.setdefault(str(Path(code.co_filename).relative_to(SOURCE)), code.co_name)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(seen.items())


def trace(folder: Path) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """What is done, on whose side, and the files that do it."""
    table, page = folder / "clinic.csv", folder / "wait.html"
    table.write_text("wait_hours\n" + "\n".join(f"{k % 17 + 0.5}" for k in range(200)))
    ledger = na.Ledger.create(folder / "clinic.ledger", epsilon=2)
    family = na.family.Exponential("wait_hours", bounds=(0, 48))
    made: list = []
    steps: list[tuple[str, str, Callable[[], object]]] = [
        ("release", "custodian", lambda: made.append(na.release(table, family, epsilon=0.5, ledger=ledger))),
        ("save and load", "", lambda: made.append(_sent(made[0], folder / "wait.json"))),
        ("infer", "analyst", lambda: made.append(na.infer(made[1], na.prior.Gamma(8, 2), seed=0))),
        ("report", "analyst", lambda: made[2].report(page)),
    ]
    return [(name, side, entered(work)) for name, side, work in steps]


def _sent(release: na.Release, path: Path) -> na.Release:
    release.save(path)
    return na.load(path)


def draw_way(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        steps = trace(Path(folder))
    longest = max(len(files) for *_, files in steps)
    figure, axes = plt.subplots(figsize=(14, 1.2 + 0.24 * longest), layout="constrained")
    for j, (name, side, files) in enumerate(steps):
        axes.text(j, 0.9, name, fontsize=13, weight="bold")
        axes.text(j, 0.0, f"{side}'s side" if side else "the file that crosses", fontsize=10, color=GREY)
        for i, (file, function) in enumerate(files):
            colour = RED if file.startswith("custodian") else BLUE
            shown = file.removesuffix(".py")
            axes.text(j, -1.2 - i, shown, fontsize=8, color=colour, family="monospace")
            axes.text(j, -1.2 - i, f"{' ' * len(shown)}  {function}", fontsize=8, color=GREY, family="monospace")
    axes.set(xlim=(-0.02, len(steps)), ylim=(-1.5 - longest, 1.8))
    axes.axis("off")
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    draw_layers(STATIC / "layers.png")
    draw_way(STATIC / "way.png")
    print("wrote layers.png and way.png")
