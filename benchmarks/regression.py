"""Private linear regression: effective draws per second of the default engine against the alternatives, in one run.

    one covariate and intercept, n = 100, ε = 1
    (a) Gibbs-SS-Update, jitted, 16 chains                                           bar: ours ≥ 100 ×
    (b) NumPyro's NUTS on the collapsed model (parameters and Bartlett factors)      bar: ours ≥ 50 ×
    (c) MCMC-Ind: NumPyro's NUTS on the latent records                               bar: ours ≥ 500 ×
        as the paper states the model, and in the standard coordinates of method="mcmc_ind", which walk better

Then the default engine's time against n, of ten covariates, and of five that are clamped. Compile time is left out:
everything runs four times, and the quickest of the last three, warm-up included, is taken. ESS is the bulk ESS of the
worst of slope, intercept and variance.

    python benchmarks/regression.py
"""

import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import table
from arviz_stats.base import array_stats

import noiseaware as na
from noiseaware.sampler.method import METHODS, decided

EPSILON, N = 1.0, 100
REGRESSION = (0.5 / 19, 20, 0.5)  # precision, shape, scale, as in the paper


def setting(p: int, n: int, spread: float = 1.0) -> tuple[na.Release, na.prior.Independent]:
    """A release of simulated records, and the prior that they come from; `spread` of covariates, in sevenths of 1."""
    names = [f"x{j}" for j in range(p)]
    family = na.family.LinearRegression(names, "y", bounds=dict.fromkeys(names, (-1, 1)) | {"y": (-3.5, 3.5)})
    prior = na.prior.Independent(
        regression=na.prior.NormalInverseGamma([0.0] * (p + 1), *REGRESSION),
        covariates=na.prior.NormalInverseWishart([0.0] * p, 1, spread**2, 50),
    )
    theta = prior.sample(jax.random.key(3))
    s = np.array([column.sum() for column in family.query.alter(family.sample(jax.random.key(4), theta, n))])
    scale = family.query.sensitivity() / EPSILON
    y = s + np.random.default_rng(5).laplace(scale=scale, size=s.shape)
    return na.Release(family=family, values=y, n=n, mechanism=na.mechanism.Laplace(scale)), prior


def worst_ess(draws: np.ndarray, chains: int) -> float:
    """Of draws that lie chain after chain."""
    each = len(draws) // chains
    runs = draws[: chains * each].reshape(chains, each, -1)
    return min(float(np.asarray(array_stats.ess(runs[..., j], method="bulk"))) for j in range(runs.shape[2]))


def measure(method: str, release: na.Release, prior, num_draws: int, chains: int) -> tuple[float, float]:
    """ESS per second of the quickest run, and its seconds."""
    sampler, evidence = METHODS[method], release.evidence()

    def run(key) -> np.ndarray:
        route = decided(sampler, evidence, prior)
        return np.asarray(sampler.draws(key, evidence, prior, route, num_draws).theta)

    draws, seconds = quickest(run)
    return worst_ess(draws[:, : len(release.family.x) + 2], chains) / seconds, seconds


def quickest(run, repeats: int = 3) -> tuple:
    """What the last run gave, and the least time of all but the first, which compiles."""
    found, times = run(jax.random.key(0)), []
    for attempt in range(1, repeats + 1):
        started = time.perf_counter()
        found = run(jax.random.key(attempt))
        times.append(time.perf_counter() - started)
    return found, min(times)


def collapsed(release: na.Release, prior):
    """The model of METHODS as one would write it in NumPyro, in the units of u: no record, no projection."""
    family, n = release.family, float(release.n)
    inner = family.scaled(prior)
    regression, covariates = inner.parts["regression"], inner.parts["covariates"]
    p = len(family.x)
    root = np.linalg.inv(np.linalg.cholesky(np.asarray(covariates.scale)))

    def model() -> None:
        variance = numpyro.sample("variance", dist.InverseGamma(regression.shape, regression.scale))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([p + 1]).to_event(1))
        half = jnp.linalg.inv(jnp.linalg.cholesky(regression.precision)).T
        theta = numpyro.deterministic("theta", regression.mean + jnp.sqrt(variance) * half @ z)
        # the covariates' precision is root' A A' root with A Bartlett's factor of a Wishart matrix
        chi = numpyro.sample("chi", dist.Chi2(covariates.dof - jnp.arange(float(p))).to_event(1))
        spread = jnp.linalg.inv((root.T @ jnp.diag(jnp.sqrt(chi))).T)  # p = 1: no entries below the diagonal
        mean_z = numpyro.sample("mean_z", dist.Normal(0, 1).expand([p]).to_event(1))
        mean = covariates.mean + spread @ mean_z / jnp.sqrt(covariates.count)
        e = numpyro.sample("e", dist.Normal(0, 1).expand([p]).to_event(1))
        scatter_chi = numpyro.sample("scatter_chi", dist.Chi2(n - 1 - jnp.arange(float(p))).to_event(1))
        centre = mean + spread @ e / jnp.sqrt(n)
        factor = spread @ jnp.diag(jnp.sqrt(scatter_chi))
        scatter = factor @ factor.T
        e0 = numpyro.sample("e0", dist.Normal(0, 1))
        e1 = numpyro.sample("e1", dist.Normal(0, 1).expand([p]).to_event(1))
        rest = numpyro.sample("rest", dist.Chi2(n - p - 1))
        middle = centre @ theta[:p] + theta[p] + jnp.sqrt(variance / n) * e0
        cross = scatter @ theta[:p] + jnp.sqrt(variance) * factor @ e1
        own = cross @ jnp.linalg.solve(scatter, cross) + variance * rest
        whole = jnp.block([[scatter, cross[:, None]], [cross[None], own[None, None]]])
        s = family.joined(jnp.append(centre, middle), whole, n)
        numpyro.sample("y", dist.Laplace(s, release.noise_scale).to_event(1), obs=jnp.asarray(release.values))

    return model


def stated(release: na.Release, prior):
    """The 2019 paper's model as it states it, for one covariate: records are latent variables in their own units."""
    family, n = release.family, int(release.n)
    inner = family.scaled(prior)
    regression, covariates = inner.parts["regression"], inner.parts["covariates"]

    def model() -> None:
        variance = numpyro.sample("variance", dist.InverseGamma(regression.shape, regression.scale))
        spread = jnp.linalg.inv(regression.precision) * variance
        theta = numpyro.sample("theta", dist.MultivariateNormal(regression.mean, spread))
        squared = numpyro.sample("squared", dist.InverseGamma(covariates.dof / 2, covariates.scale[0, 0] / 2))
        mean = numpyro.sample("mean", dist.Normal(covariates.mean[0], jnp.sqrt(squared / covariates.count)))
        x = numpyro.sample("x", dist.Normal(mean, jnp.sqrt(squared)).expand([n]).to_event(1))
        y = numpyro.sample("y", dist.Normal(theta[0] * x + theta[1], jnp.sqrt(variance)).to_event(1))
        u = [x.clip(-1, 1), y.clip(-1, 1)]
        s = jnp.stack([column.sum() for column in family.query.monomials(u)])
        numpyro.sample("released", dist.Laplace(s, release.noise_scale).to_event(1), obs=jnp.asarray(release.values))

    return model


def nuts(release: na.Release, prior, model=collapsed) -> tuple[float, float]:
    """ESS per second of NUTS on a model, four chains vectorised."""
    kernel = numpyro.infer.NUTS(model(release, prior), target_accept_prob=0.9)
    sampler = numpyro.infer.MCMC(
        kernel, num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False
    )

    def run(key):
        sampler.run(key)
        return jax.block_until_ready(sampler.get_samples())

    found, seconds = quickest(run)
    return worst_ess(np.column_stack([found["theta"], found["variance"]]), 4) / seconds, seconds


def main() -> None:
    release, prior = setting(1, N)
    ours, seconds = measure("hmc", release, prior, 64_000, 64)
    print(f"default (hmc), 64 000 draws         {ours:12,.0f} ESS/s   {seconds:7.2f} s")
    for label, bar, (rate, took) in (
        ("(a) Gibbs-SS-Update", 100, measure("gibbs_ss_update", release, prior, 80_000, 16)),
        ("(b) NUTS, collapsed model", 50, nuts(release, prior)),
        ("(c) MCMC-Ind, as stated", 500, nuts(release, prior, stated)),
        ("(c) MCMC-Ind, standardised", 500, measure("mcmc_ind", release, prior, 2000, 4)),
    ):
        print(f"{label:35s} {rate:12,.1f} ESS/s   {took:7.2f} s   ours {ours / rate:10,.0f} ×   (bar {bar} ×)")
        table.add(
            f"regression, one covariate, n = {N}, ε = {EPSILON:g}: draws against {label[4:]}", ours / rate, "{} ×",
            at_least=bar, ours=f"{ours:,.0f} ESS/s", against=f"{rate:,.0f} ESS/s",
        )  # fmt: skip
    times = {}
    for n in (10**2, 10**4, 10**6):
        release, prior = setting(1, n)
        rate, times[n] = measure("hmc", release, prior, 64_000, 64)
        print(f"n = {n:<9,} {times[n]:7.2f} s   {rate:12,.0f} ESS/s")
    growth = max(times.values()) / times[10**2]
    print(f"slowest against n = 100: {growth:.2f} ×   (bar 1.5 ×)")
    table.add("regression: slowest of n = 10⁴ and 10⁶ against n = 100", growth, "{} ×", at_most=1.5)
    several("ten covariates", *setting(10, 1000), at_most=60)
    several("five covariates, one number in ten clamped", *setting(5, 1000, 4.2))


def several(what: str, release: na.Release, prior, at_most: float | None = None) -> None:
    """Seconds of a whole `infer`, the first time and once compiled."""
    for attempt in range(2):
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # chains that have not converged
            posterior = na.infer(release, prior, seed=attempt)
        kind, spent = "compiled" if attempt else "with compilation", time.perf_counter() - started
        print(f"{what}, {kind}: {spent:.1f} s")
        table.add(f"regression, {what}, n = 1000, 4000 draws, {kind}", spent, "{} s", at_most=at_most)
    summary = posterior.summary()
    print(f"  worst R-hat {summary['r_hat'].max():.4f}, least ESS {summary['ess_bulk'].min():,.0f}")
    print(f"  {posterior.explanation}")


if __name__ == "__main__":
    with jax.enable_x64(True):
        main()
