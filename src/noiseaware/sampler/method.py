"""The methods by name: for one release, for a batch that differs in y alone, and how exact each is.

A method is a function (key, evidence, prior, num_draws) → draws, and a sentence on why its draws are approximate, or
none when they are exact. `auto` takes the first that serves, in the order of this table.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax

from noiseaware.baseline import naive
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.prior import AbstractPrior
from noiseaware.sampler import augmentation, exact, gibbs, gibbs_regression, hmc, mcmc_ind


@dataclass(frozen=True)
class Method:
    """A way to draw from p(θ | release): for one release, for a batch that differs in y alone, and how exact it is."""

    draws: Callable[..., jax.Array]
    batch: Callable[..., jax.Array]
    explanation: Callable[[Evidence, AbstractPrior], str | None]
    serves: Callable[[AbstractFamily], bool] = lambda family: True
    is_chain: bool = False
    """Whether draws depend on those before them, and may not have forgotten where they started."""
    takes_noisy_n: bool = False
    """Whether a private number of records may be unknown to it."""
    takes_interval: bool = False
    """Whether an interval may be all that is known of a count."""
    by_auto: bool = True
    """Whether auto may take it: never what ignores the noise."""


def _of_2019(variant: gibbs_regression.Variant) -> tuple:
    return variant.draws, variant.batch, variant.explanation, variant.serves


METHODS = {
    "exact": Method(exact.draws, exact.batch, exact.explanation, exact.serves, takes_noisy_n=True, takes_interval=True),
    "hmc": Method(hmc.draws, hmc.batch, hmc.explanation, hmc.serves, is_chain=True, takes_noisy_n=True),
    "gibbs": Method(gibbs.draws, gibbs.batch, gibbs.explanation, gibbs.serves, is_chain=True),
    "gibbs_ss_update": Method(*_of_2019(gibbs_regression.UPDATE), is_chain=True),
    "gibbs_ss_prior": Method(*_of_2019(gibbs_regression.PRIOR), is_chain=True),
    "gibbs_ss_noisy": Method(*_of_2019(gibbs_regression.NOISY), is_chain=True),
    "augmentation": Method(
        augmentation.draws, augmentation.batch, augmentation.explanation, augmentation.serves, is_chain=True
    ),
    "mcmc_ind": Method(mcmc_ind.draws, mcmc_ind.batch, mcmc_ind.explanation, mcmc_ind.serves, is_chain=True),
    "naive": Method(
        naive.draws, naive.batch, naive.explanation, takes_noisy_n=True, takes_interval=True, by_auto=False
    ),
}


def method_for(evidence: Evidence, method: str) -> str:
    """Return the name of a method that serves the evidence."""
    name = checked_method(method, evidence.family, has_private_n=not evidence.count.is_public)
    if evidence.is_interval and not METHODS[name].takes_interval:
        able = ", ".join(name for name, known in METHODS.items() if known.takes_interval)
        raise ValueError(f"method must be one of {able} where values have an interval, got {method!r}.")
    return name


def checked_method(method: str, family: AbstractFamily, *, has_private_n: bool = False) -> str:
    """The name of a method; auto is the exact one where there is one for the family, else HMC, else Gibbs."""
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method must be one of auto, {', '.join(METHODS)}, got {method!r}.")
    fit = [name for name, known in METHODS.items() if known.serves(family)]
    able = [name for name in fit if METHODS[name].takes_noisy_n or not has_private_n]
    if method == "auto":
        return _first(able, fit, family)
    if method not in fit:
        raise ValueError(f"method must be one of {', '.join(fit)} for this {family.name} family, got {method!r}.")
    if method not in able:
        raise ValueError(f"method must be one of {', '.join(able)} where n is private, got {method!r}.")
    return method


def _first(able: list[str], fit: list[str], family: AbstractFamily) -> str:
    """The method that auto takes of those that are able to; refused where only one that ignores the noise is."""
    chosen = [name for name in able if METHODS[name].by_auto]
    if chosen:
        return chosen[0]
    if others := [name for name in fit if METHODS[name].by_auto]:
        served = f"n must be public for this {family.name} family, which {' and '.join(others)} then serve"
        raise ValueError(f"{served}, got a private one; method='naive' ignores all noise.")
    raise ValueError(f"family must be one that a method serves, got {family.name}; method='naive' ignores all noise.")
