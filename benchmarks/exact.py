"""Draws from the noise-aware posterior of a count, against other ways to get them, measured side by side in one run.

    (a) a NumPy loop of Algorithm 1 of Bernstein & Sheldon 2018   bar: ours ≥ 10 000 × at ε = 0.01, ≥ 1000 × at 0.1
        as printed, for any family: vectors, matrices, moments from η; and cut down by hand to one count
    (b) NumPyro's NUTS on the collapsed model                     bar: ours ≥ 500 ×
    (c) plain conjugate draws, NumPy's and JAX's: the floor       bar: ours ≤ 5 × its time at 100 000 draws
    and cost must not grow with n                                 bar: n = 10⁸ within 2 × of n = 10⁴

(a) and (b) in effective draws a second, compile time apart. Run `python benchmarks/exact.py`.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import table
from arviz_stats.base import array_stats
from gibbs import sigmoid, successes

from noiseaware.family import Bernoulli
from noiseaware.mechanism import DiscreteLaplace
from noiseaware.prior import Beta
from noiseaware.sampler import scalar_posterior

N, A, B, DRAWS = 1000, 10.0, 10.0, 100_000


def median_time(work, repeats: int = 7) -> float:
    """Of some runs, after one that compiles."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def ours(y: float, n: int, epsilon: float):
    key, family = jax.random.key(0), Bernoulli()
    arguments = (key, family, Beta(A, B), DiscreteLaplace(1 / epsilon), jnp.asarray(y), float(n))
    listed = scalar_posterior.num_listed(family, float(n))
    start = time.perf_counter()
    compiled = scalar_posterior.draws.lower(*arguments, num_draws=DRAWS, listed=listed).compile()
    compile_time = time.perf_counter() - start
    return median_time(lambda: compiled(*arguments).block_until_ready()), compile_time


def printed(y: float, epsilon: float, sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 1 for any family, as it is printed: the loop of `gibbs.py`, with moments in closed form."""
    return successes(rng, np.array([y]), 1 / epsilon, sweeps, sigmoid)


def cut_down(y: float, epsilon: float, sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 1 in plain numbers: s | θ, ω² by NormProduct, θ | s by conjugacy, 1/ω² by the inverse Gaussian."""
    theta, variance, draws = 0.5, 2 / epsilon**2, np.empty(sweeps)
    for i in range(sweeps):
        mean, spread = N * theta, N * theta * (1 - theta)
        precision = 1 / spread + 1 / variance
        s = rng.normal((mean / spread + y / variance) / precision, precision**-0.5)
        s = min(max(s, 0.0), N)
        theta = rng.beta(A + s, B + N - s)
        variance = 1 / rng.wald(epsilon / max(abs(y - s), 1e-12), epsilon**2)
        draws[i] = theta
    return draws


def nuts(y: float, epsilon: float) -> tuple[np.ndarray, float]:
    import numpyro
    import numpyro.distributions as dist

    def model():
        theta = numpyro.sample("theta", dist.Beta(A, B))
        weight = numpyro.sample("w", dist.Exponential(1.0))
        variance = N * theta * (1 - theta) + 2 * weight / epsilon**2
        numpyro.sample("y", dist.Normal(N * theta, jnp.sqrt(variance)), obs=y)

    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=500, num_samples=5000, progress_bar=False)
    mcmc.run(jax.random.key(0))
    start = time.perf_counter()
    mcmc.run(jax.random.key(1))
    draws = np.asarray(mcmc.get_samples()["theta"])
    return draws, time.perf_counter() - start


def effective(draws: np.ndarray) -> float:
    return float(np.asarray(array_stats.ess(draws[: len(draws) // 4 * 4].reshape(4, -1), method="bulk")))


def main() -> None:
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        for epsilon in (0.01, 0.1):
            y = float(np.round(430 + 0.8 / epsilon))
            seconds, compile_time = ours(y, N, epsilon)
            rate = DRAWS / seconds
            print(
                f"ε = {epsilon}: {DRAWS} independent draws in {1e3 * seconds:.1f} ms, compiled in {compile_time:.1f} s"
            )
            count, own = f"count, n = {N}, ε = {epsilon}", f"{rate:,.0f} ESS/s"
            bar = {0.01: 10_000, 0.1: 1000}[epsilon]
            for loop, form in ((printed, "as printed"), (cut_down, "cut down to one count")):
                start = time.perf_counter()
                chain = loop(y, epsilon, 20_000, rng)
                loop_rate = effective(chain[2000:]) / (time.perf_counter() - start)
                print(f"  (a) Algorithm 1 {form:22}: {loop_rate:9.0f} ESS/s, ours {rate / loop_rate:9.0f} ×")
                table.add(
                    f"{count}: draws against the 2018 paper's Algorithm 1, {form}", rate / loop_rate, "{} ×",
                    at_least=bar, ours=own, against=f"NumPy loop, {loop_rate:,.0f} ESS/s",
                )  # fmt: skip
            chain, taken = nuts(y, epsilon)
            nuts_rate = effective(chain) / taken
            print(f"  (b) NumPyro NUTS:              {nuts_rate:9.0f} ESS/s, ours {rate / nuts_rate:9.0f} ×")
            table.add(
                f"{count}: draws against NUTS", rate / nuts_rate, "{} ×",
                at_least=500, ours=own, against=f"NumPyro, {nuts_rate:,.0f} ESS/s",
            )  # fmt: skip
            floor = median_time(lambda y=y: rng.beta(A + y, B + N - y, DRAWS))
            print(f"  (c) NumPy conjugate draws:     {1e3 * floor:9.1f} ms,    ours {seconds / floor:9.2f} × the time")
            table.add(
                f"{count}: time of {DRAWS:,} draws against conjugate ones, the floor", seconds / floor, "{} ×",
                at_most=5, ours=f"{1e3 * seconds:.1f} ms", against=f"NumPy, {1e3 * floor:.1f} ms",
            )  # fmt: skip
            draw = jax.jit(lambda key, y: jax.random.beta(key, A + y, B + N - y, (DRAWS,)))
            floor = median_time(lambda y=y, draw=draw: draw(jax.random.key(0), y).block_until_ready())
            print(f"      JAX conjugate draws:       {1e3 * floor:9.1f} ms,    ours {seconds / floor:9.2f} × the time")
        small, large = (ours(0.43 * n, n, 0.01)[0] for n in (10**4, 10**8))
        print(f"n = 10⁸ against n = 10⁴: {large / small:.2f} × the time")
        table.add(
            "count: time at n = 10⁸ against n = 10⁴", large / small, "{} ×", at_most=2, ours=f"{1e3 * large:.1f} ms"
        )


if __name__ == "__main__":
    main()
