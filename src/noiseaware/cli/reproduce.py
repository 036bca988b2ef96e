"""`noiseaware reproduce`: a paper's figure as pictures and a table of its numbers."""

import importlib
import time
from pathlib import Path
from typing import Annotated

import typer

from noiseaware.cli.failure import say
from noiseaware.cli.progress import Quiet
from noiseaware.cli.xla import run_in_one_thread

FIGURES = ("figure1", "figure2", "rare_events", "figure3", "figure4")
_FACTORISING = ("figure3", "figure4")  # many small matrices, of regressions


def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="figure1, figure2, rare_events, figure3 or figure4.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials and iterations: under a minute.")] = False,
    folder: Annotated[str, typer.Option(help="Where to put pictures and tables.")] = "noiseaware-figures",
    seed: Annotated[int, typer.Option(help="Another seed gives another set of simulated tables.")] = 0,
    quiet: Quiet = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Reproduce a figure of the papers: pictures, and every number as CSV.

    [bold]Example[/bold]

    $ noiseaware reproduce figure1 --quick

    figure1: calibration and utility of the Gibbs samplers (Bernstein & Sheldon 2018). In full it takes about a quarter
    of an hour on two cores.

    figure2: convergence of their chains (the same paper).

    rare_events: a figure that the paper does not have, of few records and rare events: its sampler against the exact
    one.

    figure3: calibration, coverage, utility and speed of seven methods for linear regression (Bernstein & Sheldon 2019).
    In full it takes about half an hour.

    figure4: coverage of their predictions of deaths by cirrhosis (the same paper).
    """
    if figure not in FIGURES:
        raise ValueError(f"FIGURE must be one of {', '.join(FIGURES)}, got {figure!r}.")
    place = Path(folder)
    if (place / f"{figure}.csv").exists() and not force:
        raise ValueError(f"output {place / figure}.csv exists already; give another --folder or --force.")
    if figure in _FACTORISING:
        run_in_one_thread()
    started = time.perf_counter()
    from noiseaware.study import simulate

    script = importlib.import_module(f"noiseaware.reproduce.{figure}")
    with simulate.quiet(quiet):
        for path in script.reproduce(place, quick=quick, seed=seed):
            typer.echo(str(path))
    if not quiet:
        say(f"took {time.perf_counter() - started:.0f} s")
