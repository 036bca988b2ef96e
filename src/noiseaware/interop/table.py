"""Any table of noisy counts: a CSV file or a frame with columns value, family and scale, one row a count.

    family        laplace, gaussian, discrete_laplace, discrete_gaussian, staircase: the law of the noise; none: none
    scale         scale of Laplace noise, standard deviation of Gaussian; empty for none
    width, step   of a staircase, the width of its stairs and the high steps of each
    rounded_to    the noisy value was rounded to the nearest multiple of this
    rounding      nearest, or midpoint: of counts without noise, 1 to 6 are published as 3, 7 to 12 as 9, and 0 as 0
    truncated     yes: it was cut to a whole number toward 0
    clamped_at    values below were raised to this
    low, high     the interval, ends included, that the noisy value lay in; an empty one of them is infinite
    n             number of records, if not the same for all

Other columns name the group. Rounded, coarsened and suppressed tables without noise are rows of family none.
"""

import math
from typing import Literal, get_args

from noiseaware.check import shown
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, Within, clamped, midpoint, release, rounded, truncated
from noiseaware.interop._rows import Row, group_of, is_blank, number, positive, rows_of, whole
from noiseaware.mechanism import LAWS, AbstractMechanism, Identity

_LAWS = {name: law for name, law in LAWS.items() if law.is_noisy}
_SETTINGS = tuple(sorted({name for law in LAWS.values() for name in law.settings}))
_NONE = ("none", "identity")
_COLUMNS = ("value", "family", "scale", "rounded_to", "rounding", "truncated", "clamped_at", "low", "high", "n")
_COLUMNS += _SETTINGS


Rounding = Literal["nearest", "midpoint"]


def table(
    source: object, *, family: AbstractFamily = CELL, n: int = 1, rounding: Rounding = "nearest"
) -> list[Release]:
    """A release for each row; `family` is the model of the counts, where the column of that name is their noise.

    `rounding` is how values were rounded to `rounded_to`, where no column of that name says it: to the nearest
    multiple, or to midpoints, as in tables of OpenSAFELY ("midpoint 6").
    """
    if rounding not in get_args(Rounding):
        raise ValueError(f"rounding must be 'nearest' or 'midpoint', got {shown(rounding)}.")
    found = []
    for place, row in enumerate(rows_of(source, ("value", "family", "scale")), 1):
        records = n if is_blank(row, "n") else whole(row, "n", place)
        mechanism, within = _law(row, place), _within(row, place, rounding)
        value = _value(row, within, place)
        if not mechanism.is_noisy and within is None and value != round(value) and family.query.is_whole:
            raise ValueError(f"row {place}: value must be a whole number without noise or rounding, got {value:g}.")
        about = {"family": family, "n": records, "tool": "table", "group": group_of(row, _COLUMNS)}
        found.append(release(value, within, mechanism, **about))
    return found


def _law(row: Row, place: int) -> AbstractMechanism:
    name = str(row["family"]).strip().lower()
    if name in _NONE:
        if not is_blank(row, "scale"):
            raise ValueError(f"row {place}: scale must be empty where family is none, got {shown(row['scale'])}.")
        return Identity()
    if name not in _LAWS:
        raise ValueError(f"row {place}: family must be one of {', '.join(_LAWS)}, none, got {shown(name)}.")
    settings = {setting: positive(row, setting, place) for setting in _LAWS[name].settings}
    return _LAWS[name].of(positive(row, "scale", place), **settings)


def _within(row: Row, place: int, rounding: Rounding) -> Within | None:
    """The interval from what was done to the value, or as it is told."""
    told = [name for name in ("low", "high") if not is_blank(row, name)]
    done = [name for name in ("rounded_to", "truncated", "clamped_at") if not is_blank(row, name)]
    how = _rounding(row, place, rounding)
    if told and done:
        raise ValueError(f"row {place}: {told[0]} must be empty where {done[0]} is given, got {row[told[0]]!r}.")
    if told:
        low = number(row, "low", place) if "low" in told else -math.inf
        return low, (number(row, "high", place) if "high" in told else math.inf)
    if "rounded_to" in done and _is_true(row, "truncated", place):
        raise ValueError(f"row {place}: truncated must be empty where rounded_to is given, got {row['truncated']!r}.")
    within = None
    if "rounded_to" in done:
        within = _midpoint(row, place) if how == "midpoint" else _nearest(row, place)
    elif _is_true(row, "truncated", place):
        within = truncated(whole(row, "value", place))
    if "clamped_at" in done:
        within = clamped(number(row, "value", place), within, least=number(row, "clamped_at", place))
    return within


def _rounding(row: Row, place: int, rounding: Rounding) -> Rounding:
    """The rounding of a row's value, or the whole table's where the row names none."""
    told = rounding if is_blank(row, "rounding") else str(row["rounding"]).strip().lower()
    if told not in get_args(Rounding):
        raise ValueError(f"row {place}: rounding must be nearest or midpoint, got {shown(told)}.")
    if told == "midpoint" and all(is_blank(row, name) for name in ("rounded_to", "low", "high")):
        raise ValueError(f"row {place}: rounded_to must be given under midpoint rounding, got nothing.")
    return told  # type: ignore[return-value]


def _nearest(row: Row, place: int) -> Within:
    """The interval of a multiple of `rounded_to`; any other value is refused, unless it was clamped."""
    value, step = number(row, "value", place), positive(row, "rounded_to", place)
    is_clamped = not is_blank(row, "clamped_at") and value == number(row, "clamped_at", place)
    if not _is_multiple(value, step) and not is_clamped:
        is_midpoint = _is_whole_step(step) and midpoint(value, int(step)) is not None
        advice = "; midpoint rounding gives it: say rounding midpoint" if is_midpoint else ""
        raise ValueError(f"row {place}: value must be a multiple of rounded_to {step:g}, got {value:g}{advice}.")
    return rounded(value, step)


def _midpoint(row: Row, place: int) -> Within:
    """The interval of 0, 3, 9, 15, … under base 6; any other value, and noise, is refused."""
    value, step = number(row, "value", place), positive(row, "rounded_to", place)
    if not _is_whole_step(step):
        raise ValueError(
            f"row {place}: rounded_to must be a whole number from 2 under midpoint rounding, got {step:g}."
        )
    if str(row["family"]).strip().lower() not in _NONE:
        told = shown(row["family"])
        raise ValueError(f"row {place}: family must be none under midpoint rounding, which is of counts, got {told}.")
    within, first = midpoint(value, int(step)), math.ceil(step / 2)
    if within is None:
        rule = f"0, {first}, {first + step:g}, {first + 2 * step:g}, … under midpoint rounding to {step:g}"
        advice = (
            "; rounding to the nearest multiple gives it: say rounding nearest" if _is_multiple(value, step) else ""
        )
        raise ValueError(f"row {place}: value must be one of {rule}, got {value:g}{advice}.")
    return within


def _is_multiple(value: float, step: float) -> bool:
    return abs(value / step - round(value / step)) < 1e-6  # 0.3 is three times 0.1


def _is_whole_step(step: float) -> bool:
    return step == round(step) and 2 <= step <= 2**53


def _value(row: Row, within: Within | None, place: int) -> float:
    """The published value; of a count that was left out, the end of its interval."""
    if within is not None and is_blank(row, "value"):
        return within[1] if math.isfinite(within[1]) else within[0]
    return number(row, "value", place)


def _is_true(row: Row, name: str, place: int) -> bool:
    if is_blank(row, name):
        return False
    told = str(row[name]).strip().lower()
    if told not in ("yes", "true", "1", "no", "false", "0"):
        raise ValueError(f"row {place}: {name} must be yes or no, got {shown(told)}.")
    return told in ("yes", "true", "1")
