"""Noisy statistics in a model of one's own: log p(y | θ) as a JAX function, and sites for NumPyro.

`log_likelihood` needs nothing besides the package; the sites need NumPyro, the extra `numpyro`, and are imported when
they are first asked for.
"""

from typing import TYPE_CHECKING

from noiseaware.model.likelihood import is_exact as is_exact
from noiseaware.model.likelihood import log_likelihood as log_likelihood

if TYPE_CHECKING:
    from noiseaware.model.site import NoisySum as NoisySum
    from noiseaware.model.site import noisy_statistics as noisy_statistics

_SITES = ("NoisySum", "noisy_statistics")
__all__ = ["is_exact", "log_likelihood", *_SITES]


def __getattr__(name: str):
    if name not in _SITES:
        raise AttributeError(f"module 'noiseaware.model' has no attribute {name!r}")
    from noiseaware.model import site

    return getattr(site, name)
