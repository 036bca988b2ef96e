"""The samplers by name, and which of them is taken: `method=` of infer takes a name or a sampler with options.

    na.infer(release, prior, method="hmc")
    na.infer(release, prior, method=na.method.HMC(chains=16))

`auto` takes the first that serves, in the order of their preference, and HMC only where its approximation is good.
A sampler of one's own is a subclass of AbstractSampler.
"""

import dataclasses

from noiseaware.check import kind
from noiseaware.evidence.evidence import Evidence
from noiseaware.family import AbstractFamily
from noiseaware.prior import AbstractPrior
from noiseaware.sampler._sampler import AbstractSampler as AbstractSampler
from noiseaware.sampler._sampler import Draws as Draws
from noiseaware.sampler._sampler import Refusal as Refusal
from noiseaware.sampler._sampler import Route as Route
from noiseaware.sampler.augmentation import Augmentation as Augmentation
from noiseaware.sampler.augmentation import is_quick, simulates
from noiseaware.sampler.exact import Exact as Exact
from noiseaware.sampler.gibbs import Gibbs as Gibbs
from noiseaware.sampler.gibbs_regression import GibbsNoisy as GibbsNoisy
from noiseaware.sampler.gibbs_regression import GibbsPrior as GibbsPrior
from noiseaware.sampler.gibbs_regression import GibbsUpdate as GibbsUpdate
from noiseaware.sampler.hmc import HMC as HMC
from noiseaware.sampler.mcmc_ind import MCMCInd as MCMCInd
from noiseaware.sampler.naive import Naive as Naive

Method = str | AbstractSampler

_ALL = (Exact(), HMC(), Gibbs(), GibbsUpdate(), GibbsPrior(), GibbsNoisy(), Augmentation(), MCMCInd(), Naive())
METHODS: dict[str, AbstractSampler] = {sampler.name: sampler for sampler in _ALL}


def method_for(evidence: Evidence, method: Method) -> AbstractSampler:
    """Return the sampler that is asked for, or the first by preference that serves the evidence."""
    sampler = checked_method(method, evidence.family, has_private_n=not evidence.count.is_public)
    if evidence.is_interval and not sampler.takes_interval:
        able = ", ".join(name for name, known in METHODS.items() if known.takes_interval)
        raise ValueError(f"method must be one of {able} where values have an interval, got {_word(method)!r}.")
    return sampler


def checked_method(method: Method, family: AbstractFamily, *, has_private_n: bool = False) -> AbstractSampler:
    """Return the sampler of this name, or the one given, if it serves; auto is the first by preference that does."""
    if not isinstance(method, str | AbstractSampler):
        raise ValueError(f"method must be a name, or one of noiseaware.method, such as HMC(), got {kind(method)}.")
    name = _word(method)
    if isinstance(method, str) and name != "auto" and name not in METHODS:
        raise ValueError(f"method must be one of auto, {', '.join(METHODS)}, got {method!r}.")
    fit = [known for known in METHODS.values() if known.serves(family)]
    able = [known for known in fit if known.takes_private_n or not has_private_n]
    if method == "auto":
        return _first(able, fit, family)
    sampler = METHODS[method] if isinstance(method, str) else method
    if not sampler.serves(family):
        raise ValueError(f"method must be one of {_names(fit)} for this {family.name} family, got {name!r}.")
    if has_private_n and not sampler.takes_private_n:
        raise ValueError(f"method must be one of {_names(able)} where n is private, got {name!r}.")
    return sampler


def decided(sampler: AbstractSampler, evidence: Evidence, prior: AbstractPrior, *, by_auto: bool = False) -> Route:
    """Return the route of a sampler or, by auto, perhaps that of another; refused where there is none.

    Call it under float64, and once an inference: what follows is told by the route.
    """
    route = sampler.route(evidence, prior)
    if isinstance(route, Refusal):
        raise ValueError(route.sentence)
    return _better(route, evidence, prior) if by_auto else route


def _better(route: Route, evidence: Evidence, prior: AbstractPrior) -> Route:
    """Return what auto takes in the end: not an approximation that shows, where there is another way."""
    if route.adequacy is None or not simulates(evidence, prior):
        return route
    reason = route.adequacy.doubt.reason
    if reason is None:
        return route
    if is_quick(evidence, prior):
        other = METHODS["augmentation"].route(evidence, prior)
        if isinstance(other, Route):
            return dataclasses.replace(other, choice=reason)
    choice = f"{reason} Take method='augmentation', which is slower and neglects nothing."
    return dataclasses.replace(route, choice=choice)


def _first(able: list[AbstractSampler], fit: list[AbstractSampler], family: AbstractFamily) -> AbstractSampler:
    """Return the sampler that auto takes; refused where only one that it never takes is able to."""
    chosen, others = (sorted(_by_auto(known), key=_preference) for known in (able, fit))
    if chosen:
        return chosen[0]
    if others:
        served = f"n must be public for this {family.name} family, which {_names(others, ' and ')} then serve"
        raise ValueError(f"{served}, got a private one; method='naive' ignores all noise.")
    raise ValueError(f"family must be one that a method serves, got {family.name}; method='naive' ignores all noise.")


def _by_auto(known: list[AbstractSampler]) -> list[AbstractSampler]:
    return [sampler for sampler in known if sampler.preference is not None]


def _preference(sampler: AbstractSampler) -> int:
    return sampler.preference or 0


def _names(samplers: list[AbstractSampler], between: str = ", ") -> str:
    return between.join(sampler.name for sampler in samplers)


def _word(method: Method) -> str:
    return method if isinstance(method, str) else method.name
