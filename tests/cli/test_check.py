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


BROKEN = """
from __future__ import annotations
import noiseaware.program as pp

@pp.program(epsilon=1)
def unbounded(p, db: pp.Reals(0, 30, adjacency="replace")):
    return p.laplace(db.sum(), epsilon=1)

@pp.program(epsilon=-1)
def free(p, db: pp.Booleans(adjacency="replace")):
    return db.size

@pp.program(epsilon=1)
def lazy(p, db: pp.Booleans(adjacency="replace")):
    yield db.count()

assigned = pp.program(epsilon=1)(3)

@pp.program(epsilon=1)
def impossible(p, db: pp.Booleans(adjacency="replace")):
    return p.laplace(db.count(), epsilon=-1)

@pp.program(epsilon=1)
def own_mistake(p, db: pp.Booleans(adjacency="replace")):
    return [1, 2][7]

@pp.program(epsilon=1)
def called(p, db: pp.Booleans(adjacency="replace")):
    return p.laplace(db.count() / db.size(), epsilon=1)

@pp.program(epsilon=1)
def fine(p, db: pp.Booleans(adjacency="replace")):
    return p.laplace(db.count(), epsilon=1)
"""


def test_a_bad_program_is_told_with_its_line_and_hides_no_other(run, tmp_path):
    (tmp_path / "p.py").write_text(BROKEN)
    done = run("check", "p.py", "--json")
    assert done.exit_code == 1
    found = {one["program"]: one for one in json.loads(done.stdout)}
    assert found.pop("fine")["verdict"] == "certified"
    assert {one["verdict"] for one in found.values()} == {"not proved"}
    reasons = {name: one["reason"] for name, one in found.items()}
    assert reasons == {
        "unbounded": reasons["unbounded"],
        "free": "p.py, line 9: epsilon must be positive, got -1.",
        "lazy": "p.py, line 13: program lazy must return its result, and not yield or await.",
        "assigned": "p.py, line 17: program must be made of a function, def or lambda, got int.",
        "impossible": "p.py, line 21: epsilon must be positive, got -1.",
        "own_mistake": "p.py, line 25: IndexError: list index out of range",
        "called": "p.py, line 29: size is an attribute of the database: write db.size, without brackets.",
    }
    assert reasons["unbounded"].startswith("p.py, line 5: bounds must be two finite numbers (low, high), got 0; write")
    done = run("check", "p.py", env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert done.stdout.count("? not proved") == 7
    assert "✓ certified  fine" in done.stdout
    assert "p.py, line 21: epsilon must be positive" in done.stdout
    assert run("check", "p.py:fine").exit_code == 0
    assert run("check", "p.py:lazy").exit_code == 1


def test_a_file_that_fails_elsewhere_is_refused_with_its_line(refused, tmp_path):
    (tmp_path / "p.py").write_text("import noiseaware.program as pp\n\nLEVELS = pp.Booleans(adjacency='swap')\n")
    assert "file must be a Python file that runs, got p.py, line 3: adjacency must be" in refused("check", "p.py")
    (tmp_path / "p.py").write_text("def f(:\n")
    assert "p.py, line 1" in refused("check", "p.py")
