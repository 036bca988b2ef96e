"""Every code block of the README and the documentation runs, page by page, in a folder of its own."""

import ast
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
import typer

import noiseaware as na
from noiseaware.cli import app
from noiseaware.cli.bounds import doubled

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "developer").glob("*.md"))]
OTHERS = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md")]
OTHERS += sorted((DOCS / "developer" / "decisions").glob("*.md"))
STATIC = ROOT / "docs" / "_static"
SLOW = ("add_a_family", "calibration", "choose", "plan", "pooling", "tour")
SLOW += ("data_protection", "tutorial_cirrhosis", "tutorial_rare_disease")
FENCE = re.compile(r"(?m)^```(\{?[\w-]*\}?[^\n]*)\n(.*?)^```$", re.DOTALL)
COMMAND = Path(sys.executable).with_name("noiseaware")


def _blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return [(info.strip(), text) for info, text in FENCE.findall(page.read_text(encoding="utf-8"))]


def _commands(text: str) -> list[str]:
    """The noiseaware commands of a console block; others, such as make and pip, are run elsewhere."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ noiseaware")]


def _read_only(page: Path) -> list[str]:
    """The commands that no test runs as they stand, for want of a server, a file or time: of text blocks and prose."""
    spans = re.findall(r"`(noiseaware [a-z][^`]*)`", page.read_text(encoding="utf-8"))
    return spans + [command for language, text in _blocks(page) if language == "text" for command in _commands(text)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a reader has at hand: a table, and for the README a ledger."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"wait_hours": rng.exponential(8.0, 1000), "infected": rng.random(1000) < 0.012})
    table.to_csv(tmp_path / "clinic.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p.stem in SLOW else p for p in PAGES],
    ids=lambda page: page.stem,
)
def test_page_runs(page: Path, folder: Path):
    if page.name == "README.md":
        na.Ledger.create("clinic.ledger", epsilon=2)
    namespace: dict[str, object] = {"__name__": page.stem}
    with matplotlib.rc_context({"backend": "Agg"}):
        for language, text in _blocks(page):
            if language in ("python", "{code-cell} python"):
                exec(compile(re.sub(r"(?m)^:.*\n", "", text), str(page), "exec"), namespace)
            for command in _commands(text) if language == "console" else []:
                done = subprocess.run([COMMAND, *shlex.split(command)[1:]], cwd=folder, capture_output=True, text=True)
                assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_has_a_known_language(page: Path):
    known = {"python", "console", "text", "{code-cell} python", "{eval-rst}", "{toctree}", "{csv-table}"}
    assert {info for info, _ in _blocks(page) if not info.startswith(("{figure}", "{literalinclude}"))} <= known


def test_every_test_that_the_threat_model_names_is_there():
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "threat_model.md").read_text(encoding="utf-8"))
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 30
    assert [name for name in named if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_that_is_not_run_is_understood(page: Path):
    for text in _read_only(page):
        command, words = typer.main.get_command(app), doubled(shlex.split(text)[1:])
        while hasattr(command, "commands") and words:
            command = command.commands[words.pop(0)]
        _, surplus, _ = command.make_parser(typer.Context(command)).parse_args(words)  # refuses an unknown option
        assert surplus == [], text
    shown = "".join(text for language, text in _blocks(page) if language == "text")
    for line in re.findall(r"(?m)^\w+ = na\..*$", shown):
        (given,) = ast.parse(line).body
        signature = inspect.signature(getattr(na, given.value.func.attr))
        signature.bind(*given.value.args, **{keyword.arg: keyword.value for keyword in given.value.keywords})


def test_every_page_is_reached_and_every_picture_shown():
    readme, index = (path.read_text(encoding="utf-8") for path in (PAGES[0], ROOT / "docs" / "index.md"))
    trees = re.findall(r"(?ms)^```\{toctree\}.*?^```", index)
    stems = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES[1:]} - {"index"}
    assert {stem for stem in stems if f"(docs/{stem}.md)" not in readme} == set()
    assert set(re.findall(r"(?m)^[a-z_0-9/]+$", "\n".join(trees))) == stems
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    files = [path for path in STATIC.rglob("*") if path.is_file() and "mathjax" not in path.parts]
    assert [path.name for path in files if path.name not in text] == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.stem)
def test_links_and_pictures_are_there(page: Path):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)|^```\{figure\} (\S+)", text, re.MULTILINE)
    assert [target for pair in targets for target in pair if target and not (page.parent / target).exists()] == []


def _anchors(page: Path) -> set[str]:
    """What a link may name of a page: its headings as they are written in an address."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_into_pages_find_their_heading(page: Path):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if link[1] not in _anchors(page.parent / link[0] if link[0] else page)] == []


def test_the_census_tutorial_shows_what_the_bureau_published():
    published = ROOT.parent / "shared" / "data" / "census_gls.csv"
    if not published.exists():
        pytest.skip("the rows that the Bureau published are not beside the project")
    page = (ROOT / "docs" / "tutorial_census.md").read_text(encoding="utf-8")
    assert [line for line in published.read_text(encoding="utf-8").split() if line not in page] == []
