"""Draws for other tools: a DataTree for ArviZ, or a file in the form that its suffix says.

A table has a row for each draw, and a column for each number.
"""

import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from noiseaware.check import explained, require
from noiseaware.file import __version__, check_free
from noiseaware.posterior.diagnostic import CHAINS
from noiseaware.posterior.numbers import AbstractPosterior

if TYPE_CHECKING:
    import xarray as xr


def tree(posterior: AbstractPosterior) -> "xr.DataTree":
    """Return the draws with ArviZ's groups, dimensions and attributes."""
    import xarray as xr

    attributes = _attributes(posterior)
    groups = {"/": xr.Dataset(attrs=attributes), "/posterior": _draws(posterior, attributes)}
    return xr.DataTree.from_dict(groups | {"/observed_data": _observed(posterior)})


def save(posterior: AbstractPosterior, path: str | os.PathLike, *, force: bool) -> None:
    """Write the draws, whole or not at all, in the form that the suffix says."""
    path = Path(path)
    write = form_of(path)
    check_free(path, force=force)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        draft = Path(folder) / path.name
        write(posterior, draft)
        os.replace(draft, path)


def _attributes(posterior: AbstractPosterior) -> dict[str, str | int | float]:
    return {
        "inference_library": "noiseaware",
        "inference_library_version": __version__,
        "method": posterior.method,
        "is_exact": int(posterior.is_exact),
        "explanation": posterior.explanation or "",
        "choice": posterior.choice or "",
        "concerns": " ".join(posterior.concerns),
        "prior_predictive_tail": math.nan if posterior.tail is None else posterior.tail,
        "prior": str(posterior.prior),
        "seed": posterior.seed,
        **posterior.info,
        "release": posterior.release.to_json(),
    } | {f"release_{i}": other.to_json() for i, other in enumerate(posterior.others, 2)}


def _draws(posterior: AbstractPosterior, attributes: dict) -> "xr.Dataset":
    import xarray as xr

    chains = next(c for c in (CHAINS, 3, 2, 1) if posterior.num_draws % c == 0)
    axes = posterior.release.family.axes
    shaped = {
        parameter: (
            ("chain", "draw", *(axis for axis, _ in axes.get(parameter, ()))),
            values.reshape(chains, -1, *values.shape[1:]),
        )
        for parameter, values in posterior.draws.items()
    }
    coords: dict = {"chain": np.arange(chains), "draw": np.arange(posterior.num_draws // chains)}
    coords |= {axis: np.array(labels) for pairs in axes.values() for axis, labels in pairs}
    return xr.Dataset(shaped, coords, attrs=attributes)


def _observed(posterior: AbstractPosterior) -> "xr.Dataset":
    import xarray as xr

    names = list(posterior.release.query.names)
    names += [f"{name}_{i}" for i, other in enumerate(posterior.others, 2) for name in other.query.names]
    values = np.concatenate([release.values for release in posterior.releases])
    return xr.Dataset({"y": (("statistic",), values)}, {"statistic": np.array(names)})


def _net_cdf(posterior: AbstractPosterior, path: Path) -> None:
    tree(posterior).to_netcdf(path, engine="h5netcdf")


def _csv(posterior: AbstractPosterior, path: Path) -> None:
    import pandas as pd

    pd.DataFrame(posterior.marginals()).to_csv(path, index=False)


def _parquet(posterior: AbstractPosterior, path: Path) -> None:
    import pandas as pd

    pd.DataFrame(posterior.marginals()).to_parquet(path, engine="pyarrow", index=False)


_FORMS: dict[str, Callable[[AbstractPosterior, Path], None]] = {".nc": _net_cdf, ".csv": _csv, ".parquet": _parquet}


def form_of(path: Path) -> Callable[[AbstractPosterior, Path], None]:
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
