"""The process: statuses, streams, what is imported, interrupts."""

import os
import subprocess
import sys

import pytest

import noiseaware as na
from noiseaware.evidence.json import Origin

INFER = ("infer", "ill.json", "--prior", "beta(1, 1)", "--method", "naive", "--seed", "0")


def process(*words: str, **options):
    return subprocess.run([sys.executable, "-m", "noiseaware", *words], capture_output=True, text=True, **options)


LOADED = """
import os, sys
os._exit = sys.exit
sys.argv[1:] = {words}
try:
    import noiseaware.__main__
except SystemExit as done:
    assert done.code == 0, done.code
print(*sys.modules, file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    """The modules that a command imports."""
    code = LOADED.format(words=list(words))
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stderr.split())


def test_help_does_not_import_jax():
    heavy = {"jax", "numpy", "pandas", "xarray", "scipy", "matplotlib", "duckdb", "opendp"}
    assert heavy.isdisjoint(loaded("infer", "--help"))


def test_plain_infer_does_without_the_slow_packages():
    heavy = {"pandas", "xarray", "matplotlib", "duckdb", "opendp", "arviz_stats", "scipy.stats", "jinja2"}
    modules = loaded(*INFER)
    assert "jax" in modules
    assert heavy.isdisjoint(modules)


def test_a_warning_is_a_sentence_without_a_line_of_code(clinic):
    biased = Origin(tool="OpenDP", version="0.12.0")
    noise = na.mechanism.DiscreteLaplace(2.0)
    with pytest.warns(RuntimeWarning, match="drew biased integer noise"):
        release = na.Release(family=na.family.Bernoulli("ill"), values=[43], n=300, mechanism=noise, origin=biased)
    release.save("biased.json")
    done = process("infer", "biased.json", *INFER[2:])
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("noiseaware: origin.version: OpenDP 0.12.0 drew biased integer noise")


def test_process_statuses_and_streams():
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"noiseaware {na.__version__}\n", "")
    done = process("infer", "none.json", "--prior", "beta(1, 1)")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "noiseaware: release file must exist, got none.json.\n"
    words = ["--family", "bernoulli", "--column", "ill", "--ledger", "clinic.ledger", "-o", "x.json"]
    done = process("release", "clinic.csv", *words, "--epsilon", "3")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("family", "is_asked"), [("linear_regression", True), ("bernoulli", False)])
def test_regressions_are_calibrated_in_one_thread(family, is_asked, run, monkeypatch):
    asked = []
    monkeypatch.setattr("noiseaware.cli.xla._ask", asked.append)
    prior = "normal_inverse_gamma([1, 0], 0.25, 20, 0.5)" if is_asked else "beta(1, 1)"
    run("calibrate", "--family", family, "--prior", prior, "-n", "0", "--epsilon", "1")  # which n refuses after it
    assert asked == ["--xla_cpu_multi_thread_eigen=false"] * is_asked


def test_interrupt_is_quiet(monkeypatch, run):
    def interrupted(path, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("noiseaware.evidence.release.load", interrupted)
    done = run(*INFER)
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "")


def test_help_teaches_by_example(run):
    for words in ("demo", "release", "infer", "calibrate", "reproduce", "ledger create", "ledger show"):
        done = run(*words.split(), "--help")
        assert done.exit_code == 0
        assert f"$ noiseaware {words}" in done.stdout
    assert "noiseaware demo" in run().stdout


def test_a_closed_pipe_is_no_failure():
    """What Rich writes ends as what we write: 1 would be a negative verdict."""
    with subprocess.Popen(
        [sys.executable, "-m", "noiseaware", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        command.stdout.close()
        assert command.wait() == 0
        assert command.stderr.read() == ""


def test_a_terminal_without_greek_letters_still_gets_the_numbers():
    done = process(*INFER, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "seed 0" in done.stdout


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (OverflowError("42 of the table"), 2, "failed where it must not (OverflowError in test_process.py, line "),
        (KeyError("42 of the table"), 2, "failed where it must not (KeyError in "),
        (RecursionError("42 of the table"), 2, "failed where it must not (RecursionError in "),
        (NotImplementedError("42 of the table"), 2, "failed where it must not (NotImplementedError in "),
        (MemoryError("42 of the table"), 2, "the machine must have more memory for this"),
        (RuntimeError("a method drew nan."), 4, "a method drew nan."),
    ],
)
def test_a_failure_that_nobody_foresaw_is_a_sentence_without_its_words(error, status, told, refused, monkeypatch):
    """And never status 1, which is a negative verdict."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(sys.modules["noiseaware.cli.infer"], "read", fail)
    said = refused("infer", "ill.json", "--prior", "beta(1, 1)", status=status)
    assert said.startswith(f"noiseaware: {told}")
    assert "42 of" not in said
