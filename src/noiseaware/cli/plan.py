"""What to release, from options or from a TOML file:

table = "clinic.csv"            paths are relative to the plan
ledger = "clinic.ledger"        or: ledger = false

[[release]]
family = "exponential"
column = "wait_hours"
bounds = [0, 48]                or: bounds = "private", and bounds_share = "0.1"
epsilon = "0.5"
output = "wait.json"

[[release]]
family = "linear_regression"    or: family = "multivariate_normal", and columns = ["age", "pressure"]
x = ["age"]
y = "pressure"
bounds = { age = [0, 100], pressure = [60, 220] }
epsilon = "0.5"
output = "pressure.json"
"""

import inspect
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noiseaware.cli.bounds import PRIVATE

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily
    from noiseaware.privacy import Promise

FAMILIES = ("bernoulli", "binomial", "categorical", "exponential", "gamma", "geometric", "normal", "poisson")
FAMILIES += ("multivariate_normal", "linear_regression")
_COLUMNS = ("column", "columns", "x", "y")
_OPTIONS = ("bounds", "outside", "trials", "levels", "variance", "shape")
_PRICE = ("epsilon", "rho", "delta", "neighbours")
_CHOICE = ("bounds_share", "bounds_quantiles")


@dataclass(frozen=True)
class Item:
    """One release to make, and where to write it."""

    table: str
    family: "AbstractFamily"
    epsilon: str | None
    rho: str | None
    delta: str | None
    neighbours: str
    output: str
    choice: dict[str, Any] = field(default_factory=dict)
    """How bounds are chosen privately; empty where they are public."""

    @property
    def promise(self) -> "Promise":
        from noiseaware.privacy import promised

        return promised(epsilon=self.epsilon, rho=self.rho, delta=self.delta)


@dataclass(frozen=True)
class Plan:
    items: list[Item]
    ledger: str | None


def item(table: str, output: str, wanted: dict[str, Any]) -> Item:
    """One release from named options; those that are None were not given."""
    from noiseaware.privacy import promised

    given = {k: v for k, v in wanted.items() if v is not None}
    price = [given.pop(name, default) for name, default in zip(_PRICE, (None, None, None, "replace"), strict=True)]
    epsilon, rho, delta = (None if p is None else str(p) for p in price[:3])
    promised(epsilon=epsilon, rho=rho, delta=delta)  # refuses here what is not a positive number
    choice = _choice(given)
    return Item(table, family(given), epsilon, rho, delta, price[3], output, choice)


def _choice(given: dict[str, Any]) -> dict[str, Any]:
    """What says how bounds are chosen privately, taken out of the options."""
    choice = {name: given.pop(name) for name in _CHOICE if name in given}
    if given.get("bounds") == PRIVATE:
        return {"bounds": given.pop("bounds"), **choice}
    if choice:
        name = next(iter(choice))
        raise ValueError(f"{name} must not be given unless bounds are private, got {choice[name]}.")
    return {}


def family(given: dict[str, Any]) -> "AbstractFamily":
    """A family from its name, columns and options."""
    import noiseaware.family as families

    given = dict(given)
    name = given.pop("family", None)
    if name not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {name!r}.")
    cls = getattr(families, name.title().replace("_", ""))
    known = inspect.signature(cls).parameters
    for need in _COLUMNS:
        if need in known and not given.get(need):
            raise ValueError(f"{need} must name a column of the table for a {name} release, got nothing.")
    for single in ("column", "y"):
        if not isinstance(given.get(single, ""), str):
            raise ValueError(f"{single} must be the name of a column, got {given[single]!r}.")
    for several in ("columns", "x"):
        if not isinstance(given.get(several, ""), str | list):
            raise ValueError(f"{several} must be a list of columns, got {given[several]!r}.")
    if surplus := sorted(set(given) - set(known)):
        raise ValueError(f"{surplus[0]} must not be given for a {name} release, got {given[surplus[0]]}.")
    for need in ("trials", "levels"):
        if need in known and need not in given:
            raise ValueError(f"{need} must be given for a {name} release, got nothing.")
    return cls(**given)


def levels(text: str | None) -> list[str] | list[int] | None:
    """Levels between commas; whole numbers if all of them are."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise ValueError(f"levels must be names between commas, got {text!r}.")
    return [int(p) for p in parts] if all(p.lstrip("-").isdecimal() and p.isascii() for p in parts) else parts


def read(path: str) -> Plan:
    """The plan that a TOML file holds; refused in one sentence if anything in it is off."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"plan must exist, got {path}.") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"plan {path} must be readable TOML: {error}.") from None
    _check_keys(path, document, {"table", "ledger", "release"})
    entries, ledger = document.get("release"), document.get("ledger")
    if not isinstance(document.get("table"), str):
        raise ValueError(f"{path}: table must be the path of a file, got {document.get('table')!r}.")
    if not (isinstance(ledger, str) or ledger is False):
        raise ValueError(f"{path}: ledger must be a path, or false to release without one, got {ledger!r}.")
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path}: release must be one or more [[release]] entries, got {entries!r}.")
    folder = os.path.dirname(path)
    table = os.path.join(folder, document["table"])
    items = [_entry(f"{path}: release {i}", table, folder, entry) for i, entry in enumerate(entries, 1)]
    return Plan(items, os.path.join(folder, ledger) if ledger else None)


def _entry(where: str, table: str, folder: str, entry: object) -> Item:
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: must be a table of options, got {entry!r}.")
    _check_keys(where, entry, {"family", "output", *_COLUMNS, *_OPTIONS, *_CHOICE, *_PRICE})
    output = entry.get("output")
    if not isinstance(output, str) or output == "-":
        raise ValueError(f"{where}: output must be the path of a file, got {output!r}.")
    try:
        return item(table, os.path.join(folder, output), {k: v for k, v in entry.items() if k != "output"})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _check_keys(where: str, document: dict, known: set[str]) -> None:
    if surplus := sorted(set(document) - known):
        raise ValueError(f"{where}: fields must be among {', '.join(sorted(known))}, got {surplus[0]!r}.")
