"""`noiseaware ledger create|show`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from noiseaware.custodian.ledger import Ledger

ledger = typer.Typer(
    help="Keep the account of what was spent on a table.", rich_markup_mode="rich", no_args_is_help=False
)
_Path = Annotated[str, typer.Argument(help="The ledger's file.")]


@ledger.command()
def create(
    path: _Path,
    epsilon: Annotated[str | None, typer.Option(help="The total, as pure ε.")] = None,
    rho: Annotated[str | None, typer.Option(help="The total, as ρ of zCDP.")] = None,
) -> None:
    """Open an account with a total that no sequence of releases can overspend.

    [bold]Example[/bold]

    $ noiseaware ledger create clinic.ledger --epsilon 2
    """
    from noiseaware.custodian.ledger import Ledger

    typer.echo(f"{path}: {balance(Ledger.create(path, epsilon=epsilon, rho=rho))}")


@ledger.command()
def show(path: _Path, json: Annotated[bool, typer.Option("--json", help="For machines.")] = False) -> None:
    """Show what was spent, on what, and what is left.

    [bold]Example[/bold]

    $ noiseaware ledger show clinic.ledger
    """
    from noiseaware.custodian.ledger import Ledger

    account = Ledger(path)
    if json:
        typer.echo(_json(account))
        return
    typer.echo(f"{path}: {balance(account)}")
    _print_entries(account)


def balance(account: "Ledger") -> str:
    """What is left of the total."""
    from noiseaware.privacy import plain

    return f"{plain(account.remaining)} left of {account.total}"


def _json(account: "Ledger") -> str:
    import json

    from noiseaware.privacy import Pure, plain

    kind = "epsilon" if isinstance(account.total, Pure) else "rho"
    entries = [{"id": e.id, "time": e.time, "cost": plain(e.cost), "what": dict(e.what)} for e in account.entries()]
    total = plain(account.spent + account.remaining)
    spent, left = plain(account.spent), plain(account.remaining)
    return json.dumps(
        {"kind": kind, "total": total, "spent": spent, "remaining": left, "entries": entries},
        indent=2,
        ensure_ascii=False,
    )


def _print_entries(account: "Ledger") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from noiseaware.privacy import plain
    from noiseaware.words import shown

    entries = account.entries()
    if not entries:
        return
    table = Table("time", "cost", "what", "entry", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for entry in entries:
        what = ", ".join(f"{name} {value}" for name, value in entry.what.items())
        table.add_row(entry.time, plain(entry.cost), Text(shown(what, 200)), entry.id)
    Console().print(table)
