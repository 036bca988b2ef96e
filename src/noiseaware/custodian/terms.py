"""The terms of a release: what is promised, to whom, and how it is shared out.

All of it is public, and agreed before the table is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from noiseaware.check import kind
from noiseaware.custodian.division import Groups, Level, Unit, groups_of, neighbours_of, unit_of
from noiseaware.custodian.grid import Grid, finest_grid, whole_grid
from noiseaware.custodian.missing import Cells, cells_of
from noiseaware.custodian.private_bounds import QUANTILES, SHARE, Selection, planned
from noiseaware.evidence.release import checked_grid
from noiseaware.privacy import N_SHARE, Agreement, Neighbours, Number, promised, proper
from noiseaware.query import AbstractQuery, AbstractQuestion


@dataclass(frozen=True)
class Terms:
    """What is asked, what is promised to whom, and the noise that keeps it."""

    question: AbstractQuestion
    agreement: Agreement
    selection: Selection | None
    unit: Unit | None
    groups: Groups | None
    cells: Cells
    grid: Grid | None
    """The grid of the statistics; None where it hangs on bounds that are yet to be chosen."""
    n_grid: Grid | None
    """The grid of a private n; None where n is public."""

    @property
    def query(self) -> AbstractQuery:
        """The query; without bounds where these are yet to be chosen."""
        return self.question.query

    def within(self, bounds: tuple[float, float]) -> "Terms":
        """Return the terms with bounds that were chosen."""
        question = self.question.within(bounds)
        return replace(self, question=question, grid=_grid(question.query, self.agreement, self.cells))


def terms_of(
    question: AbstractQuestion,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    neighbours: Neighbours | None = None,
    n_share: Number = N_SHARE,
    by: str | Sequence[str] | None = None,
    levels: Mapping[str, Sequence[Level]] | None = None,
    unit: str | None = None,
    max_records: int | None = None,
    bounds: Literal["private"] | None = None,
    bounds_share: Number = SHARE,
    bounds_quantiles: tuple[Number, Number] = QUANTILES,
    missing: object = None,
    true: object = None,
) -> Terms:
    """Return the terms that a person asks for, or refuse them; nothing of the table is needed."""
    promise = promised(epsilon=epsilon, rho=rho, delta=delta)
    person, groups = unit_of(unit, max_records), groups_of(by, levels)
    relation = neighbours_of(neighbours, person, groups)
    query = _checked_query(question)
    cells, share = cells_of(question, missing, true), proper("n_share", n_share)
    has_public_n = relation == "replace" and not cells.leaves_out
    if has_public_n and share != N_SHARE:
        told = "neighbours='add_remove' or missing='leave_out'"
        raise ValueError(f"n_share must be left out unless {told} makes n private.")
    agreement = Agreement(
        promise,
        relation,
        n_share=None if has_public_n else share,
        bounds_share=_bounds_share(question, bounds, bounds_share, bounds_quantiles),
        unit=None if person is None else person.column,
        max_records=1 if person is None else person.max_records,
    )
    selection = planned(query, agreement, bounds_quantiles) if agreement.bounds_share else None
    if selection is not None and groups is not None:
        raise ValueError("bounds must be given where a table is released by groups, got private.")
    if selection is not None and cells.leaves_out:
        raise ValueError("bounds must be given where missing='leave_out', or missing be a number, got private bounds.")
    grid = None if selection is not None else _grid(query, agreement, cells)
    n_grid = None if agreement.of_n is None else whole_grid(agreement.of_n, agreement.max_records)
    terms = Terms(question, agreement, selection, person, groups, cells, grid, n_grid)
    for ends in () if selection is None else selection.extremes:
        terms.within(ends)  # on a ladder of powers of two no other bounds have a coarser or wider grid
    return terms


def _grid(query: AbstractQuery, agreement: Agreement, cells: Cells) -> Grid:
    """Return the grid of the statistics, if a release can have it."""
    grid = finest_grid(query, agreement, leaves_out=cells.leaves_out)
    try:
        checked_grid(2.0**-grid.exponent, grid.mechanism)
    except ValueError as error:
        raise ValueError(f"bounds, epsilon or rho must be nearer to 1: {error}") from None
    return grid


def _bounds_share(question: AbstractQuestion, bounds: object, share: Number, quantiles: object) -> Fraction:
    """Return the share of the choice of private bounds; 0 where they are public."""
    if bounds == "private":
        question.query.check_private_bounds(question.phrase)
        return proper("bounds_share", share)
    if bounds is not None:
        raise ValueError(f"bounds must be 'private', or stand in the family as two numbers, got {bounds!r}.")
    if (share, quantiles) != (SHARE, QUANTILES):
        raise ValueError("bounds_share and bounds_quantiles must be left out unless bounds='private'.")
    question.query.sensitivity()  # refuses a query whose bounds are missing
    return Fraction(0)


def _checked_query(question: object) -> AbstractQuery:
    if not isinstance(question, AbstractQuestion):
        raise ValueError(f"family must be one of noiseaware.family, or a noiseaware.query, got {kind(question)}.")
    question.query.check()
    return question.query
