"""Properties of the repository itself."""

import ast
import json
import re
import subprocess
from pathlib import Path

import yaml

import noiseaware
from noiseaware.evidence import release

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]


def _tracked() -> list[Path]:
    """Files that git knows, or every text file of a source archive."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = listing.stdout.splitlines() if listing.returncode == 0 else []
    return [ROOT / name for name in names if (ROOT / name).is_file()] or MODULES


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_no_module_has_an_empty_name():
    assert [p for p in MODULES if p.stem in ("utils", "helpers", "common", "core")] == []


def test_every_module_has_a_docstring():
    assert [str(p) for p in SOURCES if not ast.get_docstring(ast.parse(_text(p)))] == []


def test_no_file_names_a_package_index_or_a_machine():
    index = r"index[-_]url|find[-_]links|https?://[^ \"]*/simple([/\" ]|$)|registry *= *\{? *\"https?:"
    here = re.compile(rf"(?i){index}|(?<![\w.])/(work|root)/")
    named = [str(p.relative_to(ROOT)) for p in _tracked() if p != Path(__file__) and here.search(_text(p))]
    assert named == []


def test_constraints_are_bare_versions():
    version = re.compile(r"#.*|[a-z0-9.-]+==[\w.]+( ; python_version (<|>=) \"3.1[23]\")?")
    assert [line for line in _text(ROOT / "constraints.txt").splitlines() if not version.fullmatch(line)] == []


def test_hashed_constraints_are_of_the_same_versions():
    """And every one of them has a hash, so that pip refuses a file that is not one of those."""
    pinned = set(re.findall(r"(?m)^([a-z0-9.-]+==[\w.]+)", _text(ROOT / "constraints.txt")))
    hashed = re.findall(
        r"(?m)^([a-z0-9.-]+==[\w.]+)[^\\\n]*\\\n +--hash=sha256:[0-9a-f]{64}", _text(ROOT / "constraints-hashed.txt")
    )
    assert set(hashed) == pinned


def test_published_schema_is_that_of_the_code():
    assert release.json_schema() == json.loads(json.dumps(release._Document.model_json_schema()))


def test_vision_is_three_lines():
    assert len(_text(ROOT / "VISION.md").splitlines()) == 3


def test_citation_parses_and_names_this_version():
    citation = yaml.safe_load(_text(ROOT / "CITATION.cff"))
    assert citation["version"] == noiseaware.__version__
    assert citation["license"] == "Apache-2.0"
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_each_release_says_first_what_it_means_for_privacy():
    sections = re.split(r"(?m)^## ", _text(ROOT / "CHANGELOG.md"))[1:]
    assert {re.findall(r"(?m)^### (.*)", section)[0] for section in sections} == {"Privacy"}
