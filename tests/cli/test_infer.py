"""`noiseaware infer`: results on stdout, one sentence for each mistake."""

import json
import pathlib
import re
import time

import jax
import pytest
from tests.cli.conftest import replaced
from tests.sampler.stand_in import drawing, stand_in

import noiseaware as na
from noiseaware.cli import own
from noiseaware.cli.prior import parse

INFER = ("infer", "ill.json", "--prior", "beta(1, 1)", "--method", "naive", "--seed", "0")


def test_infer_json_is_the_posterior(clinic, run):
    done = run(*INFER, "--json", "--draws", "500")
    document = json.loads(done.stdout)
    posterior = na.infer(na.load("ill.json"), na.prior.Beta(1, 1), method="naive", num_draws=500, seed=0)
    (estimate,) = posterior.estimates()
    assert document["parameters"]["theta"]["mean"] == estimate.mean
    assert document["parameters"]["theta"]["interval"] == [estimate.low, estimate.high]
    assert (document["method"], document["is_exact"], document["seed"]) == ("naive", False, 0)
    assert document["naive"]["theta"]["interval"][0] > 0.1
    assert done.stderr == ""
    assert json.loads(run(*INFER, "--json", "--draws", "1").stdout)["parameters"]["theta"]["sd"] is None


def test_infer_prints_both_answers_and_writes_files(clinic, run):
    done = run("infer", "ill.json", "--prior", "beta(1,1)", "-o", "p.nc", "--report", "p.html")
    assert done.exit_code == 0, done.stderr
    assert re.search(r"theta +0\.\d+ +0\.\d+ +0\.\d+ to 0\.\d+", done.stdout)
    assert "if naive" in done.stdout
    assert "Exact for this family: 4,000 independent draws" in done.stdout
    assert "seed " in done.stdout
    assert done.stderr.splitlines() == ["noiseaware: wrote p.html", "noiseaware: wrote p.nc"]
    assert (clinic / "p.nc").read_bytes()[:4] == b"\x89HDF"
    assert (clinic / "p.html").read_text().startswith("<!doctype html>")


def test_draws_in_the_form_that_the_suffix_says(clinic, run):
    """Draws were written to draws.csv as HDF5."""
    done = run(*INFER, "--draws", "50", "-o", "draws.csv")
    assert done.exit_code == 0, done.stderr
    assert run(*INFER, "--draws", "50", "-o", "draws.parquet").exit_code == 0
    header, *rows = (clinic / "draws.csv").read_text().splitlines()
    assert (header, len(rows)) == ("theta", 50)
    drawn = na.infer(na.load("ill.json"), na.prior.Beta(1, 1), method="naive", num_draws=50, seed=0).draws["theta"]
    assert [float(row) for row in rows] == drawn.tolist()
    assert (clinic / "draws.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize("output", ["draws.txt", "draws", "draws.h5"])
def test_a_form_that_there_is_not_is_refused_before_any_work(output, refused, monkeypatch):
    monkeypatch.setattr("noiseaware.posterior.infer.infer", None)
    assert "output must end in .nc (netCDF), .csv or .parquet" in refused(*INFER, "-o", output)


def test_a_log_is_told_now_and_then_that_work_goes_on(run, monkeypatch):
    from noiseaware.posterior.infer import infer as drawn

    monkeypatch.setattr("noiseaware.cli.progress._EVERY", 0.05)
    monkeypatch.setattr(
        "noiseaware.posterior.infer.infer", lambda *words, **more: time.sleep(0.3) or drawn(*words, **more)
    )
    lines = run(*INFER, "--draws", "50").stderr.splitlines()
    assert lines[0] == "noiseaware: drawing from the posterior, 0 s so far"
    assert lines[-1].startswith("noiseaware: 50 draws in ")
    assert run(*INFER, "--draws", "50", "--quiet").stderr == ""


def test_infer_from_stdin_and_to_stdout(clinic, run):
    done = run("infer", "-", *INFER[2:], "-o", "-", input=(clinic / "ill.json").read_text())
    assert done.exit_code == 0, done.stderr
    assert done.stdout_bytes[:4] == b"\x89HDF"
    assert "95 % interval" in done.stderr


def test_the_page_says_how_the_method_does_in_simulated_tables(clinic, run, refused):
    done = run(*INFER, "--report", "p.html", "--calibrate", "40")
    assert done.exit_code == 0, done.stderr
    assert "tried on 40 simulated tables" in (clinic / "p.html").read_text(encoding="utf-8")
    assert "--calibrate must go with --report" in refused(*INFER, "--calibrate", "40")


def damaged(path, kind: str) -> None:
    text = path.read_text()
    document = json.loads(text)
    match kind:
        case "truncated":
            path.write_text(text[:100])
        case "empty":
            path.write_text("")
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case "deep":
            path.write_text("[" * 100_000)
        case "list":
            path.write_text("[1, 2]")
        case "extra":
            path.write_text(json.dumps(document | {"colour": "red"}))
        case "nan":
            path.write_text(text.replace('"value": 43', '"value": NaN'))
        case "newer":
            path.write_text(json.dumps(document | {"schema_version": 99}))
        case "type":
            path.write_text(json.dumps(document | {"n": "300"}))


@pytest.mark.parametrize("kind", ["truncated", "empty", "binary", "deep", "list", "extra", "nan", "newer", "type"])
def test_damaged_release_is_refused(kind, clinic, refused):
    damaged(clinic / "ill.json", kind)
    assert "ill.json" in refused(*INFER)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (replaced(INFER, prior="gamma(8, 2)"), "prior must be a Beta for the bernoulli family, got Gamma"),
        (replaced(INFER, prior="beta(1)"), "--prior beta takes 2 numbers (a, b), got 'beta(1)'"),
        (replaced(INFER, prior="beta(1, two)"), "--prior must have numbers between commas"),
        (replaced(INFER, prior="beta(-1, 2)"), "a must be positive and finite, got -1.0"),
        (replaced(INFER, prior="beta(nan, 2)"), "a must be positive and finite, got nan"),
        (replaced(INFER, prior="cauchy(0, 1)"), "--prior must be one of beta, dirichlet, gamma, normal"),
        (replaced(INFER, prior="__import__('os').getcwd()"), "--prior must look like beta(0.5, 100)"),
        (replaced(INFER, method="magic"), "method must be one of"),
        ((*INFER, "--draws", "0"), "num_draws must be a whole number"),
        ((*INFER, "--draws", "1000000000000"), "num_draws must be a whole number"),
        ((*INFER, "--draws", "many"), "--draws must be a whole number, got many. See"),
        (replaced(INFER, seed="-3"), "seed must be a whole number"),
        (("infer", "none.json", *INFER[2:]), "release file must exist, got none.json"),
        (("infer", ".", *INFER[2:]), "release file must be readable"),
        (("infer", "ill.json"), "--prior"),
        (
            (*INFER, "-o", "ill.json"),
            "output must end in .nc (netCDF), .csv or .parquet, which is its form, got ill.json.",
        ),
        ((*INFER, "-o", "draws.hdf5", "--force"), "output must end in .nc (netCDF), .csv or .parquet"),
        ((*INFER, "--report", "ill.json", "--force"), "output must not be the release itself, got ill.json."),
        ((*INFER, "--report", "none/p.html"), "output folder must exist"),
        ((*INFER, "--report", "x", "-o", "x"), "must be different files"),
        ((*INFER, "--report", ".", "--force"), ". must be a file, got a folder"),
        ((*INFER, "--json", "-o", "-"), "must not be given together"),
        (("inferr",), "No such command"),
    ],
)
def test_bad_inference_is_one_sentence(words, sentence, clinic, refused):
    before = sorted(p.name for p in clinic.iterdir())
    assert sentence in refused(*words)
    assert sorted(p.name for p in clinic.iterdir()) == before


def test_strict_exits_4_when_a_diagnostic_fails(clinic, run, refused):
    assert "must be at least 400" in refused(*INFER, "--draws", "100", "--strict", "--report", "p.html", status=4)
    assert not (clinic / "p.html").exists()
    assert run(*INFER, "--strict").exit_code == 0


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("gamma(8, 2)", na.prior.Gamma(8.0, 2.0)),
        (" Beta ( .5,1e2 ) ", na.prior.Beta(0.5, 100.0)),
        ("dirichlet(1,2,3)", na.prior.Dirichlet([1, 2, 3])),
        ("dirichlet([1, 2, 3])", na.prior.Dirichlet([1, 2, 3])),
        ("normal(-1, 4)", na.prior.Normal(-1.0, 4.0)),
    ],
)
def test_prior_from_words(text, prior):
    assert parse(text) == prior


def test_a_draw_that_is_not_finite_exits_4(monkeypatch, refused):
    from noiseaware.sampler import method

    broken = drawing(method.METHODS["naive"], lambda key, m: jax.numpy.full(m, jax.numpy.nan))
    monkeypatch.setitem(method.METHODS, "naive", broken)
    assert "not finite" in refused(*INFER, status=4)


def test_strict_exits_4_when_chains_diverge(clinic, monkeypatch, refused):
    from noiseaware.sampler import method

    def draws(self, key, evidence, prior, route, num_draws):
        return method.Draws(prior.sample(key, (num_draws,)), {"divergences": 0.2})

    monkeypatch.setitem(method.METHODS, "naive", stand_in(method.METHODS["naive"], draws=draws))
    assert "the share of divergences must be at most 0.05, got 0.2." in refused(*INFER, "--strict", status=4)


@pytest.mark.slow
def test_a_family_of_ones_own_by_its_file(tmp_path, run, refused):
    """The release names it; the person who reads the release says which class that is."""
    file = pathlib.Path(__file__).parents[2] / "docs" / "examples" / "rayleigh.py"
    rayleigh = own.named(f"{file}:Rayleigh")
    release = na.Release(
        family=rayleigh(bounds=(0.1, 1.0), outside="drop"), values=[205.0], n=1000, mechanism=na.mechanism.Laplace(10.0)
    )
    release.save(tmp_path / "speed.json")
    assert na.load(tmp_path / "speed.json", families=[rayleigh]) == release
    command = ("infer", str(tmp_path / "speed.json"), "--prior", "gamma(8, 2)", "--seed", "1", "--json")
    assert "family.name must be one of" in refused(*command)
    found = json.loads(run(*command, "--family", f"{file}:Rayleigh").stdout)
    assert found["method"] == "hmc"
    assert 3 < found["parameters"]["theta"]["mean"] < 6
    page = tmp_path / "speed.html"
    assert run(*command, "--family", f"{file}:Rayleigh", "--report", str(page)).exit_code == 0
    assert "rayleigh" in page.read_text(encoding="utf-8")
    assert "must name a class" in refused(*command, "--family", f"{file}:Weibull")


@pytest.mark.parametrize("name", ["LogisticRegression", "PoissonRegression"])
def test_a_normal_prior_is_for_regressions_of_counts_too(name, run):
    model = getattr(na.family, name)(["age"], "ill", bounds={"age": (0, 100), "ill": (0, 1)})
    model.check_prior(parse("normal(0, 4)"))
    told = " ".join(run("infer", "--help").stdout.split())
    assert "for logistic_regression and poisson_regression, normal, with the intercept last" in told


def test_delta_of_a_ledger_is_for_all_releases(run):
    assert "for programs" not in run("ledger", "create", "--help").stdout


def test_a_query_is_read_as_the_family_that_is_named(tmp_path, run, refused):
    path = tmp_path / "asked.json"
    query = na.query.Sum("wait", (0, 48))
    na.Release(query=query, values=[2700.0], n=300, mechanism=na.mechanism.Laplace(48.0)).save(path)
    words = ("infer", path, "--prior", "gamma(1, 8)", "--draws", "100", "--seed", "1", "--json")
    own = na.infer(na.load(path), na.prior.Gamma(1, 8), family=na.family.Exponential(), num_draws=100, seed=1)
    told = json.loads(run(*words, "--family", "exponential").stdout)["parameters"]
    assert told["theta"]["mean"] == pytest.approx(own.draws["theta"].mean())
    assert "release must name a family" in refused(*words)
    assert "release must name a family" in refused(*words, "--at", "age=40")
    assert "release must name a family" in refused("explore", path, "--prior", "gamma(1, 8)")
    assert "which asks Sum(" in refused(*words, "--family", "poisson")
    assert "needs no trials" in refused(*words, "--family", "binomial")
