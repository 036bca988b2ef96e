"""Estimates as a table for the terminal."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from noiseaware.words import PERCENT, number, shown

if TYPE_CHECKING:
    from noiseaware.marginal import Estimate
    from noiseaware.posterior import Posterior


def table(posterior: "Posterior", truths: dict[str, float] | None = None) -> Table:
    """What the release supports, and beside it what the naive analyst believes."""
    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    grid.add_column("")
    for heading in ("mean", "sd", f"{PERCENT} interval", *(["truth"] if truths else [])):
        grid.add_column(heading, justify="right", no_wrap=True)
    for own, naive in zip(posterior.estimates(), posterior.naive_estimates(), strict=True):
        truth = [number(truths[own.name])] if truths else []
        grid.add_row(Text(shown(own.name)), *_cells(own), *truth, style="bold")
        if posterior.method != "naive":
            grid.add_row(Text("  if naive"), *_cells(naive), *truth, style="yellow")
    return grid


def _cells(estimate: "Estimate") -> tuple[str, str, str]:
    mean, low, high = (number(v, estimate.sd) for v in (estimate.mean, estimate.low, estimate.high))
    return mean, number(estimate.sd, estimate.sd), f"{low} to {high}"
