"""Records carried from one parameter to another: a symmetric coupling of the two laws, for every family."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noiseaware.family as family
from noiseaware.family import AbstractFamily

SIZE = 40_000
PAIR = np.array([0.5, -0.2, 1.0, 0.3, 0.3, 0.6]), np.array([0.2, 0.4, 0.7, -0.2, -0.2, 1.1])
LINE = np.array([0.5, -0.2, 0.6, 0.3, 0.8]), np.array([0.9, 0.1, 0.4, -0.1, 1.1])
# name: (family, θ, another θ)
MEMBERS = {
    "bernoulli": (family.Bernoulli(), 0.3, 0.45),
    "binomial": (family.Binomial(trials=4), 0.3, 0.45),
    "categorical": (family.Categorical(levels=["a", "b", "c"]), np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.25, 0.35])),
    "poisson": (family.Poisson(), 2.5, 3.5),
    "geometric": (family.Geometric(), 0.3, 0.45),
    "exponential": (family.Exponential(), 0.7, 1.1),
    "gamma": (family.Gamma(shape=2.5), 0.7, 1.1),
    "gamma of any shape": (family.Gamma(), np.array([2.5, 0.7]), np.array([1.9, 1.1])),
    "normal mean": (family.Normal(variance=2.0), 0.7, 1.5),
    "normal": (family.Normal(), np.array([0.7, 2.0]), np.array([1.5, 1.2])),
    "multivariate normal": (family.MultivariateNormal(dimension=2), *PAIR),
    "regression": (family.LinearRegression(), *LINE),
}


def moments(x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Functions of pairs of records, some of which tell the one from the other; one row each."""
    x, other = (np.atleast_2d(np.asarray(records, float)) for records in (x, other))
    both = [x, other, x * other, x**2 * other, x * other**2, (x == other).astype(float), x > other]
    return np.concatenate([np.asarray(rows, float) for rows in both])


@pytest.mark.parametrize(("name", "is_own"), [*((name, True) for name in MEMBERS), ("poisson", False)])
def test_there_and_back_are_one_law(name, is_own, x64, key):
    """(x, x') from θ and (x', x) from θ' have the same moments, to within 4.5 standard errors."""
    member, *thetas = MEMBERS[name]
    theta, other = (jnp.asarray(t) for t in thetas)
    carried = member.carried if is_own else lambda *given: AbstractFamily.carried(member, *given)
    key_x, key_there, key_y, key_back = jax.random.split(key, 4)
    x, y = member.sample(key_x, theta, SIZE), member.sample(key_y, other, SIZE)
    there = moments(x, carried(key_there, x, theta, other))
    back = moments(carried(key_back, y, other, theta), y)
    error = np.sqrt((there.var(1) + back.var(1)) / SIZE) + 1e-12
    assert (np.abs(there.mean(1) - back.mean(1)) <= 4.5 * error).all()
    if is_own and name != "categorical":
        d = len(np.atleast_2d(x))
        near = [np.corrcoef(a, b)[0, 1] for a, b in zip(np.atleast_2d(x), there[d : 2 * d], strict=True)]
        assert min(near) > 0.5, near
