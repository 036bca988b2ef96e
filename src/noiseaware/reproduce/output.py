"""A figure's pictures and its numbers, as files."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(
    folder: Path, name: str, header: Iterable[str], rows: Iterable[Iterable], figures: Mapping[str, "Figure"]
) -> list[Path]:
    """Write the table and the pictures, and say where; numbers to six figures."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"{name}.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(header)
        lines.writerows([f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows)
    pictures = [folder / f"{label}.png" for label in figures]
    for picture, figure in zip(pictures, figures.values(), strict=True):
        figure.savefig(picture, dpi=160)
    return [table, *pictures]
