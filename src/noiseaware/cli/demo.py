"""The whole story on a made-up clinic: table, ledger, two releases, two posteriors, and where the truth was.

The patients are simulated from a fixed public seed, so the truth is known and the same each time. The noise is not:
it is drawn afresh for every release, as it must be, so each run of the demo ends differently and says how.
"""

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import noiseaware as na
from noiseaware.check import require
from noiseaware.report.number import number
from noiseaware.report.posterior_words import PERCENT
from noiseaware.report.release_words import impossible, noise, released

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily
    from noiseaware.posterior.estimate import Estimate
    from noiseaware.posterior.posterior import Posterior
    from noiseaware.prior import AbstractPrior

_PATIENTS = 1000
_INFECTED = 0.008
_MEAN_WAIT = 6.0
_PUBLIC_SEED = 20180612
_BUDGET, _PRICE = "0.2", "0.1"
_OWN, _NAIVE, _TRUTH = "bold bright_blue", "yellow", "bold green"
_BAR = 52


@dataclass(frozen=True)
class _Question:
    """One column of the table, what is asked of it, and the answer that only a simulation knows."""

    title: str
    options: str
    family: "AbstractFamily"
    prior: "AbstractPrior"
    prior_text: str
    truth: float

    @property
    def column(self) -> str:
        return self.family.query.columns[0]


def demo(folder: str | os.PathLike = "noiseaware-demo") -> Path:
    """Tell the story on the terminal and leave its files in a folder that was not there before."""
    require("custodian")  # before anything is written
    console = Console(highlight=False)
    home = _fresh(Path(folder))
    total = _write_table(home / "clinic.csv")
    na.Ledger.create(home / "clinic.ledger", epsilon=_BUDGET)
    console.print(_opening(home, total))
    for question in _questions():
        with Console(stderr=True).status(f"releasing {question.column}, then inferring from the release …"):
            posterior = _answer(home, question)
        console.print(_chapter(question, posterior))
    console.print(_closing(home))
    reports = [home / f"{question.column}.html" for question in _questions()]
    console.print(Text("Reports, each a page that opens from disk:"))
    for report in reports:
        console.print(Text(f"  {report}"), soft_wrap=True)
    return home


def _questions() -> list[_Question]:
    return [
        _Question(
            "How common is a rare infection?",
            "--family bernoulli --column infected",
            na.family.Bernoulli("infected"),  # type: ignore[call-arg]
            na.prior.Beta(0.5, 50),
            "beta(0.5, 50)",
            _INFECTED,
        ),
        _Question(
            "At what rate are waiting patients seen, per hour?",
            "--family exponential --column wait_hours --bounds 0 48",
            na.family.Exponential("wait_hours", bounds=(0, 48)),
            na.prior.Gamma(1, 8),
            "gamma(1, 8)",
            1 / _MEAN_WAIT,
        ),
    ]


def _fresh(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, … that is free: a ledger is never overwritten."""
    if not folder.parent.is_dir():
        raise ValueError(f"folder must be inside one that exists, got {folder}.")
    names = (folder.with_name(f"{folder.name}-{i}") if i > 1 else folder for i in range(1, 1000))
    home = next((name for name in names if not name.exists()), None)
    if home is None:
        raise ValueError(f"folder must be free, got {folder} and 998 of its successors.")
    home.mkdir()
    return home


def _write_table(path: Path) -> int:
    """Simulate the patients; the number infected is what the clinic knows and the release hides."""
    rng = np.random.default_rng(_PUBLIC_SEED)
    infected = rng.random(_PATIENTS) < _INFECTED
    waits = rng.exponential(_MEAN_WAIT, _PATIENTS)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "infected", "wait_hours"])
        writer.writerows(
            [i, int(ill), f"{wait:.3f}"] for i, (ill, wait) in enumerate(zip(infected, waits, strict=True), 1)
        )
    return int(infected.sum())


def _answer(home: Path, question: _Question) -> "Posterior":
    """Release as the custodian, then infer as an analyst who reads only the release's file."""
    made = na.release(home / "clinic.csv", question.family, epsilon=_PRICE, ledger=home / "clinic.ledger")
    made.save(home / f"{question.column}.json")
    posterior = na.infer(na.load(home / f"{question.column}.json"), question.prior)
    posterior.report(home / f"{question.column}.html", truth=question.truth)
    return posterior


def _opening(home: Path, total: int) -> Panel:
    text = Text.assemble(
        (f"{_PATIENTS:,} simulated patients", "bold"),
        f" are in {home}/clinic.csv. {total} of them carry a rare infection, of which each had "
        f"a chance of {_INFECTED:.1%}; they waited {_MEAN_WAIT:g} hours on average. "
        "That is the truth, which nobody outside may read off.\n\n"
        f"The custodian opens a ledger of ε = {_BUDGET} and sells two noisy sums at ε = {_PRICE} each. "
        "An analyst buys them.",
    )
    return Panel(text, title="A clinic with a secret", title_align="left", border_style="dim", padding=(1, 2))


def _chapter(question: _Question, posterior: "Posterior") -> Panel:
    own, naive = posterior.estimates()[-1], posterior.naive_estimates()[-1]
    strange = impossible(posterior.release)
    return Panel(
        Group(
            Text(
                f"$ noiseaware release clinic.csv {question.options} --epsilon {_PRICE} --ledger clinic.ledger "
                f"-o {question.column}.json",
                style="dim",
            ),
            Text(f'$ noiseaware infer {question.column}.json --prior "{question.prior_text}"\n', style="dim"),
            Text.assemble(
                ("The release says  ", "bold"),
                f"{released(posterior.release)}, with {noise(posterior.release)} noise.",
            ),
            *([Text(strange)] if strange else []),
            Text(),
            _estimates(own, naive, question.truth),
            Text(),
            _bars(own, naive, question.truth),
            Text(),
            _verdict(own, naive, question.truth),
        ),
        title=question.title,
        title_align="left",
        border_style="bright_blue",
        padding=(1, 2),
    )


def _estimates(own: "Estimate", naive: "Estimate", truth: float) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("", "mean", f"{PERCENT} interval"):
        table.add_column(heading, justify="left", no_wrap=True)
    for name, estimate, style in (
        ("what the naive analyst believes", naive, _NAIVE),
        ("what the release supports", own, _OWN),
    ):
        low, high = (number(v, estimate.sd) for v in (estimate.low, estimate.high))
        table.add_row(name, number(estimate.mean, estimate.sd), f"{low} to {high}", style=style)
    table.add_row("the truth", number(truth), "", style=_TRUTH)
    return table


def _bars(own: "Estimate", naive: "Estimate", truth: float) -> Text:
    """Both intervals and the truth on one axis."""
    low, high = min(own.low, naive.low, truth), max(own.high, naive.high, truth)
    low = 0.0 if low < 0.3 * high else low

    def cell(value: float) -> int:
        return round((_BAR - 1) * (value - low) / (high - low))

    def bar(estimate: "Estimate") -> str:
        first, middle, last = cell(estimate.low), cell(estimate.mean), cell(estimate.high)
        line = [" "] * first + ["━"] * (last - first + 1)
        line[middle] = "●"
        return "".join(line)

    return Text.assemble(
        ("  naive  ", _NAIVE), (bar(naive) + "\n", _NAIVE), ("release  ", _OWN), (bar(own) + "\n", _OWN),
        ("  truth  ", _TRUTH), (" " * cell(truth) + "▲", _TRUTH),
    )  # fmt: skip


def _verdict(own: "Estimate", naive: "Estimate", truth: float) -> Text:
    """Sentences on this run; its noise is new each time."""
    held, missed = own.low <= truth <= own.high, not naive.low <= truth <= naive.high
    ratio = number(own.width / naive.width, 1.0)
    if held and missed:
        said = "the naive interval misses the truth, and the posterior's holds it."
    elif held:
        said = f"both intervals hold the truth, the naive one by luck: it should be {ratio} times as wide."
    else:
        other = "So does the naive one." if missed else "The naive one does not."
        said = f"the posterior's interval misses the truth, as one in twenty of them does. {other}"
    return Text(f"This time {said}", style="bold")


def _closing(home: Path) -> Panel:
    """Ask for more than is left, and be refused."""
    try:
        na.release(home / "clinic.csv", _questions()[0].family, epsilon=_PRICE, ledger=home / "clinic.ledger")
    except na.LedgerRefusal as refusal:
        return Panel(
            Text.assemble("Asked for one sum more, the ledger refuses: ", (str(refusal), "bold red")),
            title="And the budget is spent",
            title_align="left",
            border_style="dim",
            padding=(1, 2),
        )
    raise RuntimeError("the ledger must refuse a third release, and did not.")
