"""Progress on stderr: on a terminal a bar with rows and time left, or where n is private a clock.

A share of the rows tells how many there are to whoever knows the machine, so it is shown only where n is public. Where
stderr is a file or a pipe, an analyst's command says in a line now and then how far it is, and at the end what it did.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from noiseaware.cli.failure import say

if TYPE_CHECKING:
    from noiseaware.custodian.engine.scan import Progress

Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]

_SHORT = 1.0  # seconds in which a scan may end before a bar is worth showing
_EVERY = 10.0  # seconds between two lines in a log


@contextmanager
def watching(*, is_quiet: bool, is_size_public: bool) -> "Iterator[Callable[[Progress], None] | None]":
    """Something to tell a scan's progress to; None where nobody looks."""
    if not _is_looked_at(is_quiet):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    shares = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left,")) if is_size_public else ()
    shown = (TextColumn("{task.description}"), *shares, TimeElapsedColumn(), TextColumn("so far"))
    bar = Bar(*shown, console=Console(stderr=True), transient=True)
    task = bar.add_task("reading the table", total=None)

    def tell(progress: "Progress") -> None:
        if progress.seconds < _SHORT:
            return
        bar.start()
        if is_size_public and progress.share is not None:
            rows = "the table" if progress.rows is None else f"{progress.rows:,} rows"
            bar.update(task, description=f"reading {rows}", total=1.0, completed=progress.share)

    try:
        yield tell
    finally:
        bar.stop()


@contextmanager
def working(what: str, *, is_quiet: bool, is_logged: bool = False) -> "Iterator[None]":
    """A clock beside what is being done, for work whose end is not known beforehand; if logged, a line now and then."""
    if not _is_looked_at(is_quiet):
        with _telling(lambda: what, is_quiet=is_quiet or not is_logged):
            yield
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn("so far"))
    with Bar(*shown, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


@contextmanager
def counting(what: str, *, is_quiet: bool) -> "Iterator[Callable[[int, int], None]]":
    """A function that is told how many are done, and of how many: a bar, or a line now and then in a log."""
    if not _is_looked_at(is_quiet):
        state = [what]
        with _telling(lambda: state[0], is_quiet=is_quiet):
            yield lambda done, total: state.__setitem__(0, f"{done:,} of {total:,} {what}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def say_done(what: str, seconds: float, *, is_quiet: bool, is_long_only: bool = False) -> None:
    """Say at the end what was done, where not both of its output and its progress were seen on a terminal.

    With `is_long_only`, nothing is said of work that was too short for a line on how far it is.
    """
    is_seen = _is_looked_at(is_quiet) and sys.stdout is not None and sys.stdout.isatty()
    is_short = is_long_only and seconds < _EVERY
    if not is_quiet and not is_seen and not is_short and sys.stderr is not None:
        say(f"{what} in {seconds:.0f} s")


@contextmanager
def _telling(state: "Callable[[], str]", *, is_quiet: bool) -> "Iterator[None]":
    """A line on stderr every few seconds, from a thread of its own, while something else is done."""
    if is_quiet or sys.stderr is None:
        yield
        return
    started, is_done = time.perf_counter(), threading.Event()

    def tell() -> None:
        while not is_done.wait(_EVERY):
            say(f"{state()}, {time.perf_counter() - started:.0f} s so far")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_done.set()
        teller.join()


def _is_looked_at(is_quiet: bool) -> bool:
    return not is_quiet and sys.stderr is not None and sys.stderr.isatty()
