"""`noiseaware audit`: 0 within, 1 broken, 2 bad input; no table and no ledger is read."""

import json

import pytest

PLAN = """
table = "secret.csv"
ledger = false

[[release]]
family = "exponential"
column = "wait"
bounds = [0, 48]
epsilon = 0.5
output = "wait.json"

[[release]]
family = "bernoulli"
column = "ill"
epsilon = 1
delta = 1e-6
output = "ill.json"
"""


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return "plan.toml"


def test_a_plan_is_audited_without_its_table(run, plan, tmp_path):
    done = run("audit", plan, "--releases", 2000, "--plot", "pictures", env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.stderr
    for word in ("wait.json", "ε = 0.5", "ε = 1, δ = 1e-06", "✓ within"):
        assert word in done.stdout
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"wait.png", "ill.png"}
    assert not (tmp_path / "wait.json").exists()


def test_json_is_for_machines(run, plan):
    done = run("audit", plan, "--releases", 1000, "--json")
    wait, ill = json.loads(done.stdout)
    assert (wait["claim"], wait["letter"], wait["is_within"]) == (0.5, "ε", True)
    assert 0 <= ill["at_least"] <= 1
    assert wait["releases"] == 2000


def test_a_broken_promise_exits_1(run, plan, monkeypatch):
    from noiseaware.custodian.audit import Audit

    monkeypatch.setattr(Audit, "is_within", False)
    done = run("audit", plan, "--releases", 1000, env={"COLUMNS": "160"})
    assert done.exit_code == 1
    assert "✗ broken" in done.stdout


def test_private_bounds_and_missing_plans_are_a_sentence(refused, tmp_path):
    (tmp_path / "private.toml").write_text(PLAN.replace("bounds = [0, 48]", 'bounds = "private"'))
    assert "must be public to be audited" in refused("audit", "private.toml")
    assert "plan must exist" in refused("audit", "missing.toml")


def test_the_share_of_a_private_n_is_audited(run, tmp_path, monkeypatch):
    from noiseaware.custodian import audit as auditing

    made = []
    honest = auditing._losses
    monkeypatch.setattr(auditing, "_losses", lambda grid, *rest: made.append(grid) or honest(grid, *rest))
    agreed = 'epsilon = 0.5\nneighbours = "add_remove"\nn_share = "0.1"'
    (tmp_path / "private.toml").write_text(PLAN.replace("epsilon = 0.5", agreed))
    assert run("audit", "private.toml", "--releases", 1000).exit_code == 0
    assert made[1].mechanism.scale == 20.0  # 1 over a tenth of ε


def test_a_unit_is_refused_before_anything_is_audited(refused, tmp_path):
    person = PLAN.replace("delta = 1e-6", 'delta = 1e-6\nunit = "patient"\nmax_records = 3')
    (tmp_path / "person.toml").write_text(person)
    assert "unit of ill.json must be left out to be audited, got patient" in refused("audit", "person.toml")


def test_a_picture_is_not_overwritten_unless_asked(run, refused, plan, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "ill.png").write_bytes(b"mine")
    words = ("audit", plan, "--releases", 1000, "--plot", "pictures")
    assert "output pictures/ill.png exists already; give another name or --force" in refused(*words)
    assert [path.read_bytes() for path in pictures.iterdir()] == [b"mine"]
    assert run(*words, "--force").exit_code == 0
    assert (pictures / "ill.png").read_bytes() != b"mine"
    assert "plot must be a folder, got the file plan.toml" in refused(*words[:-1], "plan.toml")
    (tmp_path / "plan.toml").write_text(PLAN.replace('"ill.json"', '"other/wait.json"'))
    assert "output must have another name for each release" in refused(*words[:-1], "new")
    assert not (tmp_path / "new").exists()
