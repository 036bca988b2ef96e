"""The form of a file of draws, which its suffix says: netCDF for ArviZ, or a table with a row for each draw."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from noiseaware.check import explained, require

if TYPE_CHECKING:
    from noiseaware.posterior.posterior import Posterior


def _net_cdf(posterior: "Posterior", path: Path) -> None:
    posterior.to_arviz().to_netcdf(path, engine="h5netcdf")


def _csv(posterior: "Posterior", path: Path) -> None:
    import pandas as pd

    pd.DataFrame(posterior.marginals()).to_csv(path, index=False)


def _parquet(posterior: "Posterior", path: Path) -> None:
    import pandas as pd

    pd.DataFrame(posterior.marginals()).to_parquet(path, engine="pyarrow", index=False)


_FORMS: dict[str, Callable[["Posterior", Path], None]] = {".nc": _net_cdf, ".csv": _csv, ".parquet": _parquet}


def form_of(path: Path) -> Callable[["Posterior", Path], None]:
    """Return the function that writes a posterior's draws to such a path; one that says no form is refused."""
    suffix = path.suffix.lower()
    if suffix not in _FORMS:
        raise ValueError(f"output must end in .nc (netCDF), .csv or .parquet, which is its form, got {path}.")
    if suffix == ".parquet":
        try:
            require("parquet")
        except ModuleNotFoundError as missing:
            raise ImportError(explained(missing)) from None
    return _FORMS[suffix]
