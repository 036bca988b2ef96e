"""The verb of the custodian: release(table, question, epsilon, ledger) → Release.

Everything that can be refused is refused before the table is read; what the table's public side can still refuse is
refused before the ledger is charged; and the ledger is charged, once and with the total, before anything is drawn.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, overload

from noiseaware.custodian.division import Groups, Level
from noiseaware.custodian.ledger.ledger import Entry, Ledger
from noiseaware.custodian.private_bounds import MOST_SLACK, QUANTILES, SHARE
from noiseaware.evidence.release import Origin, Release
from noiseaware.file import __version__
from noiseaware.privacy import N_SHARE, Neighbours, Number, plain
from noiseaware.query import AbstractQuestion

try:
    import opendp.measurements as _opendp  # noqa: F401 - noise.py imports it when it draws; missed here, it costs nothing

    from noiseaware.custodian.grid import Grid
    from noiseaware.custodian.table import Table
    from noiseaware.custodian.terms import Terms, terms_of
except ModuleNotFoundError as missing:
    raise ImportError(f"releasing from a table needs {missing.name}; install noiseaware[custodian].") from None


@overload
def release(table: object, family: AbstractQuestion, *, by: None = None, **options: Any) -> Release: ...
@overload
def release(
    table: object, family: AbstractQuestion, *, by: str | Sequence[str], **options: Any
) -> dict[Level | tuple[Level, ...], Release]: ...
def release(  # pyright: ignore[reportInconsistentOverload] - which spells out the options
    table: object,
    family: AbstractQuestion,
    *,
    table_name: str | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    ledger: str | os.PathLike | Ledger | None = None,
    neighbours: Neighbours | None = None,
    n_share: Number = N_SHARE,
    by: str | Sequence[str] | None = None,
    levels: Mapping[str, Sequence[Level]] | None = None,
    unit: str | None = None,
    max_records: int | None = None,
    bounds: Literal["private"] | None = None,
    bounds_share: Number = SHARE,
    bounds_quantiles: tuple[Number, Number] = QUANTILES,
    missing: float | str | Mapping[str, float | str] | None = None,
    true: Sequence[str] | None = None,
):
    """Noisy statistics of a table, under ε (Laplace noise), ρ, or ε and δ (Gaussian noise), paid from a ledger.

    ε and δ are kept by the greatest ρ that implies them, and cost that ρ in a ledger of ρ. A table in PostgreSQL is its
    URL, with table_name="visits".

    neighbours
        "replace": one record is replaced by another, and n is public. "add_remove": one is added or removed, and n is
        released with noise of its own, for the share n_share.
    by, levels
        One release for each group of records, all for the cost of one: by=["region"], levels={"region": ["north",
        "south"]}. Records of other levels are left out.
    unit, max_records
        Protect a person with several records: unit="patient_id", and at most max_records of each are summed.
    bounds
        "private": the bounds come from the table too, near two quantiles, for the share bounds_share.
    missing
        What a cell counts as that is empty or no value of its column's kind: a public value, for several columns
        {"age": 40, "pressure": 120}; or "leave_out": then its record is left out, and the number of the others is
        released with noise of its own, for the share n_share. Unless given: the lower bound, no, or the first level.
    true
        The words that are yes in a column of yes and no, where these are others than true, t, yes, y, 1 and on:
        true=["F"]. Then any other word is no.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"wait": [1.5, 0.5, 30.0, 7.0] * 250})
    >>> release = na.release(table, na.family.Exponential("wait", bounds=(0, 24)), epsilon=1)
    >>> release.n, release.mechanism.scale * release.grid
    (1000, 24.0)
    """
    terms = terms_of(
        family,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        neighbours=neighbours,
        n_share=n_share,
        by=by,
        levels=levels,
        unit=unit,
        max_records=max_records,
        bounds=bounds,
        bounds_share=bounds_share,
        bounds_quantiles=bounds_quantiles,
        missing=missing,
        true=true,
    )
    return carried_out(table if isinstance(table, Table) else Table(table, table_name), terms, ledger)


def carried_out(
    table: Table, terms: Terms, ledger: str | os.PathLike | Ledger | None
) -> Release | dict[Level | tuple[Level, ...], Release]:
    """Return the release under these terms, or one for each group."""
    if isinstance(ledger, str | os.PathLike):
        ledger = Ledger(ledger)
    promise = terms.agreement.promise
    cost = promise if ledger is None else ledger.cost(promise)
    if ledger is not None:
        ledger.afford(cost, terms.agreement.relation)
    least = terms.agreement.least
    if terms.selection is None:
        found = summed(table, terms)
        entry = None if ledger is None else ledger.charge(cost, _description(table, terms))
    else:
        (missing,), candidates = terms.cells.values(terms.query), terms.selection.candidates
        counts, n = table.counts(terms.query.columns[0], candidates, least=least, unit=terms.unit, missing=missing)  # type: ignore[arg-type]
        entry = None if ledger is None else ledger.charge(cost, _description(table, terms))
        terms = terms.within(terms.selection.bounds(counts, n))
        found = summed(table, terms)
        if terms.n_grid is None and found[0][1] != n:  # of a private n this would tell that it changed
            raise ValueError(f"table {table.name} must not change while it is read.")
    grid, n_grid = _grid(terms), terms.n_grid
    made = [
        Release(
            family=terms.question.family,
            query=terms.query,
            values=grid.noisy(totals),
            n=n if n_grid is None else n_grid.noisy([n])[0],
            n_mechanism=None if n_grid is None else n_grid.mechanism,
            mechanism=grid.mechanism,
            grid=2.0**-grid.exponent,
            neighbours=terms.agreement.neighbours,
            guarantee=promise,
            origin=_origin(entry, terms, group),
        )
        for (totals, n), group in zip(found, _keys(terms.groups), strict=True)
    ]
    if terms.groups is None:
        _warn_of_choice(made[0], terms)
        return made[0]
    names = [key[0] if len(key) == 1 else key for key in terms.groups.keys]
    return dict(zip(names, made, strict=True))


def _warn_of_choice(release: Release, terms: Terms) -> None:
    """Say so where private bounds are little more than noise; the released n is all that this goes by."""
    if terms.selection is None or (slack := terms.selection.slack) <= MOST_SLACK * release.likely_n:
        return
    seen = f"private bounds were chosen to within {slack:.0f} records of a quantile of some {release.likely_n}"
    remedy = "give bounds, or a larger bounds_share, epsilon or rho"
    warnings.warn(f"{seen}, so they say little of the table; {remedy}.", RuntimeWarning, stacklevel=4)


def summed(table: Table, terms: Terms) -> list[tuple[list[int], int]]:
    """Return sums and number of records, of the table or of each group."""
    exponent, least = _grid(terms).exponent, terms.agreement.least
    if terms.groups is None:
        return [table.sums(terms.query, exponent, least=least, unit=terms.unit, cells=terms.cells)]
    return table.group_sums(terms.query, exponent, terms.groups, unit=terms.unit, cells=terms.cells)


def _grid(terms: Terms) -> Grid:
    assert terms.grid is not None  # bounds are chosen by now
    return terms.grid


def _keys(groups: Groups | None) -> list[tuple[tuple[str, Level], ...]]:
    """The column and level of each group."""
    return [()] if groups is None else [tuple(zip(groups.columns, key, strict=True)) for key in groups.keys]


def _origin(entry: Entry | None, terms: Terms, group: tuple[tuple[str, Level], ...]) -> Origin:
    selection, unit = terms.selection, terms.unit
    true, false = terms.cells.words(terms.query)
    return Origin(
        tool="noiseaware",
        version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        ledger_entry=None if entry is None else entry.id,
        bounds="public" if selection is None else "private",
        bounds_share=None if selection is None else selection.share,
        bounds_quantiles=() if selection is None else selection.quantiles,
        group=group,
        unit=None if unit is None else unit.column,
        max_records=None if unit is None else unit.max_records,
        missing=terms.cells.counted(terms.query),
        true=true,
        false=false,
    )


def _description(table: Table, terms: Terms) -> dict[str, str]:
    """Return what was released, in public words."""
    kind = "query" if terms.question.family is None else "family"
    told = {kind: terms.question.name, "columns": ", ".join(terms.query.columns), "table": table.name}
    told |= {"neighbours": terms.agreement.neighbours}
    if terms.selection is not None:
        told |= {"bounds": f"private, for {plain(terms.selection.share)} of the cost"}
    if terms.groups is not None:
        told |= {"by": f"{', '.join(terms.groups.columns)} ({len(terms.groups.keys)} groups)"}
    if terms.unit is not None:
        told |= {"unit": f"{terms.unit.column}, at most {terms.unit.max_records} records"}
    if terms.cells.missing is not None:
        counted = terms.cells.missing
        told |= {"missing": "left out" if terms.cells.leaves_out else f"counted as {', '.join(map(str, counted))}"}
    if terms.cells.true:
        told |= {"yes": ", ".join(terms.cells.true)}
    return told
