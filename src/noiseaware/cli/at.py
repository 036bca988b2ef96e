"""`--at "age=40, bmi=25"`: what y a new record will have, for a regression."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noiseaware.family import AbstractFamily
    from noiseaware.posterior.estimate import Estimate
    from noiseaware.posterior.posterior import Posterior

_PLACE = re.compile(r"\s*(.+?)\s*=\s*([^,=]+)(?:,|$)")  # a name may hold anything, = and commas too


def places(texts: Sequence[str] | None, family: "AbstractFamily") -> list[dict[str, float]]:
    """The covariates of each record, every one of them named once."""
    if not texts:
        return []
    from noiseaware.posterior.prediction import regression_of, rows_of

    names = regression_of(family).x
    found = [_place(text) for text in texts]
    for text, place in zip(texts, found, strict=True):
        if surplus := [name for name in place if name not in names]:
            raise ValueError(f"--at must name covariates among {', '.join(names)}, got {surplus[0]!r}.")
        if missing := [name for name in names if name not in place]:
            raise ValueError(f"--at must name every covariate, got none for {missing[0]!r} in {text!r}.")
        rows_of(family, place)
    return found


def _place(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    start = 0
    while start < len(text) or not found:
        item = _PLACE.match(text, start)
        if item is None:
            raise ValueError(f'--at must look like "age=40, bmi=25", got {text!r}.')
        if item[1] in found:
            raise ValueError(f"--at must name each covariate once, got {item[1]!r} twice.")
        try:
            found[item[1]] = float(item[2])
        except ValueError:
            raise ValueError(f"--at must have a number for each covariate, got {text!r}.") from None
        start = item.end()
    return found


def predicted(posterior: "Posterior", records: list[dict[str, float]]) -> tuple[list["Estimate"], list["Estimate"]]:
    """Estimate y of each record, and what someone who does not know of the noise would say of it."""
    import numpy as np

    from noiseaware.posterior import estimate
    from noiseaware.posterior.prediction import of_conjugate

    line = posterior.release.family.predictor
    rows = [[record[name] for name in line.x] for record in records]
    _, laws = of_conjugate(line.parted(posterior.naive)[0], np.array(rows))
    names = [f"{line.y} at {', '.join(f'{k} = {v:g}' for k, v in record.items())}" for record in records]
    own = [estimate.of_draws(name, draws) for name, draws in zip(names, posterior.predict(rows).draws.T, strict=True)]
    return own, [estimate.of_conjugate(name, law) for name, law in zip(names, laws, strict=True)]
