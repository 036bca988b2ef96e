"""noiseaware: a custodian releases private statistics of a table; an analyst gets the posterior they support."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noiseaware import family as family
    from noiseaware import interop as interop
    from noiseaware import mechanism as mechanism
    from noiseaware import model as model
    from noiseaware import prior as prior
    from noiseaware import program as program
    from noiseaware import query as query
    from noiseaware.custodian.audit import audit as audit
    from noiseaware.custodian.ledger.ledger import Ledger as Ledger
    from noiseaware.custodian.ledger.ledger import LedgerRefusal as LedgerRefusal
    from noiseaware.custodian.release import release as release
    from noiseaware.evidence.release import Release as Release
    from noiseaware.evidence.release import load as load
    from noiseaware.file import __version__ as __version__
    from noiseaware.posterior.each import infer_each as infer_each
    from noiseaware.posterior.infer import infer as infer
    from noiseaware.posterior.posterior import Posterior as Posterior
    from noiseaware.sampler import method as method
    from noiseaware.study.calibration import calibrate as calibrate
    from noiseaware.study.plan import plan as plan

# Where each public name lives; imported on first use, so that `noiseaware --help` does not wait for JAX
# and an analyst's install does not need the custodian's packages.
_ROOMS = {
    "family": "noiseaware.family",
    "interop": "noiseaware.interop",
    "mechanism": "noiseaware.mechanism",
    "method": "noiseaware.sampler.method",
    "model": "noiseaware.model",
    "prior": "noiseaware.prior",
    "program": "noiseaware.program",
    "query": "noiseaware.query",
}
"""Public modules; `program` has a function of its own name in it."""
_HOMES = {
    "__version__": "noiseaware.file",
    "Release": "noiseaware.evidence.release",
    "load": "noiseaware.evidence.release",
    "calibrate": "noiseaware.study.calibration",
    "audit": "noiseaware.custodian.audit",
    "Ledger": "noiseaware.custodian.ledger.ledger",
    "LedgerRefusal": "noiseaware.custodian.ledger.ledger",
    "release": "noiseaware.custodian.release",
    "plan": "noiseaware.study.plan",
    "Posterior": "noiseaware.posterior.posterior",
    "infer": "noiseaware.posterior.infer",
    "infer_each": "noiseaware.posterior.each",
}
__all__ = sorted(_ROOMS | _HOMES)


def __getattr__(name: str):
    if name not in _ROOMS | _HOMES:
        raise AttributeError(f"module 'noiseaware' has no attribute {name!r}")
    try:
        home = importlib.import_module((_ROOMS | _HOMES)[name])
    except ModuleNotFoundError as error:
        from noiseaware.check import explained

        raise ModuleNotFoundError(explained(error), name=error.name) from None
    value = home if name in _ROOMS else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
