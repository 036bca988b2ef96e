"""The README's picture: a rare event, read naively and with the noise in mind.

Twelve of 1000 people, counted with discrete Laplace noise for ε = 0.1, again and again. Right: the 95 % intervals of
the first 25 releases, as the noise came. Left: the posteriors of the one among them whose noise is nearest to one
standard deviation, which is marked on the right.
"""

from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import beta, gaussian_kde

import noiseaware as na

PATH = Path(__file__).parents[1] / "_static" / "rare_event.png"
COUNT, N, EPSILON = 12, 1000, 0.1
PRIOR = na.prior.Beta(1, 60)
AWARE, NAIVE, QUIET = "#0b6e6e", "#c4501b", "#5f6b76"


def releases(number: int) -> list[na.Release]:
    mechanism = na.mechanism.DiscreteLaplace(1 / EPSILON)
    noise = np.asarray(mechanism.sample(jax.random.key(2018), (number,)))
    family = na.family.Bernoulli()
    return [na.Release(family=family, values=[COUNT + int(k)], n=N, mechanism=mechanism) for k in noise]


def interval(release: na.Release) -> tuple[np.ndarray, tuple[float, float]]:
    """95 % intervals: noise-aware, naive."""
    draws = na.infer(release, PRIOR, seed=0).draws["theta"]
    count = np.clip(release.values[0], 0, N)
    return np.quantile(draws, [0.025, 0.975]), beta.interval(0.95, PRIOR.a + count, PRIOR.b + N - count)


def densities(axes: plt.Axes, release: na.Release) -> None:
    theta = np.linspace(0, 0.05, 500)
    draws = na.infer(release, PRIOR, seed=0, num_draws=300_000).draws["theta"]
    count = np.clip(release.values[0], 0, N)
    smooth = gaussian_kde(np.concatenate([draws, -draws]), 0.09)  # reflected at 0, the edge of the support
    axes.plot(100 * theta, 2 * smooth(theta) / 100, color=AWARE, lw=2)
    axes.fill_between(100 * theta, 2 * smooth(theta) / 100, color=AWARE, alpha=0.15, lw=0)
    axes.plot(100 * theta, beta.pdf(theta, PRIOR.a + count, PRIOR.b + N - count) / 100, color=NAIVE, lw=2)
    axes.plot(100 * theta, beta.pdf(theta, PRIOR.a, PRIOR.b) / 100, color=QUIET, lw=1, ls=":")
    axes.axvline(100 * COUNT / N, color="black", lw=1)
    top = axes.get_ylim()[1]
    axes.text(100 * COUNT / N, top, " truth 1.2 %", va="top")
    axes.set(xlim=(0, 5), ylim=(0, top), xlabel="people with the event, %", yticks=[], ylabel="posterior density")
    axes.set_title(f"12 of 1000, released as {release.values[0]:.0f} (ε = {EPSILON:g})", loc="left", fontsize=10)
    handles = [plt.Line2D([], [], color=c, lw=2, ls=s) for c, s in ((AWARE, "-"), (NAIVE, "-"), (QUIET, ":"))]
    axes.legend(handles, ["noiseaware", "naive: noise ignored", "prior"], frameon=False, loc="upper right")


def intervals(axes: plt.Axes, made: list[na.Release], marked: int) -> None:
    held = np.zeros(2, int)
    for row, release in enumerate(made):
        for which, ((low, high), color, shift) in enumerate(
            zip(interval(release), (AWARE, NAIVE), (0.18, -0.18), strict=True)
        ):
            holds = low <= COUNT / N <= high
            held[which] += holds
            axes.plot([100 * low, 100 * high], [row + shift] * 2, color=color, lw=2, alpha=0.45 if holds else 1)
    axes.plot(-0.12, marked, marker=">", color="black", ms=4, clip_on=False)
    axes.axvline(100 * COUNT / N, color="black", lw=1)
    axes.set(xlim=(0, 6.5), yticks=[], xlabel="people with the event, %", ylim=(len(made), -1))
    axes.set_title(f"95 % intervals of {len(made)} such releases", loc="left", fontsize=10)
    handles = [plt.Line2D([], [], color=color, lw=2) for color in (AWARE, NAIVE)]
    axes.legend(handles, [f"{k} of {len(made)} hold the truth" for k in held], frameon=False, loc="lower right")


def main() -> None:
    made = releases(25)
    one_sd = COUNT + 2**0.5 / EPSILON
    marked = int(np.argmin([abs(release.values[0] - one_sd) for release in made]))
    plt.rcParams.update({"font.size": 9} | {f"axes.spines.{side}": False for side in ("top", "right", "left")})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    densities(left, made[marked])
    intervals(right, made, marked)
    figure.savefig(PATH, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
