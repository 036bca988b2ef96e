"""A family from options alone, where there is no table: columns that were not named get names."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily
    from noiseaware.prior import AbstractPrior

# Options that make a family, of every command that has no table.
Bounds = Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Public bounds, of all columns.")]
ColumnBounds = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=LOW:HIGH", help='Public bounds of several columns: "age=0:100, bmi=10:60".'),
]
X = Annotated[
    list[str] | None, typer.Option("--x", metavar="NAMES", help="Covariates of the regression; else x1, x2 …")
]
Y = Annotated[str | None, typer.Option("--y", help="What the regression explains; else y.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", metavar="NAMES", help="Columns of the multivariate_normal; else x1, x2 …"),
]
Outside = Annotated[str | None, typer.Option(help="What becomes of a record outside: clamp or drop.")]
RecordTrials = Annotated[int | None, typer.Option(help="Trials a record, for the binomial; else 1.")]
LevelNames = Annotated[str | None, typer.Option("--levels", help="Levels of the categorical: a,b,c")]
Variance = Annotated[float | None, typer.Option(help="Known variance of the normal.")]
Shape = Annotated[float | None, typer.Option(help="Known shape of the gamma.")]


def model(name: str, prior: "AbstractPrior", given: dict[str, Any]) -> "AbstractFamily":
    """A family by its name, or a person's own by where it is; options that are None were not given."""
    from noiseaware.cli import own
    from noiseaware.cli.recipe import family

    given = {option: value for option, value in given.items() if value is not None}
    if ":" in name:
        return own.family(name, given)
    if name == "binomial":
        given = {"trials": 1, **given}
    if name == "categorical" and (count := len(prior.marginals())) > 1:
        given = {"levels": list(range(count)), **given}
    return family({"family": name, **_columns(name, prior), **given})


def _columns(name: str, prior: "AbstractPrior") -> dict[str, Any]:
    """Names for columns that have none: as many as the prior has means."""
    import numpy as np

    believed = getattr(prior, "parts", {}).get("regression", prior)
    count = np.size(getattr(believed, "mean", 0))
    if name.endswith("_regression"):
        return {"x": [f"x{j}" for j in range(1, count)] or ["x1"], "y": "y"}
    if name == "multivariate_normal":
        return {"columns": [f"x{j}" for j in range(1, count + 1)]}
    return {"column": "record"}
