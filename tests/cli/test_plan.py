"""`noiseaware release --plan`."""

import pytest

import noiseaware as na

PLAN = """
table = "clinic.csv"
ledger = "clinic.ledger"

[[release]]
family = "exponential"
column = "hours"
bounds = [0, 48]
epsilon = 0.5
output = "hours.json"

[[release]]
family = "categorical"
column = "ward"
levels = ["a", "b", "c"]
epsilon = "1/4"
output = "ward.json"
"""


def test_plan(clinic, run):
    (clinic / "sub").mkdir()
    (clinic / "clinic.toml").write_text(PLAN)
    done = run("release", "--plan", clinic / "clinic.toml")
    assert done.exit_code == 0, done.stderr
    assert na.load("hours.json").query.bounds == (0, 48)
    assert na.load("ward.json").query.levels == ("a", "b", "c")
    assert na.Ledger("clinic.ledger").spent == na.privacy.exact("spent", "0.75")


def test_plan_says_what_missing_cells_count_as(clinic, run):
    """What is said is not said again; what is not, is, once for each release."""
    said = PLAN.replace('output = "hours.json"', 'missing = "leave_out"\noutput = "hours.json"')
    said += """
[[release]]
family = "bernoulli"
column = "ward"
true = ["a"]
missing = true
epsilon = 0.1
output = "a.json"

[[release]]
family = "multivariate_normal"
columns = ["ill", "hours"]
bounds = [0, 48]
missing = { ill = 0, hours = "4.5" }
epsilon = 0.1
output = "both.json"
"""
    (clinic / "clinic.toml").write_text(said)
    done = run("release", "--plan", clinic / "clinic.toml")
    assert done.exit_code == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.endswith(
        "ward.json: a cell that is none of the levels counts as a, the first level; "
        "--missing (in a plan, missing) has it otherwise."
    )
    origins = [na.load(f"{name}.json").origin for name in ("hours", "a", "both")]
    assert [origin.missing for origin in origins] == ["leave_out", (("ward", 1),), (("ill", 0.0), ("hours", 4.5))]
    assert origins[1].true == ("a",)


@pytest.mark.filterwarnings("default:private bounds were chosen")  # the clinic of these tests has 300 records
def test_plan_with_private_bounds(clinic, run):
    private = 'bounds = "private"\nbounds_share = 0.2\nbounds_quantiles = [0.1, "0.9"]'
    (clinic / "clinic.toml").write_text(PLAN.replace("bounds = [0, 48]", private))
    done = run("release", "--plan", clinic / "clinic.toml")
    assert done.exit_code == 0, done.stderr
    origin = na.load("hours.json").origin
    assert (origin.bounds, float(origin.bounds_share), [float(q) for q in origin.bounds_quantiles]) == (
        "private",
        0.2,
        [0.9],
    )
    assert na.Ledger("clinic.ledger").spent == na.privacy.exact("spent", "0.75")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("clinic.csv",), "TABLE"),
        (("--family", "bernoulli"), "--family"),
        (("--epsilon", "0.1"), "--epsilon"),
        (("--bounds", "private"), "--bounds"),
        (("--x", "age"), "--x"),
        (("--ledger", "clinic.ledger"), "--ledger"),
        (("--no-ledger",), "--no-ledger"),
        (("--spark",), "--spark"),
        (("-o", "q.json", "--force"), "--output"),
    ],
)
def test_what_a_plan_says_is_said_by_no_option(words, named, clinic, refused):
    (clinic / "clinic.toml").write_text(PLAN)
    assert f"--plan must stand alone, got {named}:" in refused("release", "--plan", "clinic.toml", *words)
    assert not (clinic / "hours.json").exists()


def test_how_a_plan_is_carried_out_is_said_by_options(clinic, run):
    (clinic / "clinic.toml").write_text(PLAN)
    (clinic / "hours.json").write_text("mine")
    done = run("release", "--plan", "clinic.toml", "--force", "--quiet", "--json")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new", "sentence", "status"),
    [
        ("epsilon = 0.5", "epsilon = 1.9", "2.15", 3),
        ("epsilon = 0.5", "epsilon = 0.5\nscale = 3", "fields must be among", 2),
        ("epsilon = 0.5", "epsilon = nan", "release 1: epsilon must be a positive number", 2),
        ('"ward.json"', '"hours.json"', "output must be another file", 2),
        ('"ward.json"', '"ill.json"', "exists already", 2),
        ('levels = ["a", "b", "c"]', "", "release 2: levels must be given", 2),
        ('ledger = "clinic.ledger"', "", "ledger must be a path or a URL, or false", 2),
        ('table = "clinic.csv"', "table = 3", "table must be the path", 2),
        ("[[release]]", "[[release", "must be readable TOML", 2),
        ("bounds = [0, 48]", "bounds = [48, 0]", "low < high", 2),
        ("bounds = [0, 48]", 'bounds = "0 48"', "bounds must be two numbers", 2),
        ("bounds = [0, 48]", 'bounds = "private"\nbounds_share = 2', "bounds_share must be between 0 and 1", 2),
        ("bounds = [0, 48]", "bounds = [0, 48]\nbounds_share = 0.1", "release 1: bounds_share must not be given", 2),
        ('levels = ["a", "b", "c"]', 'levels = ["a", "b"]\nbounds = "private"', "for the categorical family", 2),
    ],
)
def test_bad_plan_costs_nothing(old, new, sentence, status, clinic, refused):
    assert old in PLAN
    (clinic / "clinic.toml").write_text(PLAN.replace(old, new))
    before = sorted(p.name for p in clinic.iterdir())
    assert sentence in refused("release", "--plan", "clinic.toml", status=status)
    assert sorted(p.name for p in clinic.iterdir()) == before
    assert na.Ledger("clinic.ledger").spent == 0
