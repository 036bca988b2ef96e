"""The contract of a family, and what follows from it once for all families.

An exponential family has density h(x) exp(ηᵀt(x) − A(η)). A file of this folder says what t, η, A and h are,
how its conjugate prior is updated, and what public bounds mean; from those few functions follow

    E t = ∇A(η)        Cov t = ∇²A(η)        p(s) = h_n(s) Z(prior + s) / Z(prior)

the last being the marginal law of the statistic s = Σ t(x_i) of n records under the prior.
"""

import abc
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Inexact, Key, Num

from noiseaware.check import kind
from noiseaware.family.glossary import Meaning
from noiseaware.family.recorded import Recorded
from noiseaware.prior import AbstractPrior, AbstractScalarPrior, Numeric
from noiseaware.query import AbstractColumn, AbstractQuery, AbstractQuestion, Bounds, PowerSums, Sum

_LOOSE = ("outside", "columns")  # what a family without bounds leaves open, unless it says that records are dropped
_NO_RECORD = 1e-9  # stands for 0 where an update divides by the number of records


class AbstractFamily(AbstractQuestion):
    """A model of one record, summarised by the sum of its statistics."""

    conjugate: eqx.AbstractClassVar[type[AbstractPrior]]
    """The type of prior that `update` takes."""
    parameters: eqx.AbstractClassVar[tuple[str, ...]]
    """Names of the parameters, as they appear in a posterior."""
    query: eqx.AbstractVar[AbstractQuery]
    """The statistics of the records that this family explains, and what a custodian releases of them."""
    glossary: ClassVar[Mapping[str, Meaning]] = {}
    """Words for each parameter that has a meaning besides its name."""
    is_choice: ClassVar[bool] = False
    """True if a record is one of several levels, whose probabilities are the parameter."""
    factorises: ClassVar[bool] = False
    """True if drawing from its posterior factorises many small matrices."""

    @property
    def phrase(self) -> str:
        return f"the {self.name} family"

    @property
    def family(self) -> "AbstractFamily":
        return self

    def settings(self) -> dict[str, Any]:
        return self.query.settings() | {name: value for name, value in vars(self).items() if name != "query"}

    def identity(self) -> list:
        return [type(self).__name__, self.settings()]

    def within(self, bounds: Bounds) -> "AbstractFamily":
        settings: dict[str, Any] = self.settings() | {"bounds": bounds}
        return type(self)(**settings)

    def reading(self, query: AbstractQuery) -> "AbstractFamily":
        """Return this family for a release of the query, from which it takes a column and bounds that it leaves open.

        A query of another kind, with other bounds, levels or values, is refused.
        """
        own, asked = self.settings(), query.settings()
        loose = () if own.get("bounds") is not None else ("columns",) if own.get("outside") == "drop" else _LOOSE
        taken = {name: asked[name] for name in asked if name in own and (own[name] is None or name in loose)}
        made = type(self)(**own | taken) if type(query) is type(self.query) else self
        if not made.query.asks(query):
            raise ValueError(
                f"family must ask what the release was asked, {query}, got {self}, which asks {made.query}; "
                "give the same columns, bounds and levels, or leave them out."
            )
        return made

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

    def modelled(self, x: Num[Array, "..."]) -> tuple[Num[Array, "..."], ...]:
        """t(x) of records as HMC takes them, where it does not know of all that bounds do to them."""
        return self.query.statistic(x)

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
        counted = [jax.numpy.where(is_counted, t, jax.numpy.zeros_like(t)) for t in self.query.statistic(x)]
        s = jax.numpy.stack([t.sum(dtype=float) for t in counted])
        return self.update(prior, s, jax.numpy.maximum(is_counted.sum(dtype=float), _NO_RECORD)).sample(key)

    def named(self, theta):
        """θ by the names of its parameters; where there are several, they lie along the last axis."""
        if len(self.parameters) == 1:
            return {self.parameters[0]: theta}
        return {name: theta[..., j] for j, name in enumerate(self.parameters)}

    @property
    def is_natural(self) -> bool:
        """Whether the released sums are those of an exponential family, so that θ given them needs no records."""
        return True

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


class AbstractTruncatedFamily(AbstractFamily):
    """A family of numbers without a natural bound, known also by its CDF, so that public bounds may alter records.

    The law of what was summed, of clamped records and without those that were dropped, is the law that inference uses.
    """

    query: eqx.AbstractVar[AbstractColumn | PowerSums]

    @property
    def law(self) -> str | None:
        return self.name if self.query.is_altered else None

    @abc.abstractmethod
    def from_natural(self, eta: Float[Array, " k"]) -> Float[Array, "*batch"]:
        """θ(η)."""

    @abc.abstractmethod
    def log_below(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log P(X ≤ x), accurate when the probability is tiny."""

    @abc.abstractmethod
    def log_above(self, x: float, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log P(X ≥ x), accurate when the probability is tiny."""


class AbstractScalarFamily(AbstractFamily):
    """A family of one number with t(x) = x and one parameter."""

    query: eqx.AbstractVar[Sum]
    ceiling: eqx.AbstractClassVar[float]
    """The natural parameters are all that lie below this."""

    @property
    def exact_by(self) -> Literal["sum", "counts"] | None:
        return "sum"

    @property
    def is_count(self) -> bool:
        return self.query.is_whole and not self.query.is_altered

    def allows(self, low: Float[np.ndarray, "1"], high: Float[np.ndarray, "1"], n: float) -> bool:
        return bool(low[0] <= high[0]) and bool(high[0] >= 0) and bool(low[0] <= float(self.possible(n)[1]))

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


def checked_positive(name: str, value: object) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name} must be positive and finite, got {value}.")
    return float(value)  # type: ignore[arg-type]
