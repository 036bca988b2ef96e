"""What a model without a formula computes is what a program computes: the same values, and none that is no number."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noiseaware.program.language import evaluate, nuts

POINTS = (-800, -1, 0, Fraction(1, 3), 2, 800)


@pytest.mark.parametrize("name", evaluate.EXACT)
def test_an_operation_has_the_value_that_it_has_outside_a_model(name):
    with jax.enable_x64(True):
        for arguments in itertools.product(POINTS, repeat=1 if name in ("abs", "exp", "log") else 2):
            found = float(nuts._OPERATIONS[name](*map(float, arguments)))
            expected = float(evaluate.EXACT[name](*map(Fraction, arguments)))
            assert found == pytest.approx(expected, rel=1e-12), arguments


@pytest.mark.parametrize("name", ["exp", "log", "/"])
@pytest.mark.parametrize("x", [-1e9, 0.0, 1e9])
def test_a_gradient_is_a_number_where_a_value_was_guarded(name, x):
    with jax.enable_x64(True):
        function = nuts._OPERATIONS[name] if name != "/" else lambda x: nuts._OPERATIONS["/"](1.0, x)
        assert math.isfinite(jax.grad(function)(x))


WHOLE, SHARES, ABOVE = np.array([0.0, 1.0, 4.0]), np.array([0.1, 0.5, 0.7]), np.array([0.2, 1.0, 5.0])
# what a record may be, its parameters, and its law in SciPy
LAWS = {
    "bernoulli": (np.array([1.0, 0.0, 1.0]), [0.3], stats.bernoulli(0.3).logpmf),
    "categorical": (np.array([2.0, 0.0, 1.0]), [0.2, 0.3, 0.5], lambda x: np.log([0.5, 0.2, 0.3])),
    "beta": (SHARES, [2.0, 5.0], stats.beta(2, 5).logpdf),
    "normal": (ABOVE, [1.0, 4.0], stats.norm(1, 2).logpdf),
    "gamma": (ABOVE, [3.0, 4.0], stats.gamma(3, scale=1 / 4).logpdf),
    "poisson": (WHOLE, [2.5], stats.poisson(2.5).logpmf),
}


@pytest.mark.parametrize("name", nuts._LOG_DENSITIES)
def test_a_record_has_the_law_of_its_name(name):
    x, parameters, log_density = LAWS[name]
    with jax.enable_x64(True):
        found = nuts._LOG_DENSITIES[name](jnp.asarray(x), *parameters)
    np.testing.assert_allclose(found, log_density(x), rtol=1e-12)
