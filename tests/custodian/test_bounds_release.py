"""Releases with private bounds: paid once and first, refused before the table is read, and said in the file."""

import json
import math
from fractions import Fraction

import jax
import numpy as np
import pandas as pd
import pytest

import noiseaware as na
from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.custodian.private_bounds import QUANTILES, SHARE
from noiseaware.custodian.table import Table
from noiseaware.evidence.release import Origin, from_json
from noiseaware.report.release_words import facts

FAMILIES = {
    "exponential": na.family.Exponential("x"),
    "poisson": na.family.Poisson("x", outside="drop"),
    "geometric": na.family.Geometric("x"),
    "normal": na.family.Normal("x", variance=4.0),
    "gamma": na.family.Gamma("x", shape=2.0),
}


@pytest.fixture
def waits(seed):
    return pd.DataFrame({"x": np.random.default_rng(seed).exponential(4.0, 2000)})


@pytest.mark.parametrize("promise", [{"epsilon": 1}, {"rho": "1/2"}])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_release_says_how_its_bounds_came_about(name, promise, waits, tmp_path):
    ledger = Ledger.create(tmp_path / "a.ledger", **promise)
    release = na.release(waits, FAMILIES[name], ledger=ledger, bounds="private", bounds_share="1/4", **promise)
    assert ledger.remaining == 0
    (entry,) = ledger.entries()
    assert (entry.guarantee, entry.id) == (release.guarantee, release.origin.ledger_entry)
    assert entry.what["bounds"] == "private, for 0.25 of the cost"
    quantiles = QUANTILES if name == "normal" else QUANTILES[1:]
    assert (release.origin.bounds, release.origin.bounds_share) == ("private", Fraction(1, 4))
    assert release.origin.bounds_quantiles == quantiles
    assert release.n == 2000
    low, high = release.query.bounds
    assert low < high
    rest = Fraction(3, 4) * Fraction(next(iter(promise.values())))
    width = high if name == "poisson" else high - low  # a dropped record counts as 0
    if "epsilon" in promise:
        assert release.noise_scale == pytest.approx(width / float(rest), rel=1e-6)
    else:
        assert release.noise_scale == pytest.approx(width / math.sqrt(2 * rest), rel=1e-6)
    assert from_json(release.to_json()) == release
    assert "chosen privately from the data, near the quantile" in dict(facts(release))["Bounds"]
    assert "for 0.25 of the guarantee's cost" in dict(facts(release))["Bounds"]


@pytest.mark.parametrize("broken", ["private_bounds.select", "grid.draw", "table.Table.sums"])
def test_the_charge_is_first_and_whole_and_stays(broken, waits, tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)

    def crash(*_, **__):
        assert ledger.remaining == 0, "nothing may be drawn before the ledger was charged with the total"
        raise RuntimeError("the machine went down")

    monkeypatch.setattr(f"noiseaware.custodian.{broken}", crash)
    with pytest.raises(RuntimeError, match="went down"):
        na.release(waits, FAMILIES["exponential"], epsilon=1, ledger=ledger, bounds="private")
    assert ledger.remaining == 0
    assert len(ledger.entries()) == 1


def test_a_table_that_changes_between_its_scans_is_refused(waits, monkeypatch):
    counts = Table.counts
    monkeypatch.setattr(Table, "counts", lambda *given, **named: (counts(*given, **named)[0], 1999))
    with pytest.raises(ValueError, match="must not change while it is read"):
        na.release(waits, FAMILIES["exponential"], epsilon=1, bounds="private")


def test_a_private_size_that_changes_between_the_scans_is_not_told(waits, monkeypatch):
    """Who is admitted meanwhile would be seen by the exit status; the second scan's number is the one with noise."""
    sums = Table.sums
    monkeypatch.setattr(Table, "sums", lambda *given, **named: (sums(*given, **named)[0], 10**6))
    release = na.release(waits, FAMILIES["exponential"], epsilon=1, bounds="private", neighbours="add_remove")
    assert release.n == pytest.approx(10**6, abs=1000)


REFUSED = {
    "bounds already": ({"family": na.family.Exponential("x", bounds=(0, 9))}, "bounds must be None in a family"),
    "bernoulli": ({"family": na.family.Bernoulli("x")}, "must not be given for the bernoulli family"),
    "binomial": ({"family": na.family.Binomial("x", trials=3)}, "must not be given for the binomial family"),
    "categorical": ({"family": na.family.Categorical("x", levels=[1, 2])}, "must not be given for the categorical"),
    "no column": ({"family": na.family.Exponential()}, "family must name one column"),
    "share 0": ({"bounds_share": 0}, "bounds_share must be positive, got 0"),
    "share 1": ({"bounds_share": 1}, "bounds_share must be between 0 and 1, got 1"),
    "share NaN": ({"bounds_share": math.nan}, "bounds_share must be a positive number"),
    "share text": ({"bounds_share": "some"}, "bounds_share must be a positive number"),
    "one quantile": ({"bounds_quantiles": (0.5,)}, "bounds_quantiles must be two numbers"),
    "a number": ({"bounds_quantiles": 0.9}, "bounds_quantiles must be two numbers"),
    "text": ({"bounds_quantiles": "ab"}, "bounds_quantiles must be two numbers"),
    "quantiles swapped": ({"bounds_quantiles": (0.9, 0.1)}, "on either side of 0.5"),
    "quantile 0": ({"bounds_quantiles": (0, 0.9)}, "bounds_quantiles must be positive"),
    "quantile 1": ({"bounds_quantiles": (0.1, 1)}, "on either side of 0.5"),
    "quantile too fine": ({"bounds_quantiles": (0.1, "0.9999999")}, "at most six decimals"),
    "tiny epsilon": ({"epsilon": 1e-300}, "nearer to 1"),
    "huge epsilon": ({"epsilon": 1e300}, "no float can hold the scale of the choice"),
    "other word": ({"bounds": "secret"}, "bounds must be 'private'"),
    "numbers": ({"bounds": (0, 9)}, "stand in the family as two numbers"),
    "share alone": ({"bounds": None, "bounds_share": 0.2, "family": na.family.Bernoulli("x")}, "must be left out"),
    "groups": ({"by": "g", "levels": {"g": ["a"]}}, "bounds must be given where a table is released by groups"),
    "rho on an epsilon ledger": ({"epsilon": None, "rho": 1}, "rho cannot be charged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_before_the_table_is_read_and_cost_nothing(case, tmp_path):
    changes, sentence = REFUSED[case]
    (tmp_path / "t.parquet").write_text("nothing of the kind")
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1000)
    given = {"family": FAMILIES["exponential"], "epsilon": 1, "bounds": "private", "ledger": ledger, **changes}
    with pytest.raises(ValueError) as caught:
        na.release(tmp_path / "t.parquet", given.pop("family"), **given)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert ledger.spent == 0


def test_the_ledger_refuses_the_total_before_the_table_is_read(tmp_path):
    (tmp_path / "t.parquet").write_text("nothing of the kind")
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon="0.95")
    with pytest.raises(LedgerRefusal):
        na.release(tmp_path / "t.parquet", FAMILIES["exponential"], epsilon=1, ledger=ledger, bounds="private")
    assert ledger.spent == 0


# ---- the release file, and inference -----------------------------------------------------------------------------


def private_release(**changes) -> dict:
    release = na.Release(
        family=na.family.Exponential("x", bounds=(0, 16)),
        values=[3807 * 2**10],
        n=1000,
        mechanism=na.mechanism.DiscreteLaplace(13000.0),
        grid=2.0**-10,
        origin=Origin(bounds="private", bounds_share=SHARE, bounds_quantiles=QUANTILES[1:]),
    )
    document = json.loads(release.to_json())
    document["origin"] |= changes
    return document


def test_a_file_without_the_new_fields_still_loads():
    old = private_release()
    del old["origin"]["bounds_share"], old["origin"]["bounds_quantiles"]
    release = from_json(json.dumps(old))
    assert (release.origin.bounds, release.origin.bounds_share, release.origin.bounds_quantiles) == (
        "private",
        None,
        (),
    )
    assert "chosen privately from the data)" in dict(facts(release))["Bounds"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bounds_share": "1"}, "bounds_share must be between 0 and 1"),
        ({"bounds_share": "-1"}, "bounds_share must be positive"),
        ({"bounds_share": 0.1}, "bounds_share: Input should be a valid string"),
        ({"bounds_quantiles": ["0.9", "0.1"]}, "bounds_quantiles must be one or two in order"),
        ({"bounds_quantiles": ["0.1", "0.2", "0.3"]}, "bounds_quantiles must be one or two in order"),
        ({"bounds_quantiles": ["many"]}, "bounds_quantiles must be a positive number"),
        ({"bounds": "public"}, "origin.bounds must be private"),
    ],
)
def test_a_file_that_is_off_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        from_json(json.dumps(private_release(**changes)))


def test_the_posterior_says_what_it_neglects():
    release = from_json(json.dumps(private_release()))
    assert "bounds were chosen from the data" in (release.evidence().neglected or "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fit takes:RuntimeWarning")  # bounds that chance has put low are modelled
def test_intervals_cover_the_truth_when_bounds_are_private(seed):
    """θ from the prior, 400 records, a release, an interval of 90 %: 150 trials put the coverage within 4.5 sd."""
    rng, prior, num_trials = np.random.default_rng(seed), na.prior.Gamma(8, 2), 150
    inside = 0
    for trial in range(num_trials):
        theta = rng.gamma(8, 1 / 2)
        table = pd.DataFrame({"x": rng.exponential(1 / theta, 400)})
        release = na.release(table, FAMILIES["exponential"], epsilon=2, bounds="private", bounds_share="1/5")
        posterior = na.infer(release, prior, num_draws=400, seed=trial)
        assert not posterior.is_exact
        draws = posterior.draws["theta"]
        inside += np.quantile(draws, 0.05) <= theta <= np.quantile(draws, 0.95)
        if trial % 50 == 49:
            jax.clear_caches()
    # quantiles of 400 draws add a standard deviation of about 0.015 to the level of one interval, and no bias
    assert abs(inside / num_trials - 0.9) < 4.5 * math.sqrt(0.9 * 0.1 / num_trials)
