"""Releases of several columns, and of a mean and a variance, from the command line."""

import json

import pytest

import noiseaware as na
from noiseaware.cli.at import places
from noiseaware.cli.bounds import column_bounds
from noiseaware.cli.prior import parse

BOUNDS = "hours=0:24, ill=0:1"
RELEASE = ("release", "clinic.csv", "--ledger", "clinic.ledger", "--epsilon", "0.5", "-o", "x.json")
REGRESSION = (*RELEASE, "--family", "linear_regression", "--x", "hours", "--y", "ill")
MODEL = na.family.LinearRegression("hours", "ill", bounds={"hours": (0, 24), "ill": (0, 1)})
JOINT = na.family.MultivariateNormal(["hours", "ill"], bounds={"hours": (0, 24), "ill": (0, 1)})


@pytest.mark.parametrize(
    ("words", "family"),
    [
        ((*REGRESSION, "--column-bounds", BOUNDS), MODEL),
        ((*REGRESSION, "--column-bounds", "ill=0:1", "--column-bounds", "hours=0:24"), MODEL),
        ((*REGRESSION, "--bounds", "0", "24"), na.family.LinearRegression("hours", "ill", bounds=(0, 24))),
        (
            (*RELEASE, "--family", "linear_regression", "--x", "hours,note", "--y", "ill", "--bounds", "-1", "24"),
            na.family.LinearRegression(["hours", "note"], "ill", bounds=(-1, 24)),
        ),
        (
            (*REGRESSION, "--x", "note", "--bounds", "0", "2"),
            na.family.LinearRegression(["hours", "note"], "ill", bounds=(0, 2)),
        ),
        ((*RELEASE, "--family", "multivariate_normal", "--columns", "hours, ill", "--column-bounds", BOUNDS), JOINT),
        (
            (*RELEASE, "--family", "normal", "--column", "hours", "--bounds", "0", "24", "--outside", "drop"),
            na.family.Normal("hours", bounds=(0, 24), outside="drop"),
        ),
    ],
)  # fmt: skip
def test_release(words, family, clinic, run):
    done = run(*words)
    assert done.exit_code == 0, (done.stderr, done.exception)
    release = na.load("x.json")
    assert (release.family, release.n) == (family, 300)
    assert done.stdout.splitlines()[1] == "clinic.ledger: 1.5 left of ε = 2"
    assert f"{family.name.replace('_', ' ')} release of {', '.join(family.query.columns)}: n = 300, sum" in done.stdout


def test_gaussian_noise_has_two_scales(clinic, run):
    words = [word for word in REGRESSION if word not in ("--ledger", "clinic.ledger", "--epsilon", "0.5")]
    done = run(*words, "--no-ledger", "--rho", "0.5", "--column-bounds", BOUNDS)
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert "on sums and squares and" in done.stdout
    scales = na.load("x.json").noise_scale
    assert scales[3] * 2**0.5 == pytest.approx(scales[0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (REGRESSION, "bounds must be given"),
        ((*REGRESSION, "--bounds", "private"), "bounds must be given for the linear_regression family"),
        ((*REGRESSION, "--bounds", "0", "1", "--column-bounds", BOUNDS), "must not be given together"),
        ((*REGRESSION, "--column-bounds", "hours=0:24"), "bounds must name every column, got none for 'ill'"),
        ((*REGRESSION, "--column-bounds", f"{BOUNDS}, age=0:1"), "bounds must name columns among"),
        ((*REGRESSION, "--column-bounds", "hours=0-24"), '--column-bounds must look like "age=0:100'),
        ((*REGRESSION, "--column-bounds", "hours=0:many, ill=0:1"), "--column-bounds must have two numbers"),
        ((*REGRESSION, "--column-bounds", "ill=0:1, ill=0:2"), "--column-bounds must name each column once"),
        ((*REGRESSION, "--column-bounds", "hours=24:0, ill=0:1"), "bounds must have low < high, got (24.0, 0.0)"),
        ((*REGRESSION, "--column-bounds", "hours=0:inf, ill=0:1"), "bounds must be finite"),
        ((*REGRESSION, "--column-bounds", ""), "bounds must name every column"),
        ((*REGRESSION, "--column", "hours", "--bounds", "0", "1"), "column must not be given for the linear_reg"),
        ((*REGRESSION, "--outside", "drop", "--bounds", "0", "1"), "outside must not be given"),
        ((*REGRESSION, "--y", "hours", "--bounds", "0", "1"), "must name each column once"),
        ((*REGRESSION, "--y", "pressure", "--bounds", "0", "1"), "must have one column 'pressure', got 0"),
        ((*REGRESSION, "--x", "weight", "--bounds", "0", "1"), "must have one column 'weight', got 0"),
        ((*REGRESSION, "--x", "a,,b", "--bounds", "0", "1"), "columns must be names between commas"),
        ((*REGRESSION, "--bounds", "0", "1", "--epsilon", "1e-30"), "must be nearer to 1"),
        ((*RELEASE, "--family", "linear_regression", "--x", "hours", "--bounds", "0", "1"), "y must name a column"),
        ((*RELEASE, "--family", "linear_regression", "--y", "hours", "--bounds", "0", "1"), "x must name a column"),
        ((*RELEASE, "--family", "multivariate_normal", "--bounds", "0", "1"), "columns must name a column"),
        ((*RELEASE, "--family", "normal", "--column", "hours"), "bounds must be given"),
        ((*RELEASE, "--family", "normal", "--columns", "hours", "--bounds", "0", "1"), "column must name a column"),
        ((*RELEASE, "--family", "normal", "--column", "hours", "--column-bounds", "hours=0:1"), "must be two numbers"),
    ],
)
def test_a_mistake_is_one_sentence_and_costs_nothing(words, sentence, clinic, refused):
    before = sorted(p.name for p in clinic.iterdir())
    assert sentence in refused(*words)
    assert sorted(p.name for p in clinic.iterdir()) == before
    assert na.Ledger("clinic.ledger").spent == 0


PLAN = """
table = "clinic.csv"
ledger = "clinic.ledger"

[[release]]
family = "linear_regression"
x = ["hours"]
y = "ill"
bounds = { hours = [0, 24], ill = [0, 1] }
epsilon = "0.5"
output = "x.json"

[[release]]
family = "multivariate_normal"
columns = ["hours", "ill"]
bounds = [[0, 24], [0, 1]]
epsilon = "0.5"
output = "joint.json"
"""


def test_plan(clinic, run):
    (clinic / "clinic.toml").write_text(PLAN)
    done = run("release", "--plan", "clinic.toml")
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert (na.load("x.json").family, na.load("joint.json").family) == (MODEL, JOINT)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('x = ["hours"]', "x = 3", "release 1: x must be a list of columns, got 3"),
        ('x = ["hours"]', "x = [3]", "release 1: x must name one or more columns"),
        ('x = ["hours"]', "", "release 1: x must name a column"),
        ('x = ["hours"]', 'x = ["hours"]\ncolumn = "ill"', "release 1: column must not be given"),
        ("ill = [0, 1] }", "ill = 3 }", "release 1: bounds must be two numbers"),
        ("ill = [0, 1] }", "age = [0, 1] }", "release 1: bounds must name columns among"),
        ('columns = ["hours", "ill"]', 'columns = ["hours"]', "release 2: bounds must be"),
        ('y = "ill"', "y = 3", "release 1: y must"),
        ('y = "ill"', 'y = ["ill", "ward"]', "release 1: y must"),
    ],
)
def test_a_bad_plan_costs_nothing(old, new, sentence, clinic, refused):
    assert old in PLAN
    (clinic / "clinic.toml").write_text(PLAN.replace(old, new))
    assert sentence in refused("release", "--plan", "clinic.toml")
    assert na.Ledger("clinic.ledger").spent == 0


def test_names_of_columns_may_hold_anything():
    assert column_bounds(["a=b=0:1, c,d = -2 : 3 "]) == {"a=b": (0.0, 1.0), "c,d": (-2.0, 3.0)}


@pytest.mark.parametrize(
    ("text", "mean", "other"),
    [
        ("normal_inverse_gamma([1, 0], 0.25, 20, 0.5)", [1, 0], [[0.25, 0], [0, 0.25]]),
        ("normal_inverse_gamma([1,0],[.25, 1.],20,0.5)", [1, 0], [[0.25, 0], [0, 1]]),
        ("normal_inverse_gamma( [1, -2e1] , [[1, 0.5], [0.5, 1]], 20, 0.5)", [1, -20], [[1, 0.5], [0.5, 1]]),
        ("normal_inverse_wishart([0, 3], 2, 1, 5)", [0, 3], [[1, 0], [0, 1]]),
        ("normal_inverse_gamma(1, 2, 3, 4)", 1, 2),
    ],
)
def test_priors_of_vectors(text, mean, other):
    prior = parse(text)
    matrix = prior.scale if isinstance(prior, na.prior.NormalInverseWishart) else prior.precision
    assert (prior.mean == mean).all() if isinstance(mean, list) else prior.mean == mean
    assert (matrix == other).all() if isinstance(other, list) else matrix == other


@pytest.mark.parametrize(
    "text",
    [
        "independent(shape=gamma(4, 2), rate=gamma(3, 1))",
        " Independent( shape = gamma(4,2) ,rate=gamma( 3, 1))",
        "independent(regression=normal_inverse_gamma([1, 0], 1, 3, 2),covariates=normal_inverse_wishart([0], 1, 1, 5))",
    ],
)
def test_independent_priors(text):
    first, second = parse(text).parts.items()
    if "regression" in text:
        assert (first[0], type(first[1])) == ("regression", na.prior.NormalInverseGamma)
        assert (second[0], type(second[1])) == ("covariates", na.prior.NormalInverseWishart)
    else:
        assert (first, second) == (("shape", na.prior.Gamma(4.0, 2.0)), ("rate", na.prior.Gamma(3.0, 1.0)))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("normal_inverse_gamma(0, [1], 3, 3)", "must have a number for precision"),
        ("normal_inverse_gamma([], 1, 3, 3)", "numbers between commas"),
        ("normal_inverse_gamma([1, [2]], 1, 3, 3)", "must have a number for mean"),
        ("normal_inverse_gamma([1, 2], 1, [3], 3)", "must have a number for shape"),
        ("normal_inverse_gamma([1, 2], [1, 2, 3], 3, 3)", "precision must be 2 × 2"),
        ("normal_inverse_gamma([1, 2], -1, 3, 3)", "positive definite"),
        ("normal_inverse_gamma([1, nan], 1, 3, 3)", "mean must be finite"),
        ("normal_inverse_wishart([0, 0], 1, 1, 1)", "dof must be above 1"),
        ("normal_inverse_gamma([1, 2, 1, 3, 3)", "numbers between commas"),
        ("beta([1], 2)", "must have a number for a"),
        ("dirichlet([[1, 2]])", "must have a number for each level"),
        (f"beta({'[' * 100_000})", "numbers between commas"),
        ("independent()", r"independent takes a prior for each name: shape=gamma\(4, 2\), got 'independent"),
        ("independent(shape=2)", "independent takes a prior for each name"),
        ("independent(shape=gamma(4, 2), shape=gamma(4, 2))", "must name each part once"),
        ("independent(shape=gamma(4), rate=gamma(3, 1))", "gamma takes 2 numbers"),
        ("independent(gamma(4, 2))", "must look like"),
        (f"independent({'a=gamma(1, 1), ' * 10_000})", "must look like"),
    ],
)
def test_priors_that_are_off_are_refused_in_a_sentence(text, rule):
    with pytest.raises(ValueError, match=rule):
        parse(text)


def test_calibration_takes_the_same_options(refused):
    words = ("calibrate", "-n", "50", "--epsilon", "1", "--trials", "10", "--method", "magic")
    regression = (*words, "--family", "linear_regression", "--prior", "normal_inverse_gamma([1, 0], 0.25, 20, 0.5)")
    assert "method must be one of" in refused(*regression, "--bounds", "-5", "5")
    assert "method must be one of" in refused(*regression, "--x", "a", "--y", "b", "--column-bounds", "a=0:1, b=0:2")
    assert "must not be given together" in refused(*regression, "--bounds", "0", "1", "--column-bounds", "x1=0:1")
    assert "got none for 'y'" in refused(*regression, "--column-bounds", "x1=0:1")
    joint = (*words, "--family", "multivariate_normal", "--prior", "normal_inverse_wishart([0, 0], 1, 1, 5)")
    assert "got none for 'x2'" in refused(*joint, "--column-bounds", "x1=0:1")


def test_help_teaches(run):
    told = " ".join(run("release", "--help", env={"COLUMNS": "200"}).stdout.split())
    assert '--x age,bmi --y pressure --column-bounds "age=0:100, bmi=10:60, pressure=60:220"' in told
    told = " ".join(run("infer", "--help", env={"COLUMNS": "200"}).stdout.split())
    assert "gibbs_ss_update" in told
    assert "normal_inverse_gamma([1, 0], 0.25, 20, 0.5)" in told


INFER = ("infer", "line.json", "--prior", "normal_inverse_gamma([0, 0], 1, 3, 1)", "--seed", "0")


@pytest.fixture
def line(clinic):
    """A release of ill given hours, without much noise."""
    release = na.Release(
        family=MODEL, values=[-150.0, -214.0, 117.0, 107.0, 300.0], n=300, mechanism=na.mechanism.DiscreteLaplace(2.0)
    )
    release.save("line.json")
    return clinic


@pytest.mark.slow
def test_infer_a_regression_from_end_to_end(line, run):
    words = ("-o", "line.nc", "--report", "line.html", "--at", "hours=3", "--at", "hours=9")
    done = run(*INFER, *words, "--draws", "1000")
    assert done.exit_code == 0, (done.stderr, done.exception)
    for text in (
        "coefficients[hours]", "coefficients[intercept]", "variance", "if naive", "95 % interval",
        "Approximate: Records outside the bounds", "method hmc", "ill at hours = 3", "ill at hours = 9",
        "prior NormalInverseGamma([0, 0], 1, 3, 1) (covariates: normal, spread from the bounds)",
    ):  # fmt: skip
        assert text in done.stdout, text
    assert (line / "line.nc").read_bytes()[:4] == b"\x89HDF"
    assert "The regression line of ill over hours" in (line / "line.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_predictions_for_machines(line, run):
    done = run(*INFER, "--method", "naive", "--json", "--at", "hours=3", "--draws", "500")
    document = json.loads(done.stdout)
    assert list(document["parameters"]) == ["coefficients[hours]", "coefficients[intercept]", "variance"]
    assert list(document["naive"]) == list(document["parameters"])
    prior = na.prior.NormalInverseGamma([0, 0], 1, 3, 1)
    posterior = na.infer(na.load("line.json"), prior, method="naive", num_draws=500, seed=0)
    (found,) = document["predictions"]
    assert found["at"] == {"hours": 3.0}
    assert found["interval"] == list(posterior.predict({"hours": 3}).interval()[0])
    assert found["naive"]["interval"] == pytest.approx(found["interval"], rel=0.2, abs=0.1)
    assert "predictions" not in json.loads(run(*INFER, "--method", "naive", "--json").stdout)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*INFER, "--at", "age=3"), "--at must name covariates among hours, got 'age'"),
        ((*INFER, "--at", ""), '--at must look like "age=40, bmi=25", got'),
        ((*INFER, "--at", "hours"), '--at must look like "age=40, bmi=25", got'),
        ((*INFER, "--at", "hours=soon"), "--at must have a number for each covariate"),
        ((*INFER, "--at", "hours=1, hours=2"), "--at must name each covariate once, got 'hours' twice"),
        ((*INFER, "--at", "hours=nan"), "x must be finite, got nan"),
        (("infer", "ill.json", "--prior", "beta(1, 1)", "--at", "hours=3"), "a linear regression, got the bernoulli"),
        (("infer", "line.json", "--prior", "beta(1, 1)"), "prior must be a NormalInverseGamma"),
        (
            ("infer", "line.json", "--prior", "normal_inverse_gamma([0, 0, 0], 1, 3, 1)"),
            "regression prior must have a mean of 2 entries, one a coefficient, got 3",
        ),
        ((*INFER, "--method", "gibbs"), "method must be one of hmc, gibbs_ss_update"),
    ],
)
def test_a_mistake_about_a_regression_is_one_sentence(words, sentence, line, refused):
    assert sentence in refused(*words, "--report", "x.html")
    assert not (line / "x.html").exists()


def test_every_covariate_is_named_at_a_record():
    family = na.family.LinearRegression(["a=b", "c,d"], "y")
    assert places(["a=b=1, c,d = -2e1"], family) == [{"a=b": 1.0, "c,d": -20.0}]
    with pytest.raises(ValueError, match="--at must name every covariate, got none for 'c,d'"):
        places(["a=b=1"], family)
