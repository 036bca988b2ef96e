"""Is every exact posterior calibrated? KS of the ranks of θ, log likelihood and residual over 2000 trials each.

Bars: no KS over 1.95/√2000 (the 0.1 % level) and at most 5 % of them over 1.36/√2000 (the 5 % level).
Run `python benchmarks/calibration.py [trials] [setting …]`; the table goes to stdout, one line a setting as it is done.
All of them take some hours on two cores; a setting of its own in each process uses more.
"""

import itertools
import sys
import time
import zlib

from noiseaware import calibrate
from noiseaware.family import Bernoulli, Binomial, Categorical, Exponential, Gamma, Geometric, Normal, Poisson
from noiseaware.prior import Beta, Dirichlet
from noiseaware.prior import Gamma as GammaPrior
from noiseaware.prior import Normal as NormalPrior

LEVELS = ("a", "b", "c")
SETTINGS = {
    "bernoulli, beta(1, 1)": (Bernoulli(), Beta(1, 1)),
    "bernoulli, beta(0.5, 100)": (Bernoulli(), Beta(0.5, 100)),
    "binomial of 5, beta(2, 3)": (Binomial(trials=5), Beta(2, 3)),
    "categorical, dirichlet(5, 5, 5)": (Categorical(levels=LEVELS), Dirichlet([5, 5, 5])),
    "categorical, dirichlet(0.5, 2, 20)": (Categorical(levels=LEVELS), Dirichlet([0.5, 2, 20])),
    "poisson clamped, gamma(0.5, 5)": (Poisson(bounds=(0, 3)), GammaPrior(0.5, 5)),
    "poisson dropped, gamma(8, 2)": (Poisson(bounds=(0, 6), outside="drop"), GammaPrior(8, 2)),
    "geometric clamped, beta(2, 3)": (Geometric(bounds=(0, 6)), Beta(2, 3)),
    "exponential clamped, gamma(0.5, 5)": (Exponential(bounds=(0, 20)), GammaPrior(0.5, 5)),
    "exponential clamped, gamma(8, 2)": (Exponential(bounds=(0, 1)), GammaPrior(8, 2)),
    "exponential dropped, gamma(8, 2)": (Exponential(bounds=(0, 1), outside="drop"), GammaPrior(8, 2)),
    "normal clamped, normal(0, 1)": (Normal(bounds=(-1, 2), variance=1.0), NormalPrior(0, 1)),
    "normal dropped, normal(0, 1)": (Normal(bounds=(-3, 3), variance=1.0, outside="drop"), NormalPrior(0, 1)),
    "gamma of 0.5 clamped, gamma(8, 2)": (Gamma(bounds=(0, 0.4), shape=0.5), GammaPrior(8, 2)),
}


def main(trials: str = "2000", *chosen: str) -> None:
    import table  # beside this file; a test that reads the settings does without

    count = int(trials)
    limits = {"over 0.1 %": 1.95, "over 5 %": 1.36}
    counted = dict.fromkeys(limits, 0)
    total = 0
    print(f"{'family, prior':38}{'n':>6}{'ε':>6}{'seconds':>9}   KS·√trials")
    worst: dict[str, float] = {}
    for name, (n, epsilon) in itertools.product(chosen or SETTINGS, GRID):
        family, prior = SETTINGS[name]
        start = time.perf_counter()
        result = calibrate(family, prior, n=n, epsilon=epsilon, num_trials=count, seed=_seed(name, n, epsilon))
        scaled = {k: ks * count**0.5 for k, ks in result.by_parameter.items()}
        total += len(scaled)
        worst[name] = max(worst.get(name, 0.0), *scaled.values())
        for limit, value in limits.items():
            counted[limit] += sum(s > value for s in scaled.values())
        shown = "  ".join(f"{k} {s:.2f}" for k, s in scaled.items())
        print(f"{name:38}{n:6}{epsilon:6}{time.perf_counter() - start:9.1f}   {shown}", flush=True)
    for limit, passed in counted.items():
        print(f"{limit}: {passed} of {total} ({100 * passed / total:.1f} %)")
    for name, largest in worst.items():
        table.add(f"{name}: worst KS·√trials, {len(GRID)} settings of {count} trials", largest, "{}", at_most=1.95)


def _seed(*setting: object) -> int:
    return zlib.crc32(repr(setting).encode())


GRID = list(itertools.product((10, 100, 1000), (0.1, 1)))

if __name__ == "__main__":
    main(*sys.argv[1:])
