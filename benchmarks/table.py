"""One table of all that was measured, docs/benchmarks.csv: a line for each claim, by the script that measures it.

A line is known by its script and its work, and is replaced when the same is measured again, so that a script may run
alone. A bar is what was wanted; whether it was met is worked out here, from the number, and never typed.
Run `python benchmarks/table.py` to see the table.
"""

import csv
import os
import platform
import sys
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "benchmarks.csv"
FIELDS = ("script", "work", "ours", "against", "measure", "bar", "met", "machine")


def add(
    work: str, number: float, measure: str, *, at_least=None, at_most=None, ours: str = "", against: str = ""
) -> None:
    """A number that was measured, what it is (`{}` stands for it), and the bar it must be above or below, if any."""
    bar = "" if at_least is None else f"≥\u00a0{_shown(at_least)}"
    bar = bar if at_most is None else f"≤\u00a0{_shown(at_most)}"
    is_met = (at_least is None or number >= at_least) and (at_most is None or number <= at_most)
    line = {
        "script": Path(sys.argv[0]).name,
        "work": work,
        "ours": ours,
        "against": against,
        "measure": measure.format(_shown(number)),
        "bar": bar,
        "met": ("yes" if is_met else "no") if bar else "",
        "machine": machine(),
    }
    lines = [other for other in read() if (other["script"], other["work"]) != (line["script"], work)]
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*lines, line], key=lambda row: row["script"]))


def read() -> list[dict[str, str]]:
    if not FILE.exists():
        return []
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def machine() -> str:
    """What JAX computes on, in words."""
    import jax

    if jax.default_backend() != "cpu":
        return jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0))
    return f"{cores} core{'s' if cores > 1 else ''}, {platform.machine()}"


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(*FIELDS, title="measured")
    for line in read():
        shown.add_row(*line.values())
    Console().print(shown)


def _shown(number: float) -> str:
    """Three digits, and thousands as they are."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


if __name__ == "__main__":
    main()
