"""Mean widths of intervals by weighting draws of the prior: for several numbers of which the sums say little.

    y_t ~ N(n m(θ_t), n V(θ_t) + τ_t)        weight of θ_i given y_t: N(y_t; n m(θ_i), n V(θ_i) + τ_i)

Laplace noise is normal noise whose variance τ is drawn from an exponential law, and each draw of the prior has a τ with
it. The interval of each number is that of the weighted draws. Where a few draws have all the weight, they say nothing.
"""

import numpy as np

from noiseaware.study.noise import Noise

DRAWS = 4000
_WEIGHTED = 60.0  # so many draws of equal weight, at least, for an interval
_MOST_STATISTICS = 14  # of more, all draws would be too far away, and their covariances too many to invert
_RIDGE = 1e-9


def widths(
    numbers: dict[str, np.ndarray],
    mean: np.ndarray,
    covariance: np.ndarray,
    truths: np.ndarray,
    n: float,
    noise: Noise,
    tails: tuple[float, float],
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The width of each number's interval for a table of each truth, and whether enough draws say so.

    Truths are places among the draws of the prior, of which a table's truth is not one for itself.
    """
    k = mean.shape[1]
    if k > _MOST_STATISTICS:
        return {name: np.zeros(len(truths)) for name in numbers}, np.zeros(len(truths), bool)
    rng = np.random.default_rng(0)
    tau = noise.shape.unit_variances(rng, mean.shape)
    normal = rng.normal(size=mean.shape)[truths]
    own = n * covariance + noise.variance_of_n * mean[:, :, None] * mean[:, None, :]
    unit = np.sqrt(np.diagonal(np.median(own, axis=0)) + noise.variance)
    total = own / unit / unit[:, None] + np.eye(k) * (tau * noise.variance / unit**2 + _RIDGE)[:, None, :]
    root = np.linalg.cholesky(total)
    centre = n * (mean - np.median(mean, axis=0)) / unit
    y = centre[truths] + (root[truths] @ normal[:, :, None])[:, :, 0]
    log_weight = _log_weights(y, centre, np.linalg.inv(total), root)
    log_weight[np.arange(len(truths)), truths] = -np.inf
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    found = {name: _intervals(values, weight, tails) for name, values in numbers.items()}
    return found, 1 / (weight**2).sum(axis=1) > _WEIGHTED


def _log_weights(y: np.ndarray, centre: np.ndarray, precision: np.ndarray, root: np.ndarray) -> np.ndarray:
    """The log weight of each draw for each table: the square in the exponent, multiplied out to be one product."""
    pulled = (precision @ centre[:, :, None])[:, :, 0]
    squares = (y[:, :, None] * y[:, None, :]).reshape(len(y), -1) @ precision.reshape(len(centre), -1).T
    log_root = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * squares + y @ pulled.T - 0.5 * (centre * pulled).sum(axis=1) - log_root


def _intervals(values: np.ndarray, weight: np.ndarray, tails: tuple[float, float]) -> np.ndarray:
    order = np.argsort(values)
    cdf = np.cumsum(weight[:, order], axis=1)
    return np.array([np.diff(np.interp(tails, own, values[order]))[0] for own in cdf])
