"""Families of several columns that explain their first and second moments, Σu_j and Σu_i u_j (query/moments.py)."""

from typing import Any, ClassVar

import equinox as eqx

from noiseaware.family._family import AbstractFamily
from noiseaware.query import Moments
from noiseaware.query.moments import checked_columns

_NAMES = {"columns": "names", "bounds": "intervals"}


class AbstractMomentFamily(AbstractFamily):
    """Records of d numbers, summarised by Σu and products. Records are columns: x[j] is the j-th number of each."""

    query: eqx.AbstractVar[Moments]
    factorises: ClassVar[bool] = True

    @property
    def dimension(self) -> int:
        """d, the numbers of one record."""
        return self.query.dimension

    @property
    def remedy(self) -> str:
        return "Wider bounds would help."

    def identity(self) -> list[Any]:
        return [type(self).__name__, {_NAMES.get(name, name): value for name, value in self.settings().items()}]


def regression_columns(x: object, y: object) -> tuple[str, ...]:
    """Return the columns of a regression, those that explain first and the one that is explained last."""
    (own,) = checked_columns("y", y)
    return checked_columns("x and y", (*checked_columns("x", x), own))
