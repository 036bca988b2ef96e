"""Failures of the command: one sentence on stderr and an exit status that says why.

1  a negative verdict      2  bad usage or bad input      3  refused by the ledger      4  diagnostics failed
130  interrupted
"""

import contextlib
import io
import re
import sys
import traceback
from pathlib import PurePath
from typing import Any

import typer
from typer.core import TyperGroup

from noiseaware.check import explained
from noiseaware.cli.bounds import doubled

_INVALID = re.compile(r"Invalid value for '([^']+)': Input should be a valid (integer|number)\b")
NEGATIVE, BAD_INPUT, REFUSED, UNFIT, INTERRUPTED = 1, 2, 3, 4, 130


class Unfit(Exception):
    """The draws did not pass a diagnostic that was asked for."""


class Group(TyperGroup):
    """The commands, each failure of which ends as a sentence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command, with `--bounds private` as two words."""
        return super().parse_args(ctx, doubled(args))

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        """Run a command, and end with its status or give it back."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal without θ still gets the numbers
        status = _status(lambda: super(Group, self).main(*args, standalone_mode=False, **kwargs))
        return sys.exit(status) if standalone_mode else status


def _status(command) -> int:
    try:
        done = command()
        sys.stdout.flush()
        return done if isinstance(done, int) else 0
    except typer.TyperException as error:
        return say(_usage(error), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # whoever read us has gone, and wants to hear no more
        return 0
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # so Rich ends where whoever read us has gone
            raise
        return 0
    except (ValueError, OSError, ImportError) as error:
        return say(_sentence(error), BAD_INPUT)
    except Unfit as error:
        return say(_sentence(error), UNFIT)
    except Exception as error:
        if _is_refusal(error):
            return say(_sentence(error), REFUSED)
        if type(error) is RuntimeError:  # what the package itself says of a method that failed
            return say(_sentence(error), UNFIT)
        return say(_unforeseen(error), BAD_INPUT)


def _unforeseen(error: Exception) -> str:
    """Say what failed and where, without the error's own words, which may quote a value."""
    if isinstance(error, MemoryError):
        return "the machine must have more memory for this; nothing else is known to be wrong."
    frames = traceback.extract_tb(error.__traceback__)
    frames = [f for f in frames if "noiseaware" in f.filename or "site-packages" not in f.filename]
    where = f" in {PurePath(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"failed where it must not ({type(error).__name__}{where}); please report this with the command that did it."


def say(sentence: str, status: int = 0) -> int:
    """A sentence on stderr."""
    with contextlib.suppress(BrokenPipeError):
        print(f"noiseaware: {_without_passwords(sentence)}", file=sys.stderr)
    return status


def _without_passwords(sentence: str) -> str:
    """The sentence, also where it quotes a URL that was typed in the wrong place, or what was meant as one."""
    return re.sub(r"(://[^:@/\s]*:).*(?=@)|(\w:)[^/\s]*(?=@)|(password\s*=\s*)[^&\s]*", r"\1\2\3…", sentence)


def _is_refusal(error: Exception) -> bool:
    """Asked without importing the custodian, which an analyst may not have."""
    custodian = sys.modules.get("noiseaware.custodian.ledger.ledger")
    return custodian is not None and isinstance(error, custodian.LedgerRefusal)


def _usage(error: typer.TyperException) -> str:
    message = " ".join(getattr(error, "format_message", error.__str__)().split()).replace(": Value error, ", ": ")
    if (invalid := _INVALID.match(message)) is not None:
        got = next((found["input"] for found in getattr(error.__cause__, "errors", list)()), "something else")
        message = f"{invalid[1]} must be a {'whole ' * (invalid[2] == 'integer')}number, got {got}."
    context = getattr(error, "ctx", None)
    end = "" if message.endswith((".", "?", "!")) else "."
    return message if context is None else f"{message}{end} See `{context.command_path} --help`."


def _sentence(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return explained(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'file'}: {error.strerror.lower()}."
    return " ".join(str(error).split()) or f"{type(error).__name__}."
