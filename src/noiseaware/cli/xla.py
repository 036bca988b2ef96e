"""Flags of XLA, the compiler of JAX, which a command sets before anything is computed: they are read once a process."""

import os
from importlib.metadata import version

# XLA's optimiser takes seconds to save hundredths in a command that runs once. An unknown flag ends the process, so
# each is given only to the versions of JAX that were seen to know it.
_QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
_QUICK_BY_VERSION = {"0.10": f"{_QUICK} --xla_cpu_use_fusion_emitters=false", "0.12": _QUICK}
# XLA waits for batches of small factorisations in the threads that would have to do them: with two cores and two such
# batches at once, forever. One thread a program cannot.
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def compile_quickly() -> None:
    """Ask for quick compilation rather than quick code, in one thread."""
    quick = _QUICK_BY_VERSION.get(".".join(version("jax").split(".")[:2]))
    _ask(_ONE_THREAD if quick is None else f"{quick} {_ONE_THREAD}")


def run_in_one_thread() -> None:
    """Ask for one thread a program, where batches of small matrices are factorised."""
    _ask(_ONE_THREAD)


def _ask(flags: str) -> None:
    """Set the flags, unless the user has asked for something."""
    os.environ.setdefault("XLA_FLAGS", flags)
    os.environ.setdefault("NPROC", "1")  # The number of XLA's threads: batches of LAPACK calls go by this alone.
