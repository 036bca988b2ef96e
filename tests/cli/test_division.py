"""Private n, groups and persons with several records, from the command line."""

import json

import pytest

import noiseaware as na

RELEASE = ("release", "clinic.csv", "--family", "bernoulli", "--column", "ill", "--epsilon", "0.5")
GROUPS = (*RELEASE, "--ledger", "clinic.ledger", "--by", "ward=a,b,x/y", "-o", "ill")


def test_a_file_for_each_group(clinic, run):
    done = run(*GROUPS)
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in (clinic / "ill").iterdir()) == ["ward=a.json", "ward=b.json", "ward=x%2Fy.json"]
    release = na.load(clinic / "ill" / "ward=a.json")
    assert release.origin.group == (("ward", "a"),)
    assert "itself noisy" in done.stdout
    assert "1.5 left" in done.stdout  # the groups cost what one costs


def test_a_release_that_counts_more_than_was_asked_says_so(clinic, run):
    """A ledger of one record that is replaced: one that comes or goes counts twice there."""
    assert (
        run(
            *RELEASE[: RELEASE.index("--epsilon")], "--epsilon", "0.1", "--ledger", "clinic.ledger", "-o", "a.json"
        ).exit_code
        == 0
    )
    done = run(*RELEASE, "--by", "ward=a,b,c", "--ledger", "clinic.ledger", "-o", "wards")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("this one counted as ε = 1 for replacing one record")


def test_several_columns_of_groups_and_json(clinic, run):
    done = run(*RELEASE, "--no-ledger", "--by", "ward=a,b", "--by", "hours=1,2", "-o", "new/ill", "--json")
    assert done.exit_code == 0, done.stderr
    assert [made["origin"]["group"] for made in json.loads(done.stdout)] == [
        {"ward": ward, "hours": hours} for ward in "ab" for hours in (1, 2)
    ]
    assert (clinic / "new" / "ill" / "ward=a,hours=1.json").exists()


def test_groups_are_not_written_over(clinic, run, refused):
    assert run(*GROUPS).exit_code == 0
    assert "exists already" in refused(*GROUPS)
    assert float(na.Ledger("clinic.ledger").spent) == 0.5
    assert run(*GROUPS, "--force").exit_code == 0


def test_persons_and_a_private_n(clinic, run):
    words = (*RELEASE, "--no-ledger", "--unit", "hours", "--max-records", "2", "--n-share", "0.5", "-o", "x.json")
    assert run(*words).exit_code == 0
    release = na.load("x.json")
    assert (release.n_mechanism.scale, release.mechanism.scale) == (8, 8)
    assert run(*RELEASE, "--no-ledger", "--neighbours", "add_remove", "-o", "y.json").exit_code == 0
    told = run("infer", "y.json", "--prior", "beta(1, 9)", "--seed", "0", "--draws", "500", "--report", "y.html")
    assert told.exit_code == 0, told.stderr
    assert "Exact" in told.stdout
    assert "itself noisy" in (clinic / "y.html").read_text()


def test_a_plan_with_groups(clinic, run):
    (clinic / "plan.toml").write_text(
        'table = "clinic.csv"\nledger = "clinic.ledger"\n[[release]]\nfamily = "bernoulli"\ncolumn = "ill"\n'
        'epsilon = 1\nby = { ward = ["a", "b"] }\nunit = "note"\nmax_records = 3\noutput = "groups"\n'
    )
    done = run("release", "--plan", "plan.toml")
    assert done.exit_code == 0, done.stderr
    assert na.load(clinic / "groups" / "ward=b.json").origin.max_records == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--by", "ward", "-o", "x"), "--by must be a column and its public levels"),
        (("--by", "ward=a,b", "-o", "-"), "output must be a folder"),
        (("--by", "ward=a,b", "-o", "clinic.csv"), "output must be a folder"),
        (("--by", "ward=a,b", "--neighbours", "replace", "-o", "x"), "neighbours must be 'add_remove'"),
        (("--unit", "hours", "-o", "x.json"), "max_records must be a whole number"),
        (("--n-share", "0.2", "-o", "x.json"), "n_share must be left out"),
    ],
)
def test_refusals(words, sentence, refused):
    assert sentence in refused(*RELEASE, "--no-ledger", *words)


def test_calibrate_a_private_n(run):
    words = ("--family", "categorical", "--prior", "dirichlet(1, 2)", "-n", "50", "--epsilon", "1", "--trials", "60")
    done = run("calibrate", *words, "--neighbours", "add_remove", "--seed", "3", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["neighbours"] == "add_remove"
    refused = run("calibrate", *words, "--neighbours", "add_remove", "--method", "gibbs")
    assert "where n is private" in refused.stderr
