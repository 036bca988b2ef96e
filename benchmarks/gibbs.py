"""Time per chain-iteration of the batched Gibbs samplers against a plain loop of the same algorithm.

    python benchmarks/gibbs.py

The loop is NumPy, one chain and one iteration at a time, with moments by the autograd package, as the paper's authors
have it; "closed form" is the same loop with the moments written out by hand, which only these three families allow.
Ours runs 1000 chains as one batch; its compile time is apart. Bars: at least 100 × for binomial and multinomial and
1000 × for the truncated exponential.
"""

import time

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import table
from autograd import grad, hessian

import noiseaware as na
from noiseaware.sampler import gibbs

N, EPSILON, CHAINS, ITERATIONS, LOOP = 1000, 0.1, 1000, 2000, 1000
LOW, HIGH = 0.01, 1.0


def inverse_gaussian_variance(rng, noise, scale):
    """σ² of each Laplace noise given its value."""
    mean = scale / np.maximum(np.abs(noise), 1e-12)
    return scale**2 / rng.wald(mean, 1.0)


def product(rng, mean, covariance, y, variance):
    """s from N(mean, covariance) given y ~ N(s, variance), in one dimension or several."""
    gain = covariance @ np.linalg.inv(covariance + np.diag(variance))
    return rng.multivariate_normal(mean + gain @ (y - mean), covariance - gain @ covariance)


def successes(rng, y, scale, iterations, moments):
    """All of θ that one chain comes to."""
    s, variance, draws = np.clip(y, 1, N - 1), np.array([2 * scale**2]), np.empty(iterations)
    for i in range(iterations):
        draws[i] = theta = rng.beta(10 + s[0], 10 + N - s[0])
        mean, covariance = moments(np.array([np.log(theta / (1 - theta))]))
        while not 0 <= (s := product(rng, N * mean, N * covariance, y, variance))[0] <= N:
            pass
        variance = inverse_gaussian_variance(rng, y - s, scale)
    return draws


def categories(rng, y, scale, iterations, moments):
    s, variance = np.clip(y, 1, N), np.full(3, 2 * scale**2)
    for _ in range(iterations):
        theta = rng.dirichlet(5 + s)
        mean, covariance = moments(np.log(theta))
        while ((s := product(rng, N * mean, N * covariance, y, variance)) < 0).any():
            pass
        variance = inverse_gaussian_variance(rng, y - s, scale)
    return theta


def waits(rng, y, scale, iterations, sections):
    """Algorithm 2, corrected: the sums inside and outside the bounds drawn together."""
    theta, variance = N / y[0], np.array([2 * scale**2])
    for _ in range(iterations):
        parts = [section(np.array([-theta])) for section in sections]
        q = np.array([p[0] for p in parts])
        mu = np.array([p[1][0] for p in parts])
        v = np.array([p[2][0, 0] for p in parts])
        joint = np.diag(q * (v + mu**2)) - np.outer(q * mu, q * mu)
        inside = joint[1, 1]
        gain = inside / (inside + variance[0] / N)
        mean = N * q * mu
        c = rng.normal(mean[1] + gain * (y[0] - mean[1]), np.sqrt(gain * variance[0]))
        rest = mean[0] + mean[2] + (joint[0, 1] + joint[2, 1]) / inside * (c - mean[1])
        spread = joint[0, 0] + joint[2, 2] + 2 * joint[0, 2] - (joint[0, 1] + joint[2, 1]) ** 2 / inside
        s = max(c + rng.normal(rest, np.sqrt(N * max(spread, 0))), 1e-9)
        theta = rng.gamma(8 + N, 1 / (2 + s))
        variance = inverse_gaussian_variance(rng, y - c, scale)
    return theta


def by_autograd(log_partition):
    slope, curve = grad(log_partition), hessian(log_partition)
    return lambda eta: (slope(eta), curve(eta))


def section_by_autograd(log_q):
    slope = grad(lambda eta: -anp.log(-eta[0]) + log_q(eta))
    curve = hessian(lambda eta: -anp.log(-eta[0]) + log_q(eta))
    return lambda eta: (np.exp(log_q(eta)), slope(eta), curve(eta))


def section_by_hand(low, high):
    """Probability, mean and variance of an exponential record in a section."""

    def moments(eta):
        theta = -eta[0]
        a, b = np.exp(-theta * low), np.exp(-theta * high) if high < np.inf else 0.0
        top = high if high < np.inf else 0.0
        q = a - b
        mean = (a * low - b * top) / q + 1 / theta
        square = (a * low**2 - b * top**2) / q + 2 * mean / theta
        return q, np.array([mean]), np.array([[square - mean**2]])

    return moments


SECTIONS = [
    section_by_autograd(lambda e: anp.log(1 - anp.exp(e[0] * LOW))),
    section_by_autograd(lambda e: anp.log(anp.exp(e[0] * LOW) - anp.exp(e[0] * HIGH))),
    section_by_autograd(lambda e: e[0] * HIGH),
]
BY_HAND = [section_by_hand(0.0, LOW), section_by_hand(LOW, HIGH), section_by_hand(HIGH, np.inf)]


def sigmoid(eta):
    theta = 1 / (1 + np.exp(-eta))
    return theta, np.array([theta * (1 - theta)])


def softmax(eta):
    theta = np.exp(eta - eta.max())
    theta /= theta.sum()
    return theta, np.diag(theta) - np.outer(theta, theta)


CASES = {
    "binomial": (
        na.family.Bernoulli(),
        na.prior.Beta(10.0, 10.0),
        np.array([430.0]),
        successes,
        by_autograd(lambda e: anp.log(1 + anp.exp(e[0]))),
        sigmoid,
    ),
    "multinomial": (
        na.family.Categorical(levels=["a", "b", "c"]),
        na.prior.Dirichlet([5.0, 5.0, 5.0]),
        np.array([210.0, 300.0, 510.0]),
        categories,
        by_autograd(lambda e: anp.log(anp.sum(anp.exp(e)))),
        softmax,
    ),
    "exponential": (
        na.family.Exponential(bounds=(LOW, HIGH), outside="drop"),
        na.prior.Gamma(8.0, 2.0),
        np.array([210.0]),
        waits,
        SECTIONS,
        BY_HAND,
    ),
}


def timed(run, *arguments) -> float:
    started = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - started


def main() -> None:
    print(f"n = {N}, ε = {EPSILON}; µs per chain-iteration; ours: {CHAINS} chains at once")
    header = ("model", "ours", "compile, s", "autograd loop", "ratio", "closed form", "ratio")
    print("{:<13}{:>8}{:>12}{:>15}{:>8}{:>13}{:>8}".format(*header))
    for name, (family, prior, y, loop, moments, by_hand) in CASES.items():
        scale = family.query.sensitivity() / EPSILON
        with jax.enable_x64(True):
            values, mechanism = jnp.broadcast_to(jnp.asarray(y), (CHAINS, y.size)), na.mechanism.Laplace(scale)

            def ours(seed, family=family, prior=prior, mechanism=mechanism, values=values):
                keys = jax.random.split(jax.random.key(seed), CHAINS)
                options = {"num_draws": 10, "num_warmup": ITERATIONS - 100, "thin": 10}
                gibbs.chains(keys, family, prior, mechanism, values, float(N), **options).block_until_ready()

            first = timed(ours, 0)
            times = [timed(ours, seed) for seed in (1, 2, 3)]
        own = min(times) / CHAINS / ITERATIONS
        rng = np.random.default_rng(0)
        slow = timed(loop, rng, y, scale, LOOP, moments) / LOOP
        plain = timed(loop, rng, y, scale, LOOP, by_hand) / LOOP
        numbers = (1e6 * own, first - min(times), 1e6 * slow, slow / own, 1e6 * plain, plain / own)
        print("{:<13}{:>8.2f}{:>12.1f}{:>15.0f}{:>8.0f}{:>13.0f}{:>8.0f}".format(name, *numbers), flush=True)
        table.add(
            f"{name}: one Gibbs iteration of one chain", slow / own, "{} ×",
            at_least=1000 if name == "exponential" else 100,
            ours=f"{1e6 * own:.2f} µs", against=f"NumPy with autograd, {1e6 * slow:,.0f} µs",
        )  # fmt: skip


if __name__ == "__main__":
    main()
