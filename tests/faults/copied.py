"""A pytest plugin for a run with a planted fault: the package that is tested must be the copy, and nothing else."""

import os
import sys
from pathlib import Path

import pytest

STATUS = 70  # of a run that tested another package than the copy


def pytest_collection_finish(session: pytest.Session) -> None:
    folder = Path(os.environ["NOISEAWARE_COPY"])
    strange = [
        name
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "noiseaware"
        and getattr(module, "__file__", None)
        and folder not in Path(module.__file__).parents
    ]
    if strange or "noiseaware" not in sys.modules:
        pytest.exit(f"noiseaware must be imported from {folder}, and {strange or 'it'} was not.", STATUS)
