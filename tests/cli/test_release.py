"""`noiseaware release` and `ledger`: nothing is lost, half written or spent on a mistake."""

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.cli.conftest import replaced

import noiseaware as na

RELEASE = ("release", "clinic.csv", "--family", "exponential", "--column", "hours", "--bounds", "0", "48")
PAID = (*RELEASE, "--ledger", "clinic.ledger")


def test_release_then_infer(clinic, run):
    done = run(*PAID, "--epsilon", "0.5", "-o", "wait.json")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[1] == "clinic.ledger: 1.5 left of ε = 2"
    assert na.load("wait.json").n == 300
    done = run("infer", "wait.json", "--prior", "gamma(8, 2)", "--method", "naive", "--seed", "0")
    assert done.exit_code == 0, done.stderr
    assert "95 % interval" in done.stdout
    assert "Gamma(8, 2) · method naive · 4,000 draws · seed 0" in done.stdout


def test_ledger_create_and_show(clinic, run):
    done = run("ledger", "create", "new.ledger", "--rho", "1/3")
    assert (done.exit_code, done.stdout) == (0, "new.ledger: 1/3 left of ρ = 1/3 (zCDP)\n")
    run(*PAID, "--epsilon", "0.1", "-o", "wait.json")
    shown = json.loads(run("ledger", "show", "clinic.ledger", "--json").stdout)
    assert (shown["kind"], shown["total"], shown["spent"], shown["remaining"]) == ("epsilon", "2", "0.1", "1.9")
    assert shown["chain"] == "verified"
    assert shown["entries"][0]["id"] == na.load("wait.json").origin.ledger_entry
    told = run("ledger", "show", "clinic.ledger").stdout
    assert told.startswith("clinic.ledger: 1.9 left of ε = 2\nchain verified, 1 entry\n")
    assert "hours" in told
    assert run("ledger", "show", "new.ledger").stdout.endswith("\nchain verified, 0 entries\n")


def test_an_edited_ledger_is_neither_shown_nor_charged(clinic, run, refused):
    run(*PAID, "--epsilon", "0.1", "-o", "wait.json")
    with closing(sqlite3.connect("clinic.ledger")) as database:
        database.executescript("update entry set cost = '1/100'")
    wrong = "ledger clinic.ledger must hold what was charged, but entry 1 does not follow from the total"
    assert wrong in refused("ledger", "show", "clinic.ledger")
    assert wrong in refused("ledger", "show", "clinic.ledger", "--json")
    assert wrong in refused(*PAID, "--epsilon", "0.1", "-o", "again.json")
    assert not (clinic / "again.json").exists()


def test_the_ledger_is_shown_in_order_though_the_clock_went_backwards(clinic, run, monkeypatch):
    times = iter([datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)])
    monkeypatch.setattr("noiseaware.custodian.ledger.ledger.datetime", SimpleNamespace(now=lambda _: next(times)))
    for name in ("first", "second"):
        na.Ledger("clinic.ledger").charge(na.privacy.promised(epsilon=1), {"table": name})
    told = run("ledger", "show", "clinic.ledger").stdout
    assert told.index("2024-01-02") < told.index("first") < told.index("2024-01-01") < told.index("second")
    shown = json.loads(run("ledger", "show", "clinic.ledger", "--json").stdout)
    assert [entry["what"]["table"] for entry in shown["entries"]] == ["first", "second"]


def test_a_delta_is_promised_and_paid(clinic, run):
    done = run("ledger", "create", "both.ledger", "--epsilon", "2", "--delta", "1e-5")
    assert done.stdout == "both.ledger: 2, 1e-05 left of ε = 2, δ = 1e-05\n"
    promise = ("--ledger", "both.ledger", "--epsilon", "0.5", "--delta", "1e-6")
    assert run(*RELEASE, *promise, "-o", "wait.json").exit_code == 0
    release = na.load("wait.json")
    assert (str(release.guarantee), type(release.mechanism)) == ("ε = 0.5, δ = 1e-06", na.mechanism.DiscreteGaussian)
    shown = json.loads(run("ledger", "show", "both.ledger", "--json").stdout)
    assert (shown["spent"], shown["delta"]) == ("0.5", {"total": "1e-05", "spent": "1e-06", "remaining": "9e-06"})


def test_release_to_stdout_and_json(clinic, run):
    done = run(*PAID, "--epsilon", "0.5", "-o", "-")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["schema_version"] == 4
    done = run(*PAID, "--rho", "0.5", "-o", "x.json")
    assert "rho cannot be charged" in done.stderr
    done = run(*RELEASE, "--no-ledger", "--rho", "0.5", "-o", "x.json", "--json")
    assert done.exit_code == 0
    assert done.stdout == (clinic / "x.json").read_text()


@pytest.mark.parametrize(
    ("options", "family"),
    [
        (("bernoulli", "--column", "ill"), na.family.Bernoulli("ill")),
        (("binomial", "--column", "hours", "--trials", "12"), na.family.Binomial("hours", trials=12)),
        (("categorical", "--column", "ward", "--levels", "a, b"), na.family.Categorical("ward", levels=["a", "b"])),
        (("categorical", "--column", "hours", "--levels", "0,1,-2"), na.family.Categorical("hours", levels=[0, 1, -2])),
        (("poisson", "--column", "hours", "--bounds", "0", "20"), na.family.Poisson("hours", (0, 20))),
        (("geometric", "--column", "hours", "--bounds", "0", "20"), na.family.Geometric("hours", (0, 20))),
        (
            ("normal", "--column", "hours", "--bounds", "-5", "20", "--variance", "4", "--outside", "drop"),
            na.family.Normal("hours", (-5, 20), variance=4.0, outside="drop"),
        ),
        (
            ("gamma", "--column", "hours", "--bounds", "0", "20", "--shape", "2"),
            na.family.Gamma("hours", (0, 20), shape=2.0),
        ),
    ],
)  # fmt: skip
def test_every_family_from_its_options(options, family, clinic, run):
    done = run("release", "clinic.csv", "--family", *options, "--epsilon", "1", "--no-ledger", "-o", "x.json")
    assert done.exit_code == 0, done.stderr
    assert na.load("x.json").family == family


PRIVATE = ("release", "clinic.csv", "--family", "exponential", "--column", "hours", "--ledger", "clinic.ledger")


@pytest.mark.parametrize("words", [("--bounds", "private"), ("--bounds=private",)])
def test_private_bounds(words, clinic, run):
    done = run(*PRIVATE, *words, "--epsilon", "1", "--bounds-share", "1/5", "-o", "x.json")
    assert done.exit_code == 0, done.stderr
    assert "chosen privately" in done.stdout
    release = na.load("x.json")
    assert (release.origin.bounds, release.origin.bounds_share) == ("private", na.privacy.exact("share", "0.2"))
    assert release.query.bounds[0] == 0
    assert na.Ledger("clinic.ledger").remaining == 1
    shown = json.loads(run("ledger", "show", "clinic.ledger", "--json").stdout)
    assert len(shown["entries"]) == 1


@pytest.mark.parametrize("words", [("--bounds", "-5", "-0.5"), ("--bounds=-5", "-0.5")])
def test_negative_bounds(words, clinic, run):
    family = ("--family", "normal", "--variance", "2", "--column", "hours")
    done = run("release", "clinic.csv", *words, *family, "--epsilon", "1", "--no-ledger", "-o", "x.json")
    assert done.exit_code == 0, done.stderr
    assert na.load("x.json").query.bounds == (-5, -0.5)


def test_help_teaches_both_kinds_of_bounds(run):
    told = " ".join(run("release", "--help", env={"COLUMNS": "200"}).stdout.split())
    assert "LOW HIGH | private" in told
    assert "--bounds private --epsilon" in told
    assert "--bounds-share" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (replaced((*PAID, "--epsilon", "0.5"), column="weight"), "weight"),
        (("release", "days.parquet", *replaced(PAID, column="day")[2:], "--epsilon", "0.5"), "must hold numbers"),
        (replaced((*PAID, "--epsilon", "0.5"), family="exponentail"), "family must be one of"),
        ((*PAID, "--bounds", "48", "0", "--epsilon", "0.5"), "bounds must have low < high, got (48.0, 0.0)"),
        ((*PAID, "--bounds", "0", "inf", "--epsilon", "0.5"), "bounds must be finite"),
        ((*PAID, "--bounds", "0", "nan", "--epsilon", "0.5"), "bounds must be finite"),
        ((*PAID, "--bounds", "0", "many", "--epsilon", "0.5"), "--bounds"),
        ((*PRIVATE, "--bounds", "0", "private", "--epsilon", "0.5"), "two numbers, or the word private, got 0 private"),
        ((*PRIVATE, "--bounds", "private", "--bounds-share", "1", "--epsilon", "1"), "bounds_share must be between"),
        ((*PRIVATE, "--bounds", "private", "--bounds-share", "a", "--epsilon", "1"), "bounds_share must be a positive"),
        ((*PAID, "--bounds-share", "0.1", "--epsilon", "1"), "bounds_share must not be given unless"),
        ((*replaced(PRIVATE, family="bernoulli"), "--bounds", "private", "--epsilon", "1"), "bernoulli family"),
        ((*PRIVATE, "--bounds", "0", "--epsilon", "0.5"), "must be two numbers, such as --bounds 0 48, got 0."),
        ((*PRIVATE, "--bounds=0,48", "--epsilon", "1"), "must be two numbers, such as --bounds 0 48, got 0,48."),
        ((*PRIVATE, "--bounds", "--epsilon", "1"), "must be two numbers, such as --bounds 0 48, got none."),
        ((*PRIVATE, "--epsilon", "0.5"), "bounds must be given"),
        ((*PAID, "--epsilon", "0"), "epsilon must be positive, got 0"),
        ((*PAID, "--epsilon", "-1"), "epsilon must be positive, got -1"),
        ((*PAID, "--epsilon", "nan"), "epsilon must be a positive number, got nan"),
        ((*PAID, "--epsilon", "inf"), "epsilon must be a positive number, got inf"),
        ((*PAID, "--rho", "0"), "rho must be positive, got 0"),
        (PAID, "give exactly one of epsilon"),
        ((*PAID, "--epsilon", "1", "--rho", "1"), "give exactly one of epsilon"),
        ((*PAID, "--epsilon", "1", "--trials", "3"), "trials must not be given for the exponential family"),
        ((*PAID, "--epsilon", "1", "--outside", "keep"), "outside must be 'clamp' or 'drop'"),
        ((*PAID, "--epsilon", "1", "--neighbours", "friends"), "neighbours must be 'replace' or 'add_remove'"),
        ((*RELEASE, "--epsilon", "1"), "--ledger must be given"),
        ((*PAID, "--no-ledger", "--epsilon", "1"), "must not be given together"),
        (replaced((*PAID, "--epsilon", "1"), ledger="none.ledger"), "ledger must exist"),
        (replaced((*PAID, "--epsilon", "1"), ledger="clinic.csv"), "ledger must be a file made by"),
        (("release", "none.csv", *PAID[2:], "--epsilon", "1"), "none.csv"),
        (("release", "empty.csv", *PAID[2:], "--epsilon", "1"), "records, got 0"),
        (("release", *PAID[2:], "--epsilon", "1"), "TABLE must be given"),
        (("release", "clinic.csv", "--epsilon", "1", "--no-ledger"), "poisson_regression, got nothing."),
        ((*PAID, "--epsilon", "1", "--colour", "red"), "No such option"),
    ],
)
def test_bad_release_costs_nothing_and_writes_nothing(words, sentence, clinic, refused):
    before = sorted(p.name for p in clinic.iterdir())
    assert sentence in refused(*words, "-o", "x.json")
    assert sorted(p.name for p in clinic.iterdir()) == before
    assert na.Ledger("clinic.ledger").spent == 0


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (("-o", "ill.json"), "exists already"),
        (("-o", "none/x.json"), "output folder must exist"),
        (("-o", "."), ". must be a file, got a folder"),
        (("-o", ".", "--force"), ". must be a file, got a folder"),
        (("-o", "clinic.csv", "--force"), "output must not be the table itself"),
        (("-o", "clinic.ledger", "--force"), "output must not be the ledger itself"),
        (("-o", "./clinic.ledger-journal"), "output must not be the ledger's -journal"),
        (("-o", "clinic.ledger-journal", "--force"), "output must not be the ledger's -journal"),
        (("-o", "clinic.ledger-wal"), "output must not be the ledger's -wal"),
        (("-o", "clinic.ledger-shm"), "output must not be the ledger's -shm"),
        ((), "--output must be given"),
    ],
)
def test_output_is_checked_before_the_ledger_is_charged(output, sentence, clinic, refused):
    before = {p.name: p.read_bytes() for p in clinic.iterdir()}
    assert sentence in refused(*PAID, "--epsilon", "0.5", *output)
    assert {p.name: p.read_bytes() for p in clinic.iterdir()} == before


ONE = '[[release]]\nfamily = "bernoulli"\ncolumn = "ill"\nepsilon = "0.5"\noutput = "{}"\n'
BY = ONE + "by = {{ ill = [0, 1] }}\n"


@pytest.mark.parametrize(
    ("releases", "force", "sentence"),
    [
        (ONE.format("g/ill=0.json") + BY.format("g"), (), "another file for each release of a plan, got g/ill=0.json"),
        (BY.format("g") + ONE.format("h/../g/ill=1.json"), (), "another file for each release of a plan, got h/../g"),
        (BY.format("g") + BY.format("./g"), (), "another file for each release of a plan, got ./g/ill=0.json"),
        (ONE.format("g") + BY.format("g"), (), "output must not be the folder of another release, got g."),
        (ONE.format("p.toml"), ("--force",), "output must not be the plan itself, got p.toml."),
        (ONE.format("clinic.csv"), ("--force",), "output must not be the table itself, got clinic.csv."),
        (ONE.format("x.json") + ONE.format("link"), ("--force",), "output must not be the plan itself, got link."),
        (ONE.format("x.json") + ONE.format("clinic.ledger-shm"), (), "output must not be the ledger's -shm"),
    ],
)
def test_outputs_of_a_plan_take_no_others_place(releases, force, sentence, clinic, refused):
    """Checked for all of them before any is charged."""
    (clinic / "h").mkdir()
    (clinic / "link").symlink_to("p.toml")
    (clinic / "p.toml").write_text(f'table = "clinic.csv"\nledger = "clinic.ledger"\n{releases}')
    before = {p.name: p.read_bytes() for p in clinic.iterdir() if p.is_file()}
    assert sentence in refused("release", "--plan", "p.toml", *force)
    assert {p.name: p.read_bytes() for p in clinic.iterdir() if p.is_file()} == before


def test_the_journal_of_a_ledger_by_another_name_is_not_replaced(clinic, refused):
    """SQLite keeps it beside the file itself."""
    (clinic / "books").mkdir()
    (clinic / "clinic.ledger").rename(clinic / "books" / "main.ledger")
    (clinic / "clinic.ledger").symlink_to("books/main.ledger")
    for name in ("clinic.ledger-journal", "books/main.ledger-journal", "books/main.ledger"):
        assert "output must not be the ledger" in refused(*PAID, "--epsilon", "0.5", "-o", name, "--force")
    assert na.Ledger("clinic.ledger").verify() == 0


def test_every_group_that_cannot_be_written_is_printed(clinic, monkeypatch, run):
    honest = na.Release.save

    def full(self, path, *, force=False):
        if "ill=1" not in path:
            raise OSError(28, "No space left on device")
        honest(self, path, force=force)

    monkeypatch.setattr(na.Release, "save", full)
    (clinic / "p.toml").write_text(
        f'table = "clinic.csv"\nledger = "clinic.ledger"\n{BY.format("g").replace("1]", "1, 2]")}'
    )
    done = run("release", "--plan", "p.toml")
    assert done.exit_code == 2
    assert "g/ill=0.json was not written" in done.stderr
    assert "g/ill=2.json was not written" in done.stderr
    assert na.load("g/ill=1.json").origin.group == (("ill", 1),)
    printed = [json.loads(text + "}") for text in done.stdout.split("\n}\n")[:-1]]
    assert [one["origin"]["group"] for one in printed] == [{"ill": 0}, {"ill": 2}]


def test_what_is_no_file_is_not_replaced_by_one(clinic, refused):
    """As /dev/null was, for an administrator."""
    os.mkfifo("pipe")
    assert "must be a file, got a device or a pipe" in refused(*PAID, "--epsilon", "0.5", "-o", "pipe", "--force")
    assert na.Ledger("clinic.ledger").spent == 0


def test_a_paid_release_is_not_lost_when_the_disk_fails(clinic, monkeypatch, run):
    def full(self, path, *, force=False):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(na.Release, "save", full)
    done = run(*PAID, "--epsilon", "0.5", "-o", "x.json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["origin"]["ledger_entry"] == na.Ledger("clinic.ledger").entries()[0].id
    assert "is paid for but x.json was not written" in done.stderr


def test_ledger_refusal_exits_3(clinic, refused):
    said = refused(*PAID, "--epsilon", "2.1", "-o", "x.json", status=3)
    assert "ledger must have ε = 2.1 left, has ε = 2 of ε = 2" in said
    assert na.Ledger("clinic.ledger").spent == 0
    assert not (clinic / "x.json").exists()


HOURS = ("release", "clinic.csv", "--family", "exponential", "--column", "hours", "--bounds", "0", "48", "--no-ledger")


@pytest.mark.parametrize("cells", [["1", "2"], ["", "> 60"], ["2024-01-31", "3,5"]])
def test_what_missing_cells_count_as_is_said_whether_there_are_any_or_not(cells, clinic, run):
    (clinic / "clinic.csv").write_text("hours;ill\n" + "".join(f"{cell};no\n" for cell in cells))
    done = run(*HOURS, "--epsilon", "1", "-o", "a.json")
    assert done.stderr == (
        "noiseaware: a.json: a cell that is empty or no number counts as 0, the lower bound; "
        "--missing (in a plan, missing) has it otherwise.\n"
    )
    assert na.load("a.json").origin.missing == (("hours", 0.0),)


@pytest.mark.parametrize(
    ("options", "missing", "true"),
    [
        ("--family exponential --column hours --bounds 0 48 --missing 5", (("hours", 5.0),), ()),
        ("--family exponential --column hours --bounds 0 48 --missing leave_out", "leave_out", ()),
        ("--family bernoulli --column ward --true a,b --missing no", (("ward", 0),), ("a", "b")),
        ("--family bernoulli --column ward --true a --true b --missing 1", (("ward", 1),), ("a", "b")),
        ("--family categorical --column ward --levels a,b --missing b", (("ward", "b"),), ()),
        ("--family categorical --column hours --levels 1,2 --missing 2", (("hours", 2),), ()),
        ("--family categorical --column ward --levels 1,b --missing 1", (("ward", "1"),), ()),
        ("--family linear_regression --x ill --y hours --bounds 0 9 --missing ill=1,hours=-2.5", "ill 1, hours", ()),
    ],
)
def test_what_missing_cells_count_as_can_be_said(options, missing, true, run):
    done = run("release", "clinic.csv", *options.split(), "--epsilon", "1", "--no-ledger", "-o", "a.json")
    assert (done.exit_code, done.stderr) == (0, "")
    origin = na.load("a.json").origin
    assert origin.missing == ((("ill", 1.0), ("hours", -2.5)) if missing == "ill 1, hours" else missing)
    assert true in (origin.true, ())
    told = run("infer", "a.json", "--prior", "gamma(1, 1)", "--seed", "0").stdout if "--missing 5" in options else ""
    assert ("A cell that is empty or no number counts as 5." in told) == ("--missing 5" in options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--missing often", "missing must be 'leave_out' or a finite number for hours, got 'often'."),
        ("--missing inf", "missing must be 'leave_out' or a finite number for hours, got inf."),
        ("--true F", "true must be left out for the exponential family"),
        ("--true ,", "true must be names between commas, got ','."),
    ],
)
def test_what_missing_cells_cannot_count_as(options, sentence, refused):
    assert sentence in refused(*HOURS, *options.split(), "--epsilon", "1", "-o", "a.json")
    words = (
        "release clinic.csv --family linear_regression --x ill --y hours --bounds 0 9 --epsilon 1 --no-ledger -o a.json"
    )
    assert "missing must be 'leave_out', or a value for each" in refused(*words.split(), "--missing", "3")
    assert "each column once" in refused(*words.split(), "--missing", "ill=3, ill=4")
    assert "each column once" in refused(*words.split(), "--missing", "ill=, hours")
    assert "must name each of ill, hours" in refused(*words.split(), "--missing", "ill=3, ours=4")


def test_force_overwrites(clinic, run):
    done = run(*PAID, "--epsilon", "0.5", "-o", "ill.json", "--force")
    assert done.exit_code == 0
    assert na.load("ill.json").family.name == "exponential"
