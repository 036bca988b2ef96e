"""The Release: the only thing that crosses from custodian to analyst.

It holds what an analyst needs, and nothing of the data that was not paid for: the family and its public bounds,
each noisy statistic as a number of grid steps, the law of its noise, n, and what was promised to whom. Its JSON
form is checked strictly on the way in, since a release file is untrusted.
"""

import importlib.resources
import inspect
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

import noiseaware.family as families
import noiseaware.mechanism as mechanisms
from noiseaware.family import AbstractFamily
from noiseaware.file import write_whole
from noiseaware.mechanism import AbstractMechanism
from noiseaware.privacy import Approximate, Neighbours, Promise, Pure, ZeroConcentrated, exact, plain

SCHEMA_VERSION = 1

_NAMES = ("bernoulli", "binomial", "categorical", "exponential", "gamma", "geometric", "normal", "poisson")
_NAMES += ("linear_regression", "multivariate_normal")
_FAMILIES = {name: getattr(families, name.title().replace("_", "")) for name in _NAMES}
_MECHANISMS = {
    "laplace": mechanisms.Laplace,
    "discrete_laplace": mechanisms.DiscreteLaplace,
    "gaussian": mechanisms.Gaussian,
    "discrete_gaussian": mechanisms.DiscreteGaussian,
    "identity": mechanisms.Identity,
}
# Fields of families that go by another name in a release.
_FIELDS = {"names": "columns", "intervals": "bounds"}
_LAWS = {cls: law for law, cls in _MECHANISMS.items()}


@dataclass(frozen=True)
class Origin:
    """Where a release comes from: tool, time, the ledger's entry that paid for it, and how its bounds were chosen.

    Private bounds were chosen near quantiles, for a share of the guarantee; one quantile: the upper bound alone was.
    """

    tool: str | None = None
    version: str | None = None
    created: str | None = None
    ledger_entry: str | None = None
    bounds: Literal["public", "private"] = "public"
    bounds_share: Fraction | None = None
    bounds_quantiles: tuple[Fraction, ...] = ()


class Release:
    """Noisy statistics of a table, with all that is needed to reason from them.

    `values` counts grid steps: the statistic is values · grid, and the mechanism's scale counts grid steps too.
    """

    def __init__(
        self,
        *,
        family: AbstractFamily,
        values,
        n: int,
        mechanism: AbstractMechanism,
        grid: float = 1.0,
        neighbours: Neighbours = "replace",
        guarantee: Promise | None = None,
        origin: Origin = Origin(),
    ) -> None:
        self.family = family
        self.steps = _checked_values(values, family, mechanism)
        self.n = _checked_count(n)
        self.mechanism = _checked_mechanism(mechanism, family)
        self.grid = grid
        self.neighbours: Neighbours = neighbours
        self.guarantee = guarantee
        self.origin = origin

    @property
    def values(self) -> np.ndarray:
        """The noisy statistics in the units of the data."""
        return np.array([float(v) * self.grid for v in self.steps])

    @property
    def noise_scale(self) -> float | np.ndarray:
        """The scale or standard deviation of the noise in the units of the data: one, or one for each statistic."""
        spread = self.mechanism.spread
        return (np.asarray(spread) if np.ndim(spread) else float(spread)) * self.grid  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        law = _LAWS[type(self.mechanism)].replace("_", " ")
        promise = self.guarantee or "no stated guarantee"
        scale = " or ".join(f"{value:.6g}" for value in np.unique(self.noise_scale))
        return f"Release({self.family.name}, n={self.n}, {law} noise of scale {scale}, {promise})"

    def to_json(self) -> str:
        """The release as JSON text."""
        return _Document.of(self).model_dump_json(indent=2, exclude_none=True) + "\n"

    def save(self, path: str | os.PathLike, *, force: bool = False) -> None:
        """Write the release as JSON, whole or not at all."""
        write_whole(path, self.to_json(), force=force)


def load(path: str | os.PathLike, *, families: Iterable[type[AbstractFamily]] = ()) -> Release:
    """Read a release file; `families` are those of your own that it may name."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"release file must exist, got {path}.") from None
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"release file must be readable UTF-8 text, got {path}.") from None
    return from_json(text, source=str(path), families=families)


def from_json(text: str, *, source: str = "release", families: Iterable[type[AbstractFamily]] = ()) -> Release:
    """The release that a JSON text holds; refused in one sentence if anything in it is off."""
    _refuse_newer(text, source)
    known = {cls.name: cls for cls in families} | _FAMILIES
    try:
        return _Document.model_validate_json(text).release(known)
    except ValidationError as error:
        raise ValueError(f"{source}: {_sentence(error)}") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def json_schema() -> dict:
    """The JSON Schema of a release file, as published with the package."""
    return json.loads(importlib.resources.files("noiseaware").joinpath("release.schema.json").read_text())


# ---- the JSON form, published as release.schema.json ---------------------------------------------------------


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


_Pair = tuple[FiniteFloat, FiniteFloat]


class _Family(_Strict):
    """A family by name, with the fields that it has; the rest stay null."""

    name: str = Field(description="One of: " + ", ".join(sorted(_FAMILIES)))
    column: str | None = None
    columns: list[str] | None = None
    x: list[str] | None = None
    y: str | None = None
    bounds: _Pair | list[_Pair] | None = Field(
        default=None, description="Of the column; of several, a pair for each of them in order"
    )
    outside: Literal["clamp", "drop"] | None = None
    trials: int | None = None
    levels: list[str] | list[int] | None = None
    variance: FiniteFloat | None = None
    shape: FiniteFloat | None = None

    @classmethod
    def of(cls, family: AbstractFamily) -> "_Family":
        named = {_FIELDS.get(field.name, field.name): getattr(family, field.name) for field in fields(family)}
        for several in ("levels", "columns", "x"):
            if several in named:
                named[several] = list(named[several])
        if named.get("bounds") is not None and "intervals" in vars(family):
            named["bounds"] = list(named["bounds"])
        return cls(name=family.name, **named)

    def family(self, families: Mapping[str, Callable[..., AbstractFamily]]) -> AbstractFamily:
        if self.name not in families:
            raise ValueError(f"family.name must be one of {', '.join(sorted(families))}, got {self.name!r}.")
        cls = families[self.name]
        given = {k: v for k, v in self.model_dump(exclude={"name"}).items() if v is not None}
        known = set(inspect.signature(cls).parameters)
        if surplus := sorted(set(given) - known):
            raise ValueError(f"family.{surplus[0]} must be null for a {self.name} family, got {given[surplus[0]]}.")
        missing = sorted({"trials", "levels", "shape", "columns", "x", "y"} & known - set(given))
        if missing:
            raise ValueError(f"family.{missing[0]} must be given for a {self.name} family, got null.")
        return cls(**given)


class _Statistic(_Strict):
    name: str
    value: int | FiniteFloat = Field(description="The noisy statistic in grid steps")


class _Noise(_Strict):
    law: Literal["laplace", "discrete_laplace", "gaussian", "discrete_gaussian", "identity"]
    scale: FiniteFloat | list[FiniteFloat] | None = Field(
        default=None,
        description="Scale (Laplace) or standard deviation (Gaussian) in grid steps: of all statistics, or of each",
    )

    def mechanism(self) -> AbstractMechanism:
        if self.law == "identity":
            return mechanisms.Identity()
        if self.scale is None:
            raise ValueError(f"noise.scale must be given for {self.law} noise, got null.")
        return _MECHANISMS[self.law](self.scale)


class _Guarantee(_Strict):
    kind: Literal["pure", "zcdp", "approximate"]
    cost: str = Field(description="ε or ρ as an exact decimal or fraction")
    delta: str | None = Field(default=None, description="δ of an approximate guarantee, likewise")

    def guarantee(self) -> Promise:
        cost = exact("guarantee.cost", self.cost)
        if (self.delta is None) == (self.kind == "approximate"):
            rule = "given for an approximate guarantee" if self.delta is None else f"null for a {self.kind} guarantee"
            raise ValueError(f"guarantee.delta must be {rule}, got {self.delta or 'null'}.")
        if self.delta is not None:
            return Approximate(cost, _proper("guarantee.delta", self.delta))
        return Pure(cost) if self.kind == "pure" else ZeroConcentrated(cost)


class _Origin(_Strict):
    tool: str | None = None
    version: str | None = None
    created: str | None = None
    ledger_entry: str | None = None
    bounds: Literal["public", "private"]
    bounds_share: str | None = Field(
        default=None, description="Part of the guarantee's cost that the choice of private bounds took"
    )
    bounds_quantiles: list[str] | None = Field(
        default=None, description="Quantiles near which private bounds were chosen; one: that of the upper bound alone"
    )

    @classmethod
    def of(cls, origin: Origin) -> "_Origin":
        share, quantiles = origin.bounds_share, [plain(q) for q in origin.bounds_quantiles]
        named = vars(origin) | {
            "bounds_share": None if share is None else plain(share),
            "bounds_quantiles": quantiles or None,
        }
        return cls(**named)  # type: ignore[arg-type]

    def origin(self) -> Origin:
        if self.bounds == "public" and (self.bounds_share or self.bounds_quantiles):
            raise ValueError("origin.bounds must be private where it has a share or quantiles, got public.")
        share = None if self.bounds_share is None else _proper("origin.bounds_share", self.bounds_share)
        quantiles = tuple(_proper("origin.bounds_quantiles", q) for q in self.bounds_quantiles or ())
        if len(quantiles) > 2 or sorted(quantiles) != list(quantiles):
            raise ValueError(f"origin.bounds_quantiles must be one or two in order, got {self.bounds_quantiles}.")
        named = self.model_dump() | {"bounds_share": share, "bounds_quantiles": quantiles}
        return Origin(**named)


class _Document(_Strict):
    """A noiseaware release: noisy statistics of one table."""

    model_config = ConfigDict(title="noiseaware release")

    schema_version: Literal[1]
    family: _Family
    statistics: list[_Statistic]
    grid: FiniteFloat = Field(gt=0, description="The size of one grid step in the units of the data")
    noise: _Noise
    n: int = Field(ge=1, description="Number of records, public")
    neighbours: Literal["replace", "add_remove"]
    guarantee: _Guarantee | None = None
    origin: _Origin

    @classmethod
    def of(cls, release: Release) -> "_Document":
        names = release.family.statistics
        spread = np.asarray(release.mechanism.spread)
        scale = spread.tolist() if spread.any() else None
        promise = release.guarantee
        return cls(
            schema_version=SCHEMA_VERSION,
            family=_Family.of(release.family),
            statistics=[_Statistic(name=k, value=v) for k, v in zip(names, release.steps, strict=True)],
            grid=release.grid,
            noise=_Noise(law=_LAWS[type(release.mechanism)], scale=scale),  # type: ignore[arg-type]
            n=release.n,
            neighbours=release.neighbours,
            guarantee=None if promise is None else _guarantee_document(promise),
            origin=_Origin.of(release.origin),
        )

    def release(self, families: Mapping[str, Callable[..., AbstractFamily]]) -> Release:
        family = self.family.family(families)
        names = tuple(s.name for s in self.statistics)
        if names != family.statistics:
            raise ValueError(f"statistics must be named {list(family.statistics)}, got {list(names)}.")
        return Release(
            family=family,
            values=[s.value for s in self.statistics],
            n=self.n,
            mechanism=self.noise.mechanism(),
            grid=self.grid,
            neighbours=self.neighbours,
            guarantee=None if self.guarantee is None else self.guarantee.guarantee(),
            origin=self.origin.origin(),
        )


def _proper(name: str, text: str) -> Fraction:
    """A fraction between 0 and 1."""
    fraction = exact(name, text)
    if fraction >= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {text}.")
    return fraction


def _guarantee_document(promise: Promise) -> _Guarantee:
    if isinstance(promise, Approximate):
        return _Guarantee(kind="approximate", cost=plain(promise.epsilon), delta=plain(promise.delta))
    if isinstance(promise, Pure):
        return _Guarantee(kind="pure", cost=plain(promise.epsilon))
    return _Guarantee(kind="zcdp", cost=plain(promise.rho))


def _refuse_newer(text: str, source: str) -> None:
    try:
        version = json.loads(text)["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # the strict check says what is wrong
    if isinstance(version, int) and version > SCHEMA_VERSION:
        rule = f"schema_version must be at most {SCHEMA_VERSION}, got {version}"
        raise ValueError(f"{source}: {rule}; upgrade noiseaware.")


def _sentence(error: ValidationError) -> str:
    """What is wrong, as field, rule and value: of several forms that a field can take, the one that it is most like."""
    first = max(error.errors(include_url=False, include_context=False), key=lambda found: len(found["loc"]))
    parts = [str(part) for part in first["loc"] if str(part) != "float" and "[" not in str(part)]
    shown = "" if first["type"] in ("missing", "json_invalid") else f", got {str(first['input'])[:60]!r}"
    return f"{'.'.join(parts) or 'file'}: {first['msg']}{shown}."


def _checked_values(values, family: AbstractFamily, mechanism: AbstractMechanism) -> tuple[int | float, ...]:
    steps = tuple(v if isinstance(v, int) else float(v) for v in np.atleast_1d(np.asarray(values, object)))
    if len(steps) != len(family.statistics):
        raise ValueError(f"values must have {len(family.statistics)} entries for this family, got {len(steps)}.")
    for v in steps:
        if not math.isfinite(v):
            raise ValueError(f"values must be finite, got {v}.")
        if mechanism.is_discrete and v != math.floor(v):
            raise ValueError(f"values must be whole numbers under discrete noise, got {v}.")
    return tuple(int(v) for v in steps) if mechanism.is_discrete else steps


def _checked_mechanism(mechanism: AbstractMechanism, family: AbstractFamily) -> AbstractMechanism:
    shape, count = np.shape(mechanism.spread), len(family.statistics)
    if shape not in ((), (count,)):
        raise ValueError(f"noise must have one scale, or {count} for this family, got {math.prod(shape)}.")
    return mechanism


def _checked_count(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1, got {n}.")
    return int(n)
