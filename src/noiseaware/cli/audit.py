"""`noiseaware audit`: does a plan's noise keep its promise, as far as a hundred thousand releases can tell?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noiseaware.cli import picture
from noiseaware.cli.failure import NEGATIVE, say
from noiseaware.cli.recipe import Item, read

if TYPE_CHECKING:
    from rich.text import Text

    from noiseaware.custodian.audit import Audit


def audit(
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="The plan of the releases, a TOML file as `release --plan` takes it.")
    ],
    releases: Annotated[
        int | None,
        typer.Option(help="Releases of each of the two tables; unless given, as many as show something.", min=1),
    ] = None,
    plot: Annotated[str | None, typer.Option(help="Folder for a picture of each release of the plan.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite pictures.")] = False,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Audit a plan before anything is released: tell the worst pair of neighbours apart, and see how well it goes.

    [bold]Example[/bold]

    $ noiseaware audit clinic.toml --plot audit

    For each release of the plan two made-up tables, as far apart as neighbours can be, go through the same sums and the
    same noise many times: one record for another, a record or a person more, in one group or in two, and where bounds
    are private the choice of them too. What is seen is a lower bound on ε or ρ, at 99.9 % confidence; it must not be
    above what was promised (of ε and δ: above the ρ by which they are kept). No table and no ledger is read.

    Of too few releases to see half of what is promised there is no verdict: they would agree with any promise. Exits 1
    if a promise is broken, 2 if there is a release without a verdict, and says how many releases it takes.
    """
    agreed = read(plan)
    pictures = [] if plot is None else _pictures(agreed.items, Path(plot), force=force)
    found = []
    for place, planned in enumerate(agreed.items, start=1):
        say(f"auditing release {place} of {len(agreed.items)}: {planned.family.name}, {planned.promise}")
        found.append((planned, _audited(planned, releases)))
    for path, (_, audited) in zip(pictures, found, strict=False):
        picture.write(audited.plot(), path)
    _print([_document(*one) for one in found], json=json)
    if any(audited.is_within is False for _, audited in found):
        raise typer.Exit(NEGATIVE)
    _check_verdicts(found)


def _check_verdicts(found: list[tuple[Item, "Audit"]]) -> None:
    """Refuse to call a plan good of which some release has no verdict."""
    without = [(planned, audited) for planned, audited in found if audited.is_within is None]
    if not without:
        return
    name = Path(without[0][0].output).name
    needed = [audited.needed for _, audited in without if audited.needed is not None]
    if len(needed) < len(without):
        raise ValueError(f"releases cannot be enough for a verdict on {name}, whose noise hides both tables.")
    made = without[0][1].num_releases // 2
    raise ValueError(f"releases must be at least {max(needed)} for a verdict on {name}, got {made}.")


def _pictures(items: list[Item], folder: Path, *, force: bool) -> list[Path]:
    """A picture's path for each release, in a folder that is made for them; refused if one is taken."""
    from noiseaware.file import check_free

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"plot must be a folder, got the file {folder}.")
    paths = [folder / f"{Path(planned.output).stem}.png" for planned in items]
    if len(set(paths)) < len(paths):
        raise ValueError("output must have another name for each release of a plan, so that each has a picture.")
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        check_free(path, force=force)
    return paths


def _audited(planned: Item, releases: int | None) -> "Audit":
    from noiseaware.custodian.audit import audit as of

    return of(planned.family, **planned.terms, num_releases=releases)


def _document(planned: Item, audited: "Audit") -> dict[str, Any]:
    return {
        "release": Path(planned.output).name,
        "family": planned.family.name,
        "promise": str(audited.promise),
        "letter": audited.letter,
        "claim": audited.claim,
        "at_least": max(audited.lower, 0.0),
        "is_within": audited.is_within,
        "releases": audited.num_releases,
        "needed": audited.needed,
        "neighbours": audited.neighbours,
        "shares": list(audited.shares),
        "tables": [[str(value) for value in row] for row in audited.tables],
    }


def _print(told: list[dict[str, Any]], *, json: bool) -> None:
    if json:
        import json as form

        typer.echo(form.dumps(told, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("release", "family", "promised", "seen: at least", ""):
        table.add_column(heading, no_wrap=True)
    for row in told:
        seen = f"{row['letter']} = {row['at_least']:.3g}" + _of_claim(row)
        table.add_row(row["release"], row["family"], row["promise"], seen, _mark(row))
    Console(highlight=False).print(table)


def _of_claim(row: dict[str, Any]) -> str:
    """The ρ that keeps ε and δ, which is bounded in their place."""
    return f" of {row['claim']:.3g}" if "δ" in row["promise"] else ""


def _mark(row: dict[str, Any]) -> "Text":
    from rich.text import Text

    if row["is_within"] is None:
        needed = "never" if row["needed"] is None else f"takes {row['needed']:,} releases"
        return Text(f"no verdict: {needed}", "yellow")
    return Text("✓ within", "green") if row["is_within"] else Text("✗ broken", "bold red")
