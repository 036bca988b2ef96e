"""Is the default engine for regressions right? KS distances of the ranks of the truth, 1000 simulated tables a setting.

    n ∈ {10, 100, 1000}, ε ∈ {0.1, 1}, one covariate and three        bar: below 1.63/√1000 = 0.052, the 1 % level

Priors of the 2019 paper; public bounds [−1, 1] for x, and for y such that fewer than 1 % of records are clamped. Of 44
distances that are right, one or none passes the bar by chance. Run `python benchmarks/calibration_regression.py`.
"""

import table

import noiseaware as na

TRIALS = 1000


def setting(p: int) -> tuple[na.family.LinearRegression, na.prior.Independent]:
    names = [f"x{j}" for j in range(p)]
    family = na.family.LinearRegression(names, "y", bounds=dict.fromkeys(names, (-1, 1)) | {"y": (-3.5, 3.5)})
    prior = na.prior.Independent(
        regression=na.prior.NormalInverseGamma([0.0] * (p + 1), 0.5 / 19, 20, 0.5),
        covariates=na.prior.NormalInverseWishart([0.0] * p, 1, 1.0, 50),
    )
    return family, prior


def main() -> None:
    for p in (1, 3):
        family, prior = setting(p)
        for n in (10, 100, 1000):
            for epsilon in (0.1, 1):
                found = na.calibrate(family, prior, n=n, epsilon=epsilon, num_trials=TRIALS, seed=1)
                distances = ", ".join(f"{name} {value:.3f}" for name, value in found.by_parameter.items())
                print(f"p = {p}, n = {n:<5} ε = {epsilon:<4} {distances}", flush=True)
                work = f"regression, covariates {p}, n = {n}, ε = {epsilon:g}: worst KS of {TRIALS} trials"
                table.add(work, max(found.by_parameter.values()), "{}", at_most=1.63 / TRIALS**0.5)


if __name__ == "__main__":
    main()
