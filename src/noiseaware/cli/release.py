"""`noiseaware release`: outputs are checked first, then the ledger is charged, then files are written whole."""

import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noiseaware.cli.bounds import agreed as agreed_bounds
from noiseaware.cli.bounds import columns
from noiseaware.cli.failure import BAD_INPUT, say
from noiseaware.cli.plan import FAMILIES, Item, Plan, item, levels, read

if TYPE_CHECKING:
    from noiseaware.artifact import Release

_BOUNDS = (
    "Public bounds, set without the data: --bounds 0 48. Or --bounds private: chosen from the data, near the middle "
    "95 % of the records, for a share of ε or ρ."
)
_COLUMN_BOUNDS = 'Public bounds of several columns: "age=0:100, bmi=10:60". --bounds gives all of them the same.'


def release(
    table: Annotated[
        str | None, typer.Argument(help="CSV, Parquet or JSON file with the confidential records.")
    ] = None,
    plan: Annotated[str | None, typer.Option(help="TOML file that says what to release, instead of options.")] = None,
    family: Annotated[str | None, typer.Option(help=f"One of {', '.join(FAMILIES)}.")] = None,
    column: Annotated[str | None, typer.Option(help="Column to summarise.")] = None,
    bounds: Annotated[tuple[str, str] | None, typer.Option(metavar="LOW HIGH | private", help=_BOUNDS)] = None,
    column_bounds: Annotated[list[str] | None, typer.Option(help=_COLUMN_BOUNDS)] = None,
    x: Annotated[list[str] | None, typer.Option("--x", help="Covariates of the regression: age,bmi")] = None,
    y: Annotated[str | None, typer.Option("--y", help="What the regression explains.")] = None,
    column_names: Annotated[
        list[str] | None, typer.Option("--columns", help="Columns of the multivariate_normal: age,bmi")
    ] = None,
    bounds_share: Annotated[
        str | None, typer.Option(help="Share of ε or ρ that private bounds take; a tenth unless given.")
    ] = None,
    outside: Annotated[str | None, typer.Option(help="What becomes of a record outside: clamp or drop.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials a record, for the binomial.")] = None,
    level_names: Annotated[str | None, typer.Option("--levels", help="Levels of the categorical: a,b,c")] = None,
    variance: Annotated[float | None, typer.Option(help="Variance of the normal, where it is known.")] = None,
    shape: Annotated[float | None, typer.Option(help="Known shape of the gamma.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Privacy to pay, ε: Laplace noise.")] = None,
    rho: Annotated[str | None, typer.Option(help="Privacy to pay, ρ of zCDP: Gaussian noise.")] = None,
    delta: Annotated[str | None, typer.Option(help="With --epsilon: pay (ε, δ), with Gaussian noise.")] = None,
    neighbours: Annotated[str, typer.Option(help="replace or add_remove.")] = "replace",
    ledger: Annotated[str | None, typer.Option(help="Ledger that pays.")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Release without an account of it.")] = False,
    output: Annotated[str | None, typer.Option("--output", "-o", help="File to write; - for stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the release itself, for machines.")] = False,
) -> None:
    """Release noisy statistics of a table, paid from a ledger.

    The noise follows from the bounds and from ε: nobody has to work out a sensitivity.

    [bold]Example[/bold]

    $ noiseaware ledger create clinic.ledger --epsilon 2

    $ noiseaware release clinic.csv --family exponential --column wait_hours --bounds 0 48 --epsilon 0.5
    --ledger clinic.ledger -o wait.json

    $ noiseaware release clinic.csv --family exponential --column wait_hours --bounds private --epsilon 0.5
    --ledger clinic.ledger -o wait.json

    $ noiseaware release clinic.csv --family linear_regression --x age,bmi --y pressure --column-bounds
    "age=0:100, bmi=10:60, pressure=60:220" --epsilon 0.5 --ledger clinic.ledger -o pressure.json
    """
    if plan is not None:
        if table is not None or family is not None:
            raise ValueError("--plan must stand alone: the table and its releases are in the file.")
        agreed = read(plan)
    else:
        options = {"family": family, "column": column, "outside": outside, "trials": trials, "neighbours": neighbours}
        options |= {"bounds": agreed_bounds(bounds, column_bounds), "bounds_share": bounds_share}
        options |= {"columns": columns(column_names), "x": columns(x), "y": y, "levels": levels(level_names)}
        options |= {"variance": variance, "shape": shape, "epsilon": epsilon, "rho": rho, "delta": delta}
        agreed = _from_options(table, output, ledger, options, is_free=no_ledger)
    _carry_out(agreed, force=force, json=json)


def _from_options(table: str | None, output: str | None, ledger: str | None, options: dict, *, is_free: bool) -> Plan:
    if table is None:
        raise ValueError("TABLE must be given: the file with the records, such as clinic.csv (or --plan clinic.toml).")
    if output is None:
        raise ValueError("--output must be given: -o wait.json, or -o - for standard output.")
    if ledger is None and not is_free:
        raise ValueError("--ledger must be given, so that what was spent is known; --no-ledger releases without it.")
    if ledger is not None and is_free:
        raise ValueError("--ledger and --no-ledger must not be given together.")
    return Plan([item(table, output, options)], ledger)


def _carry_out(plan: Plan, *, force: bool, json: bool) -> None:
    outputs = [planned.output for planned in plan.items]
    if len(set(map(os.path.abspath, outputs))) < len(outputs):
        raise ValueError("output must be another file for each release of a plan.")
    for planned in plan.items:
        _check_output(planned, plan.ledger, force=force)
        _check_choice(planned)
    _check_afford(plan)
    for planned in plan.items:
        _make(planned, plan.ledger, force=force, json=json)


def _check_output(planned: Item, ledger: str | None, *, force: bool) -> None:
    from noiseaware.file import check_free

    if planned.output == "-":
        return
    path = Path(planned.output)
    if path.is_dir():
        raise ValueError(f"output must be a file, got the folder {path}.")
    check_free(path, force=force)
    for name, other in (("table", planned.table), ("ledger", ledger)):
        if other is not None and path.resolve() == Path(other).resolve():
            raise ValueError(f"output must not be the {name} itself, got {path}.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"output folder must be writable, got {path.parent}.")


def _check_choice(planned: Item) -> None:
    """Refuse a choice of bounds that a release would refuse, before another release of the plan is charged."""
    if planned.choice:
        from noiseaware.custodian.release import choice
        from noiseaware.privacy import kept_by

        choice(planned.family, kept_by(planned.promise), **planned.choice)


def _check_afford(plan: Plan) -> None:
    """Refuse a plan that the ledger cannot pay as a whole, before anything is charged."""
    if plan.ledger is None:
        return
    from noiseaware.custodian.ledger import Ledger
    from noiseaware.privacy import Approximate, Pure, ZeroConcentrated, as_zcdp, kept_by

    account, promises = Ledger(plan.ledger), [planned.promise for planned in plan.items]
    if isinstance(account.total, ZeroConcentrated):
        account.afford(ZeroConcentrated(sum((as_zcdp(kept_by(p)).rho for p in promises), Fraction(0))))
        return
    for promise in promises:
        account.afford(promise)  # refuses what the ledger has no currency for
    epsilon = sum((p.epsilon for p in promises if not isinstance(p, ZeroConcentrated)), Fraction(0))
    delta = sum((p.delta for p in promises if isinstance(p, Approximate)), Fraction(0))
    account.afford(Approximate(epsilon, delta) if delta else Pure(epsilon))


def _make(planned: Item, ledger: str | None, *, force: bool, json: bool) -> None:
    import noiseaware as na

    made = na.release(
        planned.table,
        planned.family,
        epsilon=planned.epsilon,
        rho=planned.rho,
        delta=planned.delta,
        ledger=ledger,
        neighbours=planned.neighbours,  # type: ignore[arg-type]
        **planned.choice,
    )
    if planned.output == "-":
        typer.echo(made.to_json(), nl=False)
        return
    try:
        made.save(planned.output, force=force)
    except (OSError, ValueError) as error:
        typer.echo(made.to_json(), nl=False)
        say(
            f"the release is paid for but {planned.output} was not written ({error}); it is on standard output instead."
        )
        raise typer.Exit(BAD_INPUT) from None
    typer.echo(made.to_json() if json else _told(planned, made, ledger), nl=not json)


def _told(planned: Item, made: "Release", ledger: str | None) -> str:
    from noiseaware.words import brief

    lines = [f"{planned.output}: {brief(made)}"]
    if ledger is not None:
        from noiseaware.cli.ledger import balance
        from noiseaware.custodian.ledger import Ledger

        lines.append(f"{ledger}: {balance(Ledger(ledger))}")
    return "\n".join(lines)
