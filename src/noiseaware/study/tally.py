"""The counts of levels known together: how much narrower that makes the interval of each probability.

    p(k_j | y) ∝ g_j(k_j) · (∗_{i≠j} g_i)(n − k_j)        g_i(k) = Γ(α_i + k)/(k! Γ(α_i)) · noise(y_i − k)

A level alone is known by its own noisy count, and by the others' as far as a normal sum of them says what is left of n.
Where levels are rare the others say more: none of them is below 0. Some tables of the prior are made, both posteriors
of each count are worked out on a lattice, with convolutions by the FFT, and the mean widths of their intervals
compared.
"""

import numpy as np
from scipy.special import gammaln

from noiseaware.study.noise import Noise

_CELLS, _FEWEST = 2048, 200  # of a lattice, at most and, of so many records, at least
_MOST_LEVELS = 32  # of more, what has to add up to n lies so far from what is likely that the FFT's round-off shows
_STEPS_PER_SD = 6  # of the noise, where a cell is wider than one count
_CELLS_IN_ALL = 600_000  # of all counts of all tables
_COUNTS = (300, 1500)  # tables times levels, at least and at most
_DRAWS = 200  # of each probability
_NEVER = -1e300


def narrowing(concentration: np.ndarray, n: float, noise: Noise, factor: float, tails: tuple) -> float:
    """The mean width given all noisy counts, over that given each level's own of `factor` times the variance.

    One number for all levels: they hardly differ in it, and it takes fewer tables.
    """
    levels, n = len(concentration), round(n)
    sd = float(noise.variance[0]) ** 0.5
    step = max(-(-(n + 1) // _CELLS), int(min(sd / _STEPS_PER_SD, n / _FEWEST)), 1)
    if levels > _MOST_LEVELS or sd == 0 or (step > 1 and sd < _STEPS_PER_SD * step):
        return 1.0  # little noise, against which the lattice would be coarse: the errors of n records rule
    k = np.arange(round(n / step) + 1.0) * step
    rng = np.random.default_rng(0)
    count = int(np.clip(_CELLS_IN_ALL // len(k), *_COUNTS)) // levels
    theta = rng.dirichlet(concentration, count)
    theta /= theta.sum(axis=1, keepdims=True)
    y = rng.multinomial(n, theta) + sd * noise.shape.unit_draws(rng, theta.shape)
    log_g = _log_count(k, step, concentration)[None] + _log_noise(y[:, :, None] - k, sd, noise)
    together = _peaked(log_g) * _others(_peaked(log_g))[:, :, ::-1]
    rest = concentration.sum() - concentration
    log_alone = _log_count(k, step, concentration) + _log_count(n - k, step, rest)
    alone = _peaked(log_alone + _log_noise(y[:, :, None] - k, sd * factor**0.5, noise))
    joint, own = (_widths(rng, mass, k, n, concentration, tails) for mass in (together, alone))
    return float(joint / own)


def _log_noise(off: np.ndarray, sd: float, noise: "Noise") -> np.ndarray:
    return -noise.shape.unit_exponent(off / sd)


def _log_count(k: np.ndarray, step: int, concentration: np.ndarray) -> np.ndarray:
    """log Γ(α + k)/(k! Γ(α)) of the counts of each cell about k together: such a sum up to m is Γ(m + α)/(Γ(m) α Γ(α)).

    One row for each α; k may fall or rise.
    """
    alpha = concentration[:, None]
    if step == 1:
        return gammaln(alpha + k) - gammaln(k + 1) - gammaln(alpha)
    ends = np.maximum(k + 0.5 * step, 0.5 * step), np.maximum(k - 0.5 * step, 0.0)
    high, low = (
        np.where(m > 0, gammaln(m + alpha) - gammaln(np.maximum(m, 1e-9)) - gammaln(alpha + 1), _NEVER) for m in ends
    )
    return high + np.log1p(-np.exp(np.minimum(low - high, -1e-15)))


def _peaked(log_mass: np.ndarray) -> np.ndarray:
    return np.exp(log_mass - log_mass.max(axis=-1, keepdims=True))


def _others(g: np.ndarray) -> np.ndarray:
    """For each level the convolution of all others' masses, up to n in all."""
    size = g.shape[-1]
    turned = np.fft.rfft(g, 2 * size)
    product = np.ones_like(turned)
    before = np.ones_like(turned[:, 0])
    after = np.ones_like(before)
    for j in range(g.shape[1]):
        product[:, j] *= before
        before = _circular(before * turned[:, j], size)
    for j in reversed(range(g.shape[1])):
        product[:, j] = product[:, j] * after
        after = _circular(after * turned[:, j], size)
    return np.maximum(np.fft.irfft(product, 2 * size)[..., :size], 0.0)


def _circular(turned: np.ndarray, size: int) -> np.ndarray:
    """A transform of what lies below `size` alone: what is above n cannot come back, and must not wrap around."""
    mass = np.fft.irfft(turned, 2 * size)[..., :size]
    return np.fft.rfft(mass / mass.max(axis=-1, keepdims=True), 2 * size)


def _widths(
    rng: np.random.Generator, mass: np.ndarray, k: np.ndarray, n: int, concentration: np.ndarray, tails: tuple
) -> float:
    """The mean width of all levels' intervals, by draws of its count and of θ_j ~ Beta(α_j + k, …) given that."""
    cdf = np.cumsum(mass, axis=-1)
    u = (np.arange(_DRAWS) + rng.random(_DRAWS)) / _DRAWS
    place = np.apply_along_axis(lambda own: np.searchsorted(own, u * own[-1]), -1, cdf)
    drawn = np.minimum(k[np.minimum(place, len(k) - 1)], n)
    alpha = concentration[:, None]
    theta = rng.beta(alpha + drawn, concentration.sum() - alpha + n - drawn)
    return np.diff(np.quantile(theta, tails, axis=-1), axis=0).mean()
