"""`noiseaware check`: verdicts on standard output, 0 certified, 1 not, 2 bad input."""

import json
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"

RAW = """
import noiseaware.program as pp

@pp.program(epsilon=1)
def fine(p, db: pp.Booleans(adjacency="replace")):
    return p.laplace(db.count(), epsilon=1)

@pp.program(epsilon=1)
def raw(p, db: pp.Booleans(adjacency="replace")):
    return db.count()

@pp.program(epsilon=1, delta="1e-6")
def steep(p, db: pp.Booleans(adjacency="replace")):
    return p.gaussian(db.count(), epsilon=1, delta="1e-6")

@pp.program(epsilon=1)
def decided(p, db: pp.Booleans(adjacency="replace")):
    if db.count() > 3:
        return 1
"""


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "mixed.py"
    path.write_text(RAW)
    return path


def test_a_certified_program_tells_verdict_cost_obligations_lemmas_and_time(run):
    done = run("check", EXAMPLES / "coin_laplace.py", env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.stderr
    for word in ("✓ certified", "coin_laplace", "ε = 1", " ms", "line 9", "the budget", "rests on laplace, compo"):
        assert word in done.stdout
    assert done.stderr == ""


def test_programs_that_are_not_certified_exit_1(run, mixed):
    done = run("check", mixed, env={"COLUMNS": "200"})
    assert done.exit_code == 1
    for word in ("✓ certified  fine", "✗ refuted  raw", "? not proved  steep", "? not proved  decided"):
        assert word in done.stdout
    assert "has probability 1 for [False] and 0 for [True]" in done.stdout
    assert "mixed.py, line 18: a private value cannot decide an if" in done.stdout


def test_one_program_of_a_file_by_name(run, refused, mixed):
    assert run("check", f"{mixed}:fine").exit_code == 0
    assert run("check", f"{mixed}:raw").exit_code == 1
    assert "program must be one of fine, raw, steep, decided, got 'other'." in refused("check", f"{mixed}:other")


def test_json_is_for_machines(run, mixed):
    done = run("check", mixed, "--json")
    fine, raw, steep, decided = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (fine["verdict"], fine["epsilon"], fine["delta"], fine["neighbours"]) == ("certified", "1", "0", "replace")
    assert [known["name"] for known in fine["lemmas"]] == ["laplace", "post-processing", "counts"]
    assert raw["counterexample"]["databases"] == [[False], [True]]
    assert raw["counterexample"]["probabilities"] == [1.0, 0.0]
    assert not all(obligation["is_proved"] for obligation in steep["obligations"])
    assert decided["reason"].startswith("mixed.py, line 18")


def test_no_time_is_no_proof(run):
    done = run("check", EXAMPLES / "normal_mean.py", "--seconds", "1e-9")
    assert done.exit_code == 1
    assert "? not proved  normal_mean" in done.stdout


def test_bad_input_is_one_sentence(refused, tmp_path):
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "notes.txt").write_text("")
    assert "must define a program with @pp.program" in refused("check", "empty.py")
    assert "ModuleNotFoundError" in refused("check", "broken.py")
    assert "must be a Python file that exists" in refused("check", "missing.py")
    assert "must be a Python file that exists" in refused("check", "notes.txt")


def test_every_example_is_certified_from_the_command_line(run, tmp_path):
    for path in sorted(EXAMPLES.glob("*.py")):
        shutil.copy(path, tmp_path)
        assert run("check", path.name).exit_code == 0, path.name
