"""`noiseaware convert`: a file of another tool's noisy counts, as releases, or straight to a posterior for each row."""

import csv
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from noiseaware.cli.failure import say
from noiseaware.cli.progress import Quiet, counting, say_done, working

if TYPE_CHECKING:
    from noiseaware.evidence.release import Release
    from noiseaware.posterior.posterior import Posterior

Kind = Literal["table", "wikimedia", "census_measurements", "census_estimates"]

_FILE = "Delimited text, one row a count. A table has the columns value, family (the law of its noise) and scale."


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE, show_default=False)],
    kind: Annotated[Kind, typer.Option("--as", help="What the file is.")] = "table",
    family: Annotated[
        Literal["poisson", "bernoulli", "geometric"], typer.Option(help="The model of a count.")
    ] = "poisson",
    rounding: Annotated[
        Literal["nearest", "midpoint"],
        typer.Option(help="How a table's column rounded_to was rounded to: midpoint is 3 for 1 to 6 under base 6."),
    ] = "nearest",
    n: Annotated[int, typer.Option("-n", help="Records behind each count, where the file does not say.")] = 1,
    prior: Annotated[str | None, typer.Option(help='Print a posterior for each row: "gamma(1, 0.05)".')] = None,
    draws: Annotated[int, typer.Option(help="Draws for each row.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Makes the draws repeatable.")] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="A folder for the releases, one a row.")] = None,
    quiet: Quiet = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite releases that are there.")] = False,
) -> None:
    """Read another tool's noisy counts: as releases into a folder, or as a posterior for each row.

    [bold]Example[/bold]

    $ noiseaware convert counts.csv --prior "gamma(1, 0.05)"

    $ noiseaware convert 2024-01.tsv --as wikimedia -o editors/
    """
    if prior is None and output is None:
        raise ValueError("--prior or --output must be given, got neither.")
    if rounding != "nearest" and kind != "table":
        raise ValueError(f"--rounding must go with --as table, got {kind}.")
    started = time.perf_counter()
    from noiseaware import family as families
    from noiseaware import interop

    options = {"rounding": rounding} if kind == "table" else {}
    with working(f"reading {file}", is_quiet=quiet, is_logged=True):
        releases = getattr(interop, kind)(file, family=getattr(families, family.title())(), n=n, **options)
    if output is not None:
        _save(releases, Path(output), force=force, is_quiet=quiet)
    if prior is not None:
        from noiseaware.cli.prior import parse
        from noiseaware.posterior.concern import of_many
        from noiseaware.posterior.each import infer_each

        with counting("posteriors", is_quiet=quiet) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # what they say is said below, of rows
            found = infer_each(releases, parse(prior), num_draws=draws, seed=seed, progress=progress)
        _print(found)
        if (concerned := of_many(found, "rows")) is not None:
            say(concerned)
        made = f"{len(found):,} {'posterior' if len(found) == 1 else 'posteriors'}"
        say_done(made, time.perf_counter() - started, is_quiet=quiet)


def _save(releases: "list[Release]", folder: Path, *, force: bool, is_quiet: bool) -> None:
    """0001.json, 0002.json, … in the order of the rows."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"output must be a folder, got {folder}.")
    folder.mkdir(parents=True, exist_ok=True)
    digits = max(4, len(str(len(releases))))
    with counting("releases", is_quiet=is_quiet) as progress:
        for place, release in enumerate(releases, 1):
            release.save(folder / f"{place:0{digits}}.json", force=force)
            progress(place, len(releases))
    typer.echo(f"{folder}: {len(releases)} {'release' if len(releases) == 1 else 'releases'}", err=True)


def _print(posteriors: "list[Posterior]") -> None:
    """The cells that name a row, and the estimate of its parameter."""
    names = list(dict.fromkeys(name for p in posteriors for name, _ in p.release.origin.group))
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow([*names, "value", "mean", "sd", "low", "high"])
    for posterior in posteriors:
        group, estimate = dict(posterior.release.origin.group), posterior.estimates()[-1]
        found = (posterior.release.values[0], estimate.mean, estimate.sd, estimate.low, estimate.high)
        table.writerow([*(group.get(name, "") for name in names), *(f"{number:.6g}" for number in found)])
