"""`noiseaware plan`: how wide will the interval be, and what would make it as narrow as wanted? No data is read."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from noiseaware.cli import picture
from noiseaware.cli.bounds import agreed, columns
from noiseaware.cli.model import (
    Bounds,
    ColumnBounds,
    Columns,
    LevelNames,
    Outside,
    RecordTrials,
    Shape,
    Variance,
    X,
    Y,
    model,
)
from noiseaware.cli.prior import EXAMPLES, parse
from noiseaware.cli.progress import Quiet, working
from noiseaware.cli.recipe import levels
from noiseaware.family import BUILT_IN

if TYPE_CHECKING:
    from noiseaware.study.plan import Plan


def plan(
    family: Annotated[str, typer.Option(help=f"One of {', '.join(BUILT_IN)}, or your own: my_family.py:Wait")],
    prior: Annotated[str, typer.Option(help=f"What is known beforehand: {EXAMPLES}.")],
    n: Annotated[int | None, typer.Option("-n", help="Records in the table.")] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Privacy of the release, ε: Laplace noise.")
    ] = None,
    rho: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Privacy of the release, ρ of zCDP: Gaussian noise.")
    ] = None,
    delta: Annotated[str | None, typer.Option(metavar="NUMBER", help="With --epsilon: (ε, δ), Gaussian noise.")] = None,
    width: Annotated[float | None, typer.Option(help="The width that the 95 % interval should have.")] = None,
    parameter: Annotated[str | None, typer.Option(help="Of which number, where there are several: mean")] = None,
    neighbours: Annotated[str, typer.Option(help="replace, or add_remove: n is then private too.")] = "replace",
    best_bounds: Annotated[bool, typer.Option("--best-bounds", help="Compare bounds too.")] = False,
    check: Annotated[int, typer.Option(help="Simulate so many tables, and say what came out.")] = 0,
    bounds: Bounds = None,
    column_bounds: ColumnBounds = None,
    x: X = None,
    y: Y = None,
    column_names: Columns = None,
    outside: Outside = None,
    record_trials: RecordTrials = None,
    level_names: LevelNames = None,
    variance: Variance = None,
    shape: Shape = None,
    seed: Annotated[int, typer.Option(help="Makes --check repeatable.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    plot: Annotated[str | None, typer.Option(help="Picture to write: plan.png, .svg or .pdf")] = None,
    quiet: Quiet = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the picture.")] = False,
) -> None:
    """Plan a release before any data is touched: two of records, privacy and width give the third.

    [bold]Example[/bold]

    $ noiseaware plan --family bernoulli --prior "beta(1, 9)" -n 5000 --width 0.02

    $ noiseaware plan --family exponential --prior "gamma(8, 2)" --bounds 0 4 -n 1000 --epsilon 0.5 --plot plan.png

    Widths are of the 95 % interval, on average over tables that the prior thinks of, and the plan says by how much they
    may be wrong. --check makes such tables and their posteriors and says how wide those really are.
    """
    picture.check(plot, force=force)
    believed = parse(prior)
    wanted = {"bounds": agreed(bounds, column_bounds), "outside": outside, "trials": record_trials}
    wanted |= {"levels": levels(level_names), "columns": columns(column_names), "x": columns(x), "y": y}
    wanted |= {"variance": variance, "shape": shape}
    chosen = model(family, believed, wanted)
    from noiseaware.study import simulate
    from noiseaware.study.plan import plan as planned

    promise = {"epsilon": epsilon, "rho": rho, "delta": delta, "neighbours": neighbours}
    with working("planning", is_quiet=quiet or check > 0), simulate.quiet(quiet):
        found = planned(chosen, believed, n=n, width=width, parameter=parameter, **promise)  # type: ignore[arg-type]
        told = _document(found, num_trials=check, seed=seed, best_bounds=best_bounds)
    if plot is not None:
        picture.write(found.plot(), plot)
    _print(found, told, json=json)


def _document(found: "Plan", *, num_trials: int, seed: int, best_bounds: bool) -> dict[str, Any]:
    from noiseaware.file import __version__

    told: dict[str, Any] = {"family": found.family.name, "prior": str(found.prior), "n": found.n}
    told |= {"epsilon": found.epsilon, "rho": found.rho, "delta": found.delta, "neighbours": found.neighbours}
    told |= {
        "width": found.width,
        "error": found.error,
        "by_parameter": found.by_parameter,
        "without_noise": found.floor,
    }
    told |= {"records_worth": found.records_worth}
    if found.neighbours == "add_remove":
        told["n_shares"] = [{"n_share": str(share), "width": width} for share, width in found.best_n_share()]
    if best_bounds:
        told["bounds"] = [{"bounds": list(pair), "width": width} for pair, width in found.best_bounds()]
    if num_trials:
        widths = found.simulated(num_trials, seed)
        told["simulated"] = {name: {"width": width, "error": error} for name, (width, error) in widths.items()}
    return told | {"version": __version__}


def _print(found: "Plan", told: dict[str, Any], *, json: bool) -> None:
    if json:
        import json as form

        typer.echo(form.dumps({k: v for k, v in told.items() if v is not None}, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in _sentences(found, told):
        console.print(Text(line), soft_wrap=True)
    console.print(_table(found))


def _sentences(found: "Plan", told: dict[str, Any]) -> list[str]:
    from noiseaware.privacy import promised
    from noiseaware.report.number import number

    promise = promised(epsilon=found.epsilon, rho=found.rho, delta=found.delta)
    about = "" if found.neighbours == "replace" else "about "
    lines = [f"{found.family.name.replace('_', ' ')} release of {about}{found.n:,} records at {promise}"]
    widths = [f"{name} {number(width)}" for name, width in told["by_parameter"].items()]
    lines.append(f"Expected width of the 95 % interval, give or take {100 * found.error:.0f} %: {', '.join(widths)}.")
    if (most := told["records_worth"]) < 0.995 * found.n:
        worth = f"{most:,.0f} records without noise would tell as much"
        lines.append(f"Without noise it would be {number(told['without_noise'])}; {worth}.")
    for name, row in told.get("simulated", {}).items():
        lines.append(f"Simulated: {name} {number(row['width'])} ± {number(row['error'])}.")
    for word, rows in (("bounds", told.get("bounds")), ("n_share", told.get("n_shares"))):
        for row in rows or ():
            what = "{:g} to {:g}".format(*row["bounds"]) if word == "bounds" else row[word]
            lines.append(f"{word} {what}: {number(row['width'])}")
    return lines


def _table(found: "Plan"):
    from rich.table import Table

    from noiseaware.report.number import number

    frame = found.table()
    symbol = "ε" if frame.index.name == "epsilon" else "ρ"
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), title=None)
    table.add_column(symbol, justify="right", no_wrap=True)
    for size in frame.columns:
        table.add_column(f"n = {size:,}", justify="right", no_wrap=True)
    for cost, row in frame.iterrows():
        table.add_row(f"{cost:g}", *(number(width) for width in row))
    return table
