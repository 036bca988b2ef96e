"""The verb of the custodian: release(table, family, epsilon, ledger) → Release.

Everything that can be refused is refused before the table is read; what the table's public side can still refuse is
refused before the ledger is charged; and the ledger is charged, once and with the total, before anything is drawn.
"""

import math
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal

import numpy as np

import noiseaware
from noiseaware.artifact import Origin, Release
from noiseaware.custodian.bounds import QUANTILES, SHARE, Selection, planned, within
from noiseaware.custodian.ledger import Entry, Ledger
from noiseaware.custodian.noise import calibrated, draw
from noiseaware.family import AbstractFamily, AbstractScalarFamily, Categorical
from noiseaware.mechanism import AbstractMechanism
from noiseaware.privacy import (
    Guarantee,
    Neighbours,
    Number,
    ZeroConcentrated,
    check_neighbours,
    kept_by,
    plain,
    promised,
)

try:
    import opendp.measurements as _opendp  # noqa: F401 - noise.py imports it when it draws; missed here, it costs nothing

    from noiseaware.custodian.table import MOST_RECORDS, Table
except ModuleNotFoundError as missing:
    raise ImportError(f"releasing from a table needs {missing.name}; install noiseaware[custodian].") from None

_ROOM = 2**62
"""What a sum and its noise stay under, so that 64-bit integers neither wrap nor saturate."""
_NOISE_REACH = 64
"""Noise scales to leave room for: beyond them the chance is below e^−64."""
_STEPS_PER_SCALE = 1000
"""The least number of grid steps in one noise scale, for a statistic that is not a whole number."""
_FINEST = 1000
"""The finest grid is 2^−1000: a float still holds it."""
_FINEST_RECORD = 15
"""Second moments are of records u in ±1 with steps 2^−k; with more than 15 bits the room is spent on MOST_RECORDS."""
_NARROWEST = 1e-300
"""Bounds of second moments are at least so wide: a float still holds the inverse."""


def release(
    table: object,
    family: AbstractFamily,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    ledger: str | os.PathLike | Ledger | None = None,
    neighbours: Neighbours = "replace",
    bounds: Literal["private"] | None = None,
    bounds_share: Number = SHARE,
    bounds_quantiles: tuple[Number, Number] = QUANTILES,
) -> Release:
    """Noisy statistics of a table, under ε (Laplace noise), ρ, or ε and δ (Gaussian noise), paid from a ledger.

    ε and δ are kept by the greatest ρ that implies them, and cost that ρ in a ledger of ρ. With bounds="private" the
    bounds come from the table too: near two quantiles, for a share of ε or of ρ.
    """
    promise = promised(epsilon=epsilon, rho=rho, delta=delta)
    guarantee = kept_by(promise)
    _check_neighbours(neighbours)
    _check_family(family)
    selection = choice(family, guarantee, bounds, bounds_share, bounds_quantiles)
    price = guarantee if selection is None else selection.rest
    table = table if isinstance(table, Table) else Table(table)
    grid, *_ = (finest_grid(possible, price, neighbours) for possible in _possible(family, selection))
    if isinstance(ledger, str | os.PathLike):
        ledger = Ledger(ledger)
    cost = guarantee if ledger is not None and isinstance(ledger.total, ZeroConcentrated) else promise
    if ledger is not None:
        ledger.afford(cost)
    if selection is None:
        totals, n = table.sums(family, grid.exponent)
    else:
        totals, n = table.counts(family.columns[0], selection.candidates)
    entry = None if ledger is None else ledger.charge(cost, _description(table, family, neighbours, selection))
    if selection is not None:
        family = within(family, selection.bounds(totals, n))
        grid = finest_grid(family, price, neighbours)
        totals, again = table.sums(family, grid.exponent)
        if again != n:
            raise ValueError(f"table {table.name} must not change while it is read.")
    noisy = draw(
        grid.mechanism,
        totals,
        sensitivity=grid.sensitivity,
        sensitivity_squared=grid.sensitivity_squared,
        guarantee=price,
        entries=grid.entries,
    )
    return Release(
        family=family,
        values=noisy,
        n=n,
        mechanism=grid.mechanism,
        grid=2.0**-grid.exponent,
        neighbours=neighbours,
        guarantee=promise,
        origin=_origin(entry, selection),
    )


def choice(
    family: AbstractFamily,
    guarantee: Guarantee,
    bounds: object,
    bounds_share: Number = SHARE,
    bounds_quantiles: object = QUANTILES,
) -> Selection | None:
    """How the bounds are to be chosen; None where they are public."""
    if bounds == "private":
        return planned(family, guarantee, bounds_share, bounds_quantiles)
    if bounds is not None:
        raise ValueError(f"bounds must be 'private', or stand in the family as two numbers, got {bounds!r}.")
    if (bounds_share, bounds_quantiles) != (SHARE, QUANTILES):
        raise ValueError("bounds_share and bounds_quantiles must be left out unless bounds='private'.")
    family.sensitivity()  # refuses a family whose bounds are missing
    return None


def _possible(family: AbstractFamily, selection: Selection | None) -> list[AbstractFamily]:
    """The family, or those with extreme bounds: on a ladder of powers of two no others have a coarser or wider grid."""
    return [family] if selection is None else [within(family, bounds) for bounds in selection.extremes]


def _origin(entry: Entry | None, selection: Selection | None) -> Origin:
    return Origin(
        tool="noiseaware",
        version=noiseaware.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        ledger_entry=None if entry is None else entry.id,
        bounds="public" if selection is None else "private",
        bounds_share=None if selection is None else selection.share,
        bounds_quantiles=() if selection is None else selection.quantiles,
    )


@dataclass(frozen=True)
class _Grid:
    """A grid of steps 2^−exponent, and in its steps: how far neighbours move the sums, and the noise for it."""

    exponent: int
    sensitivity: int
    sensitivity_squared: int
    mechanism: AbstractMechanism
    entries: tuple[int, ...] = (1,)


def finest_grid(family: AbstractFamily, guarantee: Guarantee, neighbours: Neighbours) -> _Grid:
    """The finest grid that leaves room for the sums, from public facts only: bounds, promise, cap on n."""
    if hasattr(family, "degrees"):
        return _finest_moments(family, guarantee, neighbours)
    low, high = getattr(family, "bounds", (0, 1))  # a family of levels sums indicators
    largest = max(abs(low), abs(high))
    finest = 0 if family.is_integer else min(_FINEST, math.ceil(math.log2(_ROOM // MOST_RECORDS) - math.log2(largest)))
    coarsest = 0 if family.is_integer else -_FINEST
    for exponent in range(finest, coarsest - 1, -1):
        grid = _grid(family, guarantee, neighbours, (low, high), exponent)
        if grid is None:
            break
        reach = MOST_RECORDS * math.ceil(largest * Fraction(2) ** exponent) + _NOISE_REACH * grid.mechanism.spread
        if reach < _ROOM:
            if family.is_integer or grid.mechanism.spread >= _STEPS_PER_SCALE:
                return grid
            break
    if family.is_integer:
        raise ValueError(f"bounds ({low}, {high}) must be narrower for {guarantee}: sums must fit 64-bit integers.")
    raise ValueError(
        f"bounds ({low}, {high}) must be wider, or nearer to 0, for {guarantee}: "
        "64-bit sums would be coarser than a thousandth of the noise."
    )


def _finest_moments(family: Any, guarantee: Guarantee, neighbours: Neighbours) -> _Grid:
    """The finest grid 2^−2k of second moments of whole records within ±2^k, which need the same for any bounds."""
    for k in range(_FINEST_RECORD, -1, -1):
        grid = _calibrated(family, guarantee, neighbours, (-(2**k), 2**k), 2 * k)
        assert grid is not None
        if MOST_RECORDS * 4**k + _NOISE_REACH * np.max(grid.mechanism.spread) < _ROOM:
            if np.min(grid.mechanism.spread) >= _STEPS_PER_SCALE:
                return grid
            break
    raise ValueError(f"epsilon or rho must be nearer to 1: 64-bit sums and the noise of {guarantee} share no grid.")


def _grid(family: AbstractFamily, guarantee: Guarantee, neighbours: Neighbours, bounds, exponent: int) -> _Grid | None:
    """The grid of one exponent, or None where it is too coarse for the bounds to differ."""
    step = Fraction(2) ** -exponent
    whole = tuple(math.floor(Fraction(bound) / step) for bound in bounds)
    return _calibrated(family, guarantee, neighbours, whole, exponent)


def _calibrated(
    family: AbstractFamily, guarantee: Guarantee, neighbours: Neighbours, whole: tuple[int, ...], exponent: int
) -> _Grid | None:
    """A grid with its noise, for records within whole bounds; None where these do not differ."""
    sensitivity: int = family.sensitivity(neighbours, bounds=whole)  # type: ignore[assignment]
    squared: int = family.sensitivity_squared(neighbours, bounds=whole)  # type: ignore[assignment]
    entries = getattr(family, "entries", (1,))
    if sensitivity == 0:
        return None
    try:
        return _Grid(exponent, sensitivity, squared, calibrated(guarantee, sensitivity, squared, entries), entries)
    except OverflowError:
        raise ValueError("epsilon or rho must be nearer to 1: no float can hold its noise scale.") from None


def _check_neighbours(neighbours: str) -> None:
    check_neighbours(neighbours)
    if neighbours == "add_remove":
        raise ValueError("neighbours must be 'replace' to release from a table: 'add_remove' needs a noisy n.")


def _check_family(family: object) -> None:
    if not isinstance(family, AbstractFamily):
        raise ValueError(f"family must be one of noiseaware.family, got {type(family).__name__}.")
    if len(family.columns) != getattr(family, "dimension", 1):
        raise ValueError(f"family must name one column of the table, got {len(family.columns)}.")
    for low, high in getattr(family, "intervals", None) or ():
        if not (math.isfinite(high - low) and math.isfinite(low + high) and high - low >= _NARROWEST):
            raise ValueError(f"bounds must be between 1e-300 and 1e300 wide, and nearer to 0, got ({low}, {high}).")
    if not isinstance(family, AbstractScalarFamily | Categorical) and not hasattr(family, "degrees"):
        raise ValueError(f"family must sum its column, or its levels, to be released, got {type(family).__name__}.")


def _description(
    table: Table, family: AbstractFamily, neighbours: Neighbours, selection: Selection | None
) -> dict[str, str]:
    """What was released, in public words."""
    chosen = {} if selection is None else {"bounds": f"private, for {plain(selection.share)} of the cost"}
    return {
        "family": family.name,
        "columns": ", ".join(family.columns),
        "table": table.name,
        "neighbours": neighbours,
        **chosen,
    }
