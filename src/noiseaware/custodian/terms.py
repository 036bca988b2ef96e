"""The terms of a release: what is promised, to whom, and how it is shared out.

All of it is public, and agreed before the table is read.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from noiseaware.check import kind
from noiseaware.custodian.division import Groups, Level, Unit, groups_of, neighbours_of, unit_of
from noiseaware.custodian.grid import Grid, finest_grid, whole_grid
from noiseaware.custodian.missing import Cells, cells_of
from noiseaware.custodian.private_bounds import QUANTILES, SHARE, Selection, planned, within
from noiseaware.evidence.release import checked_grid
from noiseaware.family import AbstractFamily, AbstractScalarFamily, Categorical
from noiseaware.privacy import (
    N_SHARE,
    Guarantee,
    Neighbours,
    Number,
    Promise,
    Relation,
    promised,
    proper,
)

_NARROWEST = 1e-300
"""Bounds of second moments are at least so wide: a float still holds the inverse."""


@dataclass(frozen=True)
class Terms:
    """What is promised, to whom, and how it is shared out."""

    promise: Promise
    neighbours: Neighbours
    selection: Selection | None
    unit: Unit | None
    groups: Groups | None
    cells: Cells
    of_statistics: Guarantee
    of_n: Guarantee | None
    """What a private n may cost; None where n is public."""

    @property
    def relation(self) -> Relation:
        """Who counts as a neighbour, however many records of one person are summed."""
        return Relation(self.neighbours, None if self.unit is None else self.unit.column)

    @property
    def max_records(self) -> int:
        """How many records of one person are summed at most."""
        return 1 if self.unit is None else self.unit.max_records

    @property
    def is_size_public(self) -> bool:
        """True if everybody may know how many records the table has, of which n may be a part."""
        return self.neighbours == "replace"

    @property
    def least(self) -> int:
        """The fewest records a table may hold; to refuse fewer would tell of a private number."""
        return 1 if self.is_size_public else 0

    def grid(self, family: AbstractFamily) -> Grid:
        """The grid of the statistics, if a release can have it."""
        leaves_out = self.cells.leaves_out
        grid = finest_grid(family, self.of_statistics, self.neighbours, self.max_records, leaves_out=leaves_out)
        try:
            checked_grid(2.0**-grid.exponent, grid.mechanism)
        except ValueError as error:
            raise ValueError(f"bounds, epsilon or rho must be nearer to 1: {error}") from None
        return grid

    @property
    def n_grid(self) -> Grid | None:
        """The grid of a private n."""
        return None if self.of_n is None else whole_grid(self.of_n, self.max_records)


def terms_of(
    family: AbstractFamily,
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
    """The terms that a person asks for, or a refusal; nothing of the table is needed."""
    promise = promised(epsilon=epsilon, rho=rho, delta=delta)
    person, groups = unit_of(unit, max_records), groups_of(by, levels)
    relation = neighbours_of(neighbours, person, groups)
    _check_family(family)
    cells, share = cells_of(family, missing, true), proper("n_share", n_share)
    has_public_n = relation == "replace" and not cells.leaves_out
    if has_public_n and share != N_SHARE:
        told = "neighbours='add_remove' or missing='leave_out'"
        raise ValueError(f"n_share must be left out unless {told} makes n private.")
    each = 1 if person is None else person.max_records
    selection = _choice(family, promise.kept_by(), relation, each, bounds, bounds_share, bounds_quantiles)
    if selection is not None and groups is not None:
        raise ValueError("bounds must be given where a table is released by groups, got private.")
    if selection is not None and cells.leaves_out:
        raise ValueError("bounds must be given where missing='leave_out', or missing be a number, got private bounds.")
    rest = promise.kept_by() if selection is None else selection.rest
    of_n = None if has_public_n else rest.part(share)
    of_statistics = rest if has_public_n else rest.part(1 - share)
    terms = Terms(promise, relation, selection, person, groups, cells, of_statistics, of_n)
    for possible in [family] if selection is None else [within(family, ends) for ends in selection.extremes]:
        terms.grid(possible)  # on a ladder of powers of two no other bounds have a coarser or wider grid
    _ = terms.n_grid  # refuses a share that is too small
    return terms


def _choice(
    family: AbstractFamily,
    guarantee: Guarantee,
    neighbours: Neighbours,
    max_records: int,
    bounds: object,
    bounds_share: Number,
    bounds_quantiles: object,
) -> Selection | None:
    """How the bounds are to be chosen; None where they are public."""
    if bounds == "private":
        return planned(family, guarantee, bounds_share, bounds_quantiles, neighbours, max_records)
    if bounds is not None:
        raise ValueError(f"bounds must be 'private', or stand in the family as two numbers, got {bounds!r}.")
    if (bounds_share, bounds_quantiles) != (SHARE, QUANTILES):
        raise ValueError("bounds_share and bounds_quantiles must be left out unless bounds='private'.")
    family.sensitivity()  # refuses a family whose bounds are missing
    return None


def _check_family(family: object) -> None:
    if not isinstance(family, AbstractFamily):
        raise ValueError(f"family must be one of noiseaware.family, got {kind(family)}.")
    if len(family.columns) != getattr(family, "dimension", 1):
        raise ValueError(f"family must name one column of the table, got {len(family.columns)}.")
    for low, high in getattr(family, "intervals", None) or ():
        if not (math.isfinite(high - low) and math.isfinite(low + high) and high - low >= _NARROWEST):
            held = "at least 1e-300 wide, with a width and a sum that floats hold"
            raise ValueError(f"bounds must be {held}, got ({low}, {high}).")
    if not isinstance(family, AbstractScalarFamily | Categorical) and not hasattr(family, "degrees"):
        raise ValueError(f"family must sum its column, or its levels, to be released, got {type(family).__name__}.")
