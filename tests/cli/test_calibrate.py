"""`noiseaware calibrate`: a table, a verdict in words and in the exit status, one sentence for each mistake."""

import json
import re
import sys

import pandas as pd
import pytest

import noiseaware as na

# A normal with both parameters unknown has no exact likelihood to compile, so that these run quickly.
NORMAL = ("calibrate", "--family", "normal", "--prior", "normal_inverse_gamma(0, 1, 3, 3)", "--bounds", "-9", "9")
RIGHT = (*NORMAL, "-n", "40", "--epsilon", "1", "--method", "nonprivate", "--trials", "250", "--seed", "3")
WRONG = tuple("naive" if word == "nonprivate" else word for word in RIGHT)
COINS = ("calibrate", "--family", "binomial", "--prior", "beta(2, 3)", "-n", "50", "--epsilon", "1", "--theta", "0.02")
COINS = (*COINS, "--method", "nonprivate", "--trials", "250", "--seed", "3")


def test_a_right_method_gets_a_good_verdict(run):
    done = run(*RIGHT)
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert "250 tables of 40 records · normal · ε = 1" in done.stdout
    share = r" +\d\d\.\d ± \d\.\d %"
    for name in ("mean", "variance", "residual"):
        assert re.search(rf"(?m)^{name} +0\.0\d\d{share}{share}{share}", done.stdout)
    assert "Calibrated, as far as can be told: the largest KS" in done.stdout
    assert "method nonprivate · seed 3" in done.stdout
    assert done.stderr == ""


def test_a_wrong_method_exits_1(run):
    done = run(*WRONG, "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert document["is_calibrated"] is False
    assert document["ks"] == max(document["by_parameter"].values()) > document["critical"]
    assert "Not calibrated: the KS of" in run(*WRONG).stdout


def test_json_is_the_calibration(run):
    document = json.loads(run(*RIGHT, "--json").stdout)
    family, prior = na.family.Normal(bounds=(-9, 9)), na.prior.NormalInverseGamma(0, 1, 3, 3)
    found = na.calibrate(family, prior, n=40, epsilon=1, method="nonprivate", num_trials=250, seed=3)
    assert document["by_parameter"] == found.by_parameter
    assert document["critical"] == found.critical(0.99)
    assert document["coverage"]["mean"]["0.9"]["share"] == found.coverage(0.9)["mean"]
    assert document["coverage"]["mean"]["0.9"]["error"] == found.coverage_error(0.9)["mean"]
    assert (document["method"], document["seed"], document["num_trials"]) == ("nonprivate", 3, 250)


def test_at_a_fixed_parameter_there_is_coverage_and_no_verdict(run, clinic):
    done = run(*COINS, "-o", "-", "--plot", "coverage.svg")
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert done.stdout.startswith("trial,theta\n0,0.")
    assert len(done.stdout.splitlines()) == 251
    assert "there is no verdict" in done.stderr
    assert "KS" not in done.stderr
    assert (clinic / "coverage.svg").read_text().startswith("<?xml")
    assert json.loads(run(*COINS, "--json").stdout)["theta"] == 0.02


def test_a_delta_is_for_normal_noise(run, refused, monkeypatch):
    from noiseaware.study import calibration

    noises = []
    honest = calibration._calibrated
    monkeypatch.setattr(calibration, "_calibrated", lambda *given: noises.append(given[0].mechanism) or honest(*given))
    assert json.loads(run(*COINS, "--delta", "1e-6", "--json").stdout)["delta"] == "1e-6"
    assert [type(noise) for noise in noises] == [na.mechanism.DiscreteGaussian]
    assert "delta must be below 1" in refused(*COINS, "--delta", "1")


def test_files_are_written_and_not_overwritten(run, refused, clinic):
    done = run(*RIGHT, "-o", "ranks.csv", "--plot", "calibration.png")
    assert done.stderr.splitlines() == ["noiseaware: wrote calibration.png", "noiseaware: wrote ranks.csv"]
    assert (clinic / "calibration.png").read_bytes()[:4] == b"\x89PNG"
    ranks = pd.read_csv(clinic / "ranks.csv", index_col="trial")
    assert list(ranks) == ["mean", "variance", "residual"]
    assert len(ranks) == 250
    assert ranks.min().min() > 0
    assert "exists already" in refused(*RIGHT, "-o", "ranks.csv")
    assert run(*RIGHT, "-o", "ranks.csv", "--force").exit_code == 0


OWN = """
from typing import ClassVar
import equinox as eqx
import noiseaware as na
from noiseaware.family.binomial import AbstractSuccesses

class Coin(AbstractSuccesses):
    tosses: int = eqx.field(static=True)
    query: na.query.Sum = eqx.field(static=True)
    name: ClassVar[str] = "coin"

    def __init__(self, tosses=2):
        self.tosses = tosses
        self.query = na.query.Sum(bounds=(0, tosses), is_whole=True, support=(0.0, float(tosses)))

    @property
    def trials(self):
        return self.tosses

def coin(bounds=None):
    return Coin(3)

def nothing():
    return None
"""


@pytest.mark.parametrize("where", ["coin_family.py:Coin", "coin_family:coin"])
def test_a_family_of_ones_own(where, run, clinic, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "coin_family", raising=False)
    (clinic / "coin_family.py").write_text(OWN)
    done = run(*(where if word == "binomial" else word for word in COINS))
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert " · coin · " in done.stdout
    sys.modules.pop("coin_family")


OWN_REFUSED = {
    "missing.py:Coin": "that imports",
    "no_such_module:Coin": "that imports",
    "broken.py:Coin": "ZeroDivisionError",
    "another.py:Dice": "must name a class in another.py, got 'Dice'",
    "another.py:nothing": "which makes a NoneType",
}


@pytest.mark.parametrize(("where", "rule"), OWN_REFUSED.items())
def test_a_family_of_ones_own_is_refused_in_a_sentence(where, rule, refused, clinic, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (clinic / "broken.py").write_text("1 / 0")
    (clinic / "another.py").write_text(OWN)
    assert rule in refused(*(where if word == "binomial" else word for word in COINS))


REFUSED = [
    (("--family", "cauchy"), "family must be one of"),
    (("--prior", "gamma(1, 1)"), "prior must be a Beta for the binomial family, got Gamma"),
    (("-n", "0"), "n must be a whole number of at least 1"),
    (("--epsilon", "-1"), "epsilon must be positive"),
    (("--rho", "1"), "give exactly one of epsilon"),
    (("--trials", "0"), "num_trials must be"),
    (("--method", "magic"), "method must be one of auto, exact,"),
    (("--theta", "half"), "--theta must be a number"),
    (("--theta", "2"), "theta must be possible"),
    (("--bounds", "0", "1"), "bounds must not be given for the binomial"),
    (("--record-trials", "0"), "trials must be a whole number"),
    (("--plot", "picture.gif"), "--plot must end in .png"),
    (("--plot", "folder.png", "--force"), "folder.png must be a file, got a folder"),
    (("-o", "."), "must be a file, got a folder"),
    (("-o", "nowhere/ranks.csv"), "output folder must exist"),
    (("-o", "-", "--json"), "must not be given together"),
]


@pytest.mark.parametrize(("change", "rule"), REFUSED)
def test_a_mistake_is_one_sentence(change, rule, refused, tmp_path):
    (tmp_path / "folder.png").mkdir()
    assert rule in refused(*COINS, *change)  # of an option given twice, the last counts


def test_help_teaches(run):
    told = " ".join(run("calibrate", "--help").stdout.split())
    assert '--family binomial --prior "beta(0.5, 100)" -n 1000 --epsilon 1' in told
    assert "Exits 1 when it is not" in told
