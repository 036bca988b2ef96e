"""`noiseaware check`: is a program private? The verdict, its cost and its reasons; no data is read."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from noiseaware.cli.failure import NEGATIVE

if TYPE_CHECKING:
    from rich.console import Console

    from noiseaware.cli.own import Failed
    from noiseaware.program import Obligation, Program, Verdict

_MARKS = {"certified": ("✓", "green"), "refuted": ("✗", "red"), "not proved": ("?", "yellow")}


def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A Python file with programs, or one of them: coin.py:coin")
    ],
    seconds: Annotated[float, typer.Option(help="How long z3 may take for each program.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Check private Bayesian programs before they see data: certified with their exact cost, refuted, or not proved.

    [bold]Example[/bold]

    $ noiseaware check coin.py

    Each function made a program by @pp.program is traced once on symbols, and what must hold of every pair of
    neighbouring tables is put to z3. The file is run, as any import is; a program that cannot be made is told by
    itself, and the others are checked. Exits 0 if all are certified, else 1.
    """
    programs = _programs(file)
    from rich.console import Console

    found = [(program, _verdict(program, seconds)) for program in programs]
    if json:
        import json as form

        typer.echo(form.dumps([_document(*one) for one in found], indent=2, ensure_ascii=False))
    else:
        console = Console(highlight=False)
        for one in found:
            _print(console, *one)
    if not all(getattr(verdict, "is_certified", False) for _, verdict in found):
        raise typer.Exit(NEGATIVE)


def _programs(file: str) -> "list[Program | Failed]":
    """The programs of a file, in its order; those that could not be made, as what they failed by."""
    from pathlib import Path

    from noiseaware.cli import own
    from noiseaware.program import Program

    path, _, name = (file, "", "") if file.endswith(".py") else file.rpartition(":")
    if not path.endswith(".py") or not Path(path).is_file():
        raise ValueError(f"file must be a Python file that exists, got {path or file}.")
    module, failed = own.definitions(path, "file", "program")
    found = {known: value for known, value in vars(module).items() if isinstance(value, Program)}
    listed: dict[str, Program | Failed] = {**found, **{one.name: one for one in failed}}
    if not listed:
        raise ValueError(f"file must define a program with @pp.program, got none in {path}.")
    if name and name not in listed:
        raise ValueError(f"program must be one of {', '.join(listed)}, got {name!r}.")
    return [listed[name]] if name else list(listed.values())


def _verdict(program: "Program | Failed", seconds: float) -> "Verdict | str":
    """The verdict on a program, or why there is none: in a sentence, with file and line."""
    from noiseaware.cli import own
    from noiseaware.program import Escape
    from noiseaware.program import check as verdict_on

    if isinstance(program, own.Failed):
        return program.reason
    try:
        return verdict_on(program, seconds=seconds)
    except Escape as escape:
        return str(escape)
    except Exception as error:  # whatever the program's own function raises
        return own.located(error, program.function.__code__.co_filename, program.line)


def _document(program: "Program | Failed", verdict: "Verdict | str") -> dict[str, Any]:
    """Everything that is told."""
    from noiseaware.cli.own import Failed
    from noiseaware.privacy import plain
    from noiseaware.program import Certified, Refuted

    if isinstance(program, Failed):
        return {"program": program.name, "file": program.file, "verdict": "not proved", "reason": verdict}
    told: dict[str, Any] = {"program": program.name, "file": program.file}
    told |= {"budget": {"epsilon": plain(program.epsilon), "delta": plain(program.delta)}}
    told |= {"neighbours": program.records.adjacency}
    if isinstance(verdict, str):
        return told | {"verdict": "not proved", "reason": verdict}
    told |= {"verdict": verdict.verdict, "reason": verdict.reason, "seconds": round(verdict.seconds, 4)}
    if isinstance(verdict, Certified):
        told |= {"epsilon": plain(verdict.epsilon), "delta": plain(verdict.delta)}
    if isinstance(verdict, Refuted):
        broken = verdict.counterexample
        told["counterexample"] = {
            "databases": [[_plain(x) for x in side] for side in (broken.left, broken.right)],
            "event": broken.event,
            "probabilities": list(broken.probabilities),
            "exact": list(broken.exact),
        }
    told["obligations"] = [vars(obligation) for obligation in verdict.obligations]
    told["lemmas"] = [vars(known) for known in verdict.lemmas]
    return told


def _plain(value: Any) -> Any:
    from fractions import Fraction

    return float(value) if isinstance(value, Fraction) else value


def _print(console: "Console", program: "Program | Failed", verdict: "Verdict | str") -> None:
    from rich.padding import Padding
    from rich.text import Text

    word = "not proved" if isinstance(verdict, str) else verdict.verdict
    mark, color = _MARKS[word]
    aside = "" if isinstance(verdict, str) else "  " + _aside(verdict)
    console.print(Text.assemble((f"{mark} {word}", f"bold {color}"), ("  " + program.name, "bold"), aside))
    console.print(Padding(Text(verdict if isinstance(verdict, str) else verdict.reason), (0, 2)))
    if not isinstance(verdict, str):
        console.print(Padding(_table(verdict.obligations, verdict.program), (0, 2)))
        if verdict.lemmas:
            console.print(Padding(Text("rests on " + ", ".join(known.name for known in verdict.lemmas), "dim"), (0, 2)))
    console.print()


def _aside(verdict: "Verdict") -> str:
    """The cost and the time."""
    cost = f"{verdict.guarantee} · " if hasattr(verdict, "guarantee") else ""  # type: ignore[union-attr]
    return f"{cost}{1000 * verdict.seconds:.0f} ms"


def _table(obligations: "tuple[Obligation, ...]", program: "Program") -> Any:
    """A line for each obligation: whether it holds, where it is from, what it says."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for obligation in obligations:
        mark = Text("✓", "green") if obligation.is_proved else Text("✗", "red")
        where = obligation.line.removeprefix(f"{program.file}, ")
        said = f"{obligation.statement}; {obligation.advice}" if obligation.advice else obligation.statement
        table.add_row(mark, Text(where, "dim"), Text(said))
    return table
