"""`noiseaware audit`: does a plan's noise keep its promise, as far as a hundred thousand releases can tell?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noiseaware.cli import picture
from noiseaware.cli.failure import NEGATIVE, say
from noiseaware.cli.plan import Item, read

if TYPE_CHECKING:
    from noiseaware.custodian.audit import Audit


def audit(
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="The plan of the releases, a TOML file as `release --plan` takes it.")
    ],
    releases: Annotated[int, typer.Option(help="Releases of each of the two tables.")] = 100_000,
    plot: Annotated[str | None, typer.Option(help="Folder for a picture of each release of the plan.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite pictures.")] = False,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Audit a plan before anything is released: tell the worst pair of neighbours apart, and see how well it goes.

    [bold]Example[/bold]

    $ noiseaware audit clinic.toml --plot audit

    For each release of the plan two made-up tables, as far apart as its bounds allow, go through the same sums and the
    same noise so many times. What is seen is a lower bound on ε or ρ, at 99.9 % confidence; it must not be above what
    was promised. No table and no ledger is read. Exits 1 if a promise is broken.
    """
    agreed = read(plan)
    for planned in agreed.items:
        _check(planned)
    pictures = [] if plot is None else _pictures(agreed.items, Path(plot), force=force)
    found = []
    for place, planned in enumerate(agreed.items, start=1):
        say(f"auditing release {place} of {len(agreed.items)}: {planned.family.name}, {planned.promise}")
        found.append((planned, _audited(planned, releases)))
    for path, (_, audited) in zip(pictures, found, strict=False):
        picture.write(audited.plot(), path)
    _print([_document(*one) for one in found], json=json)
    if not all(audited.is_within for _, audited in found):
        raise typer.Exit(NEGATIVE)


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


def _check(planned: Item) -> None:
    """Refuse what two tables that differ in one record tell nothing of."""
    if planned.choice:
        raise ValueError(f"bounds of {planned.output} must be public to be audited, got private.")
    if "unit" in planned.division:
        raise ValueError(f"unit of {planned.output} must be left out to be audited, got {planned.division['unit']}.")


def _audited(planned: Item, releases: int) -> "Audit":
    from noiseaware.custodian.audit import audit as of
    from noiseaware.custodian.terms import terms_of

    price = {name: planned.terms[name] for name in ("epsilon", "rho", "delta", "n_share") if name in planned.terms}
    relation = terms_of(planned.family, **planned.terms).neighbours
    return of(planned.family, **price, neighbours=relation, num_releases=releases)


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
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("release", "family", "promised", "seen: at least", ""):
        table.add_column(heading, no_wrap=True)
    for row in told:
        mark = Text("✓ within", "green") if row["is_within"] else Text("✗ broken", "bold red")
        seen = f"{row['letter']} = {row['at_least']:.3g}"
        table.add_row(row["release"], row["family"], row["promise"], seen, mark)
    Console(highlight=False).print(table)
