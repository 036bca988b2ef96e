"""Is a clamped multivariate normal right? KS distances of the ranks of the truth, 1000 simulated tables a setting.

    n ∈ {100, 1000, 10000}, ε ∈ {0.5, 2}, three columns        bar: below 1.63/√1000 = 0.052, the 1 % level

An sd of about 0.6 of the bounds, so that one number in ten is clamped. Of 78 right ones, one or none passes the bar.
Run `python benchmarks/calibration_multivariate.py [trials [n [epsilon [columns]]]]`; with few trials, the bar is
1.63/√trials. From six columns on third and fourth moments of standardised records are held as they are at the mode.
"""

import sys

import numpy as np
import table

import noiseaware as na


def main(trials: str = "1000", n: str | None = None, epsilon: str | None = None, columns: str = "3") -> None:
    d = int(columns)
    family = na.family.MultivariateNormal(dimension=d, bounds=(-1, 1))
    prior = na.prior.NormalInverseWishart([0.0] * d, 20, 36 * 0.36, 37 + d)
    for records in [int(n)] if n else (100, 1000, 10000):
        for cost in [float(epsilon)] if epsilon else (0.5, 2):
            setting = {"n": records, "epsilon": cost, "num_trials": int(trials), "seed": 1}
            found = na.calibrate(family, prior, **setting)
            distances = {key: value for key, value in found.by_parameter.items() if not _is_twice(key)}
            shares = found.coverage(0.9)
            covered = {
                part: np.mean([shares[key] for key in distances if key.startswith(part)])
                for part in ("mean", "covariance")
            }
            worst, bar = max(distances, key=lambda key: distances[key]), 1.63 / int(trials) ** 0.5
            print(f"n = {records:<6} ε = {cost:<4} worst {worst} {distances[worst]:.3f}, bar {bar:.3f}", flush=True)
            print(f"    90 % covers {', '.join(f'{part} {share:.3f}' for part, share in covered.items())}")
            print(f"    {', '.join(f'{key} {value:.3f}' for key, value in distances.items())}", flush=True)
            work = f"clamped normal of {columns} columns, n = {records}, ε = {cost:g}: worst KS of {trials} trials"
            table.add(work, distances[worst], "{}", at_most=bar)


def _is_twice(name: str) -> bool:
    """Whether it is an entry below the diagonal of the covariance, which is also above it."""
    if not name.startswith("covariance"):
        return False
    i, j = name.removeprefix("covariance[").removesuffix("]").split(", ")
    return int(i) > int(j)


if __name__ == "__main__":
    main(*sys.argv[1:])
