"""The laws of a number of records, for each member of the contract; and what is true of a private one alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noiseaware.evidence.count import AbstractCount, Private, Public
from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace

pytestmark = pytest.mark.usefixtures("x64")

COUNTS = {
    "public": Public(40),
    "private": Private(40, DiscreteLaplace(3.0)),
    "private, of many": Private(4000, DiscreteGaussian(200.0)),
    "private, below nothing": Private(-3, DiscreteLaplace(2.0)),
}


@pytest.fixture(params=COUNTS)
def count(request) -> AbstractCount:
    return COUNTS[request.param]


def test_it_reckons_with_a_number_of_records_that_there_may_be(count):
    assert 1 <= count.likely <= count.most
    assert count.is_public == (count.likely == count.most)
    assert count.is_public == (count.variance == 0)


def test_true_numbers_behind_it_are_whole_and_have_its_variance(count, key):
    drawn = count.sample(key, 4000)
    assert drawn.shape == (4000,)
    assert (drawn == np.round(drawn)).all()
    assert drawn.min() >= 0
    if count.likely > 30:  # else some of the law lies below 0
        assert drawn.var() == pytest.approx(count.variance, rel=0.2)


def test_nodes_hold_the_likely_number_and_fewer_are_some_of_them(count):
    placed = count.placed(None)
    nodes = np.asarray(placed.nodes)
    assert (np.diff(nodes) > 0).all()
    assert nodes[0] <= count.likely <= nodes[-1] <= count.most
    assert set(np.asarray(placed.fewer().nodes)) <= set(nodes)
    assert set(nodes) <= set(np.asarray(placed.points))


def test_the_coordinate_of_a_chain_leads_back_to_the_likely_number(count):
    above = count.above(2.0)
    rest, n = above.of(above.appended(jnp.asarray([0.3, -1.0])))
    assert rest.tolist() == [0.3, -1.0]
    assert float(n) == pytest.approx(float(above.likely))


def test_it_goes_through_jit_as_it_is(count):
    found = jax.jit(lambda count: (count.likely + 0.0, count.wanted(jnp.zeros(())) + 0.0))(count)
    assert [float(value) for value in found] == [count.likely, count.likely]


def test_the_law_of_a_private_number_is_that_of_its_noise():
    found = np.asarray(COUNTS["private"].log_density(jnp.arange(0.0, 100.0)))
    np.testing.assert_allclose(found, stats.dlaplace.logpmf(40 - np.arange(100), 1 / 3.0), rtol=1e-10)


def test_the_tilt_of_a_total_stays_within_the_slopes_of_laplace_noise():
    tilt = jnp.asarray(0.9)
    assert float(COUNTS["private"].limited(tilt)) == pytest.approx(1 / 3.0)
    assert float(COUNTS["private, of many"].limited(tilt)) == 0.9
    assert float(COUNTS["public"].limited(tilt)) == 0.9
