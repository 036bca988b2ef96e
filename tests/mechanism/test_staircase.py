"""Staircase noise: its promise by brute force, its sampler, and posteriors under it against enumeration."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

import noiseaware as na
from noiseaware.custodian.noise import draw
from noiseaware.mechanism import DiscreteLaplace, Staircase
from noiseaware.privacy import Pure

LAWS = [Staircase(8.0, 8, 3), Staircase(5.0, 4, 4), Staircase(3.0, 9, 1), Staircase(2.0, 1, 1)]


@pytest.mark.parametrize("law", LAWS)
def test_the_mass_is_that_of_the_paper(law, x64):
    """P(i) = a for i < r, a e^{−ε} for r ≤ i < Δ, e^{−kε} times that further out (Geng & Viswanath 2016)."""
    width, step, b = law.width, law.step, math.exp(-law.width / law.scale)
    a = (1 - b) / (2 * step + 2 * b * (width - step) - (1 - b))
    for i in range(4 * width):
        wanted = a * b ** (i // width) * (1 if i % width < step else b)
        for side in (i, -i):
            assert float(jnp.exp(law.log_density(jnp.asarray(float(side))))) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("moved", [1, 2, 3, 8, 9, 17])
def test_the_loss_of_one_statistic_by_brute_force(law, moved, x64):
    k = np.arange(-400.0, 401)
    log_mass = np.asarray(law.log_density(jnp.asarray(k)))
    loss = max(np.abs(log_mass[d:] - log_mass[: len(k) - d]).max() for d in range(1, moved + 1))
    assert loss == pytest.approx(float(law.guarantee(moved, 1).amount), rel=1e-12)


@pytest.mark.parametrize("law", [Staircase(3.0, 3, 2), Staircase(4.0, 2, 1)])
@pytest.mark.parametrize("moved", [1, 2, 3, 4, 5])
def test_the_loss_of_several_statistics_by_brute_force(law, moved, x64):
    """Over every way in which two statistics move by so much in all; each may pass the edge of a stair."""
    k = np.arange(-60.0, 61)
    log_mass = np.asarray(law.log_density(jnp.asarray(k)))
    alone = [0.0] + [np.abs(log_mass[d:] - log_mass[: len(k) - d]).max() for d in range(1, moved + 1)]
    loss = max(alone[d] + alone[e] for d in range(moved + 1) for e in range(moved + 1 - d))
    assert loss == pytest.approx(float(law.guarantee(moved, 2).amount), rel=1e-12)
    assert law.guarantee(moved) == law.guarantee(moved, 10**6)
    assert law.guarantee(moved).amount >= law.guarantee(moved, 2).amount


def test_one_step_a_stair_is_discrete_laplace(x64):
    k = jnp.arange(-20.0, 21)
    np.testing.assert_allclose(Staircase(3.0, 1, 1).log_density(k), DiscreteLaplace(3.0).log_density(k), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_optimal_steps_have_the_least_mean_size(epsilon, x64):
    """Of all numbers of high steps, by listing; and less than Laplace noise of the same promise."""
    k = np.arange(-600, 601)

    def size(law):
        return np.abs(k) @ np.exp(np.asarray(law.log_density(jnp.asarray(k, float))))

    found = Staircase.optimal(epsilon, 12)
    assert found.guarantee(12, 1).amount == pytest.approx(epsilon)
    assert size(found) == pytest.approx(min(size(Staircase(12 / epsilon, 12, step)) for step in range(1, 13)), rel=1e-3)
    assert size(found) <= size(DiscreteLaplace(12 / epsilon))


@pytest.mark.parametrize(("width", "step"), [(4, 5), (4, 0), (0, 0), (2**41, 1), (4.5, 1), (4, 1.5)])
def test_stairs_are_of_whole_steps(width, step):
    with pytest.raises(ValueError, match="width"):
        Staircase(1.0, width, step)


# ---- the custodian ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_what_is_drawn_has_the_law(law, x64):
    count = 20_000
    kept = law.guarantee(1, count).part(1 + Fraction(1, 10**9))  # what OpenDP rounds up
    drawn = draw(law, [100] * count, sensitivity=1, sensitivity_squared=1, guarantee=kept)
    k = np.arange(-150, 151)
    share = np.searchsorted(np.sort(np.array(drawn) - 100), k, side="right") / count
    assert np.abs(share - law.below(k.astype(float))).max() < 2.7 / count**0.5  # the 1e−6 point of Kolmogorov's law


def test_stairs_that_break_the_promise_are_not_drawn():
    """One statistic that moves by 8 passes one stair, and by 9 two; two that move by 8 in all pass two."""
    law, once = Staircase(8.0, 8, 3), Pure(Fraction(1))
    assert len(draw(law, [0], sensitivity=8, sensitivity_squared=64, guarantee=once)) == 1
    for values, moved in (([0], 9), ([0, 0], 8)):
        with pytest.raises(RuntimeError, match="must keep"):
            draw(law, values, sensitivity=moved, sensitivity_squared=moved**2, guarantee=once)
        draw(law, values, sensitivity=moved, sensitivity_squared=moved**2, guarantee=Pure(Fraction(2)))


def test_a_release_with_stairs_needs_the_fifth_version(tmp_path):
    law = Staircase(8.0, 8, 3)
    release = na.Release(family=na.family.Bernoulli(), values=[4], n=10, mechanism=law, guarantee=Pure(Fraction(1)))
    release.save(tmp_path / "release.json")
    text = (tmp_path / "release.json").read_text()
    assert '"schema_version": 5' in text
    again = na.load(tmp_path / "release.json")
    assert again == release
    assert again.mechanism == law
    assert "staircase noise of scale 8" in repr(release)
    for wrong, rule in (
        (text.replace('"schema_version": 5', '"schema_version": 4'), "schema_version must be 5"),
        (text.replace('"width": 8.0', '"depth": 8.0'), "noise.settings must be width and step"),
        (text.replace('"staircase"', '"discrete_laplace"'), "noise.settings must be null"),
    ):
        (tmp_path / "wrong.json").write_text(wrong)
        with pytest.raises(ValueError, match=rule):
            na.load(tmp_path / "wrong.json")


def test_a_table_of_counts_may_have_staircase_noise():
    rows = [{"value": 7, "family": "staircase", "scale": 8, "width": 8, "step": 3, "town": "north"}]
    (release,) = na.interop.table(rows)
    assert release.mechanism == Staircase(8.0, 8, 3)
    assert release.origin.group == (("town", "north"),)
