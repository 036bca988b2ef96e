"""The public face: complete, importable, documented, and light to import."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import noiseaware as na

NAMES = [name for name in na.__all__ if name != "__version__"]
FOLDERS = ["family", "interop", "mechanism", "model", "prior", "program", "query"]
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
API_PAGE = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")


def _members(folder: str) -> list[str]:
    """The classes and functions of the project that a folder offers."""
    module = importlib.import_module(f"noiseaware.{folder}")
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    own = {name for name, value in found.items() if getattr(value, "__module__", "").startswith("noiseaware")}
    return sorted(name for name in own if inspect.isclass(found[name]) or inspect.isfunction(found[name]))


def _is_undocumented(member: object) -> bool:
    return (inspect.isfunction(member) or isinstance(member, property)) and not inspect.getdoc(member)


def test_all_is_what_type_checkers_see():
    tree = ast.parse(Path(na.__file__).read_text(encoding="utf-8"))
    seen = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(na.__all__) == {name for name in seen if name}


@pytest.mark.parametrize("name", NAMES)
def test_name_imports_and_is_documented(name):
    value = getattr(na, name)
    assert value.__doc__
    assert name in dir(na)


def test_a_public_module_is_the_module_and_no_function_of_its_name():
    """`program` has a function `program` in it, and `import noiseaware.program as pp` asks `noiseaware` for it."""
    code = "import noiseaware as na, types; print(all(isinstance(getattr(na, n), types.ModuleType) for n in {names}))"
    done = [sys.executable, "-c", code.format(names=[*FOLDERS, "method"])]
    assert subprocess.run(done, capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder in FOLDERS for name in _members(folder)])
def test_member_is_documented(folder, name):
    assert inspect.getdoc(getattr(getattr(na, folder), name)), name


@pytest.mark.parametrize("name", NAMES + [f"{folder}.{name}" for folder in FOLDERS for name in _members(folder)])
def test_name_is_on_the_reference_page(name):
    assert f"noiseaware.{name}" in API_PAGE


@pytest.mark.parametrize("name", re.findall(r"autoclass:: noiseaware\.(\S+)\n(?!   :no-members:)", API_PAGE))
def test_what_the_reference_page_shows_has_words(name):
    module, _, last = f"noiseaware.{name}".rpartition(".")
    shown = getattr(importlib.import_module(module), last)
    own = {member for base in shown.__mro__ if base.__module__.startswith("noiseaware") for member in vars(base)}
    assert [m for m, _ in inspect.getmembers(shown, _is_undocumented) if m in own and not m.startswith("_")] == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'infere'"):
        na.infere


def _loaded_by(statement: str) -> set[str]:
    code = f"import json, sys; {statement}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"jax", "numpy", "pandas", "opendp", "duckdb", "narwhals", "matplotlib", "pydantic"}
    assert _loaded_by("import noiseaware") & heavy == set()


def test_the_analyst_loads_nothing_of_the_custodian():
    names = "load infer infer_each Posterior calibrate family prior interop"
    analyst = f"import noiseaware as na; {', '.join(f'na.{name}' for name in names.split())}"
    assert _loaded_by(analyst) & {"opendp", "duckdb", "narwhals"} == set()


def test_every_extra_that_is_named_brings_the_package():
    from noiseaware.check import _EXTRAS, explained

    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra, packages in _EXTRAS.items():
        for package in packages:
            assert any(needed.startswith(package) for needed in extras[extra])
            assert f"noiseaware[{extra}]" in explained(ModuleNotFoundError(name=f"{package}.inner"))
    assert explained(ModuleNotFoundError("No module named 'other'", name="other")) == "No module named 'other'"


def test_a_missing_package_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "noiseaware.custodian.audit", None)
    monkeypatch.delitem(vars(na), "audit", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"noiseaware\.custodian\.audit"):
        na.audit


def test_what_is_printed_says_what_it_holds():
    release = na.Release(
        family=na.family.Bernoulli("ill"), values=[31], n=500, mechanism=na.mechanism.DiscreteLaplace(2.0)
    )
    assert repr(release) == (
        "Release(bernoulli of 'ill', n = 500, sum = 31, discrete Laplace noise of scale 2, no stated guarantee)"
    )
    posterior = na.infer(release, na.prior.Beta(1, 1), seed=0, num_draws=1000)
    assert re.fullmatch(
        r"Posterior\(theta 0\.06\d \(95 %: 0\.0\d+ to 0\.\d+\): 1,000 draws, method 'exact', exact\)", repr(posterior)
    )
    assert (posterior.num_draws, posterior.is_chain, posterior.releases) == (1000, False, (release,))
    assert [(m.a, m.b) for m in posterior.naive_marginals()] == [(1 + 31, 1 + 500 - 31)]
    assert release.likely_n == 500
    found = na.calibrate(na.family.Bernoulli(), na.prior.Beta(1, 1), n=9, epsilon=1, num_trials=20, seed=0)
    assert re.match(r"Calibration\(20 tables, largest KS 0\.\d+ \(95 % of right methods", repr(found))
    made = na.plan(na.family.Bernoulli(), na.prior.Beta(1, 9), n=5000, width=0.02)
    assert repr(made) == "Plan(bernoulli, n = 5000, epsilon = 0.086, expected width 0.01999 ± 5%)"
    seen = na.audit(na.family.Bernoulli("ill"), epsilon=0.5, num_releases=10_000)
    assert re.fullmatch(
        r"Audit\(bernoulli, promised ε = 0\.5, seen ε at least 0\.\d+ in 20,000 releases: within .*", repr(seen)
    )
    assert (seen.letter, seen.claim, seen.num_releases) == ("ε", 0.5, 20_000)
    assert "mean=array([0., 1.])" in repr(na.prior.NormalInverseGamma([0, 1], 1, 2, 3))
    assert repr(na.mechanism.Laplace((1.0, 2.0))) == "Laplace(scale=array([1., 2.]))"
