"""A test of the tests: faults are planted in a copy of the package, one at a time, and a test must die of each.

    python tests/faults/plant.py                      every fault
    python tests/faults/plant.py "charged twice"      those whose name holds one of these words
    python tests/faults/plant.py --workers 2          two at a time

A fault is a line that someone might have written by mistake; the lists beside this file, one for each folder of the
package and one for what lies beside these, say what it replaces and which tests should notice. The real tree is read
once and never written. Before anything is planted all of these tests run on the copy as it is: one that fails anyway
would notice every fault. What dies of an ImportError or the like does not count: that is a fault badly planted.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).resolve().parent
FOLDERS = (
    "custodian",
    "family",
    "interop",
    "mechanism",
    "program",
    "sampler",
    "noiseaware",
)  # the last: what lies beside them
LEAST_SHARE = 0.95  # of the faults, that must die
_COPIED, _LINKED = ("src", "tests", "examples"), ("docs", "README.md", "benchmarks", "constraints.txt", "CHANGELOG.md")
_NEVER_COUNT = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError")
_SECONDS = 150


@dataclass(frozen=True)
class Fault:
    """A mistake in plain words; the text that it replaces, which stands once in its file; and who should notice."""

    name: str
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The file, from the root of the repository."""
        return Path("src", "noiseaware", self.file)


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: whether a test died of it, and which one; or what went wrong, in words."""

    verdict: str
    told: str
    seconds: float


DIED, SURVIVED, BROKEN = "died", "survived", "did not apply"


def faults() -> list[Fault]:
    """All faults, in the order of the lists."""
    return [_fault(entry) for folder in FOLDERS for entry in _entries(LISTS / f"{folder}.toml")]


def _entries(path: Path) -> list[dict]:
    return tomllib.loads(path.read_text(encoding="utf-8"))["fault"]


def _fault(entry: dict) -> Fault:
    tests = tuple(f"tests/{test}" for test in entry["tests"])
    return Fault(entry["name"], entry["file"], entry["text"], entry["becomes"], tests)


def occurrences(fault: Fault, root: Path = ROOT) -> int:
    """How often the text stands in its file, which must be once."""
    path = root / fault.path
    return path.read_text(encoding="utf-8").count(fault.text) if path.is_file() else 0


# ---- copies --------------------------------------------------------------------------------------------------------


def copy(source: Path, target: Path) -> Path:
    """What the tests need of the tree; compiled files keep their times, and so stay valid but for what is changed."""
    for name in _COPIED:
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("*.pyc.*", ".hypothesis"))
    shutil.copy2(source / "pyproject.toml", target)
    for name in _LINKED:
        if (source / name).exists():
            (target / name).symlink_to((source / name).resolve())
    return target


def planted(fault: Fault, tree: Path) -> None:
    """Write the fault into a copy, which must still be Python."""
    path = tree / fault.path
    text = path.read_text(encoding="utf-8").replace(fault.text, fault.becomes)
    compile(text, str(path), "exec")
    path.write_text(text, encoding="utf-8")


# ---- runs ----------------------------------------------------------------------------------------------------------


def outcome(fault: Fault, pristine: Path, seconds: float) -> Outcome:
    """Plant one fault in a fresh copy, and see whether a test dies."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="noiseaware-fault-") as folder:
        tree = copy(pristine, Path(folder))
        if (number := occurrences(fault, tree)) != 1:
            return Outcome(BROKEN, f"its text stands {number} times in {fault.file}", 0.0)
        try:
            planted(fault, tree)
        except SyntaxError as error:
            return Outcome(BROKEN, f"it is no Python: {error}", 0.0)
        verdict, told = run(tree, fault.tests, seconds)
    return Outcome(verdict, told, time.perf_counter() - start)


def run(tree: Path, tests: Iterable[str], seconds: float) -> tuple[str, str]:
    """The tests in a copy, up to the first that fails: the verdict, and that test or what went wrong."""
    report = tree / "report.xml"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "tests.faults.copied"]
    command += [f"--junitxml={report}", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "NOISEAWARE_COPY": str(tree)}
    with subprocess.Popen(
        command, cwd=tree, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # and what its tests have started
            process.communicate()
            return BROKEN, f"its tests took longer than {seconds:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode == 0:
        return SURVIVED, "no test noticed"
    last = (said.strip().splitlines() or ["nothing was said"])[-1]
    if process.returncode != 1 or not report.is_file():
        return BROKEN, f"pytest ended with status {process.returncode}: {last}"
    return _first(report)


def _first(report: Path) -> tuple[str, str]:
    """The first test that failed, unless it could not even begin."""
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        for kind in ("failure", "error"):
            found = case.find(kind)
            if found is None:
                continue
            reason = (found.get("message") or "").splitlines() or [""]
            if kind == "error" or reason[0].startswith(_NEVER_COUNT):
                return BROKEN, f"{name}: {reason[0]}"
            return DIED, name
    return BROKEN, "pytest failed without a test that did"


def tried(chosen: Sequence[Fault], workers: int, seconds: float) -> Iterator[tuple[Fault, Outcome]]:
    """Each fault with its outcome, as they come; nothing is planted if the tests fail without a fault."""
    with tempfile.TemporaryDirectory(prefix="noiseaware-faults-") as folder:
        pristine = copy(ROOT, Path(folder))
        tests = sorted({test for fault in chosen for test in fault.tests})
        verdict, told = run(pristine, tests, seconds * 10)
        if verdict != SURVIVED:
            raise SystemExit(f"The tests must pass before a fault is planted, and do not: {told}.")
        with ThreadPoolExecutor(workers) as pool:
            waiting = {pool.submit(outcome, fault, pristine, seconds): fault for fault in chosen}
            try:
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


# ---- what is said --------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant, tell, and say by the status whether enough faults died."""
    parser = argparse.ArgumentParser(description="Plant faults in a copy of the package, and see which tests die.")
    parser.add_argument("names", nargs="*", help="words of the names of faults to plant; all without any")
    parser.add_argument("--workers", type=int, default=1, help="how many at a time")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="what the tests of one fault may take")
    given = parser.parse_args(arguments)
    chosen = [f for f in faults() if not given.names or any(word in f"{f.file} {f.name}" for word in given.names)]
    if not chosen:
        parser.error("no fault has such a name.")
    return _told(chosen, tried(chosen, given.workers, given.seconds))


def _told(chosen: Sequence[Fault], outcomes: Iterator[tuple[Fault, Outcome]]) -> int:
    from rich.console import Console
    from rich.markup import escape

    console, colours = Console(width=150, highlight=False), {DIED: "green", SURVIVED: "red", BROKEN: "magenta"}
    start, found = time.perf_counter(), []
    console.print(f"{len(chosen)} faults; first their tests, without a fault.")
    for number, (fault, result) in enumerate(outcomes, 1):
        found.append(result.verdict)
        verdict = f"[{colours[result.verdict]}]{result.verdict}[/]"
        line = f"{number:3d}/{len(chosen)}  {result.seconds:5.1f} s  {verdict}  {escape(fault.file)}: "
        console.print(line + escape(f"{fault.name} ← {result.told}"), soft_wrap=True)
    share, total = found.count(DIED) / len(chosen), time.perf_counter() - start
    console.print(f"{found.count(DIED)} of {len(chosen)} faults died ({share:.1%}), in {total:.0f} s.")
    return 0 if share >= LEAST_SHARE and BROKEN not in found else 1


if __name__ == "__main__":
    sys.exit(main())
