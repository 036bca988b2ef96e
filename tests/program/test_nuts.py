"""What a model without a formula computes is what a program computes: the same values, and none that is no number."""

import itertools
import math
from fractions import Fraction

import jax
import pytest

from noiseaware.program import evaluate, nuts

POINTS = (-800, -1, 0, Fraction(1, 3), 2, 800)


@pytest.mark.parametrize("name", evaluate._OPERATIONS)
def test_an_operation_has_the_value_that_it_has_outside_a_model(name):
    with jax.enable_x64(True):
        for arguments in itertools.product(POINTS, repeat=1 if name in ("abs", "exp", "log") else 2):
            found = float(nuts._OPERATIONS[name](*map(float, arguments)))
            expected = float(evaluate._OPERATIONS[name](*map(Fraction, arguments)))
            assert found == pytest.approx(expected, rel=1e-12), arguments


@pytest.mark.parametrize("name", ["exp", "log", "/"])
@pytest.mark.parametrize("x", [-1e9, 0.0, 1e9])
def test_a_gradient_is_a_number_where_a_value_was_guarded(name, x):
    with jax.enable_x64(True):
        function = nuts._OPERATIONS[name] if name != "/" else lambda x: nuts._OPERATIONS["/"](1.0, x)
        assert math.isfinite(jax.grad(function)(x))
