"""Predictions: their law where it has a closed form, what they are made from, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noiseaware as na
from noiseaware.posterior.prediction import of_conjugate

BOUNDS = {"age": (0, 100), "bmi": (10, 60), "pressure": (60, 220)}
FAMILY = na.family.LinearRegression(["age", "bmi"], "pressure", bounds=BOUNDS)
LINE = na.family.LinearRegression("age", "pressure")
PRIOR = na.prior.NormalInverseGamma([0.5, 1.0, 90.0], [10.0, 5.0, 0.1], 3.0, 200.0)
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def _table(n: int = 30) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    age, bmi = rng.normal(50, 12, n), rng.normal(30, 5, n)
    return {"age": age, "bmi": bmi, "pressure": 90 + 0.6 * age + 0.9 * bmi + rng.normal(0, 10, n)}


def _released(family: na.family.LinearRegression, table: dict[str, np.ndarray]) -> na.Release:
    """The true moments."""
    records = [table[column] for column in family.query.columns]
    values = [float(np.sum(s)) for s in family.query.statistic(records)]
    return na.Release(family=family, values=values, n=len(records[0]), mechanism=na.mechanism.Identity())


def _oracle(prior: na.prior.NormalInverseGamma, table: dict[str, np.ndarray], x: np.ndarray) -> list[tuple]:
    """Textbook conjugate regression: Student's t of the line and of y at each row of x."""
    design = np.column_stack([table["age"], table["bmi"], np.ones(len(table["age"]))])
    y, own = table["pressure"], np.asarray(prior.precision)
    precision = own + design.T @ design
    centre = np.linalg.solve(precision, own @ prior.mean + design.T @ y)
    shape = prior.shape + len(y) / 2
    scale = prior.scale + 0.5 * (y @ y + prior.mean @ own @ prior.mean - centre @ precision @ centre)
    found = []
    for row in x:
        z = np.append(row, 1.0)
        square = z @ np.linalg.solve(precision, z)
        spreads = [(scale / shape * (extra + square)) ** 0.5 for extra in (0, 1)]
        found.append(tuple(stats.t(2 * shape, z @ centre, spread) for spread in spreads))
    return found


@pytest.mark.parametrize("method", ["naive", "hmc"])
def test_without_noise_it_is_students_t(method, seed):
    table, x, draws = _table(), np.array([[40.0, 25.0], [95.0, 58.0]]), 20_000
    posterior = na.infer(_released(FAMILY, table), PRIOR, method=method, num_draws=draws, seed=seed)
    prediction = posterior.predict(x)
    # A CDF level of independent draws has a standard error of at most 0.5/√draws; 4.5 of them is 7e−6.
    tolerance = 4.5 * 0.5 / draws**0.5
    for j, laws in enumerate(_oracle(PRIOR, table, x)):
        for drawn, law in zip((prediction.expectation, prediction.draws), laws, strict=True):
            found = np.mean(drawn[:, j, None] <= law.ppf(LEVELS), axis=0)
            np.testing.assert_allclose(found, LEVELS, atol=tolerance)


def test_the_closed_form_agrees_with_the_textbook():
    table, x = _table(), np.array([[40.0, 25.0], [95.0, 58.0]])
    posterior = na.infer(_released(FAMILY, table), PRIOR, method="naive", num_draws=1, seed=0)
    found = of_conjugate(posterior.naive.parts["regression"], x)  # type: ignore[attr-defined]
    for own, right in zip(found, zip(*_oracle(PRIOR, table, x), strict=True), strict=True):
        for law, oracle in zip(own, right, strict=True):
            assert law.location == pytest.approx(oracle.mean())
            assert law.scale == pytest.approx(oracle.kwds.get("scale", oracle.args[2]), rel=1e-6)


@pytest.fixture(scope="module")
def posterior() -> na.Posterior:
    return na.infer(_released(FAMILY, _table()), PRIOR, method="naive", num_draws=200, seed=3)


@pytest.mark.parametrize(
    "x",
    [
        {"age": [40, 70], "bmi": [25, 25]},
        {"bmi": 25, "age": [40, 70], "name": ["a", "b"]},
        pd.DataFrame({"bmi": [25.0, 25.0], "age": [40.0, 70.0], "note": ["a", "b"]}),
        [[40, 25], [70, 25]],
        np.array([[40, 25], [70, 25]]),
    ],
    ids=["mapping", "one number for all", "frame", "rows", "array"],
)
def test_records_come_in_many_forms(posterior, x):
    prediction = posterior.predict(x)
    assert prediction.draws.shape == prediction.expectation.shape == (200, 2)
    np.testing.assert_array_equal(prediction.draws, posterior.predict([[40, 25], [70, 25]]).draws)
    coefficients = posterior.draws["coefficients"]
    np.testing.assert_allclose(prediction.expectation[:, 1], coefficients @ [70, 25, 1])


def test_one_record_and_one_covariate():
    table = _table()
    line = na.infer(
        _released(LINE, table), na.prior.NormalInverseGamma([1, 100], 0.1, 3, 200), method="naive", num_draws=50, seed=0
    )
    assert line.predict(40).draws.shape == (50, 1)
    assert line.predict([40, 50, 60]).draws.shape == (50, 3)
    assert line.predict({"age": 40}).draws.shape == (50, 1)


def test_a_prediction_is_repeatable_and_summarised(posterior):
    one, again, other = posterior.predict([40, 25]), posterior.predict([40, 25]), posterior.predict([40, 25], seed=4)
    np.testing.assert_array_equal(one.draws, again.draws)
    assert (one.draws != other.draws).all()
    table = one.summary(0.9)
    assert list(table.columns) == ["mean", "sd", "eti90_lb", "eti90_ub"]
    np.testing.assert_allclose(one.interval(0.9), [np.quantile(one.draws[:, 0], [0.05, 0.95])])
    assert one.interval().shape == (1, 2)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ([1, 2, 3], r"x must have 2 numbers a record \(age, bmi\), got 3\."),
        ([[1], [2]], r"x must have 2 numbers a record \(age, bmi\), got 1\."),
        (np.zeros((2, 2, 2)), "got an array of 3 axes"),
        ([], "got 0"),
        ({"age": 40}, "x must have a column 'bmi', got age"),
        ({}, "x must have a column 'age', got none"),
        ({"age": [1, 2], "bmi": [1, 2, 3]}, "x must have columns of one length, got 2 and 3"),
        (pd.DataFrame({"age": [40.0]}), "x must have a column 'bmi', got age"),
        ([40, np.nan], "x must be finite, got nan"),
        ({"age": np.inf, "bmi": 2}, "x must be finite, got inf"),
        (["old", 25], "x must be numbers"),
        ({"age": "old", "bmi": 25}, "x must be numbers"),
        ([[1, 2], [3]], "x must be numbers"),
    ],
)
def test_what_is_no_record_is_refused_in_a_sentence(posterior, x, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        posterior.predict(x)
    assert str(refusal.value).count("\n") == 0
    assert str(refusal.value).endswith(".")


def test_only_a_regression_predicts():
    release = na.Release(family=na.family.Bernoulli(), values=[3], n=10, mechanism=na.mechanism.Laplace(1.0))
    other = na.infer(release, na.prior.Beta(1, 1), method="naive", num_draws=5, seed=0)
    for ask in (lambda: other.predict([1]), other.plot_band):
        with pytest.raises(ValueError, match=r"must follow a linear regression, got the bernoulli family\."):
            ask()


def test_the_band_shows_the_line_over_each_covariate(posterior):
    figure = posterior.plot_band(truth={"coefficients": [0.6, 0.9, 90.0]})
    assert [axes.get_xlabel() for axes in figure.axes] == ["age", "bmi"]
    assert [axes.get_xlim() for axes in figure.axes] == [(0, 100), (10, 60)]
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    line = posterior.predict({"age": 100, "bmi": 35}).expectation[:, 0]
    edge = band[np.isclose(band[:, 0], 100), 1]
    np.testing.assert_allclose([edge.min(), edge.max()], np.quantile(line, [0.025, 0.975]))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["line, 95 %", "line, 50 %", "new records, 95 %", "truth", "most records"]


def test_the_band_of_one_covariate_with_records_and_the_naive_line():
    release = _released(FAMILY, _table())
    noisy = na.Release(family=FAMILY, values=release.values, n=release.n, mechanism=na.mechanism.Laplace(0.5))
    naive = na.infer(noisy, PRIOR, method="naive", num_draws=100, seed=0)
    own = na.Posterior(naive.draws, noisy, naive.prior, "hmc", None, 0)
    figure = own.plot_band("bmi", data=pd.DataFrame(_table()))
    assert [axes.get_xlabel() for axes in figure.axes] == ["bmi"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"naive line, 95 %", "records"} <= set(labels)
    with pytest.raises(ValueError, match="column must be one of age, bmi, got 'weight'"):
        own.plot_band("weight")
    with pytest.raises(ValueError, match="data must have a column 'pressure', got bmi"):
        own.plot_band("bmi", data={"bmi": [1.0]})


def test_the_band_without_bounds_runs_over_where_records_are():
    table = _table(400)
    prior = na.prior.NormalInverseGamma([1, 100], 0.1, 3, 200)
    line = na.infer(_released(LINE, table), prior, method="naive", num_draws=50, seed=0)
    (axes,) = line.plot_band().axes
    mean, sd = table["age"].mean(), table["age"].std()
    assert axes.get_xlim() == pytest.approx((mean - 3 * sd, mean + 3 * sd))
