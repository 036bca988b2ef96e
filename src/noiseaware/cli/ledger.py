"""`noiseaware ledger create|show`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fractions import Fraction

    from noiseaware.custodian.ledger.ledger import Entry, Ledger

ledger = typer.Typer(
    help="Keep the account of what was spent on a table.", rich_markup_mode="rich", no_args_is_help=False
)
_NEIGHBOURS = (
    "replace or add_remove: what it is that the total is a promise about. The first release decides if not this."
)
_UNIT = "Column that tells whose a record is: the total is a promise about persons with all their records."
_Path = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger: a file, or postgresql://user@host/database.")]


@ledger.command()
def create(
    path: _Path,
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="The total, as pure ε.")] = None,
    rho: Annotated[str | None, typer.Option(metavar="NUMBER", help="The total, as ρ of zCDP.")] = None,
    delta: Annotated[str | None, typer.Option(metavar="NUMBER", help="With --epsilon: the total δ.")] = None,
    neighbours: Annotated[str | None, typer.Option(help=_NEIGHBOURS)] = None,
    unit: Annotated[str | None, typer.Option(metavar="NAME", help=_UNIT)] = None,
) -> None:
    """Open an account with a total that no sequence of releases can overspend.

    All that it pays for is a promise about the same neighbours: those given here, or those of the first release.

    [bold]Example[/bold]

    $ noiseaware ledger create clinic.ledger --epsilon 2

    $ noiseaware ledger create visits.ledger --epsilon 2 --unit patient_id

    $ noiseaware ledger create "postgresql://custodian@db.example.org/hospital?ledger=clinic" --epsilon 2

    In PostgreSQL, keep the password out of the URL: in ~/.pgpass, or in PGPASSWORD.
    """
    from noiseaware.custodian.ledger.ledger import Ledger

    total = {"epsilon": epsilon, "rho": rho, "delta": delta}
    account = Ledger.create(path, **total, neighbours=neighbours, unit=unit)  # type: ignore[arg-type]
    typer.echo(f"{account.path}: {balance(account)}")


@ledger.command()
def show(path: _Path, json: Annotated[bool, typer.Option("--json", help="For machines.")] = False) -> None:
    """Show what was spent, on what, and what is left, if nobody has edited the ledger.

    [bold]Example[/bold]

    $ noiseaware ledger show clinic.ledger
    """
    from noiseaware.custodian.ledger.ledger import Ledger

    account = Ledger(path)
    if json:
        typer.echo(_json(account))
        return
    typer.echo(f"{account.path}: {balance(account)}")
    entries = account.entries()  # whatever reads a ledger verifies it
    typer.echo(f"chain verified, {len(entries)} {'entry' if len(entries) == 1 else 'entries'}")
    if about := _about(account):
        typer.echo(about)
    _print_entries(entries)


def _about(account: "Ledger") -> str:
    """Words for the neighbours that the total is a promise about; none where the first release decides."""
    if mixture := account.mixture:
        return f"no total: {mixture}, and neither adds to the other; it can be charged no more"
    bound = account.relation
    return "" if bound is None else f"for {bound}"


def balance(account: "Ledger") -> str:
    """Write the rest of the total, with its total."""
    from noiseaware.privacy import plain

    left = plain(account.remaining)
    delta = getattr(account.total, "delta", None)
    return f"{left if delta is None else f'{left}, {plain(delta - account.spent_delta)}'} left of {account.total}"


def _json(account: "Ledger") -> str:
    import json

    from noiseaware.privacy import plain

    kind = "epsilon" if account.total.letter == "ε" else "rho"
    entries = account.entries()  # verified, and read once: others may be charging
    told = {"kind": kind, **_balance(getattr(account.total, kind), [e.cost for e in entries]), "chain": "verified"}
    if (delta := getattr(account.total, "delta", None)) is not None:
        told |= {"delta": _balance(delta, [e.delta for e in entries])}
    bound = account.relation
    told |= {"neighbours": None if bound is None else bound.neighbours, "unit": None if bound is None else bound.unit}
    told |= {"mixture": account.mixture} if account.mixture else {}
    listed = [
        {"id": e.id, "time": e.time, "cost": plain(e.cost), **_delta(e.delta), "what": dict(e.what)} for e in entries
    ]
    return json.dumps(told | {"entries": listed}, indent=2, ensure_ascii=False)


def _balance(total: "Fraction", costs: "list[Fraction]") -> dict[str, str]:
    from noiseaware.privacy import plain

    spent = sum(costs, start=0 * total)
    return {"total": plain(total), "spent": plain(spent), "remaining": plain(total - spent)}


def _delta(delta: "Fraction") -> dict[str, str]:
    from noiseaware.privacy import plain

    return {"delta": plain(delta)} if delta else {}


def _print_entries(entries: "list[Entry]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from noiseaware.privacy import plain
    from noiseaware.report.number import shown

    if not entries:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("time", "cost", "what", "entry"):
        table.add_column(heading, no_wrap=heading in ("time", "cost"), overflow="fold")
    for entry in entries:
        what = ", ".join(f"{name} {value}" for name, value in entry.what.items())
        cost = ", ".join([plain(entry.cost), *_delta(entry.delta).values()])
        table.add_row(entry.time[:16].replace("T", " "), cost, Text(shown(what, 200)), entry.id)
    Console().print(table)
