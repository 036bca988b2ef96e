"""The width that a plan foretells against the width that simulated tables have, over families, n, noise and priors.

    python benchmarks/plan.py [--error 0.015] [--most 3000] [name …]

Tables are simulated until the mean of their widths has a standard error of 1.5 %, or are 3000: some widths vary a
hundredfold from table to table. The bar is what the plan says of itself (`Plan.error`), give or take two standard
errors of the simulation.
"""

import argparse

import numpy as np
import table

import noiseaware as na
from noiseaware.study.plan import Plan

family, prior = na.family, na.prior
LEVELS = [f"level {j}" for j in range(6)]
SHAPE_AND_RATE = prior.Independent(shape=prior.Gamma(4, 2), rate=prior.Gamma(4, 4))
SIZES = [(n, {"epsilon": e}) for n in (30, 1000, 100_000) for e in (0.05, 0.5, 5)]
FEW = [(30, {"epsilon": 0.5}), (1000, {"epsilon": 0.05}), (1000, {"epsilon": 5})]
SETTINGS = [
    ("bernoulli", family.Bernoulli(), prior.Beta(1, 9), SIZES),
    ("rare event", family.Bernoulli(), prior.Beta(0.5, 100), SIZES),
    ("binomial of 5", family.Binomial(trials=5), prior.Beta(2, 3), FEW),
    ("three levels", family.Categorical(levels=LEVELS[:3]), prior.Dirichlet([1, 2, 3]), SIZES),
    (
        "six sparse levels",
        family.Categorical(levels=LEVELS),
        prior.Dirichlet([0.3] * 6),
        [(80, {"epsilon": 0.2}), *FEW],
    ),
    ("gamma of shape 3", family.Gamma(bounds=(1, 4), shape=3.0), prior.Gamma(6, 4), [(150, {"rho": 0.02}), *FEW]),
    ("exponential", family.Exponential(bounds=(0, 10)), prior.Gamma(8, 10), FEW),
    ("normal", family.Normal(bounds=(-3, 3), variance=1.0), prior.Normal(0, 4), FEW),
    ("poisson", family.Poisson(bounds=(0, 20)), prior.Gamma(0.5, 0.2), FEW),
    ("geometric", family.Geometric(bounds=(0, 12), outside="drop"), prior.Beta(2, 3), FEW),
    ("mean and variance", family.Normal(bounds=(-4, 4)), prior.NormalInverseGamma(0, 0.25, 3, 2), FEW[:1]),
    ("shape and rate", family.Gamma(bounds=(0, 20)), SHAPE_AND_RATE, [(200, {"epsilon": 1})]),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--error", type=float, default=0.015, help="standard error of the simulation that is wanted")
    parser.add_argument("--most", type=int, default=3000, help="simulated tables a setting, at most")
    parser.add_argument("names", nargs="*", help="settings, if not all")
    given = parser.parse_args()
    print(
        f"{'setting':18} {'n':>7} {'noise':16} {'number':14} {'plan':>9} {'simulated':>9}   ratio ± error   says",
        flush=True,
    )
    for name, model, believed, sizes in SETTINGS:
        if given.names and name not in given.names:
            continue
        off = max(_off(name, na.plan(model, believed, n=n, **cost), cost, given.error, given.most) for n, cost in sizes)
        work = f"plan, {name}: width against simulated tables, beyond what the plan says and two standard errors"
        table.add(f"{work}, worst of {len(sizes)}", off, "off by {}", at_most=0)


def _off(name: str, plan: Plan, cost: dict, wanted: float, most: int) -> float:
    """How far the worst number is beyond what is allowed."""
    worst = 0.0
    for number, (width, error) in _simulated(plan, wanted, most).items():
        ratio = plan.by_parameter[number] / width
        worst = max(worst, abs(ratio - 1) - plan.error - 2 * ratio * error / width)
        print(
            f"{name:18} {plan.n:7} {cost!s:16} {number:14} {plan.by_parameter[number]:9.4g} {width:9.4g}"
            f"   {ratio:.3f} ± {ratio * error / width:.3f}   ± {plan.error:.2f}",
            flush=True,
        )
    return worst


def _simulated(plan: Plan, wanted: float, most: int) -> dict[str, tuple[float, float]]:
    """Mean widths and their standard errors, of so many batches as it takes."""
    size, parts = 250, []
    while True:
        parts.append(plan.simulated(size, seed=len(parts)))
        found = {}
        for number in parts[0]:
            means, errors = np.array([part[number] for part in parts]).T
            found[number] = (float(means.mean()), float(np.sqrt((errors**2).sum()) / len(parts)))
        if all(error < wanted * width for width, error in found.values()) or size * len(parts) >= most:
            return found


if __name__ == "__main__":
    main()
