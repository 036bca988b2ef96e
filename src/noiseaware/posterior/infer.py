"""The verb of the analyst: from a release to the posterior that it supports.

    p(θ | y) ∝ p(θ) ∫ p(s | θ) p(y | s) ds        the graph is θ → s → y, and only y is seen

It runs in float64 whatever the user's own JAX setting is.
"""

import secrets
import warnings
from collections.abc import Mapping, Sequence

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
from noiseaware.sampler import (
    adequacy,
    augmentation,
    covariate,
    covariate_law,
    exact,
)
from noiseaware.sampler.method import METHODS, method_for

Truth = float | Mapping[str, object]

MOST_DRAWS = 10_000_000


def infer(
    release: Release | Sequence[Release],
    prior: AbstractPrior,
    *,
    method: str = "auto",
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
    method: str,
    num_draws: int,
    seed: int | None,
    same_table: bool = False,
) -> "Posterior":
    """What `infer` gives, before its concerns are looked at."""
    releases = _all(release)
    if len(releases) > 1 and not same_table:
        return _infer_given(releases, prior, method, num_draws, seed)
    release = releases[0] if len(releases) == 1 else several.same_table(releases)
    evidence = release.evidence()
    name = method_for(evidence, method)
    prior = release.family.checked_prior(prior)
    seed = checked_seed(num_draws, seed)
    if name != "naive":
        covariate.check(evidence, prior)
    with jax.enable_x64(True):
        name, choice = (name, None) if method != "auto" else _chosen(name, evidence, prior)
        found = METHODS[name].draws(key_of(seed, releases), evidence, prior, int(num_draws))
        draws = release.family.named(np.asarray(found, dtype=np.float64))
    check_finite(name, draws)
    why = METHODS[name].explanation(evidence, prior)
    if name != "naive":
        why = " ".join(filter(None, (why, covariate.assumption(evidence, prior)))) or None
        why = " ".join(filter(None, (why, covariate_law.sentence(evidence, draws)))) or None
    if choice is not None and name == "hmc":
        why = " ".join(filter(None, (why, choice)))
    if METHODS[name].is_chain and (doubted := doubt(draws)) is not None:
        warnings.warn(doubted, RuntimeWarning, stacklevel=3)
        why = " ".join(filter(None, (why, doubted)))
    return Posterior(draws, release, prior, name, with_convention(why, release), seed, choice)


def _infer_given(
    releases: tuple[Release, ...], prior: AbstractPrior, method: str, num_draws: int, seed: int | None
) -> "Posterior":
    """Exact draws of the one θ of several independent tables."""
    first, *others = several.checked_tables(releases)
    if method not in ("auto", "exact"):
        raise ValueError(f"method must be one of auto, exact for several tables, got {method!r}.")
    prior = first.family.checked_prior(prior)
    assert isinstance(prior, AbstractScalarPrior)
    seed = checked_seed(num_draws, seed)
    with jax.enable_x64(True):
        tables = tuple(release.evidence() for release in releases)
        found = exact.draws_given(key_of(seed, releases), tables, prior, int(num_draws))
        draws = first.family.named(np.asarray(found, dtype=np.float64))
    check_finite("exact", draws)
    why = next(filter(None, (exact.explanation(table, prior) for table in tables)), None)
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


def _chosen(name: str, evidence: Evidence, prior: AbstractPrior) -> tuple[str, str | None]:
    """Return what auto takes in the end: not HMC where what it neglects shows, and a sentence on that."""
    n = evidence.n
    if name != "hmc" or not evidence.count.is_public or n > augmentation.MOST_RECORDS:
        return name, None
    if not augmentation.simulates(evidence.family, prior):
        return name, None
    reason = adequacy.doubt(evidence, prior).reason
    if reason is None:
        return name, None
    if n <= augmentation.QUICK_RECORDS and evidence.family.as_quadratic(prior) is None:
        return "augmentation", reason  # of second moments its chains are too slow to be taken unasked
    return name, f"{reason} Take method='augmentation', which is slower and neglects nothing."


def checked_seed(num_draws: int, seed: int | None) -> int:
    """The seed, or one by chance; refused as the number of draws may be."""
    whole("num_draws", num_draws, 1, MOST_DRAWS)
    return whole("seed", secrets.randbits(32) if seed is None else seed, 0, 2**63 - 1)
