"""Estimates as a table for the terminal."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from noiseaware.report.number import number, shown
from noiseaware.report.posterior_words import PERCENT, cells

if TYPE_CHECKING:
    from noiseaware.posterior.estimate import Estimate
    from noiseaware.posterior.posterior import Posterior


def table(posterior: "Posterior", truths: dict[str, float] | None = None) -> Table:
    """Lines with the posterior's estimates, and beside them the naive analyst's."""
    return _table(posterior, "", posterior.estimates(), posterior.naive_estimates(), truths)


def predictions(posterior: "Posterior", own: list["Estimate"], naive: list["Estimate"]) -> Table:
    """Lines with the predictions of new records, and beside them the naive analyst's."""
    return _table(posterior, "prediction", own, naive)


def _table(
    posterior: "Posterior",
    title: str,
    estimates: list["Estimate"],
    naive_estimates: list["Estimate"],
    truths: dict[str, float] | None = None,
) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    grid.add_column(title)
    for heading in ("mean", "sd", f"{PERCENT} interval", *(["truth"] if truths else [])):
        grid.add_column(heading, justify="right", no_wrap=True)
    for own, naive in zip(estimates, naive_estimates, strict=True):
        truth = [number(truths[own.name]) if own.name in truths else ""] if truths else []
        grid.add_row(Text(shown(own.name)), *cells(own), *truth, style="bold")
        if posterior.method != "naive":
            grid.add_row(Text("  if naive"), *cells(naive), *truth, style="yellow")
    return grid
