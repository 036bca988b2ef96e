"""Files that are written whole or not at all, never over another unless asked, and read up to a size."""

import os
import tempfile
from pathlib import Path

__version__ = "0.1.0"  # of the package, which files name as their maker


def read_text(path: str | os.PathLike, name: str, most_bytes: int) -> str:
    """The text of a file; refused in one sentence if there is none, it is too large, or it is not text."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise ValueError(f"{name} must have at most {most_bytes:,} bytes, got {path}, which has more.")
        return content.decode("utf-8")
    except FileNotFoundError:
        raise ValueError(f"{name} must exist, got {path}.") from None
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"{name} must be readable UTF-8 text, got {path}.") from None


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
    """Refuse a path that exists, or whose folder does not; in any case one that is no file, as /dev/null is."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} must be a file, got a folder.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} must be a file, got a device or a pipe; - is standard output where it can be.")
    if path.exists() and not force:
        raise ValueError(f"output {path} exists already; give another name or --force (force=True).")
    if not path.parent.is_dir():
        raise ValueError(f"output folder must exist, got {path.parent}.")
