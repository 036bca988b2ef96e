"""The page that says what was released and what follows from it.

One HTML file with its figure inside: no script, nothing fetched, the same bytes for the same posterior. Every word
from a release is escaped, since a release file may come from anyone.
"""

import io
import re
from typing import TYPE_CHECKING

import jax
import numpy as np

from noiseaware.file import __version__
from noiseaware.posterior.numbers import AbstractPosterior
from noiseaware.report.band import bands
from noiseaware.report.number import listed, number, several, shown
from noiseaware.report.plot import densities
from noiseaware.report.posterior_words import (
    PERCENT,
    behind,
    belief,
    between,
    cells,
    exactness,
    gloss,
    headline,
    naive_headline,
    parameter,
    under_the_prior,
)
from noiseaware.report.release_words import facts, impossible
from noiseaware.study.width import records_worth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from noiseaware.posterior.estimate import Estimate
    from noiseaware.study.calibration import Calibration


_MOST_COSTS = 6


def page(posterior: AbstractPosterior, truths: dict[str, float], calibration: "Calibration | None" = None) -> str:
    """The whole page as HTML text."""
    import markupsafe

    is_regression = posterior.release.family.predictor is not None
    return rendered(
        "report.html",
        title=_title(posterior),
        headline=headline(posterior),
        impossible=next((s for s in map(impossible, posterior.releases) if s and s not in posterior.concerns), None),
        naive=naive_headline(posterior),
        exactness=exactness(posterior),
        facts=[fact for release in posterior.releases for fact in facts(release)],
        percent=PERCENT,
        rows=_rows(posterior),
        cost=_cost(posterior),
        calibration=None if calibration is None else _calibration(calibration),
        diagnostics=_diagnostics(posterior),
        under_the_prior=None if posterior.tail is None else under_the_prior(posterior.tail),
        truths=[(shown(name), number(value)) for name, value in truths.items()],
        # drawn here; matplotlib escapes the names in it
        figure=markupsafe.Markup(svg(densities(posterior, truths))),
        band=markupsafe.Markup(svg(bands(posterior, truths=truths), "band")) if is_regression else None,
        band_alternative=_band_alternative(posterior) if is_regression else None,
        is_regression=is_regression,
        alternative=_alternative(posterior, truths),
        prior=belief(posterior.release, posterior.prior),
        behind=_behind(posterior),
        parameter=" and ".join(gloss(posterior.release, name) for name in posterior.draws),
        posterior=posterior,
        version=__version__,
    )


def rendered(template: str, **values: object) -> str:
    """A page of the templates with these values in it, all of them escaped."""
    import jinja2

    loader = jinja2.PackageLoader("noiseaware", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template(template).render(**values)


def svg(figure: "Figure", salt: str = "noiseaware") -> str:
    """A figure as an <svg> element: text stays text, and the bytes depend on the figure and the salt of its ids."""
    import matplotlib

    settings: dict = {"svg.fonttype": "none", "svg.hashsalt": salt}
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context(settings):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=metadata, transparent=True)
    element = buffer.getvalue()
    element = element[element.index("<svg") :]
    element = (
        re.sub(r'\s(xmlns(:\w+)?|width|height)="[^"]*"', "", element[: element.index(">")])
        + element[element.index(">") :]
    )
    element = re.sub(r'<g id="[^"]*"', "<g", element)  # nothing refers to these, and two figures would share them
    return element.replace("<svg", '<svg aria-hidden="true"', 1)


def _title(posterior: AbstractPosterior) -> str:
    family = posterior.release.family
    if (line := family.predictor) is not None:
        return f"What the release of {shown(line.y)} given {several(line.x)} supports"
    of = f" of {several(family.query.columns)}" if family.query.columns else ""
    return f"What the release{of} supports"


def _behind(posterior: AbstractPosterior) -> str | None:
    """Name the law of the parameters, where recorded numbers stand before them."""
    law = behind(posterior.release)
    if law is None or not posterior.recorded:
        return None
    return f"{' and '.join(parameter(posterior.release, name) for name in posterior.draws)} of {law}"


def _rows(posterior: AbstractPosterior) -> list[dict]:
    """Posterior and naive estimates of each number, as text."""
    return [
        {"name": shown(own.name), "own": _cells(own), "naive": _cells(naive)}
        for own, naive in zip(posterior.estimates(), posterior.naive_estimates(), strict=True)
    ]


def _cost(posterior: AbstractPosterior) -> str | None:
    """Say how many records the noise cost."""
    if posterior.others or posterior.method == "naive" or not posterior.release.mechanism.is_noisy:
        return None
    means = [np.asarray(draws.mean(axis=0)) for draws in posterior.draws.values()]
    theta = means[0] if len(means) == 1 else np.concatenate([mean.ravel() for mean in means])
    with jax.enable_x64(True):
        worth = records_worth(posterior.release, theta)
    if not worth:
        return None
    n = posterior.release.likely_n
    each = [f"about {parameter(posterior.release, name)} as {min(w, n):,.0f} records" for name, w in worth.items()]
    told = listed([*each[:_MOST_COSTS], *(["so on"] if len(each) > _MOST_COSTS else [])])
    return f"With this noise, {n:,} records carry as much information {told} would without it (at the posterior mean)."


def _calibration(calibration: "Calibration") -> dict:
    """Say whether the method is calibrated at this very setting, with a picture."""
    import markupsafe

    coverage, critical = calibration.coverage(0.9), calibration.critical(0.99)
    rows = [
        {"name": name.replace("_", " "), "ks": f"{distance:.3f}", "coverage": f"{100 * coverage[name]:.1f} %"}
        for name, distance in calibration.by_parameter.items()
    ]
    is_right = calibration.ks <= critical
    verdict = "no miscalibration was detected" if is_right else "it is miscalibrated here"
    sentence = (
        f"The method was tried on {calibration.num_trials:,} simulated tables of the prior, each released with such "
        f"noise: {verdict}. The largest distance of its ranks from uniform is {calibration.ks:.3f}; 99 % of right "
        f"methods stay below {critical:.3f}."
    )
    return {"rows": rows, "sentence": sentence, "figure": markupsafe.Markup(svg(calibration.plot(), "calibration"))}


def _cells(estimate: "Estimate") -> dict[str, str]:
    return dict(zip(("mean", "sd", "interval"), cells(estimate), strict=True))


def _diagnostics(posterior: AbstractPosterior) -> list[dict[str, str]]:
    table = posterior.summary()
    return [
        {
            "name": shown(name),
            "mcse": f"{row['mcse_mean']:.2g}",
            "bulk": f"{row['ess_bulk']:,.0f}",
            "tail": f"{row['ess_tail']:,.0f}",
            "rhat": f"{row['r_hat']:.3f}",
        }
        for name, row in table.iterrows()
    ]


def _alternative(posterior: AbstractPosterior, truths: dict[str, float]) -> str:
    """The figure for someone who cannot see it."""
    parts = [
        f"{shown(own.name)}: posterior {between(own)}, naive posterior {between(naive)}"
        + (f", truth {number(truths[own.name])}" if own.name in truths else "")
        for own, naive in zip(posterior.estimates(), posterior.naive_estimates(), strict=True)
    ]
    return f"Densities of posterior, naive posterior and prior, with {PERCENT} intervals. " + "; ".join(parts) + "."


def _band_alternative(posterior: AbstractPosterior) -> str:
    """The picture of the line, for someone who cannot see it."""
    line = posterior.release.family.predictor
    return (
        f"The regression line of {shown(line.y)} over {several(line.x)}, "
        f"with its 50 % and {PERCENT} credible bands, the {PERCENT} predictive band, and the naive line."
    )
