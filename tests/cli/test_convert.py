"""`noiseaware convert`: other tools' files to releases and posteriors; 2 and one sentence where a file is off."""

import csv
import io

import pytest

import noiseaware as na


@pytest.fixture
def counts(tmp_path):
    (tmp_path / "counts.csv").write_text(
        "place,value,family,scale,clamped_at\nnorth,31,discrete_laplace,4,0\nsouth,0,discrete_laplace,4,0\n"
    )
    return "counts.csv"


def test_a_posterior_for_each_row(run, counts):
    done = run("convert", counts, "--prior", "gamma(1, 0.05)", "--seed", 1)
    assert done.exit_code == 0, done.stderr
    north, south = csv.DictReader(io.StringIO(done.stdout))
    assert (north["place"], south["place"], south["value"]) == ("north", "south", "0")
    assert float(north["low"]) < 31 < float(north["high"])
    assert float(south["mean"]) < 6


def test_releases_into_a_folder(run, refused, counts, tmp_path):
    assert run("convert", counts, "-o", "rows", "-n", 2).exit_code == 0
    south = na.load(tmp_path / "rows" / "0002.json")
    assert (south.n, south.within) == (2, ((-float("inf"), 0.0),))
    assert "0001.json exists already" in refused("convert", counts, "-o", "rows")
    assert run("infer", "rows/0002.json", "--prior", "gamma(1, 0.05)", "--seed", 1).exit_code == 0


def test_refusals(refused, counts):
    assert "--prior or --output must be given" in refused("convert", counts)
    assert "columns must include 'estimate'" in refused("convert", counts, "--as", "census_estimates", "-o", "rows")
    assert "file must exist" in refused("convert", "nowhere.csv", "-o", "rows")
