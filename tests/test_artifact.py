"""A release made from numbers: what is no number, family or mechanism is refused in one sentence."""

import numpy as np
import pytest

import noiseaware as na

GIVEN = {"family": na.family.Bernoulli(), "values": [3], "n": 10, "mechanism": na.mechanism.Laplace(1.0)}
WRONG = [
    ({"values": None}, "values must be numbers, one for each statistic, got None."),
    ({"values": ["3"]}, "values must be numbers, one for each statistic, got '3'."),
    ({"values": "3"}, "values must be numbers, one for each statistic, got '3'."),
    ({"values": [True]}, "values must be numbers, one for each statistic, got True."),
    ({"values": [[3]]}, r"values must be numbers, one for each statistic, got \[3\]."),
    ({"values": [3, 4]}, "values must have 1 entries for this family, got 2."),
    ({"family": "bernoulli"}, "family must be one of noiseaware.family, such as .*, got 'bernoulli'."),
    ({"family": na.family.Bernoulli}, "family must be .*, got the class Bernoulli."),
    ({"mechanism": None}, "mechanism must be one of noiseaware.mechanism, such as .*, got None."),
    ({"mechanism": [na.mechanism.Laplace(1.0)]}, "mechanism must be one of noiseaware.mechanism, such as"),
    ({"n_mechanism": 3.0}, "n_mechanism must be one of noiseaware.mechanism, such as .*, got 3.0."),
    ({"guarantee": "pure"}, "guarantee must be one of noiseaware.privacy, such as .*, got 'pure'."),
    ({"origin": 3}, "origin must be one of noiseaware.document, such as .*, got 3."),
    ({"within": 3}, "within must be a list of intervals, one for each value, got 3."),
    ({"grid": "fine"}, "grid must be a number, got 'fine'."),
    ({"n": 10.0}, "n must be a whole number from 1 to 1,000,000,000,000,000, got 10.0."),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(change)[:40] for change, _ in WRONG])
def test_what_a_release_is_not_made_of(change, message):
    with pytest.raises(ValueError, match=message):
        na.Release(**GIVEN | change)


@pytest.mark.parametrize(
    ("mechanism", "told"),
    [
        (na.mechanism.Gaussian(2.0), "Gaussian noise of standard deviation 2, no stated guarantee)"),
        (na.mechanism.Identity(), "sum = 3, no noise, no stated guarantee)"),
    ],
)
def test_a_release_tells_its_noise(mechanism, told):
    assert repr(na.Release(**GIVEN | {"mechanism": mechanism})).endswith(told)


def test_numbers_of_numpy_are_numbers():
    plain = na.Release(**GIVEN)
    assert plain == na.Release(**GIVEN | {"values": np.array([3])}) == na.Release(**GIVEN | {"values": np.int64(3)})
    assert plain == na.Release(**GIVEN | {"n": np.int32(10), "values": [np.int32(3)]})
    assert na.family.Binomial(trials=np.int64(3)) == na.family.Binomial(trials=3)


def test_what_is_known_of_values_is_told_in_words():
    levels = na.family.Categorical(levels=["a", "b", "c", "d"])
    within = [(-np.inf, 4), None, (6, np.inf), (7.5, 12.5)]
    noise = na.mechanism.DiscreteLaplace(20.0)
    release = na.Release(family=levels, values=[4, 5, 6, 10], n=99, mechanism=noise, within=within, grid=0.5)
    known = ["at most 2", None, "at least 3", "from 3.75 to 6.25"]
    assert release.known == [f" (known to be {words})" if words else "" for words in known]
    assert "count[b] = 2.5, count[c] = 3 (known to be at least 3)" in repr(release)
    assert na.Release(**GIVEN).known == [""]


def test_a_noisy_number_of_records_is_reckoned_with_as_one_or_more():
    noisy = GIVEN | {"n_mechanism": na.mechanism.Laplace(4.0)}
    assert [na.Release(**noisy | {"n": n}).likely_n for n in (-3, 0, 12)] == [1, 1, 12]
    assert na.Release(**GIVEN).likely_n == 10


@pytest.mark.parametrize("scale", ["1", True, None, np.nan, [1.0, "2"], [1.0, True]])
def test_what_a_scale_is_not(scale):
    with pytest.raises(ValueError, match="scale must be"):
        na.mechanism.Laplace(scale)


@pytest.mark.parametrize("concentration", [3, "ab", [1, None], [[1, 2]], [True, 1], np.ones((2, 2))])
def test_what_concentrations_are_not(concentration):
    with pytest.raises(ValueError, match="concentration must be a list of numbers, one for each level"):
        na.prior.Dirichlet(concentration)


def test_what_infer_does_not_take():
    release = na.Release(**GIVEN)
    with pytest.raises(ValueError, match=r"release must be one release or a list of them, got None."):
        na.infer(None, na.prior.Beta(1, 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"prior must have one number as its a for the bernoulli family, got"):
        na.infer(release, na.prior.Beta([1, 2], 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"prior must be a Beta for the bernoulli family, got the class Beta\."):
        na.infer(release, na.prior.Beta)  # type: ignore[arg-type]
