"""The width that a plan foretells against the width that simulated tables have, over families, n and ε.

    python benchmarks/plan.py [--trials 300]

The bar is a ratio within 0.9 and 1.1, give or take two standard errors of the simulation: some widths vary
a hundredfold from table to table. The last family is one that misses it: events too rare for a normal sum.
"""

import argparse
import time

import table

import noiseaware as na

SETTINGS = [
    ("bernoulli", na.family.Bernoulli(), na.prior.Beta(1, 9)),
    ("exponential", na.family.Exponential(bounds=(0, 10)), na.prior.Gamma(8, 10)),
    ("normal", na.family.Normal(bounds=(-3, 3), variance=1.0), na.prior.Normal(0, 4)),
    ("poisson", na.family.Poisson(bounds=(0, 20)), na.prior.Gamma(3, 1)),
    ("categorical", na.family.Categorical(levels=["a", "b", "c"]), na.prior.Dirichlet([1, 2, 3])),
    ("rare event", na.family.Bernoulli(), na.prior.Beta(0.5, 100)),
]
RECORDS, EPSILONS = (30, 1000, 100_000), (0.05, 0.5, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300, help="simulated tables a setting")
    trials = parser.parse_args().trials
    print(f"{'family':12} {'n':>7} {'ε':>5} {'number':10} {'plan':>9} {'simulated':>9}   ratio ± error     seconds")
    for name, family, prior in SETTINGS:
        off = 0.0
        for n in RECORDS:
            for epsilon in EPSILONS:
                plan = na.plan(family, prior, n=n, epsilon=epsilon)
                started = time.perf_counter()
                foretold = plan.by_parameter
                spent = time.perf_counter() - started
                for number, (width, error) in plan.simulated(trials, seed=0).items():
                    ratio = foretold[number] / width
                    off = max(off, abs(ratio - 1) - 2 * ratio * error / width)
                    print(
                        f"{name:12} {n:7} {epsilon:5g} {number:10} {foretold[number]:9.4g} {width:9.4g}"
                        f"   {ratio:.3f} ± {ratio * error / width:.3f}   {spent:8.3f}",
                        flush=True,
                    )
        work = f"plan, {name}: width against {trials} simulated tables beyond two standard errors, worst of nine"
        table.add(work, off, "off by {}", at_most=0.1)


if __name__ == "__main__":
    main()
