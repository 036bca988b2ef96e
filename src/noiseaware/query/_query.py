"""The contract of a query: what is asked of a table, and how far one record can move the answer.

A query is all that the custodian knows of a release. It names the columns that are read and the statistics t(x) that
are summed, says what the public domain of a record is (bounds, levels, yes or no), and proves in `sensitivity` how far
neighbours can differ:

    ‖Σ t(x) − Σ t(x')‖₁        ‖Σ t(x) − Σ t(x')‖₂²        for x and x' that differ in one record

Nothing of a model of the records is in it: a family (noiseaware.family) brings a query along and adds the model.
"""

import abc
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Num

from noiseaware.privacy import Neighbours

Outside = Literal["clamp", "drop"]
Bounds = tuple[float, float]
Norm = Literal[1, 2]
Level = str | int
LINE: Bounds = (-math.inf, math.inf)
"""The support of a record that can be any number."""


class AbstractQuestion(eqx.Module):
    """What a custodian can be asked to release: a query, or a family, which brings one."""

    name: eqx.AbstractClassVar[str]
    """The word for it on the command line, in a ledger and in a release."""
    records: ClassVar[str] = ""
    """Its records in words: "waiting times (exponential)"; a question that has none is called by its name."""
    query: eqx.AbstractVar["AbstractQuery"]
    """The statistics that are released."""

    @property
    @abc.abstractmethod
    def phrase(self) -> str:
        """The words for it in a sentence: `a query of sum`, `the normal family`."""

    @property
    @abc.abstractmethod
    def family(self) -> Any:
        """The family, if the question is one; None for a query."""

    @abc.abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the arguments that a family shares with its query (columns, bounds, levels), and those of its own."""

    @abc.abstractmethod
    def identity(self) -> list:
        """Return the class and its settings for a release's fingerprint, by names that must never change."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"

    def within(self, bounds: Bounds) -> "AbstractQuestion":
        """Return this question about records within these bounds, for a query whose bounds are chosen privately."""
        raise ValueError(f"bounds must be given with {self.phrase}, got {bounds}.")


@dataclass(frozen=True)
class Whole:
    """A query on a grid: the most that one record adds to a statistic, and the sensitivities, in whole grid steps."""

    largest: int
    sensitivity: int
    sensitivity_squared: int


class AbstractQuery(AbstractQuestion):
    """Statistics of a table's records, each a sum over the records."""

    columns: eqx.AbstractVar[tuple[str, ...]]
    """The columns of the table that are read; none for records that lie in no table."""
    names: eqx.AbstractVar[tuple[str, ...]]
    """The name of each statistic."""
    outside: eqx.AbstractVar[Outside]
    """What becomes of a record outside the bounds: clamped to the nearer one, or dropped, so that it adds 0."""
    is_whole: eqx.AbstractVar[bool]
    """True if the statistics are whole numbers, so that the grid is 1."""

    intervals: eqx.AbstractVar[tuple[Bounds, ...] | None]
    """Public bounds of each column; None where nothing is clamped or dropped."""
    levels: eqx.AbstractVar[tuple[Level, ...] | None]
    """The public levels that are counted; None where numbers are summed."""
    yes_or_no: eqx.AbstractVar[tuple[str, ...]]
    """The columns whose cells are yes or no, so that words such as `yes` count."""

    @property
    def query(self) -> "AbstractQuery":
        """The query itself."""
        return self

    @property
    def phrase(self) -> str:
        return f"a query of {self.name}"

    @property
    def family(self) -> None:
        return None

    def identity(self) -> list:
        return [type(self).__name__, {name: value for name, value in vars(self).items() if name != "ladder"}]

    @property
    def is_altered(self) -> bool:
        """True if the bounds cut into the support, so that some records are clamped or dropped."""
        return False

    @property
    def is_scaled(self) -> bool:
        """True if the statistics are of records that the bounds scale to ±1."""
        return False

    @property
    def candidates(self) -> tuple[float, ...]:
        """The bounds that can be chosen privately, in order."""
        return ()

    @property
    def entries(self) -> tuple[int, ...]:
        """The number of entries of the squared distance that each statistic stands for (`sensitivity` of norm 2)."""
        return (1,)

    @abc.abstractmethod
    def statistic(self, x) -> tuple:
        """Return t(x) in plain operators: x is an array of records, or a column of the engine that holds the table."""

    @abc.abstractmethod
    def alter(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        """Return t(x) of records as they are summed: clamped to the bounds, or 0 where dropped."""

    @abc.abstractmethod
    def sensitivity(self, neighbours: Neighbours = "replace", norm: Norm = 1) -> Fraction:
        """Return max ‖t(x) − t(x')‖₁ over neighbours, or of norm 2 the square max Σ_j entries_j (t_j(x) − t_j(x'))²."""

    @abc.abstractmethod
    def exponents(self, most: int) -> Iterable[int]:
        """Return the grids 2^−exponent that the sums may be on, finest first: on each a record has ≤ `most` steps."""

    @abc.abstractmethod
    def whole(self, exponent: int, neighbours: Neighbours = "replace") -> Whole:
        """Return largest record and sensitivity in steps of 2^−exponent, of records that are rounded to whole steps."""

    @abc.abstractmethod
    def no_grid(self, promise: object) -> str:
        """Return the sentence that refuses a promise under which the sums have no grid."""

    def asks(self, other: "AbstractQuery") -> bool:
        """Return True if a family with this query explains the statistics of another query."""
        return self == other

    def check(self) -> None:
        """Refuse a query that no table can be asked."""
        raise ValueError(f"family must sum its column, or its levels, to be released, got {type(self).__name__}.")

    def check_private_bounds(self, title: str) -> None:
        """Refuse a query, or the family of this title, whose bounds cannot be chosen from the table."""
        raise ValueError(f"bounds must not be given for {title}: its records have their own.")

    @property
    def counted(self) -> tuple[float | Level, ...]:
        """The value that a missing cell of each column counts as unless said: lower bound, no, or first level."""
        each = zip(self.columns, self.intervals or (), strict=True)
        return tuple(0 if column in self.yes_or_no else low for column, (low, _) in each)

    @property
    def ranges(self) -> list[Bounds]:
        """The least and the greatest that one record adds to each statistic."""
        return [(-math.inf, math.inf)] * len(self.names)


def altered(
    x: Num[Array, "..."], statistic: Callable[..., tuple], bounds: Bounds | None, outside: Outside
) -> tuple[Num[Array, "..."], ...]:
    """Return t(x) of records of one column that are clamped to the bounds, or 0 where they are dropped."""
    t = statistic(x if bounds is None else x.clip(*bounds))
    if bounds is None or outside == "clamp":
        return t
    kept = (x >= bounds[0]) & (x <= bounds[1])
    return tuple(jnp.where(kept, column, jnp.zeros_like(column)) for column in t)


def missing_bounds() -> ValueError:
    """Return the refusal of a query whose bounds are missing."""
    return ValueError("bounds must be given: without them one record can move a sum by anything.")


def checked_outside(outside: object) -> Outside:
    """Return clamp or drop, or refuse."""
    if outside not in ("clamp", "drop"):
        raise ValueError(f"outside must be 'clamp' or 'drop', got {outside!r}.")
    return outside  # type: ignore[return-value]
