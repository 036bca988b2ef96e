"""The picture of docs/programs.md: what five private answers about a coin are worth, all for ε = 1.

θ is uniform and n records are tossed, so that every count s is as likely as any other. The answers are

    Hellinger      exponential mechanism on the n + 1 posteriors, score −H(posterior, r), sensitivity √(1 − π/4)
    ℓ1             the same with score −(|a − a'| + |b − b'|), sensitivity 2
    two draws      Laplace noise of ε/2 on a and on b, taken at face value; below ½ they are moved to ½
    count          Laplace noise of ε on s, taken at face value; outside 0 … n it is moved to 0 or n
    noise-aware    the same noisy count y, and the posterior Σ P(s | y) Beta(1 + s, 1 + n − s)

Nothing is simulated. Each mechanism's law is enumerated, with the discrete Laplace noise that is really drawn. Left:
the mean Hellinger distance to Beta(1 + s, 1 + n − s), the posterior without noise. Right: how often the central 90 %
interval holds θ. The CSV has both, and the distance at s = n/2.
"""

import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import betainc, betaincinv, betaln

STATIC = Path(__file__).parents[1] / "_static"
EPSILON, SIZES, LEVEL = 1.0, (10, 30, 100, 300, 1000), 0.9
TAILS = (1 - LEVEL) / 2, (1 + LEVEL) / 2
LEAST = 0.5  # where a parameter goes that noise took below; any distribution needs a positive one
FAR = 30  # noise of scale 2 goes beyond with probability 2e-7
AWARE, NAIVE, QUIET = "#0b6e6e", "#c4501b", "#5f6b76"
LOOKS = {
    "exponential, Hellinger score": (QUIET, "-", "s"),
    "exponential, ℓ1 score": (QUIET, "--", "D"),
    "noise on a and on b, at face value": (NAIVE, "--", "v"),
    "noise on the count, at face value": (NAIVE, "-", "o"),
    "noise on the count, noise-aware": (AWARE, "-", "o"),
}
HELLINGER, L1, DRAWS, COUNT, NOISE_AWARE = LOOKS

Row = tuple[float, float, float]
"""Mean Hellinger error, the same at s = n/2, and the coverage of the interval."""


def distance(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """H between Beta(a, b) and Beta(c, d)."""
    overlap = betaln((a + c) / 2, (b + d) / 2) - (betaln(a, b) + betaln(c, d)) / 2
    return np.sqrt(np.maximum(0, -np.expm1(overlap)))


def normalised(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum(axis=-1, keepdims=True)


def geometric(scale: float, far: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of discrete Laplace noise, and their probabilities."""
    k = np.arange(-far, far + 1)
    return k, normalised(np.exp(-np.abs(k) / scale))


def held(low: np.ndarray, high: np.ndarray, s: np.ndarray, n: int) -> np.ndarray:
    """P(low < θ < high | s)."""
    return betainc(1 + s, 1 + n - s, high) - betainc(1 + s, 1 + n - s, low)


def row(law: np.ndarray, error: np.ndarray, holds: np.ndarray) -> Row:
    """Means over every s and every answer; law, error and holds are of s down and of the answer across."""
    by_count = (law * error).sum(axis=1)
    return float(by_count.mean()), float(by_count[len(by_count) // 2]), float((law * holds).sum(axis=1).mean())


def at_face_value(n: int) -> dict[str, Row]:
    """The answers that are one of the n + 1 posteriors, and are read as if no noise had chosen them."""
    s = np.arange(n + 1)[:, None]
    r = s.T
    error = distance(1.0 + s, 1.0 + n - s, 1.0 + r, 1.0 + n - r)
    holds = held(*(betaincinv(1 + r, 1 + n - r, tail) for tail in TAILS), s, n)
    laws = {
        HELLINGER: normalised(np.exp(-EPSILON * error / 2 / np.sqrt(1 - np.pi / 4))),
        L1: normalised(np.exp(-EPSILON * 2 * np.abs(s - r) / 2 / 2)),
        COUNT: clamped_count(n),
    }
    return {name: row(law, error, holds) for name, law in laws.items()}


def clamped_count(n: int) -> np.ndarray:
    """P(r | s) of a noisy count moved into 0 … n: what lies beyond an end is all at that end."""
    s = np.arange(n + 1)
    p = np.exp(-EPSILON)
    law = (1 - p) / (1 + p) * p ** np.abs(s[:, None] - s)
    law[:, 0], law[:, n] = p**s / (1 + p), p ** (n - s) / (1 + p)
    return law


def noise_aware(n: int) -> Row:
    """The posterior given the noisy count, by quadrature in φ, θ = sin²φ, where every posterior is about as wide.

    All y ≤ 0 tell the same of s, as e^{−|y − s|} ∝ e^{−s} for them, and so do all y ≥ n: the law is that of a clamped
    count.
    """
    s = np.arange(n + 1)[:, None]
    node, weight = np.polynomial.legendre.leggauss(600)
    phi, weight = (node + 1) * np.pi / 4, weight * np.pi / 4
    log_density = (2 * s + 1) * np.log(np.sin(phi)) + (2 * (n - s) + 1) * np.log(np.cos(phi)) + np.log(2)
    density = np.exp(log_density - betaln(1 + s, 1 + n - s))
    given = normalised(np.exp(-EPSILON * np.abs(s.T - s)))  # P(s | y): y down, s across
    overlap = np.sqrt(density) @ (weight * np.sqrt(given @ density)).T
    error = np.sqrt(np.maximum(0, 1 - overlap))
    theta = np.sin(np.linspace(0, np.pi / 2, 2401)) ** 2
    below = given @ betainc(1 + s, 1 + n - s, theta)
    low, high = (np.array([np.interp(tail, cdf, theta) for cdf in below]) for tail in TAILS)
    return row(clamped_count(n), error, held(low[None], high[None], s, n))


def two_draws(n: int) -> Row:
    """Noise i on a and k on b, each of ε/2; an interval depends on s + i and i + k alone, and is looked up."""
    s = np.arange(n + 1)[:, None]
    k, law = geometric(2 / EPSILON, FAR)
    shifted, both = np.arange(-FAR, n + FAR + 1)[:, None], np.arange(-2 * FAR, 2 * FAR + 1)
    a, b = np.maximum(1.0 + shifted, LEAST), np.maximum(1.0 + n - shifted + both, LEAST)
    low, high = (betaincinv(a, b, tail) for tail in TAILS)
    total = np.zeros(3)
    for i, chance in zip(k, law, strict=True):
        at = s + i + FAR, i + k + 2 * FAR
        error = distance(1.0 + s, 1.0 + n - s, a[at[0], 0], b[at])
        total += chance * np.array(row(np.tile(law, (n + 1, 1)), error, held(low[at], high[at], s, n)))
    return tuple(total.tolist())


def panel(axes: plt.Axes, rows: dict[tuple[str, int], Row], which: int) -> None:
    for name, (color, style, marker) in LOOKS.items():
        values = [rows[name, n][which] for n in SIZES]
        width = 1.5 if color == QUIET else 2
        axes.plot(SIZES, values, color=color, ls=style, marker=marker, ms=4, lw=width, label=name)
    axes.set(xscale="log", xlabel=f"number of records (ε = {EPSILON:g})", ylim=(0, 1))
    axes.set_xticks(SIZES, [str(n) for n in SIZES])
    axes.minorticks_off()


def main() -> None:
    rows: dict[tuple[str, int], Row] = {}
    for n in SIZES:
        found = at_face_value(n) | {DRAWS: two_draws(n), NOISE_AWARE: noise_aware(n)}
        rows |= {(name, n): found[name] for name in LOOKS}
    with (STATIC / "program_utility.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["answer", "n", "error", "error_at_half", "coverage"])
        table.writerows([name, n, *(f"{value:.4f}" for value in values)] for (name, n), values in rows.items())
    plt.rcParams.update({"font.size": 9} | {f"axes.spines.{side}": False for side in ("top", "right")})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
    panel(left, rows, 0)
    panel(right, rows, 2)
    right.axhline(LEVEL, color="black", lw=1, zorder=0)
    left.set_title("mean Hellinger distance to the posterior without noise", loc="left", fontsize=10)
    right.set_title("how often the 90 % interval holds the truth", loc="left", fontsize=10)
    figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(STATIC / "program_utility.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
