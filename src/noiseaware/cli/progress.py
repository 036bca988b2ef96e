"""How far work is, on stderr and only on a terminal: a bar with rows and time left, or where n is private a clock.

A share of the rows tells how many there are to whoever knows the machine, so it is shown only where n is public.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from noiseaware.custodian.scan import Progress

Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]

_SHORT = 1.0  # seconds in which a scan may end before a bar is worth showing


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
def working(what: str, *, is_quiet: bool) -> "Iterator[None]":
    """A clock beside what is being done, for work whose end is not known beforehand."""
    if not _is_looked_at(is_quiet):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn("so far"))
    with Bar(*shown, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


def _is_looked_at(is_quiet: bool) -> bool:
    return not is_quiet and sys.stderr is not None and sys.stderr.isatty()
