"""The verb of the analyst: from a release to the posterior that it supports.

    p(θ | y) ∝ p(θ) ∫ p(s | θ) p(y | s) ds        the graph is θ → s → y, and only y is seen

It runs in float64 whatever the user's own JAX setting is.
"""

import secrets
import warnings
from collections.abc import Iterator, Mapping, Sequence

import jax
import numpy as np

from noiseaware.check import whole
from noiseaware.evidence import several
from noiseaware.evidence.evidence import Evidence
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.posterior.diagnostic import doubt
from noiseaware.posterior.posterior import Posterior
from noiseaware.posterior.seed import own_seed
from noiseaware.prior import AbstractPrior, AbstractScalarPrior
from noiseaware.report.release_words import with_convention
from noiseaware.sampler import covariate, covariate_law, exact
from noiseaware.sampler.method import Method, Route, decided, method_for

Truth = float | Mapping[str, object]

MOST_DRAWS = 10_000_000


def infer(
    release: Release | Sequence[Release],
    prior: AbstractPrior,
    *,
    method: Method = "auto",
    num_draws: int = 4000,
    seed: int | None = None,
    same_table: bool = False,
    family: AbstractFamily | None = None,
) -> "Posterior":
    """Return draws from p(θ | release), or given several releases: of independent tables, or of the same table.

    With `family`, releases are read as those of another family that asks the same of the table.

    The same release and seed give the same draws, on every machine. Other releases have other random numbers with
    that seed, so that groups are compared draw by draw::

        women, men = (na.infer(release, prior, seed=1).draws["theta"] for release in by_sex)
        np.quantile(women - men, [0.025, 0.975]), np.quantile(women / men, [0.025, 0.975])

    >>> noise = na.mechanism.Laplace(10.0)
    >>> release = na.Release(family=na.family.Bernoulli("ill"), values=[12], n=1000, mechanism=noise)
    >>> posterior = na.infer(release, na.prior.Beta(1, 1), seed=1)
    >>> posterior.method, posterior.draws["theta"].shape
    ('exact', (4000,))
    """
    if family is not None:
        release = [each.under(family) for each in _all(release)]
    return _warned(drawn(release, prior, method=method, num_draws=num_draws, seed=seed, same_table=same_table))


def _all(release: Release | Sequence[Release]) -> tuple[Release, ...]:
    """Return one release, or all of several that are alike."""
    return (release,) if isinstance(release, Release) else several.checked_alike(release)


def drawn(
    release: Release | Sequence[Release],
    prior: AbstractPrior,
    *,
    method: Method,
    num_draws: int,
    seed: int | None,
    same_table: bool = False,
) -> "Posterior":
    """Return what `infer` gives, before its concerns are looked at."""
    releases = _all(release)
    if len(releases) > 1 and not same_table:
        return _infer_given(releases, prior, method, num_draws, seed)
    release = releases[0] if len(releases) == 1 else several.same_table(releases)
    evidence = release.evidence()
    sampler = method_for(evidence, method)
    prior = release.family.checked_prior(prior)
    seed = checked_seed(num_draws, seed)
    if sampler.is_aware:
        covariate.check(evidence, prior)
    with jax.enable_x64(True):
        route = decided(sampler, evidence, prior, by_auto=method == "auto")
        found = route.sampler.draws(key_of(seed, releases), evidence, prior, route, int(num_draws))
        draws = release.family.named(np.asarray(found.theta, dtype=np.float64))
    name = route.sampler.name
    check_finite(name, draws)
    doubted = doubt(draws, found.info) if route.sampler.is_chain else None
    if doubted is not None:
        warnings.warn(doubted, RuntimeWarning, stacklevel=3)
    why = " ".join(filter(None, (*_sentences(route, evidence, prior, draws), doubted))) or None
    told = with_convention(why, release)
    return Posterior(draws, release, prior, name, told, seed, route.choice, route=route, info=found.info)


def _sentences(
    route: Route, evidence: Evidence, prior: AbstractPrior, draws: dict[str, np.ndarray]
) -> Iterator[str | None]:
    """Yield why the draws of a route are approximate, and what a regression takes for granted."""
    yield route.explanation
    if route.sampler.is_aware:
        yield covariate.assumption(evidence, prior)
        yield covariate_law.sentence(evidence, draws)
    if route.adequacy is not None:  # else auto has left the sampler that there was a doubt about
        yield route.choice


def _infer_given(
    releases: tuple[Release, ...], prior: AbstractPrior, method: Method, num_draws: int, seed: int | None
) -> "Posterior":
    """Return exact draws of the one θ of several independent tables."""
    first, *others = several.checked_tables(releases)
    if method not in ("auto", "exact", exact.Exact()):
        raise ValueError(f"method must be one of auto, exact for several tables, got {method!r}.")
    prior = first.family.checked_prior(prior)
    assert isinstance(prior, AbstractScalarPrior)
    seed = checked_seed(num_draws, seed)
    with jax.enable_x64(True):
        tables = tuple(release.evidence() for release in releases)
        found = exact.draws_given(key_of(seed, releases), tables, prior, int(num_draws))
        draws = first.family.named(np.asarray(found, dtype=np.float64))
    check_finite("exact", draws)
    why = next(filter(None, (exact.explanation(table) for table in tables)), None)
    return Posterior(draws, first, prior, "exact", with_convention(why, first), seed, others=tuple(others))


def _warned(posterior: "Posterior") -> "Posterior":
    """The posterior, with a warning of each of its concerns."""
    for sentence in posterior.concerns:
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)
    return posterior


def key_of(seed: int, releases: Sequence[Release]) -> jax.Array:
    """The key of all that is drawn given these releases: what they say is in it, so that no two share their draws."""
    return jax.random.key(own_seed(seed, *(release.fingerprint for release in releases)))


def check_finite(method: str, draws: dict[str, np.ndarray]) -> None:
    for parameter, values in draws.items():
        if lost := int((~np.isfinite(values)).sum()):
            raise RuntimeError(f"method {method!r} gave {lost} draws of {parameter} that are not finite numbers.")


def checked_seed(num_draws: int, seed: int | None) -> int:
    """The seed, or one by chance; refused as the number of draws may be."""
    whole("num_draws", num_draws, 1, MOST_DRAWS)
    return whole("seed", secrets.randbits(32) if seed is None else seed, 0, 2**63 - 1)
