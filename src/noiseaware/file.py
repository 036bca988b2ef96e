"""Files that are written whole or not at all, and never over another unless asked."""

import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike, text: str, *, force: bool) -> None:
    """Write text to path through a temporary file beside it, so that no half-written file is left."""
    path = Path(path)
    check_free(path, force=force)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.write(text)
            file.close()
            os.chmod(file.name, 0o666 & ~_umask())  # a temporary file is private; the finished one is as any other
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_free(path: str | os.PathLike, *, force: bool) -> None:
    """Refuse a path that exists, or whose folder does not."""
    path = Path(path)
    if path.exists() and not force:
        raise ValueError(f"output {path} exists already; give another name or --force (force=True).")
    if not path.parent.is_dir():
        raise ValueError(f"output folder must exist, got {path.parent}.")
