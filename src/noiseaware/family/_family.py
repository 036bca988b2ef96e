"""The contract of a family, and what follows from it once for all families.

An exponential family has density h(x) exp(ηᵀt(x) − A(η)). A file of this folder says what t, η, A and h are,
how its conjugate prior is updated, and what public bounds mean; from those few functions follow

    E t = ∇A(η)        Cov t = ∇²A(η)        p(s) = h_n(s) Z(prior + s) / Z(prior)

the last being the marginal law of the statistic s = Σ t(x_i) of n records under the prior.
"""

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Inexact, Key, Num

from noiseaware.check import kind
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Numeric
from noiseaware.privacy import Neighbours, check_neighbours

Outside = Literal["clamp", "drop"]
Bounds = tuple[float, float]
_NO_RECORD = 1e-9  # stands for 0 where an update divides by the number of records


class AbstractFamily(eqx.Module):
    """A model of one record, summarised by the sum of its statistics."""

    name: eqx.AbstractClassVar[str]
    """The word for it on the command line and in a release."""
    conjugate: eqx.AbstractClassVar[type[AbstractPrior]]
    """The type of prior that `update` takes."""
    parameters: eqx.AbstractClassVar[tuple[str, ...]]
    """Names of the parameters, as they appear in a posterior."""
    is_integer: eqx.AbstractClassVar[bool]
    """True if t(x) takes whole numbers only, so that a release keeps the grid 1."""
    records: ClassVar[str] = ""
    """Its records in words: "waiting times (exponential)"; a family that has none is called by its name."""
    glossary: ClassVar[Mapping[str, Meaning]] = {}
    """Words for each parameter that has a meaning besides its name."""
    is_choice: ClassVar[bool] = False
    """True if a record is one of several levels, whose probabilities are the parameter."""
    factorises: ClassVar[bool] = False
    """True if drawing from its posterior factorises many small matrices."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are read."""

    @property
    @abc.abstractmethod
    def statistics(self) -> tuple[str, ...]:
        """The name of each released statistic."""

    @abc.abstractmethod
    def statistic(self, x) -> tuple:
        """t(x), in plain operators: x is an array of records, or a column of the engine that holds the table."""

    @abc.abstractmethod
    def sensitivity(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """max ‖t(x) − t(x')‖₁ over neighbours; with `bounds` in units of a grid, in those units."""

    @abc.abstractmethod
    def sensitivity_squared(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        """max ‖t(x) − t(x')‖₂² over neighbours."""

    @abc.abstractmethod
    def natural(self, theta: Float[Array, "*batch"]) -> Float[Array, "..."]:
        """η(θ)."""

    @abc.abstractmethod
    def log_partition(self, eta: Inexact[Array, " k"]) -> Inexact[Array, ""]:
        """A(η), also at complex η, where it is analytic."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], theta: Float[Array, "..."], n: int) -> Num[Array, " n"]:
        """n records, before any bound is applied."""

    @abc.abstractmethod
    def update(self, prior, s: Num[Array, "*batch k"], n: Numeric) -> AbstractPrior:
        """The posterior given the statistic s of n records."""

    @abc.abstractmethod
    def project(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """The possible value of the statistic nearest to s."""

    @abc.abstractmethod
    def alter(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        """t(x) of records as they are summed: clamped to the bounds, or 0 where dropped."""

    def modelled(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        """t(x) of records as HMC takes them, where it does not know of all that bounds do to them."""
        return self.statistic(x)

    def carried(
        self, key: Key[Array, ""], x: Num[Array, "..."], theta: Float[Array, "..."], other: Float[Array, "..."]
    ) -> Num[Array, "..."]:
        """Records of `other` that go with records x of θ, the nearer the better: as if only θ had changed.

        Any symmetric coupling will do: p(x | θ) q(x → x'; θ, θ') = p(x' | θ') q(x' → x; θ', θ). Records of their own,
        as here, are one; better is to keep what x has besides θ, as a normal's (x − mean)/sd.
        """
        return self.sample(key, other, x.shape[-1])

    def given_records(
        self, key: Key[Array, ""], prior: Any, x: Num[Array, "... n"], is_counted: Bool[Array, " n"]
    ) -> Float[Array, "..."]:
        """A draw of θ given those records that count, of which there may be none; of others, through their sums."""
        counted = [jax.numpy.where(is_counted, t, jax.numpy.zeros_like(t)) for t in self.statistic(x)]
        s = jax.numpy.stack([t.sum(dtype=float) for t in counted])
        return self.update(prior, s, jax.numpy.maximum(is_counted.sum(dtype=float), _NO_RECORD)).sample(key)

    def named(self, theta):
        """θ by the names of its parameters; where there are several, they lie along the last axis."""
        if len(self.parameters) == 1:
            return {self.parameters[0]: theta}
        return {name: theta[..., j] for j, name in enumerate(self.parameters)}

    @property
    def yes_or_no(self) -> tuple[str, ...]:
        """The columns whose cells are yes or no, so that words such as `yes` count."""
        return ()

    @property
    def is_natural(self) -> bool:
        """Whether the released sums are those of an exponential family, so that θ given them needs no records."""
        return True

    @property
    def is_altered(self) -> bool:
        """True if the bounds cut into the support, so that some records are clamped or dropped."""
        return False

    @property
    def law(self) -> str | None:
        """The name of the law of a column's values, if clamping leaves some of them to it."""
        return None

    @property
    def predictor(self) -> Any:
        """The linear regression that predicts new records, if it is one."""
        return None

    @property
    def remedy(self) -> str:
        """A sentence on what helps where many records lie beyond the bounds."""
        return "Wider bounds would help, or another family."

    @property
    def exact_by(self) -> Literal["sum", "counts"] | None:
        """What the exact sampler draws the parameters from: one sum, or counts that add up to n; None: it cannot."""
        return None

    @property
    def is_count(self) -> bool:
        """True if the statistics are counts that no bound has altered."""
        return False

    def allows(self, low: Float[np.ndarray, " k"], high: Float[np.ndarray, " k"], n: float) -> bool:
        """Return True if n records can have counts from low to high."""
        return True

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        """For each parameter that is not one number: the name of each axis and the labels along it."""
        return {}

    def check_prior(self, prior: object) -> None:
        """Refuse a prior that does not fit."""
        check_conjugate(self, prior)

    def released_moments(self, theta: Float[Array, "*batch"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]] | None:
        """Mean and covariance of what the bounds leave of t(x), where that has a closed form; else they follow."""
        return None

    def released_again(self, theta: Float[Array, "*batch"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]] | None:
        """The same by other points, where they are not in closed form: how far apart the two are is their error."""
        return None

    def completed(self, prior: AbstractPrior) -> AbstractPrior:
        """The prior with what it leaves unsaid, where a family has parameters besides those that are asked for."""
        return prior

    def checked_prior(self, prior: Any) -> AbstractPrior:
        """Return the prior with what it leaves unsaid; refuse one that does not fit."""
        self.check_prior(prior)
        return self.completed(prior)

    def parted(self, prior: Any) -> tuple[Any, AbstractPrior | None]:
        """Return the parts of a completed prior: of the parameters, and of nuisance parameters if there are any."""
        return prior, None

    def as_quadratic(self, prior: Any) -> tuple[Any, Any] | None:
        """The same model as one of second moments that nothing alters (AbstractQuadraticFamily), where it is one."""
        return None

    def recorded(self, draws: dict[str, np.ndarray], *, is_altered: bool = True) -> Recorded | None:
        """Mean and variance of a column's values as recorded within its bounds, for each draw of the parameters.

        None where no bound cuts into the support. Without `is_altered`, for draws that take no record for altered.
        """
        return None

    def recorded_belief(self, belief: Any, s: np.ndarray, n: float) -> tuple[AbstractScalarPrior, ...]:
        """Return what the naive analyst believes of each column's mean, and variance if squares were summed.

        `belief` is the naive posterior given the statistic s of n records.
        """
        return belief.marginals()

    def mean(self, theta: Float[Array, "*batch"]) -> Float[Array, " k"]:
        """E t(x) = ∇A(η)."""
        return jax.grad(self.log_partition)(self.natural(theta))

    def residual(self, theta: Float[Array, "*batch"], y: Float[Array, " k"], n: Numeric) -> Float[Array, ""]:
        """How far a release y is from what θ would have it be: ‖y − n E t(θ)‖₁, for calibration."""
        return jax.numpy.abs(y - n * self.mean(theta)).sum()

    def covariance(self, theta: Float[Array, "*batch"]) -> Float[Array, "k k"]:
        """Cov t(x) = ∇²A(η)."""
        return jax.hessian(self.log_partition)(self.natural(theta))


class AbstractNumberFamily(AbstractFamily):
    """A family of one number a record.

    With `bounds`, a record outside them is clamped to the nearer one or dropped (it adds 0 to every sum), and the law
    of what was summed is the law that inference uses.
    """

    column: eqx.AbstractVar[str | None]
    bounds: eqx.AbstractVar[Bounds | None]
    outside: eqx.AbstractVar[Outside]

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def law(self) -> str | None:
        return self.name if self.is_altered else None

    @property
    @abc.abstractmethod
    def is_altered(self) -> bool: ...

    def alter(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        t = self.statistic(x if self.bounds is None else x.clip(*self.bounds))
        if self.bounds is None or self.outside == "clamp":
            return t
        kept = (x >= self.bounds[0]) & (x <= self.bounds[1])
        return tuple(jax.numpy.where(kept, column, jax.numpy.zeros_like(column)) for column in t)


class AbstractTruncatedFamily(AbstractNumberFamily):
    """A family of numbers without a natural bound, known also by its CDF, so that public bounds may alter records."""

    support: eqx.AbstractClassVar[Bounds]
    """The least and the greatest value that a record can take."""

    @property
    def is_altered(self) -> bool:
        if self.bounds is None:
            return False
        return self.bounds[0] > self.support[0] or self.bounds[1] < self.support[1]

    @abc.abstractmethod
    def from_natural(self, eta: Float[Array, " k"]) -> Float[Array, "*batch"]:
        """θ(η)."""

    @abc.abstractmethod
    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log P(X ≤ x), accurate when the probability is tiny."""

    @abc.abstractmethod
    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log P(X ≥ x), accurate when the probability is tiny."""


class AbstractScalarFamily(AbstractNumberFamily):
    """A family of one number with t(x) = x and one parameter."""

    ceiling: eqx.AbstractClassVar[float]
    """The natural parameters are all that lie below this."""

    @property
    def statistics(self) -> tuple[str, ...]:
        return ("sum",)

    def statistic(self, x) -> tuple:
        return (x,)

    @property
    def exact_by(self) -> Literal["sum", "counts"] | None:
        return "sum"

    @property
    def is_count(self) -> bool:
        return self.is_integer and not self.is_altered

    def allows(self, low: Float[np.ndarray, "1"], high: Float[np.ndarray, "1"], n: float) -> bool:
        return bool(low[0] <= high[0]) and bool(high[0] >= 0) and bool(low[0] <= float(self.possible(n)[1]))

    def sensitivity(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        return summed_ranges(self, neighbours, [checked_given(self, bounds)])

    def sensitivity_squared(self, neighbours: Neighbours = "replace", *, bounds: tuple | None = None) -> float:
        return self.sensitivity(neighbours, bounds=bounds) ** 2

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return mean, variance and third cumulant of an unaltered record, where they are known in closed form."""
        return None

    @abc.abstractmethod
    def possible(self, n: Numeric) -> tuple[Numeric, Numeric]:
        """The least and the greatest sum of n unaltered records."""

    @abc.abstractmethod
    def log_base(self, s: Float[Array, "..."], n: Numeric) -> Float[Array, "..."]:
        """log h_n(s): the base measure of the sum of n unaltered records."""


class AbstractUnboundedFamily(AbstractScalarFamily, AbstractTruncatedFamily):
    """A scalar family whose records have no natural bound, with all that the exact engine needs of one record."""

    @abc.abstractmethod
    def log_density(self, x: Float[Array, "..."], theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(x | θ) of one unaltered record."""

    @abc.abstractmethod
    def window(self, theta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """An interval outside of which an unaltered record falls with probability below e^−40."""

    @property
    @abc.abstractmethod
    def head(self) -> float:
        """The exponent h of a density that goes as x^{h−1} at the lower end of its support; 1 where it is bounded."""


def check_conjugate(family: AbstractFamily, prior: object) -> None:
    """Refuse a prior that is not of the conjugate kind."""
    if not isinstance(prior, family.conjugate):
        wanted = family.conjugate.__name__
        raise ValueError(f"prior must be a {wanted} for the {family.name} family, got {kind(prior)}.")
    for name, value in vars(prior).items():
        if isinstance(family, AbstractScalarFamily) and np.ndim(value):
            raise ValueError(f"prior must have one number as its {name} for the {family.name} family, got {value}.")


def summed_ranges(family: AbstractNumberFamily, neighbours: Neighbours, ranges: Sequence[tuple]) -> float:
    """Σ_j of how far one record can move statistic j, when t_j lies in ranges[j] between the bounds.

    max ‖t(x) − t(x')‖₁ is at most this. A record that is dropped, added or removed is one that adds 0.
    """
    check_neighbours(neighbours)
    if neighbours == "add_remove":
        return sum(max(abs(low), abs(high)) for low, high in ranges)
    if family.outside == "drop":
        ranges = [(min(low, 0), max(high, 0)) for low, high in ranges]
    return sum(high - low for low, high in ranges)


def checked_given(family: AbstractNumberFamily, bounds: tuple | None) -> tuple:
    """The bounds that were given, here or to the family."""
    given = family.bounds if bounds is None else bounds
    if given is None:
        raise ValueError(f"bounds must be given: without them one {family.name} record can move the sum by anything.")
    return given


def checked_bounds(bounds: object) -> Bounds | None:
    """Bounds as two finite numbers in order, or None."""
    if bounds is None:
        return None
    try:
        low, high = (float(b) for b in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be two numbers (low, high), got {bounds}.") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"bounds must be finite, got ({low}, {high}).")
    if low >= high:
        raise ValueError(f"bounds must have low < high, got ({low}, {high}).")
    return low, high


def checked_whole_bounds(bounds: object) -> Bounds | None:
    """Bounds of a count: whole numbers, in order."""
    checked = checked_bounds(bounds)
    if checked is not None and any(b != math.floor(b) for b in checked):
        raise ValueError(f"bounds must be whole numbers for a count, got {checked}.")
    return checked


def checked_outside(outside: object) -> Outside:
    if outside not in ("clamp", "drop"):
        raise ValueError(f"outside must be 'clamp' or 'drop', got {outside!r}.")
    return outside  # type: ignore[return-value]


def checked_positive(name: str, value: object) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name} must be positive and finite, got {value}.")
    return float(value)  # type: ignore[arg-type]
