"""What every test gets: checked shapes, strict promotion, derandomised Hypothesis, a seed of its own."""

import os
import random
import signal
import zlib

import hypothesis

from noiseaware.cli.xla import compile_quickly

compile_quickly()  # as the command does; before JAX is imported

import jax
import pytest
from jaxtyping import install_import_hook

# Shapes and types of every numerical function are checked at run time. The modules that validate what a person
# typed are left out: there a wrong type must reach the code, which answers with a sentence.
CHECKED = ["noiseaware.family", "noiseaware.baseline", "noiseaware.sampler"]
install_import_hook(CHECKED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

jax.config.update("jax_numpy_dtype_promotion", "strict")

pytest_plugins = ["tests.browser", "tests.engines"]

hypothesis.settings.register_profile("noiseaware", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("noiseaware")

os.environ.setdefault("MPLBACKEND", "Agg")

# A shell that starts the tests in the background has interrupts ignored, and every command that they start would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In another order where `make steady` asks for one; the same on every worker."""
    if order := os.environ.get("TEST_ORDER"):
        random.Random(order).shuffle(items)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed that follows from the test's own name: the same on every machine, another for every test."""
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture
def key(seed: int) -> jax.Array:
    """A JAX key made of `seed`."""
    return jax.random.key(seed)


@pytest.fixture
def x64():
    """Double precision for a test of an inner function; the public functions switch it on themselves."""
    with jax.enable_x64(True):
        yield
