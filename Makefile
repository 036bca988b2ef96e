# Every target sets up what it needs in .venv, from Python 3.11 or later, make and the package registry alone.
# A Python of your own: make PYTHON=/path/to/python3.12 test

usable = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python; do \
	$$p -c $(usable) >/dev/null 2>&1 && { command -v $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Bytecode is compiled as modules are first used: installing takes half the time.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

# Tools whose releases are read. Their pins clash with one another and with ours.
TOOLS := python-dp pipeline-dp smartnoise-sql opendp-polars
PACKAGE_opendp-polars := "opendp[polars]==0.16.0"

.PHONY: help demo test test-all steady interop bench lint docs figures schema hashes checked sbom clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(VENV)/.custodian ## the whole story on a made-up clinic; leaves a report and prints its path
	$(BIN)/noiseaware demo

test: $(VENV)/.test ## the tests, but for the slow ones
	$(BIN)/python -m pytest -n $(WORKERS)

test-all: $(VENV)/.test ## all tests: statistical runs too, and a test of the tests by planted faults
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow"
	$(BIN)/python tests/faults/plant.py --workers $(WORKERS)

steady: $(VENV)/.test ## the tests five times, each with another hash seed and in another order
	@set -e; for seed in 1 2 3 4 5; do echo "== $$seed"; \
		PYTHONHASHSEED=$$seed TEST_ORDER=$$seed $(BIN)/python -m pytest -q -n $(WORKERS); done

interop: $(TOOLS:%=.venv-interop/%/.done) ## other tools, each in an environment of its own, so that the tests read what they make

bench: $(VENV)/.bench ## one script a claim; each prints ratios measured side by side
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

lint: $(VENV)/.dev ## ruff, ruff format, pyright and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.docs ## the documentation, into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

figures: $(VENV)/.test ## the pictures of the README and the documentation
	@set -e; for script in docs/figures/*.py; do $(BIN)/python $$script; done

schema: $(VENV)/.custodian ## the published JSON Schema of a release
	$(BIN)/python -c "import json; from noiseaware.evidence.release import _Document as d; print(json.dumps(d.model_json_schema(), indent=2))" \
		> src/noiseaware/release.schema.json

hashes: .venv-tools/.uv ## constraints-hashed.txt, from constraints.txt
	grep -v '^#' constraints.txt > .venv-tools/constraints.in
	.venv-tools/bin/uv pip compile --quiet --universal --python-version 3.11.5 --no-deps --generate-hashes \
		--no-header --no-annotate .venv-tools/constraints.in --output-file .venv-tools/constraints.out
	{ echo '# constraints.txt with a hash of every file of each version; made by `make hashes`.'; \
		cat .venv-tools/constraints.out; } > constraints-hashed.txt

checked: | $(BIN)/python ## every package of constraints-hashed.txt, refused unless it has the hash that is written there
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --require-hashes \
		--requirement constraints-hashed.txt

sbom: .venv-tools/.cyclonedx-bom .venv-sbom/.done ## what an installation consists of, as CycloneDX, into dist/noiseaware.cdx.json
	@mkdir -p dist
	.venv-tools/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-reproducible \
		--output-file dist/noiseaware.cdx.json .venv-sbom/bin/python
	@echo "wrote dist/noiseaware.cdx.json"

clean: ## remove what was built, but not .venv
	rm -rf build dist docs/_build .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv-interop/%/.done:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later with venv must be on the path."; exit 1; }
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check $(or $(PACKAGE_$*),$*)
	@touch $@

# Tools that nothing of ours imports, apart from what they would be measured with.
.venv-tools/.%:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later with venv must be on the path."; exit 1; }
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet --disable-pip-version-check $*
	@touch $@

.venv-sbom/.done: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later with venv must be on the path."; exit 1; }
	$(PYTHON) -m venv --without-pip .venv-sbom
	$(PYTHON) -m pip --python .venv-sbom/bin/python install --quiet --no-compile --disable-pip-version-check \
		--constraint constraints.txt ".[custodian,program,postgres,spark,numpyro]"
	@touch $@

# Each extra is installed once, and again when what it depends on changes.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later with venv must be on the path."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[$*]"
	@touch $@
