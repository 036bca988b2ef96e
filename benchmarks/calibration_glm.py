"""Are generalized linear models right? KS distances of the ranks of the truth, 1000 simulated tables a setting.

    n ∈ {100, 1000, 10000}, ε ∈ {0.5, 2}, three covariates        bar: below 1.63/√1000 = 0.052, the 1 % level

One sd of a covariate moves the log odds by about 1, and the log mean by about 0.35. Bounds of x are four of its sd, so
that hardly any covariate is clamped; counts are clamped at 8. Of 60 right ones, one or none passes the bar.
Run `python benchmarks/calibration_glm.py [trials [logistic|poisson [n [epsilon]]]]`.
"""

import sys

import table

import noiseaware as na

NAMES = ["x1", "x2", "x3"]
BOUNDS = dict.fromkeys(NAMES, (-1, 1))
FAMILIES = {
    "logistic": na.family.LogisticRegression(NAMES, "y", bounds=BOUNDS),
    "poisson": na.family.PoissonRegression(NAMES, "y", bounds=BOUNDS | {"y": (0, 8)}),
}
PRIORS = {
    kind: na.prior.Independent(
        coefficients=na.prior.MultivariateNormal([0, 0, 0, middle], [spread, spread, spread, 0.25]),
        covariates=na.prior.NormalInverseWishart([0, 0, 0], 20, 36 * 0.0625, 40),
    )
    for kind, middle, spread in (("logistic", 0.0, 16.0), ("poisson", 0.5, 2.0))
}


def main(trials: str = "1000", kind: str | None = None, n: str | None = None, epsilon: str | None = None) -> None:
    for name in [kind] if kind else FAMILIES:
        for records in [int(n)] if n else (100, 1000, 10000):
            for cost in [float(epsilon)] if epsilon else (0.5, 2):
                setting = {"n": records, "epsilon": cost, "num_trials": int(trials), "seed": 1}
                found = na.calibrate(FAMILIES[name], PRIORS[name], **setting)
                distances = ", ".join(f"{key} {value:.3f}" for key, value in found.by_parameter.items())
                shares = [share for key, share in found.coverage(0.9).items() if key.startswith("coefficients")]
                covered = sum(shares) / len(shares)
                print(f"{name}, n = {records:<6} ε = {cost:<4} {distances}; 90 % covers {covered:.3f}", flush=True)
                work = f"{name} regression, three covariates, n = {records}, ε = {cost:g}: worst KS of {trials} trials"
                table.add(work, max(found.by_parameter.values()), "{}", at_most=1.63 / int(trials) ** 0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
