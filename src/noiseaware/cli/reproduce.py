"""`noiseaware reproduce`: a paper's figure as pictures and a table of its numbers."""

import time
from pathlib import Path
from typing import Annotated

import typer

from noiseaware.cli.failure import say

FIGURES = ("figure1", "figure2")


def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="figure1 or figure2.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials and iterations: under a minute.")] = False,
    folder: Annotated[str, typer.Option(help="Where to put pictures and tables.")] = "noiseaware-figures",
    seed: Annotated[int, typer.Option(help="Another seed gives another set of simulated tables.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Reproduce a figure of the papers: pictures, and every number as CSV.

    [bold]Example[/bold]

    $ noiseaware reproduce figure1 --quick

    figure1: calibration and utility of the Gibbs samplers (Bernstein & Sheldon 2018), and a figure that the paper
    does not have, of few records and rare events. In full it takes about a quarter of an hour.

    figure2: convergence of the chains.
    """
    if figure not in FIGURES:
        raise ValueError(f"FIGURE must be one of {', '.join(FIGURES)}, got {figure!r}.")
    from noiseaware.artifact import check_free

    place = Path(folder)
    names = ["figure1", "rare_events"] if figure == "figure1" else [figure]
    for name in names:
        if place.exists():
            check_free(place / f"{name}.csv", force=force)
    started = time.perf_counter()
    for name in names:
        _reproduce(name, place, quick=quick, seed=seed)
    say(f"took {time.perf_counter() - started:.0f} s")


def _reproduce(name: str, folder: Path, *, quick: bool, seed: int) -> None:
    """Compute, write and draw one figure, and tell the paths."""
    if name == "figure1":
        from noiseaware.reproduce import figure1 as script

        found = script.compute(script.QUICK if quick else script.FULL, seed=seed)
    elif name == "figure2":
        from noiseaware.reproduce import figure2 as script

        found = script.compute(seed=seed)
    else:
        from noiseaware.reproduce import rare_events as script

        found = script.compute(250 if quick else 1500, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    script.write(found, folder / f"{name}.csv")
    typer.echo(str(folder / f"{name}.csv"))
    for label, figure in script.draw(found).items():
        figure.savefig(folder / f"{label}.png", dpi=160)
        typer.echo(str(folder / f"{label}.png"))
