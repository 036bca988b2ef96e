"""The 2018 paper's exponential model at n = 1000 and ε = 0.01, over many seeds: is it the sampler, or the bounds?

    python benchmarks/figure1_exponential.py [seeds]        bar: Gibbs below 1.63/√1000 = 0.052, the 1 % level

Bounds are the paper's, taken from each trial's own θ. The exact posterior of the same releases stands beside the Gibbs
chains: whoever takes such bounds for fixed is not calibrated, however well θ is drawn. 1000 tables a seed.
"""

import sys

import jax
import numpy as np
import table

from noiseaware.mechanism import Laplace
from noiseaware.reproduce import model as study
from noiseaware.reproduce.figure1 import FULL
from noiseaware.reproduce.model import MODELS
from noiseaware.sampler import scalar_posterior
from noiseaware.study import ecdf

N, EPSILON = 1000, 0.01
MODEL = next(m for m in MODELS if m.is_scaled)


def exact(key, trials: study.Trials, num_draws: int) -> np.ndarray:
    """Independent draws for each trial under its own prior, some trials at a time."""
    mechanism = Laplace(float(trials.scale[0]))

    def one(at):
        key, rate, y = at
        prior = type(MODEL.prior)(trials.prior.shape[0], rate)
        return scalar_posterior.draws(key, MODEL.family, prior, mechanism, y, float(N), num_draws=num_draws)

    keys = jax.random.split(key, len(trials.n))
    return np.asarray(jax.lax.map(one, (keys, trials.prior.rate, trials.y[:, 0]), batch_size=50))


def main(seeds: str = "8") -> None:
    ranks: dict[str, list[np.ndarray]] = {"Gibbs": [], "exact": []}
    with jax.enable_x64(True):
        for seed in range(int(seeds)):
            keys = jax.random.split(jax.random.key(seed), 4)
            trials = study.trials(keys[0], MODEL, N, EPSILON, FULL.num_trials)
            options = {"num_warmup": FULL.num_warmup, "thin": FULL.num_kept // FULL.num_draws}
            chains = study.by_gibbs(keys[1], MODEL, trials, num_draws=FULL.num_draws, **options)
            for name, draws in (("Gibbs", chains), ("exact", exact(keys[2], trials, FULL.num_draws))):
                ranks[name].append(study.ranks(keys[3], trials, draws))
            print(seed, *(f"{name} {ecdf.distance(found[-1]):.4f}" for name, found in ranks.items()), flush=True)
    for name, found in ranks.items():
        each, pooled = [ecdf.distance(r) for r in found], np.concatenate(found)
        covers = np.mean((pooled > 0.05) & (pooled < 0.95))
        print(f"{name}: {min(each):.3f} to {max(each):.3f}; {pooled.size} together {ecdf.distance(pooled):.4f}")
        print(f"    90 % intervals hold {100 * covers:.1f} %")
        work = f"exponential, the paper's bounds, n = {N}, ε = {EPSILON}, {name}: KS of {FULL.num_trials} trials"
        bar = 1.63 / FULL.num_trials**0.5
        table.add(f"{work}, median of {seeds} seeds", float(np.median(each)), "{}", at_most=bar)
        table.add(f"{work}, worst of {seeds} seeds", max(each), "{}", at_most=bar)


if __name__ == "__main__":
    main(*sys.argv[1:])
