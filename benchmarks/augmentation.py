"""Effective draws a second of data augmentation with interweaving, against the same sweeps without.

    python benchmarks/augmentation.py

A hundred records, 64 chains, both run side by side after the same warm-up; compile time and warm-up apart. Without
interweaving θ walks by the width of a posterior that knows the table, 1/√n; so the ratio grows with how much of the
table the noise hides, and is about 1, or less, where it hides none. Bar: 20 × where the noise is strong, ε = 0.03.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import table
from arviz_stats.base import array_stats

import noiseaware as na
from noiseaware.sampler import augmentation
from noiseaware.study.simulate import simulate

N, CHAINS, DRAWS, THIN = 100, 64, 250, 4
EPSILONS = (0.03, 0.1, 0.3, 1.0)
SETTINGS = {
    "bernoulli": (na.family.Bernoulli(), na.prior.Beta(1, 1)),
    "exponential, clamped": (na.family.Exponential(bounds=(0, 1)), na.prior.Gamma(2, 1)),
    "normal mean, clamped": (na.family.Normal(bounds=(-2, 2), variance=1.0), na.prior.Normal(0, 4)),
    "normal, clamped": (na.family.Normal(bounds=(-2, 2)), na.prior.NormalInverseGamma(0, 1, 3, 3)),
}


def measured(family, prior, mechanism, y, *, interweaves: bool) -> tuple[float, float, float]:
    """Effective draws a second of the slowest number, effective draws a sweep, and the time to compile and warm up."""
    setting = augmentation.sized(family, prior, mechanism, N, interweaves=interweaves)
    values = jnp.broadcast_to(y, (CHAINS, y.size))
    began = time.perf_counter()
    states = augmentation.warmed(jax.random.key(1), family, prior, mechanism, values, N, DRAWS, setting)
    spent = []
    for seed in (2, 3, 4):
        keys = jax.random.split(jax.random.key(seed), CHAINS)
        arguments = (keys, states, family, prior, mechanism, values, 0.0, THIN)
        at = time.perf_counter()
        states, theta, _ = augmentation._go_on(*arguments, num_draws=DRAWS, setting=setting)
        numbers = np.asarray(theta).reshape(CHAINS, DRAWS, -1)
        spent.append(time.perf_counter() - at)
    counts = [float(array_stats.ess(numbers[..., j], method="bulk")) for j in range(numbers.shape[-1])]
    return min(counts) / min(spent), min(counts) / (CHAINS * DRAWS * THIN), at - began - spent[0] - spent[1]


def main() -> None:
    print(f"{'family':<22}{'ε':>6}{'ESS/s':>10}{'without':>10}{'ratio':>8}{'per sweep':>11}{'first, s':>10}")
    with jax.enable_x64(True):
        for name, (family, prior) in SETTINGS.items():
            for epsilon in EPSILONS:
                scale = float(family.query.sensitivity()) / epsilon
                mechanism = (
                    na.mechanism.DiscreteLaplace(scale) if family.query.is_whole else na.mechanism.Laplace(scale)
                )
                y = simulate(jax.random.key(0), family, prior, mechanism, N, 1).y[0]
                own, each, first = measured(family, prior, mechanism, y, interweaves=True)
                plain, plain_each, _ = measured(family, prior, mechanism, y, interweaves=False)
                numbers = (epsilon, own, plain, own / plain, each / plain_each, first)
                row = "{:<22}{:>6g}{:>10.0f}{:>10.1f}{:>8.1f}{:>11.1f}{:>10.1f}"
                print(row.format(name, *numbers), flush=True)
                work, peer = f"{name}, n = {N}, ε = {epsilon}: interweaving", f"without, {plain:,.1f} ESS/s"
                bar = 20 if epsilon == min(EPSILONS) else None
                table.add(work, own / plain, "{} ×", at_least=bar, ours=f"{own:,.0f} ESS/s", against=peer)


if __name__ == "__main__":
    main()
