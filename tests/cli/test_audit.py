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
epsilon = 30
delta = 1e-6
output = "ill.json"
"""


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return "plan.toml"


def test_a_plan_is_audited_without_its_table(run, plan, tmp_path):
    done = run("audit", plan, "--releases", 12_000, "--plot", "pictures", env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.stderr
    for word in ("wait.json", "ε = 0.5", "ε = 30, δ = 1e-06", "✓ within"):
        assert word in done.stdout
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"wait.png", "ill.png"}
    assert not (tmp_path / "wait.json").exists()


def test_json_is_for_machines(run, plan):
    done = run("audit", plan, "--releases", 12_000, "--json")
    wait, ill = json.loads(done.stdout)
    assert (wait["claim"], wait["letter"], wait["is_within"]) == (0.5, "ε", True)
    assert ill["letter"] == "ρ"
    assert 0 <= ill["at_least"] <= ill["claim"]
    assert wait["releases"] == 24_000
    assert 1000 < wait["needed"] <= 12_000


def test_too_few_releases_have_no_tick_and_say_how_many_it_takes(run, plan, tmp_path):
    """Of a twentieth, a thousand show next to nothing."""
    (tmp_path / plan).write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.05"))
    done = run("audit", plan, "--releases", 1000, env={"COLUMNS": "160"})
    assert done.exit_code == 2
    wait = next(line for line in done.stdout.splitlines() if line.startswith("wait.json"))
    assert "✓" not in wait
    assert "no verdict: takes " in wait
    assert "releases must be at least " in done.stderr
    assert "for a verdict on wait.json, got 1000." in done.stderr
    assert json.loads(run("audit", plan, "--releases", 1000, "--json").stdout)[0]["is_within"] is None


def test_a_broken_promise_exits_1(run, plan, monkeypatch):
    from noiseaware.custodian.audit import Audit

    monkeypatch.setattr(Audit, "is_within", False)
    done = run("audit", plan, "--releases", 1000, env={"COLUMNS": "160"})
    assert done.exit_code == 1
    assert "✗ broken" in done.stdout


def test_a_missing_plan_is_a_sentence(refused):
    assert "plan must exist" in refused("audit", "missing.toml")


def test_persons_groups_and_private_bounds_are_audited(run, tmp_path):
    agreed = PLAN.replace(
        "epsilon = 30\ndelta = 1e-6", 'epsilon = 1\nunit = "patient"\nmax_records = 3\nby = { ward = [1, 2] }'
    )
    agreed = agreed.replace("bounds = [0, 48]\nepsilon = 0.5", 'bounds = "private"\nepsilon = 2').replace(
        "ill.json", "ill"
    )
    (tmp_path / "all.toml").write_text(agreed)
    done = run("audit", "all.toml", "--releases", 20_000, "--json")
    assert done.exit_code == 0, done.stderr
    wait, ill = json.loads(done.stdout)
    assert wait["is_within"] is ill["is_within"] is True
    assert "whose bounds are chosen" in wait["neighbours"]
    assert ill["neighbours"] == "one person more, with 4 records of whom 3 count"


def test_the_share_of_a_private_n_is_audited(run, tmp_path, monkeypatch):
    from noiseaware.custodian import audit as auditing

    made = []
    honest = auditing._of_noise
    monkeypatch.setattr(auditing, "_of_noise", lambda grid, *rest: made.append(grid) or honest(grid, *rest))
    agreed = 'epsilon = 0.5\nneighbours = "add_remove"\nn_share = "0.1"'
    (tmp_path / "private.toml").write_text(PLAN.replace("epsilon = 0.5", agreed))
    run("audit", "private.toml", "--releases", 1000)
    assert made[1].mechanism.scale == 20.0  # 1 over a tenth of ε


def test_a_picture_is_not_overwritten_unless_asked(run, refused, plan, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "ill.png").write_bytes(b"mine")
    words = ("audit", plan, "--releases", 12_000, "--plot", "pictures")
    assert "output pictures/ill.png exists already; give another name or --force" in refused(*words)
    assert [path.read_bytes() for path in pictures.iterdir()] == [b"mine"]
    assert run(*words, "--force").exit_code == 0
    assert (pictures / "ill.png").read_bytes() != b"mine"
    assert "plot must be a folder, got the file plan.toml" in refused(*words[:-1], "plan.toml")
    (tmp_path / "plan.toml").write_text(PLAN.replace('"ill.json"', '"other/wait.json"'))
    assert "output must have another name for each release" in refused(*words[:-1], "new")
    assert not (tmp_path / "new").exists()
