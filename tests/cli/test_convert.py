"""`noiseaware convert`: other tools' files to releases and posteriors; 2 and one sentence where a file is off."""

import csv
import io
import re
import time

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


def test_midpoints_by_an_option_or_a_column(run, refused, tmp_path):
    (tmp_path / "openings.csv").write_text("place,value,family,scale,rounded_to\na,3,none,,6\nb,0,none,,6\n")
    assert "row 1: value must be a multiple of rounded_to 6, got 3; midpoint" in refused(
        "convert", "openings.csv", "-o", "x"
    )
    assert not (tmp_path / "x").exists()
    assert run("convert", "openings.csv", "--rounding", "midpoint", "-o", "rows").exit_code == 0
    assert na.load(tmp_path / "rows" / "0001.json").within == ((1.0, 6.0),)
    assert "--rounding must go with --as table" in refused(
        "convert", "openings.csv", "--as", "census_estimates", "--rounding", "midpoint", "-o", "y"
    )


def test_a_log_is_told_how_far_a_conversion_is(run, counts, monkeypatch, tmp_path):
    done = run("convert", counts, "--prior", "gamma(1, 0.05)", "--seed", 1)
    assert re.fullmatch(r"noiseaware: 2 posteriors in \d+ s\n", done.stderr)
    assert run("convert", counts, "--prior", "gamma(1, 0.05)", "--quiet").stderr == ""
    monkeypatch.setattr("noiseaware.cli.progress._EVERY", 0.02)
    save = na.Release.save
    monkeypatch.setattr("noiseaware.Release.save", lambda *words, **more: time.sleep(0.1) or save(*words, **more))
    lines = run("convert", counts, "-o", "rows").stderr.splitlines()
    assert "noiseaware: 1 of 2 releases, 0 s so far" in lines
    assert lines[-1] == "rows: 2 releases"


def test_rows_that_have_concerns_are_counted_and_the_first_is_named(run, tmp_path):
    rows = "north,31,discrete_laplace,4\nsouth,-90,discrete_laplace,4\neast,250,discrete_laplace,4\n"
    (tmp_path / "far.csv").write_text("place,value,family,scale\n" + rows)
    done = run("convert", "far.csv", "--prior", "gamma(1, 0.05)", "--seed", 1, "--quiet")
    assert done.exit_code == 0
    (sentence,) = done.stderr.splitlines()
    told = "noiseaware: 2 of 3 rows speak against what is taken for granted; the first is number 2 ("
    assert sentence.startswith(told + "place = south): The released sum of ")
    assert "is 22.5 noise scales beyond any that a table of n records has" in sentence


def test_refusals(refused, counts):
    assert "--prior or --output must be given" in refused("convert", counts)
    assert "columns must include 'estimate'" in refused("convert", counts, "--as", "census_estimates", "-o", "rows")
    assert "file must exist" in refused("convert", "nowhere.csv", "-o", "rows")
