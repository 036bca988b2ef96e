"""A family from options alone, where there is no table: columns that were not named get names."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily
    from noiseaware.prior import AbstractPrior


def model(name: str, prior: "AbstractPrior", given: dict[str, Any]) -> "AbstractFamily":
    """A family by its name, or a person's own by where it is; options that are None were not given."""
    from noiseaware.cli import own
    from noiseaware.cli.plan import family
    from noiseaware.prior import Dirichlet

    given = {option: value for option, value in given.items() if value is not None}
    if ":" in name:
        return own.family(name, given)
    if name == "binomial":
        given = {"trials": 1, **given}
    if name == "categorical" and isinstance(prior, Dirichlet):
        given = {"levels": list(range(len(prior.concentration))), **given}
    return family({"family": name, **_columns(name, prior), **given})


def _columns(name: str, prior: "AbstractPrior") -> dict[str, Any]:
    """Names for columns that have none: as many as the prior has means."""
    import numpy as np

    count = np.size(getattr(prior, "mean", 0))
    if name.endswith("_regression"):
        return {"x": [f"x{j}" for j in range(1, count)] or ["x1"], "y": "y"}
    if name == "multivariate_normal":
        return {"columns": [f"x{j}" for j in range(1, count + 1)]}
    return {"column": "record"}
