"""A release, its prior and its posterior in plain sentences, for the command, the figure and the page.

Names in a release come from a file that anyone may have written: they are shortened and stripped of everything
that does not print before they are shown.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from noiseaware.evidence.possible import FAR, farthest
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractNumberFamily, Categorical, MultivariateNormal
from noiseaware.mechanism import DiscreteGaussian, DiscreteLaplace, Gaussian, Identity, Laplace
from noiseaware.posterior.estimate import PROBABILITY, Estimate
from noiseaware.posterior.recorded import MEAN, VARIANCE
from noiseaware.prior import AbstractPrior, CovariateMoments, Dirichlet, Independent
from noiseaware.privacy import Approximate, Pure, ZeroConcentrated, plain

if TYPE_CHECKING:
    from noiseaware.posterior.posterior import Posterior

PERCENT = f"{100 * PROBABILITY:g} %"

_RECORDS = {
    "bernoulli": "yes or no (Bernoulli)",
    "binomial": "successes in a fixed number of trials (binomial)",
    "categorical": "one of several levels (categorical)",
    "poisson": "counts of events (Poisson)",
    "geometric": "failures before the first success (geometric)",
    "exponential": "waiting times (exponential)",
    "gamma": "positive amounts (gamma)",
    "normal": "measurements (normal)",
    "multivariate_normal": "measurements of several kinds (multivariate normal)",
    "linear_regression": "a quantity and what explains it (linear regression)",
    "logistic_regression": "yes or no, and what explains it (logistic regression)",
    "poisson_regression": "counts of events, and what explains them (Poisson regression)",
}
_PARAMETERS = {
    ("bernoulli", "theta"): ("the probability of success", ""),
    ("binomial", "theta"): ("the probability of success", " in one trial"),
    ("poisson", "theta"): ("the mean count", ""),
    ("geometric", "theta"): ("the probability of success", ""),
    ("exponential", "theta"): ("the rate", ", one over the mean"),
    ("gamma", "shape"): ("the shape", ", the squared mean over the variance"),
    ("gamma", "rate"): ("the rate", ", shape over mean"),
    ("normal", "mean"): ("the mean", ""),
    ("normal", "variance"): ("the variance", ""),
    ("multivariate_normal", "mean"): ("the means", ""),
    ("multivariate_normal", "covariance"): ("the covariances", ""),
    ("linear_regression", "coefficients"): ("the coefficients", ", the intercept last"),
    ("logistic_regression", "coefficients"): ("the coefficients", ", of log odds, the intercept last"),
    ("poisson_regression", "coefficients"): ("the coefficients", ", of the log mean, the intercept last"),
    ("linear_regression", "variance"): ("the variance", " about the line"),
}
_LAWS = {
    Laplace: ("Laplace", "scale"),
    DiscreteLaplace: ("discrete Laplace", "scale"),
    Gaussian: ("Gaussian", "standard deviation"),
    DiscreteGaussian: ("discrete Gaussian", "standard deviation"),
}
_ENTRY = re.compile(r"(coefficients|mean|covariance)\[(.*)\]", re.DOTALL)
_MOVED = 0.02  # of the records of all columns: above, clamping moves an answer as noise does
_MOST_TOLD = 3  # parameters in a sentence
_MOST_RELEASED = 6  # statistics in a line
_MOST_LISTED = 30  # statistics on a page
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NEIGHBOURS = {"replace": "one record is replaced by another", "add_remove": "one record is added or removed"}


def number(value: float, sd: float = math.nan, *, is_signed: bool = False) -> str:
    """A number as a person would write it: to two figures of its sd, or else to four figures of its own.

    A small one has figures of its own too, unless it is one that may be on either side of 0.
    """
    if not math.isfinite(value):
        return "–"
    decimals = 1 - math.floor(math.log10(sd)) if sd > 0 else None
    if decimals is None or (not is_signed and 0 < abs(value) < 10.0 ** (1 - decimals)):
        return _written(value, 4 if decimals is None else 3)
    if not 1e-4 <= sd < 1e15 and not 1e-4 <= abs(value) < 1e15:
        return _written(value, 3)
    text = f"{value:,.{min(15, max(0, decimals))}f}"
    return (text if text.strip("-0.") else text.lstrip("-")).replace("-", "−")


def _written(value: float, figures: int) -> str:
    """A number to so many figures."""
    if value and not 1e-4 <= abs(value) < 1e15:
        mantissa, exponent = f"{value:.{min(figures, 3) - 1}e}".split("e")
        return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPT)}".replace("-", "−")
    before = math.floor(math.log10(abs(value))) + 1 if value else 0
    text = f"{value:,.{max(0, figures - before)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def shown(text: object, longest: int = 60) -> str:
    """Text from a release as it is safe to show."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def several(names: Sequence[str]) -> str:
    """Names in a sentence: a; a and b; a, b and 3 more."""
    told = [shown(name) for name in names[: _MOST_TOLD if len(names) == _MOST_TOLD else 2]]
    more = [f"{len(names) - len(told)} more"] if len(names) > len(told) else []
    return _listed([*told, *more])


def prior_words(prior: AbstractPrior) -> str:
    """A prior as its author would write it: Gamma(8, 2), NormalInverseGamma([1, 0], 0.25, 20, 0.5)."""
    if isinstance(prior, Independent):
        parts = [f"{shown(name)}={prior_words(part)}" for name, part in prior.parts.items()]
        return f"Independent({', '.join(parts)})"
    if isinstance(prior, CovariateMoments):
        return f"CovariateMoments(of {len(prior.mean)} numbers)"
    numbers = prior.concentration if isinstance(prior, Dirichlet) else [getattr(prior, f.name) for f in fields(prior)]
    return f"{type(prior).__name__}({', '.join(_plain(np.asarray(v, dtype=float)) for v in numbers)})"


def belief(release: Release, prior: AbstractPrior) -> str:
    """The person's own part of a prior, and a mention of what the family has put beside it."""
    if not isinstance(prior, Independent) or len(prior.parts) != 2 or "covariates" not in prior.parts:
        return _shortened(prior_words(prior))
    person = next(part for name, part in prior.parts.items() if name != "covariates")
    own, covariates = prior_words(person), prior_words(prior.parts["covariates"])
    if covariates != prior_words(release.family.completed(person).parts["covariates"]):  # type: ignore[attr-defined]
        return _shortened(f"{own} (covariates: {covariates})")
    is_bounded = getattr(release.family, "intervals", None) is not None
    vague = "about 0 with a spread of about 1, vaguely, since nothing was said"
    spread = "spread from the bounds" if is_bounded else vague
    return _shortened(f"{own} (covariates: normal, {spread})")


def _shortened(text: str) -> str:
    """Of long lists of numbers, the first and the last."""
    return re.sub(r"\[([^][,]+, [^][,]+, [^][,]+), [^][]*, ([^][,]+, [^][,]+)\]", r"[\1, …, \2]", text)


def _plain(value: np.ndarray) -> str:
    """A number, a list, or a matrix: a diagonal one as its diagonal, and one number where all of that is the same."""
    if value.ndim == 2 and np.array_equal(value, np.diag(np.diag(value))):
        diagonal = np.diag(value)
        return _plain(diagonal[0] if len(set(diagonal)) == 1 else diagonal)
    if value.ndim == 0:
        return f"{value:g}"
    return f"[{', '.join(_plain(entry) for entry in value)}]"


def parameter(release: Release, name: str) -> str:
    """What a parameter is: the rate; for a level of several, its probability."""
    if isinstance(release.family, Categorical):
        return f"the probability of {'the level' if name == 'theta' else level(name)}"
    if name.startswith((MEAN, VARIANCE)):
        return _recorded(release, name)
    entry = _ENTRY.fullmatch(name)
    if entry is not None and hasattr(release.family, "degrees"):
        return _entry(release, entry[1], entry[2])
    return _PARAMETERS.get((release.family.name, name), (shown(name), ""))[0]


def gloss(release: Release, name: str) -> str:
    """What a parameter is, in full: the rate, one over the mean."""
    law = behind(release)
    meaning = _PARAMETERS.get((release.family.name, name), ("", ""))[1]
    is_latent = law is not None and not name.startswith((MEAN, VARIANCE))
    tail = f"{',' if meaning else ''} of {law}" if is_latent else ""
    return parameter(release, name) + meaning + tail


def behind(release: Release) -> str | None:
    """The law that parameters are of, where bounds cut into it: the normal law behind the bounds."""
    family = release.family
    has_columns = isinstance(family, AbstractNumberFamily | MultivariateNormal)
    if not has_columns or not family.is_altered:
        return None
    return f"the {family.name.removeprefix('multivariate_')} law behind the bounds"


def _recorded(release: Release, name: str) -> str:
    """What a recorded number is: the mean of the values as recorded within their bounds."""
    kind, _, column = name.removeprefix("recorded ").partition("[")
    values = f"{shown(column.removesuffix(']'))}" if column else "the values"
    return f"the {kind} of {values} as recorded within the bounds"


def _entry(release: Release, name: str, place: str) -> str:
    """What an entry of a vector or matrix of parameters is: the coefficient of age."""
    if name == "coefficients" and place == "intercept" and place not in release.family.columns:
        return "the intercept"
    if name != "covariance":
        return f"the {'mean' if name == 'mean' else 'coefficient'} of {shown(place)}"
    for first in release.family.columns:
        if place == f"{first}, {first}":
            return f"the variance of {shown(first)}"
        if place.startswith(f"{first}, ") and (second := place[len(first) + 2 :]) in release.family.columns:
            return f"the covariance of {shown(first)} and {shown(second)}"
    return f"the covariance of {shown(place)}"


def noise(release: Release) -> str:
    if isinstance(release.mechanism, Identity):
        return "none: these are the true values" if release.within is None else "none, but only intervals are known"
    law, scale = _LAWS[type(release.mechanism)]
    each = " on each statistic" if len(release.family.statistics) > 1 else ""
    scales, entries = np.unique(release.noise_scale), getattr(release.family, "entries", ())
    if len(scales) == 1:
        return f"{law}, {scale} {number(float(scales[0]))}{each}"
    products = np.unique(np.asarray(release.noise_scale)[np.asarray(entries) == 2]) if entries else ()
    if len(scales) == 2 and len(products) == 1 and products[0] == scales[0]:
        low, high = number(float(scales[0])), number(float(scales[1]))
        return f"{law}, {scale} {high} on sums and squares and {low} on products of two columns"
    return f"{law}, {scale} {number(float(scales[0]))} to {number(float(scales[-1]))} by statistic"


def guarantee(release: Release) -> str:
    match release.guarantee:
        case None:
            return "none stated"
        case Pure() as promise:
            kind = f"{promise}, pure differential privacy"
        case ZeroConcentrated() as promise:
            kind = f"{promise}, zero-concentrated differential privacy"
        case Approximate() as promise:
            kind = f"{promise}, approximate differential privacy"
    who = _NEIGHBOURS[release.neighbours]
    if release.origin.unit is not None:
        who = f"one {shown(release.origin.unit)} is added or removed, with all its records"
    return f"{kind}, when {who}"


def records(release: Release) -> str:
    """How many records there are, as far as is known."""
    if release.n_mechanism is None:
        return f"{release.n:,}"
    law, scale = _LAWS[type(release.n_mechanism)]
    return f"{release.n:,}, itself noisy ({law}, {scale} {number(float(release.n_mechanism.spread))})"  # type: ignore[arg-type]


def _person(release: Release) -> str | None:
    """Whose records are summed, and how many of each."""
    unit, most = release.origin.unit, release.origin.max_records
    return None if unit is None else f"one for each {shown(unit)}, of whose records at most {most:,} are summed"


def outside(release: Release) -> str:
    """The bounds, and what becomes of a record outside them."""
    family = release.family
    if isinstance(family, Categorical):
        other = "; any other record counts as the first" if release.origin.missing is None else ""
        return f"levels {', '.join(shown(v) for v in family.levels)}{other}"
    if (intervals := getattr(family, "intervals", None)) and len(intervals) > 1:
        named = zip(family.columns, intervals, strict=True)
        each = ", ".join(f"{shown(column)} {number(low)} to {number(high)}" for column, (low, high) in named)
        return f"{each}; a number outside is moved to the nearer bound"
    if not isinstance(family, AbstractNumberFamily) or family.bounds is None:
        return "none"
    interval = f"{number(family.bounds[0])} to {number(family.bounds[1])}"
    if not family.is_altered:
        return f"{interval}, which every record keeps"
    becomes = "moved to the nearer bound" if family.outside == "clamp" else "left out of the sum"
    return f"{interval}; a record outside is {becomes}"


def missing(release: Release) -> str | None:
    """What became of a cell that holds no value of its column's kind, where the release says it."""
    match release.origin.missing:
        case None:
            return None
        case "leave_out":
            became = "leaves its record out of the sums and of n"
        case "drop":
            became = "adds nothing to the sum and is one of n"
        case ((_, value),):
            became = f"counts as {_value(release, value)}"
        case counted:
            named = [f"{shown(column)} {number(float(value))}" for column, value in counted]
            more = f" and {len(named) - _MOST_RELEASED} more" if len(named) > _MOST_RELEASED else ""
            lows = [low for low, _ in getattr(release.family, "intervals", None) or ()]
            rule = ", the lower bounds" if [value for _, value in counted] == lows else ""
            became = f"counts as {', '.join(named[:_MOST_RELEASED])}{more}{rule}"
    return f"a cell that is {_no_value(release)} {became}"


def _no_value(release: Release) -> str:
    """What a missing cell is, by the kinds of the columns."""
    family, origin = release.family, release.origin
    if isinstance(family, Categorical):
        return "none of the levels"
    if set(family.yes_or_no) != set(family.columns):
        return "empty or unreadable" if family.yes_or_no else "empty or no number"
    if origin.true and not origin.false:
        return "empty"
    return f"neither yes{_in_brackets(origin.true)} nor no{_in_brackets(origin.false)}"


def _in_brackets(words: Sequence[str]) -> str:
    told = ", ".join(shown(word) for word in words[:_MOST_RELEASED])
    return f" ({told}{', …' * (len(words) > _MOST_RELEASED)})" if words else ""


def _value(release: Release, value: float | str) -> str:
    """What a missing cell of the one column counts as, and what that is in the family."""
    family = release.family
    if isinstance(family, Categorical):
        return shown(value) + ", the first level" * (value == family.levels[0])
    if family.yes_or_no:
        return "yes" if value else "no"
    bounds = getattr(family, "bounds", None) or (math.nan, math.nan)
    return number(float(value)) + ", the lower bound" * (value == bounds[0])


def convention(release: Release) -> str | None:
    """A sentence on the value that missing cells have, where they have one."""
    told = missing(release)
    return None if told is None or release.origin.missing == "leave_out" else f"{told[0].upper()}{told[1:]}."


def yes(release: Release) -> str | None:
    """The words that counted as yes, and those that counted as no."""
    true, false = (", ".join(shown(word) for word in words) for words in (release.origin.true, release.origin.false))
    if not true:
        return None
    return (
        f"{true}, and numbers of 1 or more; as no: {false}, and lesser numbers" if false else f"{true}; as no: all else"
    )


def released(release: Release, most: int | None = None) -> str:
    """The noisy statistics by name, or the first of them."""
    pairs = list(zip(release.family.statistics, release.values, release.known, strict=True))
    told = ", ".join(f"{shown(name)} = {number(float(value))}{known}" for name, value, known in pairs[:most])
    return told if most is None or len(pairs) <= most else f"{told} and {len(pairs) - most} more"


def _units(release: Release) -> str:
    """What second moments are of."""
    is_scaled = getattr(release.family, "intervals", None) is not None
    return " (of numbers in units of half the bounds' width from their centre)" * is_scaled


def facts(release: Release) -> list[tuple[str, str]]:
    """Everything that a release says, as label and text."""
    origin = release.origin
    column = ", ".join(shown(c) for c in release.family.columns)
    ground = "set in public" if origin.bounds == "public" else _chosen(release)
    is_bounded = getattr(release.family, "bounds", None) or getattr(release.family, "intervals", None)
    known = [
        ("Columns" if len(release.family.columns) > 1 else "Column", column or None),
        ("Group", ", ".join(f"{shown(c)} = {shown(str(level))}" for c, level in origin.group) or None),
        ("Records", f"{records(release)}, {_RECORDS.get(release.family.name, shown(release.family.name))}"),
        ("Persons", _person(release)),
        *((name.capitalize(), number(v)) for name in ("trials", "variance", "shape") if (v := _known(release, name))),
        ("Bounds", f"{outside(release)} ({ground})" if is_bounded else outside(release)),
        ("Counted as yes", yes(release)),
        ("Missing cells", missing(release)),
        ("Released", released(release, _MOST_LISTED) + _units(release)),
        ("Noise", noise(release)),
        ("Guarantee", guarantee(release)),
        ("Ledger entry", origin.ledger_entry),
        ("Made by", " ".join(filter(None, (origin.tool, origin.version))) or None),
        ("Made at", origin.created),
    ]
    return [(label, text if label in ("Released", "Bounds") else shown(text, 200)) for label, text in known if text]


def _chosen(release: Release) -> str:
    """How private bounds came about."""
    origin, words = release.origin, "chosen privately from the data"
    if origin.bounds_quantiles:
        many = "quantiles" if len(origin.bounds_quantiles) > 1 else "quantile"
        words += f", near the {many} {' and '.join(plain(q) for q in origin.bounds_quantiles)}"
    share = origin.bounds_share
    return words if share is None else f"{words}, for {plain(share)} of the guarantee's cost"


def brief(release: Release) -> str:
    """A release in one line."""
    column = f" of {shown(', '.join(release.family.columns))}" if release.family.columns else ""
    promise = f", {release.guarantee}" if release.guarantee else ""
    head = f"{release.family.name.replace('_', ' ')} release{column}: n = {records(release)}"
    if release.origin.group:
        head += f", {', '.join(f'{shown(c)} = {shown(str(level))}' for c, level in release.origin.group)}"
    if release.origin.bounds == "private" and (bounds := getattr(release.family, "bounds", None)):
        head += f", bounds {number(bounds[0])} to {number(bounds[1])} chosen privately"
    return f"{head}, {released(release, _MOST_RELEASED)}, noise {noise(release)}{promise}"


def headline(posterior: "Posterior") -> str:
    """The posterior in one plain sentence."""
    start = f"Given this release and the prior {belief(posterior.release, posterior.prior)}, "
    estimates = posterior.estimates()
    if isinstance(posterior.release.family, Categorical):
        likely = max(estimates, key=lambda e: e.mean)
        return (
            f"{start}the likeliest of {len(estimates)} levels is {level(likely.name)}, "
            f"whose probability lies {between(likely)} with probability {PERCENT}."
        )
    asked = [e for e in estimates if e.name.startswith(f"{MEAN}[")]
    asked = asked or [e for e in estimates if re.fullmatch(r"(coefficients|mean)\[.*\]", e.name, re.DOTALL)]
    asked = [e for e in asked if parameter(posterior.release, e.name) != "the intercept"] or estimates
    asked = [e for e in asked if e.name != VARIANCE]
    is_recorded = any(e.name == MEAN for e in asked)
    clauses = [f"{_told(posterior.release, e.name, is_recorded)} lies {between(e)}" for e in asked[:_MOST_TOLD]]
    return f"{start}{_listed(clauses)} with probability {PERCENT}{' each' * (len(clauses) > 1)}."


def _told(release: Release, name: str, is_recorded: bool) -> str:
    """A number in a sentence: a parameter is said to be of the law behind the bounds where a recorded number is too."""
    law = behind(release) if is_recorded and name != MEAN else None
    return parameter(release, name) + (f" of {law}" if law else "")


def _listed(clauses: list[str]) -> str:
    """Clauses of one sentence: a and b; a, b and c."""
    return " and ".join(filter(None, (", ".join(clauses[:-1]), clauses[-1])))


def naive_headline(posterior: "Posterior") -> str:
    """What the naive analyst would have believed, and how far that is from what the release supports."""
    naive, own = posterior.naive_estimates(), posterior.estimates()
    index = max(range(len(own)), key=lambda i: own[i].mean) if isinstance(posterior.release.family, Categorical) else 0
    where = f"{parameter(posterior.release, own[index].name)} {between(naive[index])}"
    if isinstance(posterior.release.mechanism, Identity):
        return f"Without noise the released value is the true one, and puts {where}."
    sentence = f"Someone who took the noisy value for the true one would put {where}"
    is_latent = not own[index].name.startswith(MEAN) and sum(map(sum, posterior.moved.values())) > _MOVED
    if is_latent or not own[index].width * naive[index].width > 0:
        return f"{sentence}."  # what lies between the two is the model of clamping as well as the noise
    ratio, n = own[index].width / naive[index].width, posterior.release.likely_n
    if max(ratio, 1 / ratio) > 1.15:
        times, how = (ratio, "narrower") if ratio > 1 else (1 / ratio, "wider")
        return f"{sentence}: an interval {_written(times, 2)} times {how} than the release supports."
    return f"{sentence}: about as wide, since the noise is small against what {n:,} records can tell."


def impossible(release: Release) -> str | None:
    """A sentence on released values that no table has, if there are any: it is the noise, unless they are too far."""
    found = farthest(release)
    if found is None:
        return None
    if found.distance <= FAR and release.n_mechanism is not None:
        return None  # of some number of records, it may be one that a table has
    if found.statistic is None:
        if isinstance(release.family, Categorical):
            subject, why = "The released counts", f", since they add up to {number(found.value)} and not to n"
        else:
            subject, why = "The released sums", ", since a variance would be negative"
        verb, one, it = "are", "ones", "them"
    else:
        subject, why = f"The released {shown(found.statistic)} of {number(found.value)}", ""
        verb, one, it = "is", "one", "it"
    if found.distance <= FAR:
        return f"{subject} {verb} {one} that no table has{why}: that is the noise."
    if math.isinf(found.distance):
        return f"{subject} {verb} {one} that no table has{why}, and no noise made {it}: n or the bounds are wrong."
    away = f"{number(found.distance, 0.1 * found.distance)} noise scales beyond any that a table of n records has"
    return f"{subject} {verb} {away}{why}: n, the bounds or the noise scale of this release are wrong."


def under_the_prior(tail: float) -> str:
    """How probable a release as extreme as the one at hand was before it was made."""
    probability = number(tail, 0.1 * tail) if tail >= 1e-12 else "less than 10⁻¹²"
    return f"Under the prior, the probability of a release as extreme as this one is {probability}."


def exactness(posterior: "Posterior") -> str:
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


def level(name: str) -> str:
    """The level in theta[level]."""
    return shown(name.removeprefix("theta[").removesuffix("]"))


def _known(release: Release, name: str) -> float | None:
    """A constant of the family that is known beforehand."""
    return None if (name, release.family.name) == ("trials", "bernoulli") else getattr(release.family, name, None)
