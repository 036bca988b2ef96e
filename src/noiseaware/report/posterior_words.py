"""A prior and a posterior in plain sentences, for the command, the figure and the page."""

import re

from noiseaware.evidence.release import Release
from noiseaware.posterior.estimate import PROBABILITY, Estimate, entries
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.posterior.recorded import MEAN, VARIANCE
from noiseaware.prior import AbstractPrior
from noiseaware.report.number import MOST_NAMED, listed, number, shown, written

PERCENT = f"{100 * PROBABILITY:g} %"
_MOVED = 0.02  # of the records of all columns: above, clamping moves an answer as noise does


def belief(release: Release, prior: AbstractPrior) -> str:
    """Write the person's own part of a prior, and mention what the family has put beside it."""
    family = release.family
    own, covariates = family.parted(prior)
    if covariates is None:
        return _shortened(str(own))
    _, vague = family.parted(family.completed(own))
    if str(covariates) != str(vague):
        return _shortened(f"{own} (covariates: {covariates})")
    spread = "about 0 with a spread of about 1, vaguely, since nothing was said"
    return _shortened(f"{own} (covariates: normal, {'spread from the bounds' if family.query.is_altered else spread})")


def _shortened(text: str) -> str:
    """Shorten long lists of numbers to the first and the last."""
    return re.sub(r"\[([^][,]+, [^][,]+, [^][,]+), [^][]*, ([^][,]+, [^][,]+)\]", r"[\1, …, \2]", text)


def parameter(release: Release, name: str) -> str:
    """Name a parameter in words: the rate; of an entry, the coefficient of age."""
    family = release.family
    if name.startswith((MEAN, VARIANCE)):
        return _recorded(name)
    for which, meaning in family.glossary.items():
        if name == which:
            return meaning.text
        places = entries(family, which)
        for entry in places:
            if name == entry.name:
                return meaning.of(tuple(map(shown, entry.labels)), is_last=entry is places[-1])
    return shown(name)


def gloss(release: Release, name: str) -> str:
    """Name a parameter in full: the rate, one over the mean."""
    law = behind(release)
    meaning = release.family.glossary[name].aside if name in release.family.glossary else ""
    is_latent = law is not None and not name.startswith((MEAN, VARIANCE))
    tail = f"{',' if meaning else ''} of {law}" if is_latent else ""
    return parameter(release, name) + meaning + tail


def behind(release: Release) -> str | None:
    """Name the law that parameters are of, where bounds cut into it: the normal law behind the bounds."""
    return None if release.family.law is None else f"the {release.family.law} law behind the bounds"


def _recorded(name: str) -> str:
    """Name a recorded number: the mean of the values as recorded within the bounds."""
    kind, _, column = name.removeprefix("recorded ").partition("[")
    values = f"{shown(column.removesuffix(']'))}" if column else "the values"
    return f"the {kind} of {values} as recorded within the bounds"


def headline(posterior: AbstractPosterior) -> str:
    """State the posterior in one plain sentence."""
    start = f"Given this release and the prior {belief(posterior.release, posterior.prior)}, "
    estimates = posterior.estimates()
    if posterior.release.family.is_choice:
        likely = max(estimates, key=lambda e: e.mean)
        return (
            f"{start}the likeliest of {len(estimates)} levels is {_level(likely.name)}, "
            f"whose probability lies {between(likely)} with probability {PERCENT}."
        )
    asked = [e for e in estimates if e.name.startswith(f"{MEAN}[")]
    asked = asked or [e for e in estimates if re.fullmatch(r"(coefficients|mean)\[.*\]", e.name, re.DOTALL)]
    asked = [e for e in asked if parameter(posterior.release, e.name) != "the intercept"] or estimates
    asked = [e for e in asked if e.name != VARIANCE]
    is_recorded = any(e.name == MEAN for e in asked)
    clauses = [f"{_told(posterior.release, e.name, is_recorded)} lies {between(e)}" for e in asked[:MOST_NAMED]]
    return f"{start}{listed(clauses)} with probability {PERCENT}{' each' * (len(clauses) > 1)}."


def _told(release: Release, name: str, is_recorded: bool) -> str:
    """A number in a sentence: a parameter is said to be of the law behind the bounds where a recorded number is too."""
    law = behind(release) if is_recorded and name != MEAN else None
    return parameter(release, name) + (f" of {law}" if law else "")


def naive_headline(posterior: AbstractPosterior) -> str:
    """Say what the naive analyst would believe, and how far that is from what the release supports."""
    naive, own = posterior.naive_estimates(), posterior.estimates()
    index = max(range(len(own)), key=lambda i: own[i].mean) if posterior.release.family.is_choice else 0
    where = f"{parameter(posterior.release, own[index].name)} {between(naive[index])}"
    if not posterior.release.mechanism.is_noisy:
        return f"Without noise the released value is the true one, and puts {where}."
    sentence = f"Someone who took the noisy value for the true one would put {where}"
    is_latent = not own[index].name.startswith(MEAN) and sum(map(sum, posterior.moved.values())) > _MOVED
    if is_latent or not own[index].width * naive[index].width > 0:
        return f"{sentence}."  # what lies between the two is the model of clamping as well as the noise
    ratio, n = own[index].width / naive[index].width, posterior.release.likely_n
    if max(ratio, 1 / ratio) > 1.15:
        times, how = (ratio, "narrower") if ratio > 1 else (1 / ratio, "wider")
        return f"{sentence}: an interval {written(times, 2)} times {how} than the release supports."
    why = f"the noise is small compared with the sampling error of {n:,} records"
    return f"{sentence}: about the same width, because {why}."


def under_the_prior(tail: float) -> str:
    """State the prior probability of a release as extreme as this one."""
    probability = number(tail, 0.1 * tail) if tail >= 1e-12 else "less than 10⁻¹²"
    return f"Under the prior, the probability of a release as extreme as this one is {probability}."


def exactness(posterior: AbstractPosterior) -> str:
    draws = f"{posterior.num_draws:,}"
    if posterior.is_exact and posterior.is_chain:
        granted = f" {posterior.explanation}" if posterior.explanation else ""
        kind = f"{draws} draws of converged chains whose limit is the posterior itself"
        return f"Exact for this family in the limit: {kind}.{granted}"
    if posterior.is_exact:
        return f"Exact for this family: {draws} independent draws from the posterior, with nothing approximated."
    return f"Approximate: {posterior.explanation}"


def cells(estimate: Estimate) -> tuple[str, str, str]:
    """Mean, sd and interval as text."""
    mean, sd, low, high = _numbers(estimate)
    return mean, sd, f"{low} to {high}"


def between(estimate: Estimate) -> str:
    return "between {2} and {3}".format(*_numbers(estimate))


def _numbers(estimate: Estimate) -> tuple[str, ...]:
    """Mean, sd and ends of the interval, to as many figures as the sd gives sense to."""
    values = (estimate.mean, estimate.sd, estimate.low, estimate.high)
    return tuple(number(value, estimate.sd, is_signed=estimate.low < 0) for value in values)


def _level(name: str) -> str:
    """The level in theta[level]."""
    return shown(name.removeprefix("theta[").removesuffix("]"))
