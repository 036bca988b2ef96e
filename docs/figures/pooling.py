"""Partial pooling over 50 noisy counts: the picture and the table of docs/pooling.md.

Fifty counties of 50 to 2000 people, each with a rate θ of its own, θ ~ Beta(µκ, (1 − µ)κ); a count for each, released
with discrete Laplace noise for ε = 0.1. Three readings: pooled and aware of the noise, pooled and naive (the noisy
counts as if they were true), and aware of the noise one county at a time. Needs the extra `numpyro`.
"""

from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import noiseaware as na

PATH = Path(__file__).parents[1] / "_static" / "pooling.png"
COUNTIES, EPSILON, MEAN, CONCENTRATION = 50, 0.1, 0.1, 40.0
SEEDS = range(3)
WAYS = {
    "pooled, noise-aware": "#0b6e6e",
    "pooled, naive": "#c4501b",
    "one by one, noise-aware": "#5f6b76",
}


def simulated(seed: int) -> tuple[np.ndarray, list[na.Release]]:
    """True rates, and a release for each county, the smallest first."""
    rng = np.random.default_rng(seed)
    n = np.sort(np.exp(rng.uniform(np.log(50), np.log(2000), COUNTIES)).astype(int))
    theta = rng.beta(MEAN * CONCENTRATION, (1 - MEAN) * CONCENTRATION, COUNTIES)
    mechanism = na.mechanism.DiscreteLaplace(1 / EPSILON)
    noise = np.asarray(mechanism.sample(jax.random.key(seed), (COUNTIES,)))
    family = na.family.Bernoulli("ill")
    counts = rng.binomial(n, theta) + noise.astype(int)
    pairs = zip(counts.tolist(), n.tolist(), strict=True)
    return theta, [na.Release(family=family, values=[y], n=size, mechanism=mechanism) for y, size in pairs]


def rates(number: int) -> jax.Array:
    """A rate for each county, from one distribution that is itself unknown."""
    mean = numpyro.sample("mean", dist.Beta(1, 9))
    concentration = numpyro.sample("concentration", dist.LogNormal(3.5, 1))
    with numpyro.plate("county", number):
        return numpyro.sample("theta", dist.Beta(mean * concentration, (1 - mean) * concentration))


def aware(releases: list[na.Release]) -> None:
    na.model.noisy_statistics("counts", releases, rates(len(releases)))


def naive(releases: list[na.Release]) -> None:
    n = np.array([r.n for r in releases])
    y = np.clip([r.values[0] for r in releases], 0, n)
    numpyro.sample("counts", dist.Binomial(n, rates(len(releases))), obs=y)


def fitted(model, releases: list[na.Release], seed: int) -> np.ndarray:
    """Draws of the rates by NUTS, draws first."""
    kernel = numpyro.infer.NUTS(model)
    chains = numpyro.infer.MCMC(
        kernel, num_warmup=300, num_samples=400, num_chains=2, chain_method="vectorized", progress_bar=False
    )
    chains.run(jax.random.key(seed), releases, extra_fields=("diverging",))
    runs = chains.get_samples(group_by_chain=True)["theta"]
    worst = max(float(numpyro.diagnostics.split_gelman_rubin(np.asarray(runs)[..., j])) for j in range(COUNTIES))
    diverged = int(chains.get_extra_fields()["diverging"].sum())
    print(f"seed {seed}, {model.__name__}: R-hat {worst:.3f}, {diverged} divergences")
    return np.asarray(runs).reshape(-1, COUNTIES)


def apart(releases: list[na.Release]) -> np.ndarray:
    """Draws of each county by itself, under the prior that the pooled model has for a new county's mean."""
    return np.stack([na.infer(r, na.prior.Beta(1, 9), seed=0).draws["theta"] for r in releases], axis=1)


def readings(seed: int) -> tuple[np.ndarray, list[na.Release], dict[str, np.ndarray]]:
    theta, releases = simulated(seed)
    draws = fitted(aware, releases, seed), fitted(naive, releases, seed), apart(releases)
    return theta, releases, dict(zip(WAYS, draws, strict=True))


def picture(theta: np.ndarray, releases: list[na.Release], found: dict[str, np.ndarray]) -> None:
    plt.rcParams.update({"font.size": 9} | {f"axes.spines.{side}": False for side in ("top", "right")})
    figure, panels = plt.subplots(3, 1, figsize=(8.6, 7.4), sharex=True, sharey=True, layout="constrained")
    place = np.arange(COUNTIES)
    for axes, (way, draws) in zip(panels, found.items(), strict=True):
        low, high = 100 * np.quantile(draws, [0.05, 0.95], axis=0)
        held = (low <= 100 * theta) & (100 * theta <= high)
        axes.vlines(place, low, high, color=WAYS[way], lw=3.5, alpha=np.where(held, 0.45, 1.0))
        axes.plot(place, 100 * draws.mean(0), "_", color=WAYS[way], ms=7, mew=2)
        axes.plot(place, 100 * theta, ".", color="black", ms=5)
        axes.set_title(f"{way}: {held.sum()} of {COUNTIES} intervals hold the truth", loc="left", fontsize=10)
        axes.set_ylabel("people who are ill, %")
        axes.set(ylim=(0, 45), xlim=(-1, COUNTIES))
    ticks = place[::7]
    panels[-1].set_xticks(ticks, [f"{releases[i].n}" for i in ticks])
    panels[-1].set_xlabel("county, by its number of people")
    handles = [
        plt.Line2D([], [], color="black", marker=".", ls=""),
        plt.Line2D([], [], color="grey", lw=3.5, alpha=0.5),
        plt.Line2D([], [], color="grey", lw=3.5),
    ]
    names = ["truth", "90 % interval that holds it", "90 % interval that misses it"]
    panels[0].legend(handles, names, frameon=False, loc="upper right", ncols=3)
    figure.savefig(PATH, dpi=130, metadata={"Software": None})


def main() -> None:
    errors: dict[str, list] = {way: [] for way in WAYS}
    for seed in SEEDS:
        theta, releases, found = readings(seed)
        if seed == SEEDS[0]:
            picture(theta, releases, found)
        for way, draws in found.items():
            low, high = np.quantile(draws, [0.05, 0.95], axis=0)
            held, wide = (low <= theta) & (theta <= high), high - low
            errors[way].append((np.sqrt(np.mean((draws.mean(0) - theta) ** 2)), held.mean(), wide.mean()))
    print("| reading | RMSE | coverage of 90 % intervals | mean width |\n|---|---|---|---|")
    for way, rows in errors.items():
        error, held, wide = np.mean(rows, axis=0)
        print(f"| {way} | {error:.4f} | {held:.0%} | {wide:.3f} |")


if __name__ == "__main__":
    main()
