"""How far a scan is, on stderr and only on a terminal: a bar with rows and time left, or where n is private a clock.

A share of the rows tells how many there are to whoever knows the machine, so it is shown only where n is public.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noiseaware.custodian.scan import Progress

_SHORT = 1.0  # seconds in which a scan may end before a bar is worth showing


@contextmanager
def watching(*, is_quiet: bool, is_size_public: bool) -> "Iterator[Callable[[Progress], None] | None]":
    """Something to tell a scan's progress to; None where nobody looks."""
    if is_quiet or sys.stderr is None or not sys.stderr.isatty():
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
