"""A pipe that gives an engine the text of a file once, after Python has made it harmless; nothing goes to a disk."""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

_PIECE = 2**16  # bytes, what a pipe holds
_PATIENCE = 0.01  # seconds


def piped(pieces: Iterator[bytes], suffix: str, closing: contextlib.ExitStack) -> Path:
    """Return the path of a pipe that a thread fills while it is read; the thread and the pipe end with `closing`."""
    pipe = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="noiseaware-"))) / f"records{suffix}"
    os.mkfifo(pipe, 0o600)
    is_over = threading.Event()

    def feed() -> None:
        with contextlib.suppress(OSError), pipe.open("wb", buffering=0) as records:  # the reader may go away
            for piece in _gathered(pieces):
                rest = memoryview(piece)
                while rest and not is_over.is_set():
                    rest = rest[records.write(rest) :]
                if is_over.is_set():
                    break

    feeder = threading.Thread(target=feed, name="noiseaware pipe", daemon=True)
    feeder.start()

    def end() -> None:
        """Read what an engine that stopped early has left, so that the thread waits for nobody."""
        is_over.set()
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            while feeder.is_alive():
                with contextlib.suppress(BlockingIOError):
                    os.read(reader, _PIECE)
                feeder.join(_PATIENCE)
        finally:
            os.close(reader)

    closing.callback(end)
    return pipe


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the bytes of small pieces together: each write waits for the reader."""
    some, size = [], 0
    for piece in pieces:
        some.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(some)
            some, size = [], 0
    yield b"".join(some)
