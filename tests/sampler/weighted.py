"""A posterior without any sampler: tables from the prior, each weighted by the density of its noise."""

from collections.abc import Callable

import numpy as np

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def weights(log_weight: np.ndarray) -> np.ndarray:
    """The greatest of them 1."""
    return np.exp(log_weight - log_weight.max())


def worth(weight: np.ndarray) -> float:
    """How many tables of one weight would tell as much."""
    return weight.sum() ** 2 / (weight**2).sum()


def shares(drawn: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The weighted values' CDF at the five quantiles of the draws of one number."""
    assert np.isfinite(drawn).all()
    order = np.argsort(values)
    return np.interp(np.quantile(drawn, LEVELS), values[order], np.cumsum(weight[order]) / weight.sum())


def agrees(
    draws: np.ndarray, theta: np.ndarray, log_weight: np.ndarray, counts: Callable, *, slack: float = 0.0
) -> bool:
    """Five CDF levels of each parameter, to within 4.5 standard errors of both; `counts` tells what draws are worth."""
    weight = weights(log_weight)
    effective = worth(weight)
    assert effective > 2000, f"the oracle is worth {effective:.0f} tables only"
    for drawn, values in zip(draws.T, theta.T, strict=True):
        error = np.abs(shares(drawn, values, weight) - LEVELS)
        if (error > 4.5 * np.sqrt(LEVELS * (1 - LEVELS) * (1 / counts(drawn) + 1 / effective)) + slack).any():
            return False
    return True
