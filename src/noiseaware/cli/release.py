"""`noiseaware release`: outputs are checked first, then the ledger is charged, then files are written whole."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noiseaware.cli.bounds import agreed as agreed_bounds
from noiseaware.cli.bounds import columns
from noiseaware.cli.failure import BAD_INPUT, INTERRUPTED, say
from noiseaware.cli.progress import Quiet, watching
from noiseaware.cli.recipe import Item, Plan, groups, item, levels, read
from noiseaware.family import BUILT_IN

if TYPE_CHECKING:
    from noiseaware.custodian.terms import Terms
    from noiseaware.evidence.release import Release

_BOUNDS = (
    "Public bounds, set without the data: --bounds 0 48. Or --bounds private: chosen from the data, near the middle "
    "95 % of the records, for a share of ε or ρ."
)
_COLUMN_BOUNDS = 'Public bounds of several columns: "age=0:100, bmi=10:60". --bounds gives all of them the same.'

_Table = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE", help="The confidential records: a CSV, Parquet or JSON file, or a postgresql:// URL."
    ),
]
_Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", metavar="NAMES", help="Columns of the multivariate_normal: age,bmi"),
]
_X = Annotated[list[str] | None, typer.Option("--x", metavar="NAMES", help="Covariates of the regression: age,bmi")]
_ColumnBounds = Annotated[list[str] | None, typer.Option(metavar="NAME=LOW:HIGH", help=_COLUMN_BOUNDS)]
_Neighbours = Annotated[
    str | None, typer.Option(help="replace: n is public. add_remove: n gets noise too; always so with --by and --unit.")
]
_NShare = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Share of ε or ρ that a private n takes; a quarter unless given.")
]
_By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=LEVELS", help="Groups and their public levels: region=north,south. A file each, into -o."
    ),
]
_Unit = Annotated[str | None, typer.Option(help="Column that tells whose a record is, where a person has several.")]
_MaxRecords = Annotated[int | None, typer.Option(help="With --unit: the most records of one person to sum.")]
_Missing = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE | leave_out",
        help="What an empty or unreadable cell counts as; of several columns: age=40,bmi=25. Or leave_out: its record "
        "is left out, and n gets noise.",
    ),
]
_True = Annotated[
    list[str] | None,
    typer.Option("--true", metavar="WORDS", help="Words that are yes, where these are not true, yes, 1 …: F,female"),
]
_Share = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Share of ε or ρ that private bounds take; a tenth unless given.")
]

_OUTPUT = "another output"
_BESIDE_A_LEDGER = ("-journal", "-wal", "-shm")
_BESIDE_A_PLAN = ("plan", "force", "json", "quiet", "help")

HELP = """Release noisy statistics of a table, paid from a ledger.

The noise follows from the bounds and from ε: nobody has to work out a sensitivity.

[bold]Example[/bold]

$ noiseaware ledger create clinic.ledger --epsilon 3

$ noiseaware release clinic.csv --family exponential --column wait_hours --bounds 0 48 --epsilon 0.5
--ledger clinic.ledger -o wait.json

$ noiseaware release clinic.csv --family exponential --column wait_hours --bounds private --epsilon 0.5
--ledger clinic.ledger -o wait.json

$ noiseaware release postgresql://user@host/clinic --table visits --family bernoulli --column ill …

$ noiseaware release visits.csv --family bernoulli --column ill --by region=north,south --unit patient_id
--max-records 3 --epsilon 0.5 --ledger visits.ledger -o ill

$ noiseaware release clinic.csv --family linear_regression --x age,bmi --y pressure --column-bounds
"age=0:100, bmi=10:60, pressure=60:220" --epsilon 0.5 --ledger clinic.ledger -o pressure.json

$ noiseaware release --plan clinic.toml
"""


def release(
    context: typer.Context,
    table: _Table = None,
    table_name: Annotated[str | None, typer.Option("--table", help="Table of the database: visits, s.visits")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Read the file with Spark.")] = False,
    plan: Annotated[str | None, typer.Option(help="TOML file that says what to release, instead of options.")] = None,
    family: Annotated[str | None, typer.Option(help=f"One of {', '.join(BUILT_IN)}.")] = None,
    column: Annotated[str | None, typer.Option(help="Column to summarise.")] = None,
    bounds: Annotated[tuple[str, str] | None, typer.Option(metavar="LOW HIGH | private", help=_BOUNDS)] = None,
    column_bounds: _ColumnBounds = None,
    x: _X = None,
    y: Annotated[str | None, typer.Option("--y", help="What the regression explains.")] = None,
    column_names: _Columns = None,
    bounds_share: _Share = None,
    outside: Annotated[str | None, typer.Option(help="What becomes of a record outside: clamp or drop.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials a record, for the binomial.")] = None,
    level_names: Annotated[str | None, typer.Option("--levels", help="Levels of the categorical: a,b,c")] = None,
    variance: Annotated[float | None, typer.Option(help="Variance of the normal, where it is known.")] = None,
    shape: Annotated[float | None, typer.Option(help="Known shape of the gamma.")] = None,
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="Privacy to pay, ε: Laplace noise.")] = None,
    rho: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Privacy to pay, ρ of zCDP: Gaussian noise.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="With --epsilon: pay (ε, δ), with Gaussian noise.")
    ] = None,
    neighbours: _Neighbours = None,
    n_share: _NShare = None,
    by: _By = None,
    unit: _Unit = None,
    max_records: _MaxRecords = None,
    missing: _Missing = None,
    true: _True = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger that pays: a file or a URL.")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Release without an account of it.")] = False,
    output: Annotated[str | None, typer.Option("--output", "-o", help="File to write; - for stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the release itself, for machines.")] = False,
    quiet: Quiet = False,
) -> None:
    """Release noisy statistics of a table, paid from a ledger; HELP says more."""
    if plan is not None:
        _check_alone(context)
        agreed = read(plan)
    else:
        options = {"family": family, "column": column, "outside": outside, "trials": trials, "neighbours": neighbours}
        options |= {"bounds": agreed_bounds(bounds, column_bounds), "bounds_share": bounds_share}
        options |= {"columns": columns(column_names), "x": columns(x), "y": y, "levels": levels(level_names)}
        options |= {"variance": variance, "shape": shape, "epsilon": epsilon, "rho": rho, "delta": delta}
        options |= {"n_share": n_share, "by": groups(by), "unit": unit, "max_records": max_records}
        options |= {"missing": missing, "true": columns(true, "true")}
        place = {"table": table, "table_name": table_name, "spark": spark}
        agreed = _from_options(place, output, ledger, options, is_free=no_ledger)
    _carry_out(agreed, force=force, json=json, quiet=quiet)


def _check_alone(context: typer.Context) -> None:
    """Refuse whatever else says what to release: the plan says all of it."""
    for given in context.command.params:
        source = context.get_parameter_source(given.name or "")
        if given.name not in _BESIDE_A_PLAN and source is not None and source.name == "COMMANDLINE":
            told = "TABLE" if given.name == "table" else given.opts[0]
            raise ValueError(f"--plan must stand alone, got {told}: the table, the ledger and all releases are in it.")


def _from_options(place: dict, output: str | None, ledger: str | None, options: dict, *, is_free: bool) -> Plan:
    if place["table"] is None:
        raise ValueError("TABLE must be given: the file with the records, such as clinic.csv (or --plan clinic.toml).")
    if output is None:
        raise ValueError("--output must be given: -o wait.json, or -o - for standard output.")
    if ledger is None and not is_free:
        raise ValueError("--ledger must be given, so that what was spent is known; --no-ledger releases without it.")
    if ledger is not None and is_free:
        raise ValueError("--ledger and --no-ledger must not be given together.")
    return Plan([item(place, output, options)], ledger)


def _carry_out(plan: Plan, *, force: bool, json: bool, quiet: bool) -> None:
    _check_apart(plan)
    terms = []
    for planned in plan.items:
        terms.append(_terms(planned))
        _check_output(planned, force=force)
    _check_afford(plan, terms)
    for planned, agreed in zip(plan.items, terms, strict=True):
        with _interruptible(planned, plan.ledger):
            _make(planned, agreed, plan.ledger, force=force, json=json, quiet=quiet)


def _check_apart(plan: Plan) -> None:
    """Refuse outputs that would take the place of each other, of what is read, or of what the ledger's disk needs."""
    taken = {path: name for name, path in _inputs(plan)}
    folders = {_place(planned.output) for planned in plan.items if "by" in planned.division}
    for path in (path for planned in plan.items for path in planned.files if path != "-"):
        place = _place(path)
        if place in folders:
            raise ValueError(f"output must not be the folder of another release, got {path}.")
        if taken.get(place) == _OUTPUT:
            raise ValueError(f"output must be another file for each release of a plan, got {path} twice.")
        if place in taken:
            raise ValueError(f"output must not be {taken[place]}, got {path}.")
        taken[place] = _OUTPUT


def _inputs(plan: Plan) -> Iterator[tuple[str, Path]]:
    """Files that no output may replace, and what they are."""
    if plan.path is not None:
        yield "the plan itself", _place(plan.path)
    for planned in plan.items:
        if "://" not in planned.table:
            yield "the table itself", _place(planned.table)
    if plan.ledger is not None and "://" not in plan.ledger:
        yield "the ledger itself", _place(plan.ledger)
        for end in _BESIDE_A_LEDGER:  # SQLite looks for them beside the file, and beside the name that was given
            yield f"the ledger's {end}, which SQLite would take for its own", Path(f"{_place(plan.ledger)}{end}")
            yield f"the ledger's {end}, which SQLite would take for its own", _place(f"{plan.ledger}{end}")


def _place(path: str) -> Path:
    return Path(path).resolve()


@contextlib.contextmanager
def _interruptible(planned: Item, ledger: str | None) -> Iterator[None]:
    """On Ctrl-C, one sentence that says whether the release was paid for."""
    paid = 0 if ledger is None else _num_entries(ledger)
    try:
        yield
    except KeyboardInterrupt:
        charged = ledger is not None and _num_entries(ledger) > paid
        told = "the ledger has been charged" if charged else "nothing was charged"
        raise typer.Exit(say(f"interrupted: {told}, and {planned.output} was not written.", INTERRUPTED)) from None


def _num_entries(ledger: str) -> int:
    from noiseaware.custodian.ledger.ledger import Ledger

    return len(Ledger(ledger).entries())


def _check_output(planned: Item, *, force: bool) -> None:
    from noiseaware.file import check_free

    if planned.output == "-":
        return
    if "by" in planned.division:
        if Path(planned.output).exists() and not Path(planned.output).is_dir():
            raise ValueError(f"output must be a folder where a table is released by groups, got {planned.output}.")
        Path(planned.output).mkdir(parents=True, exist_ok=True)
    for path in map(Path, planned.files):
        check_free(path, force=force)
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"output folder must be writable, got {path.parent}.")


def _terms(planned: Item) -> "Terms":
    """Return the terms of a release; refuse them before another release of the plan is charged."""
    from noiseaware.custodian.terms import terms_of

    return terms_of(planned.family, **planned.terms)


def _check_afford(plan: Plan, terms: "Sequence[Terms]") -> None:
    """Refuse a plan that the ledger cannot pay as a whole, or not for these neighbours, before anything is charged."""
    if plan.ledger is None:
        return
    from noiseaware.custodian.ledger.ledger import Ledger

    account = Ledger(plan.ledger)
    agreements = [each.agreement for each in terms]
    account.afford_all((account.cost(each.promise), each.relation) for each in agreements)


def _make(planned: Item, terms: "Terms", ledger: str | None, *, force: bool, json: bool, quiet: bool) -> None:
    from noiseaware.custodian.release import carried_out
    from noiseaware.custodian.table import Table

    with watching(is_quiet=quiet, is_size_public=terms.agreement.is_size_public) as progress:
        table = Table(planned.table, planned.table_name, spark=planned.spark, progress=progress)
        found = carried_out(table, terms, ledger)
    made = list(found.values()) if isinstance(found, dict) else [found]
    if terms.cells.missing is None:
        say(f"{planned.output}: {_unsaid(made[0])}")
    if planned.output == "-":
        typer.echo(made[0].to_json(), nl=False)
        return
    _write(dict(zip(planned.files, made, strict=True)), force=force)
    if json:
        texts = [one.to_json() for one in made]
        typer.echo(texts[0] if "by" not in planned.division else f"[{','.join(texts)}]", nl=False)
        return
    typer.echo(_told(planned.files, made, ledger))


def _unsaid(made: "Release") -> str:
    """Say what missing cells count as by default, whether or not there are any."""
    from noiseaware.report.release_words import missing

    return f"{missing(made)}; --missing (in a plan, missing) has it otherwise."


def _write(made: "dict[str, Release]", *, force: bool) -> None:
    """Write each release, and print those whose file cannot be written: all of them are paid for."""
    lost = {}
    for path, one in made.items():
        try:
            one.save(path, force=force)
        except (OSError, ValueError) as error:
            lost[path] = error
            typer.echo(one.to_json(), nl=False)
    for path, error in lost.items():
        say(f"the release is paid for but {path} was not written ({error}); it is on standard output instead.")
    if lost:
        raise typer.Exit(BAD_INPUT)


def _told(paths: list[str], made: "list[Release]", ledger: str | None) -> str:
    from noiseaware.report.release_words import brief

    lines = [f"{path}: {brief(one)}" for path, one in zip(paths, made, strict=True)]
    if ledger is not None:
        from noiseaware.cli.ledger import balance
        from noiseaware.custodian.ledger.ledger import Ledger

        account, paid = Ledger(ledger), made[0].origin.ledger_entry
        counted = next((entry.what.get("counted") for entry in account.entries() if entry.id == paid), None)
        lines.append(f"{account.path}: {balance(account)}" + (f", this one counted {counted}" if counted else ""))
    return "\n".join(lines)
