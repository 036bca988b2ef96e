"""PipelineDP: pairs of a partition and its metrics, with the noise's standard deviation beside each of them.

The noise is continuous but for a grid of 2^−40, and nothing is done to the sums: they may be negative and are no whole
numbers. Laplace noise of scale b has the standard deviation b√2. Which partitions are there is public only where the
pipeline was given `public_partitions`: otherwise a partition is kept by a second noise, of which nothing is published,
and what its presence tells is neglected.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

from noiseaware.check import shown
from noiseaware.evidence.release import Release
from noiseaware.family import AbstractFamily
from noiseaware.interop._published import CELL, release
from noiseaware.interop._rows import label, number, positive
from noiseaware.mechanism import Gaussian, Laplace


def pipelinedp(
    rows: Iterable[tuple[Any, Any]],
    *,
    metric: str = "count",
    noise: Literal["laplace", "gaussian"] = "laplace",
    family: AbstractFamily = CELL,
    n: int = 1,
    version: str | None = None,
) -> list[Release]:
    """A release for each partition of an aggregation with `output_noise_stddev=True`, by one of its metrics."""
    if noise not in ("laplace", "gaussian"):
        raise ValueError(f"noise must be 'laplace' or 'gaussian', got {noise!r}.")
    found = []
    for place, pair in enumerate(rows, 1):
        try:
            partition, metrics = pair
            row = metrics if isinstance(metrics, dict) else metrics._asdict()
        except (TypeError, ValueError, AttributeError):
            raise ValueError(f"row {place} must be a partition and its metrics, got {shown(pair)}.") from None
        stddev = positive(row, f"{metric}_noise_stddev", place)
        mechanism = Laplace(stddev / math.sqrt(2)) if noise == "laplace" else Gaussian(stddev)
        about = {"family": family, "n": n, "tool": "PipelineDP", "version": version}
        group = (("partition", label(partition)),)
        found.append(release(number(row, metric, place), None, mechanism, group=group, **about))
    if not found:
        raise ValueError("rows must be at least one, got none.")
    return found
