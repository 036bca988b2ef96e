"""`noiseaware plan`: the example of its help, and what it says."""

import json

import pytest


@pytest.mark.slow
def test_the_smallest_epsilon(run, tmp_path):
    picture = tmp_path / "plan.png"
    options = ["--family", "bernoulli", "--prior", "beta(1, 9)", "-n", "5000", "--width", "0.02"]
    done = run("plan", *options, "--plot", picture)
    assert done.exit_code == 0, done.output
    assert "5,000 records at ε = 0.0" in done.output
    assert "records without noise would tell as much" in done.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_for_machines(run):
    options = ["--family", "exponential", "--prior", "gamma(8, 10)", "--bounds", "0", "10"]
    done = run("plan", *options, "-n", "1000", "--epsilon", "0.5", "--neighbours", "add_remove", "--json")
    told = json.loads(done.output)
    assert told["n"] == 1000
    assert told["width"] > told["without_noise"] > 0
    assert told["n_shares"][0]["width"] <= told["n_shares"][-1]["width"]


@pytest.mark.slow
def test_bounds_are_compared(run):
    options = ["--family", "exponential", "--prior", "gamma(8, 10)", "--bounds", "0", "10"]
    done = run("plan", *options, "-n", "300", "--epsilon", "0.1", "--best-bounds")
    assert done.exit_code == 0, done.output
    assert "bounds 0 to" in done.output


def test_columns_have_their_names(run):
    options = ["--family", "multivariate_normal", "--prior", "normal_inverse_wishart([0, 0], 1, 1, 5)", "--rho", "1"]
    bounds = ["--columns", "age,bmi", "--column-bounds", "age=-3:3, bmi=-2:2"]
    done = run("plan", *options, *bounds, "-n", "200", "--parameter", "mean[bmi]", "--json")
    assert done.exit_code == 0, done.output
    assert {"mean[age]", "mean[bmi]"} <= json.loads(done.output)["by_parameter"].keys()


def test_a_number_among_several_under_an_epsilon_and_a_delta(run, refused):
    options = ("plan", "--family", "categorical", "--prior", "dirichlet(1, 2, 3)", "-n", "500", "--epsilon", "0.5")
    told = json.loads(run(*options, "--delta", "1e-6", "--parameter", "theta[1]", "--check", "20", "--json").output)
    assert told["delta"] == "1e-6"
    assert told["width"] == told["by_parameter"]["theta[1]"] < max(told["by_parameter"].values())
    assert told["simulated"].keys() == told["by_parameter"].keys()
    assert all(row["error"] > 0 for row in told["simulated"].values())
    assert "parameter must be one of theta[0], theta[1], theta[2], got 'b'" in refused(*options, "--parameter", "b")


def test_refused_in_a_sentence(run):
    done = run("plan", "--family", "bernoulli", "--prior", "beta(1, 9)", "-n", "100", "--width", "0.001")
    assert done.exit_code == 2
    assert "width must be at least" in done.stderr
