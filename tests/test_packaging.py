"""The wheel, built from the sdist, works in an empty environment away from the repository, each extra alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import noiseaware as na

ROOT = Path(__file__).parents[1]
RELEASE = (
    "release clinic.csv --family exponential --column wait_hours --bounds 0 9 --epsilon 1 --ledger my.ledger -o o.json"
)
INFER = "infer wait.json --prior gamma(8,2) --seed 0 --report wait.html"
WORKS = {
    "": [INFER, "calibrate --family bernoulli --prior beta(1,9) -n 50 --epsilon 1 --trials 50", "explore --help"],
    "custodian": ["demo", "ledger create my.ledger --epsilon 2", RELEASE, INFER],
    "program": ["check coin_laplace.py"],
    "numpyro": [INFER],
    "postgres": ["ledger create my.ledger --epsilon 2", RELEASE],
    "spark": ["ledger create my.ledger --epsilon 2", RELEASE],
}
NEEDS = {"release": (RELEASE, "custodian"), "check": ("check coin_laplace.py", "program")}


def _pythons() -> list[str]:
    """This Python, and 3.13 where there is one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    newer = [shutil.which("python3.13"), *sorted(map(str, pyenv.glob("3.13*/bin/python3.13")))]
    usable = [
        p for p in newer if p and subprocess.run([p, "-c", "import ensurepip"], capture_output=True).returncode == 0
    ]
    return [sys.executable, *([] if sys.version_info >= (3, 13) else usable[:1])]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    run = _environment(folder, sys.executable)
    run("-m", "pip", "install", "--quiet", "build")
    run("-m", "build", "--outdir", str(folder / "dist"), str(ROOT))  # the sdist, and from it the wheel
    built = sorted(path.name for path in (folder / "dist").iterdir())
    assert built == [f"noiseaware-{na.__version__}-py3-none-any.whl", f"noiseaware-{na.__version__}.tar.gz"]
    return folder / "dist" / built[0]


def _environment(folder: Path, python: str):
    """A runner of an empty environment's own Python, or of its `noiseaware`."""
    subprocess.run([python, "-m", "venv", folder / "own"], check=True)
    # XLA_FLAGS are those of the JAX that runs the tests, and another version dies of a flag that it does not know
    own = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONSAFEPATH", "XLA_FLAGS")
    kept = {k: v for k, v in os.environ.items() if k not in own}

    def run(*words: str, program: str = "python", fails: bool = False) -> subprocess.CompletedProcess:
        command = [folder / "own" / "bin" / program, *words]
        done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
        assert (done.returncode != 0) == fails, f"{words}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.mark.slow
@pytest.mark.parametrize("extra", WORKS)
@pytest.mark.parametrize("python", _pythons(), ids=lambda python: Path(python).name)
def test_the_wheel_works_alone(wheel, tmp_path, python, extra):
    run = _environment(tmp_path, python)
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    run("-m", "pip", "install", "--quiet", *constraints, f"{wheel}[{extra}]" if extra else str(wheel))
    assert Path(run("-c", "import noiseaware; print(noiseaware.__file__)").stdout).is_relative_to(tmp_path)
    (tmp_path / "clinic.csv").write_text("wait_hours\n" + "".join(f"{i % 17 + 0.5}\n" for i in range(400)))
    shutil.copy(ROOT / "examples" / "programs" / "coin_laplace.py", tmp_path)
    family, noise = na.family.Exponential("wait_hours", bounds=(0, 9)), na.mechanism.Laplace(9.0)
    na.Release(family=family, values=[2200.0], n=400, mechanism=noise).save(tmp_path / "wait.json")
    for command in WORKS[extra]:
        run(*command.split(), program="noiseaware")
    if extra == "":
        for command, needed in NEEDS.values():
            said = run(*command.split(), program="noiseaware", fails=True)
            assert said.returncode == 2
            assert f"noiseaware[{needed}]" in said.stderr
            assert "Traceback" not in said.stderr
