"""Engines work unheard, and can be interrupted: their messages quote records, and some do not hear Ctrl-C."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")
_TICK = 0.1  # seconds
_PATIENCE = 100  # ticks that an engine has to end its work when it is told to


def quietly(action: Callable[[], _T], complaint: str) -> _T:
    """Return the outcome of an action, or raise a complaint that holds nothing of its error, which may quote records.

    Raised after the error is forgotten, so that not even the exception's context leads back to it.
    """
    try:
        return action()
    except Exception:
        pass
    raise ValueError(complaint)


def interruptible(
    action: Callable[[], _T], stop: Callable[[], object], tick: Callable[[], object] = lambda: None
) -> _T:
    """Return the outcome of an action in a thread; `tick` is called ten times a second, `stop` on an interrupt.

    DuckDB does not hear Ctrl-C while it works, and the thread that waits here does.
    """
    outcome: dict[str, Any] = {}
    # Thread.join would take a thread for ended when it is interrupted.
    is_done = threading.Event()

    def work() -> None:
        try:
            outcome["value"] = action()
        except BaseException as error:
            outcome["error"] = error
        finally:
            is_done.set()

    threading.Thread(target=work, name="noiseaware scan", daemon=True).start()
    try:
        while not is_done.wait(_TICK):
            tick()
    except BaseException:
        for _ in range(_PATIENCE):
            with contextlib.suppress(Exception):  # what matters is the interrupt
                stop()
            if is_done.wait(_TICK):
                break
        raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]
