"""Sentences on what a posterior takes for granted although its release speaks against it.

They are about the model and the release, not about how well the posterior of that model was drawn: that is said by
`explanation`.
"""

from collections.abc import Sequence

import numpy as np

from noiseaware.evidence.possible import FAR, farthest
from noiseaware.family import AbstractFamily
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.posterior.predictive import LEAST
from noiseaware.posterior.recorded import beyond, is_dropped, prior_draws
from noiseaware.report.number import number, shown
from noiseaware.report.release_words import impossible

MOST_MOVED = 0.1
"""The share of a column's records that may be taken for moved before it is said."""
_SURELY = 0.05
"""The quantile of the share over draws that must lie above: a small table leaves room for many, without saying so."""
_LEAST_WRITTEN = 1e-12
_TOLD = 0.01  # of the records beyond a bound: fewer are not told


def of(posterior: AbstractPosterior) -> tuple[str, ...]:
    """All sentences there are on a posterior."""
    moved = (_moved(posterior, column) for column in posterior.moved if _is_many(posterior, column))
    return (*_impossible(posterior), *_conflict(posterior), *moved)


def of_many(posteriors: Sequence[AbstractPosterior], what: str) -> str | None:
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


def _impossible(posterior: AbstractPosterior) -> list[str]:
    """On releases that lie farther from what tables have than noise reaches."""
    far = [release for release in posterior.releases if (found := farthest(release)) and found.distance > FAR]
    return [sentence for release in far if (sentence := impossible(release)) is not None]


def _conflict(posterior: AbstractPosterior) -> list[str]:
    """On a prior under which the release is all but impossible."""
    if posterior.tail is None or posterior.tail >= LEAST:
        return []
    under = f"is {number(posterior.tail)}" if posterior.tail >= _LEAST_WRITTEN else "is below 10⁻¹²"
    asks = "Ask where the prior comes from, and whether n, the bounds and the units are right."
    sentence = (
        f"under the prior the probability of a release as extreme as this {under}, and the posterior lies between"
    )
    return [f"The prior and the release disagree: {sentence} the two. {asks}"]


def _is_many(posterior: AbstractPosterior, column: str) -> bool:
    """True if nearly all draws place more than a tenth of a column beyond its bounds.

    One sum never speaks against a law: of it, only more than the prior had expected is worth a word.
    """
    family = posterior.release.family
    shares = beyond(family, posterior.draws)
    if not shares:
        return sum(posterior.moved[column]) > MOST_MOVED  # of a regression, by the release alone
    least = _quantile(shares[column], _SURELY)
    if least <= MOST_MOVED or not _is_one_sum(family):
        return least > MOST_MOVED
    return least > _quantile(beyond(family, prior_draws(family, posterior.prior))[column], 0.5)


def _quantile(ends: tuple[np.ndarray, np.ndarray], q: float) -> float:
    """A quantile of the share beyond either bound."""
    return float(np.nanquantile(np.add(*ends), q))


def _is_one_sum(family: AbstractFamily) -> bool:
    return len(family.query.names) == 1


def _moved(posterior: AbstractPosterior, column: str) -> str:
    """On a column many of whose records are taken for lying beyond its bounds."""
    family, ends = posterior.release.family, posterior.moved[column]
    bounds = _bounds(family, column)
    words = zip(ends, ("below", "above"), bounds, strict=True)
    where = " and ".join(f"{_percent(share)} {side} {number(end)}" for share, side, end in words if share > _TOLD)
    became = "left out" if is_dropped(family) else "moved to the bound"
    of_column = shown(column) if family.query.columns else "the records"
    told = f"The fit takes {_percent(sum(ends))} of {of_column} for values beyond the bounds, {became} ({where})"
    doubt = "If so many are not there, the column is not of this family"
    if is_dropped(family):
        empty = "missing='leave_out' leaves those out, once a sentinel is an empty cell"
        return f"{told}. {doubt}, or has empty or sentinel cells: {empty}."
    if _is_one_sum(family):
        rest = "The recorded numbers hold whatever the law, and the parameters as far as it is of this family"
        return f"{told}, more than the prior expected. {rest}."
    wrong = "the recorded numbers hold, and the parameters do not" if posterior.recorded else "slopes may be wrong"
    return f"{told}. {doubt}: then {wrong}. {family.remedy}"


def _bounds(family: AbstractFamily, column: str) -> tuple[float, float]:
    return dict(zip(family.query.columns or (column,), family.query.intervals or (), strict=True))[column]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
