"""Is a clamped gamma with unknown shape right? KS distances of the ranks of the truth, 1000 simulated tables a setting.

    n ∈ {30, 300, 3000}, ε ∈ {0.5, 2}        bar: below 1.63/√1000 = 0.052, the 1 % level

Records are clamped to (0, 2.5), one in ten on average over the prior. Of 18 right ones, one or none passes the bar.
Run `python benchmarks/calibration_gamma.py [trials [n [epsilon [method]]]]`; with few trials, the bar is 1.63/√trials.
"""

import sys

import table

import noiseaware as na

FAMILY = na.family.Gamma("amount", bounds=(0, 2.5))
PRIOR = na.prior.Independent(shape=na.prior.Gamma(8, 4), rate=na.prior.Gamma(8, 4))


def main(trials: str = "1000", n: str | None = None, epsilon: str | None = None, method: str = "hmc") -> None:
    bar = 1.63 / int(trials) ** 0.5
    for records in [int(n)] if n else (30, 300, 3000):
        for cost in [float(epsilon)] if epsilon else (0.5, 2):
            setting = {"n": records, "epsilon": cost, "method": method, "num_trials": int(trials), "seed": 1}
            found = na.calibrate(FAMILY, PRIOR, **setting)
            distances, shares = found.by_parameter, found.coverage(0.9)
            told = ", ".join(f"{name} {value:.3f}" for name, value in distances.items())
            covered = ", ".join(f"{name} {shares[name]:.3f}" for name in FAMILY.parameters)
            print(f"n = {records:<6} ε = {cost:<4} {told}, bar {bar:.3f}; 90 % covers {covered}", flush=True)
            work = f"clamped gamma of unknown shape, n = {records}, ε = {cost:g}, {method}: worst KS of {trials} trials"
            table.add(work, max(distances.values()), "{}", at_most=bar)


if __name__ == "__main__":
    main(*sys.argv[1:])
