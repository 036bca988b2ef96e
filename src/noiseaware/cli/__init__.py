"""The command: parsing only. What a command needs is imported when it runs, so that --help answers at once."""

import gc
import inspect
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from noiseaware.cli.audit import audit
from noiseaware.cli.calibrate import calibrate
from noiseaware.cli.check import check
from noiseaware.cli.convert import convert
from noiseaware.cli.explore import explore
from noiseaware.cli.failure import Group, say
from noiseaware.cli.infer import HELP as INFER
from noiseaware.cli.infer import infer
from noiseaware.cli.ledger import ledger
from noiseaware.cli.plan import plan
from noiseaware.cli.release import HELP as RELEASE
from noiseaware.cli.release import release
from noiseaware.cli.reproduce import reproduce
from noiseaware.cli.xla import compile_quickly

app = typer.Typer(
    cls=Group,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="See it all in under a minute: [bold]noiseaware demo[/bold]",
)


_SELDOM = 200_000  # new objects between two searches for garbage


def main() -> None:
    """The entry point of the command."""
    gc.set_threshold(_SELDOM)  # nearly all that a command makes lives as long as it does, and a search takes long
    if sys.argv[1:2] not in (["calibrate"], ["reproduce"]) or "--quick" in sys.argv:
        compile_quickly()  # the others run what they compile a thousand times
    warnings.showwarning = _said
    status = app(prog_name="noiseaware", standalone_mode=False)
    if sys.argv[1:2] == ["infer"]:
        _leave(status)  # all is written, and nothing is left that anyone waits for
    sys.exit(status)


_show_warning, _PACKAGE = warnings.showwarning, Path(__file__).parents[1]


def _said(message, category, filename, lineno, file=None, line=None) -> None:
    """Say a warning of this package as a sentence, without the line of code that raised it."""
    if issubclass(category, RuntimeWarning) and Path(filename).is_relative_to(_PACKAGE):
        say(str(message))
    else:
        _show_warning(message, category, filename, lineno, file, line)


def _leave(status: int) -> None:
    """End the process at once: to take JAX down object by object takes a third of a second."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(status)


@app.callback(
    invoke_without_command=True,
    help="Private statistics of a table, and the posterior they really support.\n\n"
    "A custodian [bold]release[/bold]s noisy statistics and pays for them from a [bold]ledger[/bold]; an analyst who "
    "holds only the release [bold]infer[/bold]s what it supports, with the noise accounted for.",
)
def _about(
    context: typer.Context,
    tell_version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
) -> None:
    if tell_version:
        from noiseaware import __version__

        typer.echo(f"noiseaware {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    folder: Annotated[
        str, typer.Option(help="Where to put the table, the ledger, the releases and the reports.")
    ] = "noiseaware-demo",
) -> None:
    """Tell the whole story on a made-up clinic, in under a minute.

    [bold]Example[/bold]

    $ noiseaware demo
    """
    from noiseaware.cli.demo import demo as story

    story(folder)


def _flowing(text: str) -> str:
    """Help in paragraphs that the terminal breaks into lines, and not this code."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))


app.command(help=_flowing(RELEASE))(release)
app.command(help=_flowing(INFER))(infer)
for command in (convert, explore, calibrate, plan, check, audit, reproduce):
    app.command(help=_flowing(command.__doc__ or ""))(command)
app.add_typer(ledger, name="ledger")
