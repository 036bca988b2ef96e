"""Sentences on what a posterior takes for granted although its release speaks against it.

They are about the model and the release, not about how well the posterior of that model was drawn: that is said by
`explanation`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noiseaware.family import AbstractFamily, MultivariateNormal, NormalMean, NormalMeanVariance
from noiseaware.possible import FAR, farthest
from noiseaware.predictive import LEAST
from noiseaware.words import impossible, number, shown

if TYPE_CHECKING:
    from noiseaware.posterior import Posterior

MOST_MOVED = 0.1
"""The share of a column's records that may be taken for moved before it is said."""
_LEAST_WRITTEN = 1e-12
_TOLD = 0.01  # of the records beyond a bound: fewer are not told


def of(posterior: "Posterior") -> tuple[str, ...]:
    """All sentences there are on a posterior."""
    moved = (_moved(posterior, column) for column, ends in posterior.moved.items() if sum(ends) > MOST_MOVED)
    return (*_impossible(posterior), *_conflict(posterior), *moved)


def of_many(posteriors: "Sequence[Posterior]", what: str) -> str | None:
    """One sentence on how many of these speak against what is taken for granted, and the first that does so."""
    places = [place for place, posterior in enumerate(posteriors) if posterior.concerns]
    if not places:
        return None
    first = posteriors[places[0]]
    group = ", ".join(f"{shown(column)} = {shown(str(level))}" for column, level in first.release.origin.group)
    verb = "speaks" if len(places) == 1 else "speak"
    name = f"number {places[0] + 1:,}{f' ({group})' if group else ''}"
    return (
        f"{len(places):,} of {len(posteriors):,} {what} {verb} against what is taken for granted; the first is {name}: "
        f"{first.concerns[0]}"
    )


def _impossible(posterior: "Posterior") -> list[str]:
    """On releases that lie farther from what tables have than noise reaches."""
    far = [release for release in posterior.releases if (found := farthest(release)) and found.distance > FAR]
    return [sentence for release in far if (sentence := impossible(release)) is not None]


def _conflict(posterior: "Posterior") -> list[str]:
    """On a prior under which the release is all but impossible."""
    if posterior.tail is None or posterior.tail >= LEAST:
        return []
    under = f"is {number(posterior.tail)}" if posterior.tail >= _LEAST_WRITTEN else "is below 10⁻¹²"
    asks = "Ask where the prior comes from, and whether n, the bounds and the units are right."
    sentence = (
        f"under the prior the probability of a release as extreme as this {under}, and the posterior lies between"
    )
    return [f"The prior and the release disagree: {sentence} the two. {asks}"]


def _moved(posterior: "Posterior", column: str) -> str:
    """On a column many of whose records are taken for lying beyond its bounds."""
    family, ends = posterior.release.family, posterior.moved[column]
    bounds = _bounds(family, column)
    words = zip(ends, ("below", "above"), bounds, strict=True)
    where = " and ".join(f"{_percent(share)} {side} {number(end)}" for share, side, end in words if share > _TOLD)
    became = "left out" if getattr(family, "outside", "clamp") == "drop" else "moved to the bound"
    wrong = "the recorded numbers hold, and the parameters do not" if posterior.recorded else "slopes are wrong"
    of_column = shown(column) if family.columns else "the records"
    return (
        f"The fit takes {_percent(sum(ends))} of {of_column} for values beyond the bounds, {became} ({where}). "
        f"If so many are not there, the column is not of this family: then {wrong}. "
        f"{_help(family, bounds)}"
    )


def _help(family: AbstractFamily, bounds: tuple[float, float]) -> str:
    """What would help, said of the case at hand."""
    if isinstance(family, NormalMean | NormalMeanVariance) and bounds[0] >= 0:
        return "Wider bounds would help or, for a positive skewed column, the gamma family."
    if isinstance(family, MultivariateNormal) or hasattr(family, "x"):
        return "Wider bounds would help."
    return "Wider bounds would help, or another family."


def _bounds(family: AbstractFamily, column: str) -> tuple[float, float]:
    intervals = getattr(family, "intervals", None) or (family.bounds,)  # type: ignore[attr-defined]
    return dict(zip(family.columns or (column,), intervals, strict=True))[column]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
