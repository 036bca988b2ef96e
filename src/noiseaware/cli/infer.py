"""`noiseaware infer`: the table on stdout needs JAX and NumPy only, so that it comes quickly."""

import inspect
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noiseaware.cli.at import places
from noiseaware.cli.failure import Unfit, say
from noiseaware.cli.prior import EXAMPLES, parse
from noiseaware.cli.progress import Quiet, say_done, working
from noiseaware.family import BUILT_IN
from noiseaware.report.number import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from noiseaware.evidence.release import Release
    from noiseaware.posterior.posterior import Posterior
    from noiseaware.study.calibration import Calibration

METHODS = (
    "auto (exact where there is one), exact, hmc, gibbs, augmentation or naive; for linear_regression also "
    "gibbs_ss_update, gibbs_ss_prior and mcmc_ind."
)
FAMILY = "The family to read a query's release as, or your own that the release names: family.py:Rayleigh."
_AT = 'Predict y of a new record (regression): "age=40, bmi=25"; repeatable.'
_At = Annotated[list[str] | None, typer.Option(metavar="NAME=NUMBER", help=_AT)]
_TAKERS = {prior: [name for name, own in BUILT_IN.items() if own == prior] for prior in BUILT_IN.values()}
_PRIORS = "; ".join(f"for {listed(names)}, {prior}" for prior, names in _TAKERS.items())
HELP = f"""Find what a release supports: the posterior, with the noise accounted for.

[bold]Example[/bold]

$ noiseaware infer wait.json --prior "gamma(1, 8)" --report wait.html

$ noiseaware infer pressure.json --prior "normal_inverse_gamma([0, 0, 90], [100, 100, 0.1], 3, 200)"
--at "age=40, bmi=25"

The prior must fit the family: {_PRIORS}.
"""


def infer(
    path: Annotated[str, typer.Argument(metavar="RELEASE", help="A release file; - for stdin.")],
    prior: Annotated[str, typer.Option(help=f"What was known before: {EXAMPLES}.")],
    method: Annotated[str, typer.Option(help=METHODS)] = "auto",
    family: Annotated[str | None, typer.Option(help=FAMILY)] = None,
    at: _At = None,
    draws: Annotated[int, typer.Option(help="How many draws.")] = 4000,
    seed: Annotated[
        int | None, typer.Option(help="Random seed; if omitted, a fresh one is chosen and printed.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Draws: .csv or .parquet, a row a draw; .nc or - (stdout), netCDF for ArviZ."
        ),
    ] = None,
    report: Annotated[str | None, typer.Option(help="Self-contained HTML page to write.")] = None,
    calibrate: Annotated[
        int, typer.Option(help="With --report: try the method on so many simulated tables of this setting.")
    ] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 4 if the draws fail a diagnostic.")] = False,
    quiet: Quiet = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite outputs.")] = False,
) -> None:
    _check_outputs(path, output, report, force=force, json=json)
    if calibrate and report is None:
        raise ValueError("--calibrate must go with --report, the page that it is told on.")
    from noiseaware.posterior.infer import infer as infer_posterior

    believed, release = parse(prior), read(path, family)
    records = places(at, release.family)
    started = time.perf_counter()
    with working("drawing from the posterior", is_quiet=quiet, is_logged=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all that they say is printed below the estimates
        posterior = infer_posterior(release, believed, method=method, num_draws=draws, seed=seed)
    seconds = time.perf_counter() - started
    if strict:
        _check_diagnostics(posterior)
    if report is not None:
        posterior.report(report, calibration=_calibration(posterior, calibrate, is_quiet=quiet), force=force)
    if output == "-":
        sys.stdout.buffer.write(posterior.to_arviz().to_netcdf(engine="h5netcdf"))
    elif output is not None:
        posterior.save(output, force=force)
    typer.echo(_json(posterior, records)) if json else _print(posterior, records, is_aside=output == "-")
    for written in filter(None, (report, output)):
        if written != "-":
            say(f"wrote {written}")
    say_done(f"{posterior.num_draws:,} draws", seconds, is_quiet=quiet, is_long_only=True)


def _calibration(posterior: "Posterior", num_trials: int, *, is_quiet: bool) -> "Calibration | None":
    if not num_trials:
        return None
    from noiseaware.study.calibration import calibrate
    from noiseaware.study.simulate import quiet

    with quiet(is_quiet):
        return calibrate(posterior, num_trials=num_trials, seed=posterior.seed)


def read(path: str, family: str | None) -> "Release":
    """Return the release in a file, or on standard input, of the family that is named; a query alone is refused."""
    from noiseaware.cli import own
    from noiseaware.evidence.release import from_json, load
    from noiseaware.family import built_in

    is_built_in = family is None or family in BUILT_IN
    families: Any = () if is_built_in else (own.named(family),)  # type: ignore[arg-type]
    if path == "-":
        release = from_json(sys.stdin.read(), source="standard input", families=families)
    else:
        release = load(path, families=families)
    if family is not None and (is_built_in or release.family is None):
        make: Any = built_in(family) if is_built_in else families[0]
        release = release.under(make(**_shared(family, make, release)))
    release.evidence()  # refuses a query alone
    return release


def _shared(family: str, make: "Callable[..., object]", release: "Release") -> dict[str, Any]:
    """Return the arguments that a family must be given, as the query of the release has them."""
    needed = [name for name, p in inspect.signature(make).parameters.items() if p.default is p.empty]
    given = release.query.settings()
    if missing := [name for name in needed if name not in given]:
        told = f"--family must be of a family that needs no {missing[0]}, got {family}"
        raise ValueError(f"{told}; give it in Python: infer(release, prior, family=…).")
    return {name: given[name] for name in needed}


def _check_outputs(release: str, output: str | None, report: str | None, *, force: bool, json: bool) -> None:
    from noiseaware.file import check_free
    from noiseaware.posterior.export import form_of

    if output == "-" and json:
        raise ValueError("--json and -o - must not be given together: standard output can hold only one of them.")
    if output == "-" and sys.stdout.isatty():
        raise ValueError("-o - must go to a file or a pipe: netCDF is not text.")
    files = [Path(p) for p in (output, report) if p is not None and p != "-"]
    if len({p.resolve() for p in files}) < len(files):
        raise ValueError(f"--output and --report must be different files, got {report} for both.")
    if output is not None and output != "-":
        form_of(Path(output))
    for file in files:
        check_free(file, force=force)
        if file.resolve() == Path(release).resolve():
            raise ValueError(f"output must not be the release itself, got {file}.")


def _check_diagnostics(posterior: "Posterior") -> None:
    from noiseaware.posterior.diagnostic import MOST_DIVERGENCES
    from noiseaware.sampler.markov_chain import LARGEST_RHAT, LEAST_ESS

    for name, row in posterior.summary().to_dict("index").items():
        for measure in ("ess_bulk", "ess_tail"):
            if not row[measure] >= LEAST_ESS:
                raise Unfit(f"{measure} of {name} must be at least {LEAST_ESS}, got {row[measure]:.0f}; raise --draws.")
        if not row["r_hat"] <= LARGEST_RHAT:
            raise Unfit(f"r_hat of {name} must be at most {LARGEST_RHAT}, got {row['r_hat']:.3f}.")
    if not (share := posterior.info.get("divergences", 0.0)) <= MOST_DIVERGENCES:
        raise Unfit(f"the share of divergences must be at most {MOST_DIVERGENCES:g}, got {share:.2g}.")


def _json(posterior: "Posterior", records: list[dict[str, float]]) -> str:
    import json

    from noiseaware.cli.at import predicted
    from noiseaware.file import __version__
    from noiseaware.posterior.estimate import PROBABILITY

    def numbers(e) -> dict:
        return {"mean": e.mean, "sd": None if e.sd != e.sd else e.sd, "interval": [e.low, e.high]}

    def plain(estimates) -> dict:
        return {e.name: numbers(e) for e in estimates}

    document = {
        "parameters": plain(posterior.estimates()),
        "naive": plain(posterior.naive_estimates()),
        "probability": PROBABILITY,
        "method": posterior.method,
        "is_exact": posterior.is_exact,
        "explanation": posterior.explanation,
        "choice": posterior.choice,
        "concerns": list(posterior.concerns),
        "prior": str(posterior.prior),
        "prior_predictive_tail": posterior.tail,
        "num_draws": posterior.num_draws,
        "seed": posterior.seed,
        "version": __version__,
    }
    if records:
        pairs = zip(records, *predicted(posterior, records), strict=True)
        document["predictions"] = [{"at": at, **numbers(own), "naive": numbers(naive)} for at, own, naive in pairs]
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _print(posterior: "Posterior", records: list[dict[str, float]], *, is_aside: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from noiseaware.cli.at import predicted
    from noiseaware.cli.estimate import predictions, table
    from noiseaware.report.posterior_words import behind, belief, exactness, under_the_prior
    from noiseaware.report.release_words import brief, convention

    console = Console(stderr=is_aside, highlight=False)
    console.print(Text(brief(posterior.release)), style="dim", soft_wrap=True)
    console.print(table(posterior))
    if records:
        console.print(predictions(posterior, *predicted(posterior, records)))
    if (law := behind(posterior.release)) is not None and posterior.recorded:
        named = " and ".join(posterior.draws)
        console.print(Text(f"{named}: of {law}; recorded: what was summed, whatever the law"), soft_wrap=True)
    for concern in posterior.concerns:
        console.print(Text(concern, style="bold yellow"), soft_wrap=True)
    console.print(Text(exactness(posterior)), soft_wrap=True)
    if posterior.choice is not None and posterior.choice not in (posterior.explanation or ""):
        console.print(Text(f"Method {posterior.method}: {posterior.choice}"), soft_wrap=True)
    counted = convention(posterior.release)
    if counted is not None and counted not in (posterior.explanation or ""):
        console.print(Text(counted), soft_wrap=True)
    if posterior.tail is not None:
        console.print(Text(under_the_prior(posterior.tail)), soft_wrap=True)
    prior, draws = belief(posterior.release, posterior.prior), f"{posterior.num_draws:,} draws"
    console.print(Text(f"prior {prior} · method {posterior.method} · {draws} · seed {posterior.seed}"), soft_wrap=True)
