"""`--plot plan.png`: a picture's path is checked before the work, and the picture written after it."""

from pathlib import Path
from typing import TYPE_CHECKING

from noiseaware.cli.failure import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDINGS = (".png", ".svg", ".pdf")


def check(path: str | None, *, force: bool) -> None:
    """Refuse a path that no picture can be written to."""
    from noiseaware.file import check_free

    if path is None:
        return
    if Path(path).suffix.lower() not in _ENDINGS:
        raise ValueError(f"--plot must end in {', '.join(_ENDINGS)}, got {path}.")
    check_free(path, force=force)


def write(figure: "Figure", path: str | Path) -> None:
    """The picture, and a line that says where it is."""
    figure.savefig(path, dpi=160)
    say(f"wrote {path}")
