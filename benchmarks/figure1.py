"""Figure 1 of the 2018 paper in full, on whatever JAX finds (CPU or GPU): compile time apart.

    python benchmarks/figure1.py [trials]

Every chain of a model, at all n and ε, is one batch on an accelerator. The first run compiles; the second, with
another seed, is timed.
"""

import sys
import time

import jax
import table

from noiseaware.reproduce import figure1
from noiseaware.reproduce.model import MODELS


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else figure1.FULL.num_trials
    size = figure1.Size(*(trials if name == "num_trials" else value for name, value in vars(figure1.FULL).items()))
    print(f"{jax.default_backend()}: {jax.devices()[0].device_kind}, {trials} trials a setting")
    print(f"{'model':<28} {'first, s':>9} {'run, s':>8} {'µs per chain-iteration':>24}")
    total = 0.0
    for model in MODELS:
        times = []
        for seed in (1, 2):
            started = time.perf_counter()
            figure1.compute(size, seed=seed, models=[model])
            times.append(time.perf_counter() - started)
        iterations = len(size.records) * len(figure1.EPSILONS) * trials * (size.num_warmup + size.num_kept)
        total += times[1]
        print(f"{model.name:<28} {times[0]:>9.1f} {times[1]:>8.1f} {1e6 * times[1] / iterations:>24.3f}", flush=True)
    print(f"{'all':<28} {'':>9} {total:>8.1f}")
    bar = None if jax.default_backend() == "cpu" else 30
    table.add(f"figure 1 of 2018, {trials} trials, on {jax.default_backend()}", total, "{} s", at_most=bar)


if __name__ == "__main__":
    main()
