"""How many programs one inference compiles: what a user waits for first, and what a small change can double."""

import jax
import jax.monitoring
import pytest

import noiseaware as na

F, M, P = na.family, na.mechanism, na.prior
COUNT, WHOLE = {"values": [12], "n": 50, "mechanism": M.DiscreteLaplace(4.0)}, M.DiscreteLaplace(3.0)
CASES = {
    "bernoulli": (F.Bernoulli(), COUNT, P.Beta(1, 1), 3),
    "bernoulli, private n": (F.Bernoulli(), COUNT | {"n_mechanism": WHOLE}, P.Beta(1, 1), 6),
    "bernoulli, interval": (F.Bernoulli(), COUNT | {"within": [(8, 12)]}, P.Beta(1, 1), 15),
    "poisson": (F.Poisson("x", (0, 12)), COUNT | {"values": [90]}, P.Gamma(2, 1), 3),
    "exponential": (F.Exponential("x", (0, 5)), COUNT | {"values": [90]}, P.Gamma(2, 1), 3),
    "normal": (F.Normal("x", (-3, 3), 1.0), COUNT, P.Normal(0, 1), 3),
    "categorical": (F.Categorical(levels=["a", "b"]), COUNT | {"values": [12, 38]}, P.Dirichlet([1, 1]), 3),
    "normal, hmc": (F.Normal("x"), COUNT | {"values": [12, 70]}, P.NormalInverseGamma(0, 1, 3, 3), 26),
}
SLOW = ("poisson", "exponential", "normal")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES])
def test_an_inference_compiles_no_more_programs_than_it_did(name):
    family, values, prior, most = CASES[name]
    compiled = []

    def listen(event: str, _: float, **options) -> None:
        compiled.append(event) if event == "/jax/core/compile/backend_compile_duration" else None

    release = na.Release(family=family, **values)
    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        na.infer(release, prior, num_draws=64, seed=3)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert 1 <= len(compiled) <= most
