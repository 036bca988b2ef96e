"""The recipe of a release, from options or from a TOML file:

table = "clinic.csv"            paths are relative to the plan; spark = true reads the file with Spark
                                or: table = "postgresql://user@host/database", and table_name = "visits"
ledger = "clinic.ledger"        or: ledger = false, or a URL postgresql://user@host/database

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

[[release]]
family = "bernoulli"
column = "ill"
epsilon = 0.5
by = { region = ["north", "south"] }    a file for each group, in the folder `output`
unit = "patient_id"                     of each patient at most
max_records = 3                         three records are summed
true = ["F"]                            the words that are yes, where they are not true, yes, 1 …
missing = "leave_out"                   or a value that a missing cell counts as: 0, true, { age = 40, pressure = 120 }
output = "ill"
"""

import inspect
import itertools
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from noiseaware.cli.bounds import PRIVATE
from noiseaware.family import BUILT_IN, built_in

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily
    from noiseaware.privacy import Promise

_COLUMNS = ("column", "columns", "x", "y")
_PRICE = ("epsilon", "rho", "delta", "neighbours")
_CHOICE = ("bounds_share", "bounds_quantiles")
_DIVISION = ("n_share", "by", "unit", "max_records")
_CELLS = ("missing", "true")
_VALUE = re.compile(r"\s*(.+?)\s*=\s*([^,=]+?)\s*(?:,|$)")
_PLACE = (("table", str, "the path of a file or a URL"), ("table_name", str, "a name"), ("spark", bool, "true"))


@dataclass(frozen=True)
class Item:
    """One release to make, and where to write it."""

    table: str
    family: "AbstractFamily"
    epsilon: str | None
    rho: str | None
    delta: str | None
    neighbours: str | None
    output: str
    choice: dict[str, Any] = field(default_factory=dict)
    """Options of privately chosen bounds; empty where bounds are public."""
    division: dict[str, Any] = field(default_factory=dict)
    """The share of n, groups with their levels, and the unit with its records."""
    cells: dict[str, Any] = field(default_factory=dict)
    """Options on missing cells and on the words for yes; empty where neither was given."""
    table_name: str | None = None
    spark: bool = False

    @property
    def terms(self) -> dict[str, Any]:
        """Arguments of `na.release` besides the table, the family and the ledger."""
        price = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta, "neighbours": self.neighbours}
        return price | self.division | self.choice | self.cells

    @property
    def files(self) -> list[str]:
        """The file that is written; for groups, one each in the folder `output`."""
        if "by" not in self.division:
            return [self.output]
        levels = self.division["levels"]
        keys = itertools.product(*(levels[column] for column in self.division["by"]))
        named = (",".join(f"{c}={v}" for c, v in zip(self.division["by"], key, strict=True)) for key in keys)
        return [os.path.join(self.output, f"{quote(name, safe='=, ')}.json") for name in named]

    @property
    def promise(self) -> "Promise":
        """The promise, which is also the price."""
        from noiseaware.privacy import promised

        return promised(epsilon=self.epsilon, rho=self.rho, delta=self.delta)


@dataclass(frozen=True)
class Plan:
    """The releases to make, the ledger that pays for them (None for none), and the file that says so, if one does."""

    items: list[Item]
    ledger: str | None
    path: str | None = None


def item(place: dict[str, Any], output: str, wanted: dict[str, Any]) -> Item:
    """One release from where its table is, and from named options; those that are None were not given."""
    from noiseaware.privacy import promised

    given = {k: v for k, v in wanted.items() if v is not None}
    price = [given.pop(name, None) for name in _PRICE]
    epsilon, rho, delta = (None if p is None else str(p) for p in price[:3])
    promised(epsilon=epsilon, rho=rho, delta=delta)  # refuses here what is not a positive number
    choice, division = _choice(given), _division(given)
    cells = {name: given.pop(name) for name in _CELLS if name in given}
    if "by" in division and output == "-":
        raise ValueError("output must be a folder where a table is released by groups, got -.")
    model = family(given)
    if "missing" in cells:
        cells["missing"] = _missing(cells["missing"], model)
    return Item(
        family=model,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        neighbours=price[3],
        output=output,
        choice=choice,
        division=division,
        cells=cells,
        **place,
    )


def _missing(value: Any, model: "AbstractFamily") -> Any:
    """Read the value of missing cells; texts that are numbers become numbers, unless levels are texts."""
    if isinstance(value, str) and len(model.query.columns) > 1 and "=" in value:
        value = _by_column(value)
    if isinstance(value, dict):
        return {column: _missing(own, model) for column, own in value.items()}
    is_level_text = isinstance(next(iter(model.query.levels or ()), None), str)
    if not isinstance(value, str) or is_level_text:
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _by_column(text: str) -> dict[str, str]:
    """Values by column, from a text such as age=40, pressure=120."""
    pairs = _VALUE.findall(text)
    if _VALUE.sub("", text) or len(dict(pairs)) < len(pairs):
        raise ValueError(f'--missing must look like "age=40, pressure=120", each column once, got {text!r}.')
    return dict(pairs)


def _division(given: dict[str, Any]) -> dict[str, Any]:
    """Take the unit and the groups out of the options."""
    found = {name: given.pop(name) for name in _DIVISION if name in given}
    if "n_share" in found:
        found["n_share"] = str(found["n_share"])
    if "by" not in found:
        return found
    levels = found["by"]
    if not isinstance(levels, dict) or not levels or not all(isinstance(own, list) for own in levels.values()):
        raise ValueError(f"by must give the public levels of each column: region=north,south, got {levels!r}.")
    return found | {"by": list(levels), "levels": levels}


def groups(texts: list[str] | None) -> dict[str, Any] | None:
    """Columns and their public levels from texts such as region=north,south."""
    if not texts:
        return None
    pairs = [text.partition("=") for text in texts]
    for text, (column, sign, _) in zip(texts, pairs, strict=True):
        if not (column and sign):
            raise ValueError(f"--by must be a column and its public levels, such as region=north,south, got {text!r}.")
    return {column: levels(named) for column, _, named in pairs}


def _choice(given: dict[str, Any]) -> dict[str, Any]:
    """Take the private choice of bounds out of the options."""
    choice = {name: given.pop(name) for name in _CHOICE if name in given}
    if given.get("bounds") == PRIVATE:
        return {"bounds": given.pop("bounds"), **choice}
    if choice:
        name = next(iter(choice))
        raise ValueError(f"{name} must not be given unless bounds are private, got {choice[name]}.")
    return {}


def family(given: dict[str, Any]) -> "AbstractFamily":
    """A family from its name, columns and options."""
    given = dict(given)
    name = given.pop("family", None)
    if name not in BUILT_IN:
        got = "nothing" if name is None else repr(name)
        raise ValueError(f"family must be one of {', '.join(BUILT_IN)}, got {got}.")
    cls = built_in(name)
    known = inspect.signature(cls).parameters
    for need in _COLUMNS:
        if need in known and not given.get(need):
            raise ValueError(f"{need} must name a column of the table for the {name} family, got nothing.")
    for single in ("column", "y"):
        if not isinstance(given.get(single, ""), str):
            raise ValueError(f"{single} must be the name of a column, got {given[single]!r}.")
    for several in ("columns", "x"):
        if not isinstance(given.get(several, ""), str | list):
            raise ValueError(f"{several} must be a list of columns, got {given[several]!r}.")
    if surplus := sorted(set(given) - set(known)):
        raise ValueError(f"{surplus[0]} must not be given for the {name} family, got {given[surplus[0]]}.")
    for need, option in known.items():
        if option.default is option.empty and need not in given:
            raise ValueError(f"{need} must be given for the {name} family, got nothing.")
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
    _check_keys(path, document, {"table", "table_name", "spark", "ledger", "release"})
    entries, ledger = document.get("release"), document.get("ledger")
    where = _place(path, document)
    if not (isinstance(ledger, str) and ledger) and ledger is not False:
        raise ValueError(f"{path}: ledger must be a path or a URL, or false to release without one, got {ledger!r}.")
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path}: release must be one or more [[release]] entries, got {entries!r}.")
    folder = os.path.dirname(path)
    items = [_entry(f"{path}: release {i}", where, folder, entry) for i, entry in enumerate(entries, 1)]
    if isinstance(ledger, str):
        from noiseaware.custodian.ledger.ledger import check_place

        check_place(ledger)  # before it is made a path, which a connection string is not
        ledger = ledger if "://" in ledger else os.path.join(folder, ledger)
    return Plan(items, ledger or None, path)


def _place(path: str, document: dict) -> dict[str, Any]:
    """The place of a plan's table."""
    for name, kind, rule in _PLACE:
        if name in document and not isinstance(document[name], kind):
            raise ValueError(f"{path}: {name} must be {rule}, got {document[name]!r}.")
    if not document.get("table"):
        raise ValueError(f"{path}: table must be the path of a file or a URL, got nothing.")
    from noiseaware.custodian.engine.connection import is_meant

    table = document["table"]
    if is_meant(table) and "://" not in table:  # which is no path, and may hold a password
        raise ValueError(f"{path}: table must be the path of a file or a URL, got another connection string.")
    table = table if "://" in table else os.path.join(os.path.dirname(path), table)
    return {"table": table, "table_name": document.get("table_name"), "spark": document.get("spark", False)}


def _entry(where: str, place: dict[str, Any], folder: str, entry: object) -> Item:
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: must be a table of options, got {entry!r}.")
    options = {option for name in BUILT_IN for option in inspect.signature(built_in(name)).parameters}
    _check_keys(where, entry, {"family", "output", *options, *_CHOICE, *_PRICE, *_DIVISION, *_CELLS})
    output = entry.get("output")
    if not isinstance(output, str) or output == "-":
        raise ValueError(f"{where}: output must be the path of a file, got {output!r}.")
    try:
        return item(place, os.path.join(folder, output), {k: v for k, v in entry.items() if k != "output"})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _check_keys(where: str, document: dict, known: set[str]) -> None:
    if surplus := sorted(set(document) - known):
        raise ValueError(f"{where}: fields must be among {', '.join(sorted(known))}, got {surplus[0]!r}.")
