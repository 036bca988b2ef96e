"""`noiseaware calibrate`: is a method right for a family, a prior and a promise? Simulated tables only."""

import secrets
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noiseaware.cli import picture
from noiseaware.cli.bounds import agreed, columns
from noiseaware.cli.failure import NEGATIVE, say
from noiseaware.cli.infer import METHODS
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
from noiseaware.cli.progress import Quiet
from noiseaware.cli.recipe import levels
from noiseaware.cli.xla import run_in_one_thread
from noiseaware.family import BUILT_IN

if TYPE_CHECKING:
    from rich.table import Table

    from noiseaware.family import AbstractFamily
    from noiseaware.prior import AbstractPrior
    from noiseaware.study.calibration import Calibration

_COVERAGE = (0.5, 0.9, 0.95)
_LEVEL = 0.99  # of right methods that get a good verdict


def calibrate(
    family: Annotated[str, typer.Option(help=f"One of {', '.join(BUILT_IN)}, or your own: my_family.py:Wait")],
    prior: Annotated[str, typer.Option(help=f"Where parameters come from: {EXAMPLES}.")],
    n: Annotated[int, typer.Option("-n", help="Records in each simulated table.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Privacy of each release, ε: Laplace noise.")
    ] = None,
    rho: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Privacy of each release, ρ of zCDP: Gaussian noise.")
    ] = None,
    delta: Annotated[str | None, typer.Option(metavar="NUMBER", help="With --epsilon: (ε, δ), Gaussian noise.")] = None,
    neighbours: Annotated[str, typer.Option(help="replace, or add_remove: -n is then the noisy one.")] = "replace",
    method: Annotated[str, typer.Option(help=f"{METHODS} To compare: nonprivate, cheating, ops.")] = "auto",
    trials: Annotated[int, typer.Option(help="How many simulated tables.")] = 1000,
    theta: Annotated[str | None, typer.Option(help="Hold the parameter here, and see coverage only: 0.02")] = None,
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
    seed: Annotated[
        int | None, typer.Option(help="Random seed; if omitted, a fresh one is chosen and printed.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Ranks as CSV, a row for each trial; - for stdout.")
    ] = None,
    plot: Annotated[str | None, typer.Option(help="Picture to write: calibration.png, .svg or .pdf")] = None,
    quiet: Quiet = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite outputs.")] = False,
) -> None:
    """Check that a method is right: over simulated tables, its intervals must hold the truth as often as they say.

    [bold]Example[/bold]

    $ noiseaware calibrate --family binomial --prior "beta(0.5, 100)" -n 1000 --epsilon 1

    Parameters come from the prior, tables from the parameters, releases from the tables; where the truth falls among
    the method's draws must then be uniform. Exits 1 when it is not. No private data is read.
    """
    _check_outputs(output, plot, json=json, force=force)
    options = {"bounds": agreed(bounds, column_bounds), "outside": outside, "trials": record_trials}
    options |= {"levels": levels(level_names), "columns": columns(column_names), "x": columns(x), "y": y}
    believed = parse(prior)
    chosen = model(family, believed, {"variance": variance, "shape": shape, **options})
    if chosen.factorises:
        run_in_one_thread()
    setting = {"n": n, "epsilon": epsilon, "rho": rho, "delta": delta, "neighbours": neighbours, "method": method}
    setting |= {"num_trials": trials, "seed": secrets.randbits(32) if seed is None else seed}
    from noiseaware.study import simulate
    from noiseaware.study.calibration import calibrate as calibration

    with simulate.quiet(quiet):
        found = calibration(chosen, believed, theta=_theta(theta), **setting)  # type: ignore[arg-type]
    told = _document(found, chosen, believed, setting)
    _write(found, output, plot)
    _print(told, json=json, is_aside=output == "-")
    if told.get("is_calibrated") is False:
        raise typer.Exit(NEGATIVE)


def _theta(text: str | None) -> float | list[float] | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--theta must be a number, or numbers between commas, got {text!r}.") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _check_outputs(output: str | None, plot: str | None, *, json: bool, force: bool) -> None:
    from noiseaware.file import check_free

    if output == "-" and json:
        raise ValueError("--json and -o - must not be given together: standard output can hold only one of them.")
    picture.check(plot, force=force)
    if output is not None and output != "-":
        check_free(output, force=force)


def _write(found: "Calibration", output: str | None, plot: str | None) -> None:
    if plot is not None:
        picture.write(found.plot(), plot)
    if output is None:
        return
    import pandas as pd

    text = pd.DataFrame(found.ranks).to_csv(index_label="trial")
    if output == "-":
        typer.echo(text, nl=False)
        return
    from noiseaware.file import write_whole

    write_whole(output, text, force=True)  # it was found free, or was to be overwritten
    say(f"wrote {output}")


def _document(found: "Calibration", family: "AbstractFamily", prior: "AbstractPrior", setting: dict) -> dict[str, Any]:
    """Everything that is told, with the verdict unless θ was held fixed."""
    import numpy as np

    from noiseaware.file import __version__
    from noiseaware.sampler.method import METHODS, checked_method

    method = setting["method"]
    if method == "auto" or method in METHODS:
        method = checked_method(method, family, has_private_n=setting["neighbours"] == "add_remove").name
    names = list(found.ranks)
    shares, errors = ({level: f(level) for level in _COVERAGE} for f in (found.coverage, found.coverage_error))
    coverage = {k: {f"{p:g}": {"share": shares[p][k], "error": errors[p][k]} for p in _COVERAGE} for k in names}
    told = {"family": family.name, "prior": str(prior)} | setting | {"method": method, "version": __version__}
    if found.theta is not None:
        return told | {"theta": np.asarray(found.theta).tolist(), "coverage": coverage}
    critical = found.critical(_LEVEL)
    verdict = {"ks": found.ks, "by_parameter": found.by_parameter, "critical": critical, "level": _LEVEL}
    return told | verdict | {"is_calibrated": found.ks <= critical, "coverage": coverage}


def _print(told: dict[str, Any], *, json: bool, is_aside: bool) -> None:
    if json:
        import json as form

        typer.echo(form.dumps({k: v for k, v in told.items() if v is not None}, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=is_aside, highlight=False)
    promise = f"ε = {told['epsilon']}" if told["epsilon"] is not None else f"ρ = {told['rho']} (zCDP)"
    promise += "" if told["delta"] is None else f", δ = {told['delta']}"
    about = "" if told["neighbours"] == "replace" else "about "
    brief = f"{told['num_trials']:,} tables of {about}{told['n']:,} records · {told['family']} · {promise}"
    console.print(Text(brief), style="dim", soft_wrap=True)
    console.print(_table(told))
    console.print(Text(_verdict(told)), soft_wrap=True)
    console.print(Text(f"prior {told['prior']} · method {told['method']} · seed {told['seed']}"), soft_wrap=True)


def _table(told: dict[str, Any]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    for heading in (*(["KS"] if "ks" in told else []), *(f"coverage, {100 * level:g} %" for level in _COVERAGE)):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in told["coverage"].items():
        distance = [f"{told['by_parameter'][name]:.3f}"] if "ks" in told else []
        cells = [f"{100 * cell['share']:.1f} ± {100 * cell['error']:.1f} %" for cell in row.values()]
        table.add_row(name.replace("_", " "), *distance, *cells)
    return table


def _verdict(told: dict[str, Any]) -> str:
    if "ks" not in told:
        return (
            f"All tables come from θ = {told['theta']}. A right method covers at its level on average over the prior, "
            "not at each θ, so there is no verdict."
        )
    worst = max(told["by_parameter"], key=told["by_parameter"].get).replace("_", " ")
    bar = f"{told['critical']:.3f}, which {100 * told['level']:g} % of right methods stay below"
    if told["is_calibrated"]:
        return f"Calibrated, as far as can be told: the largest KS, {told['ks']:.3f} ({worst}), is below {bar}."
    return f"Not calibrated: the KS of {worst}, {told['ks']:.3f}, is above {bar}."
