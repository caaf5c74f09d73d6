# Everything a fresh machine with Python 3.11+, make and npm needs is installed by the target that needs it.
# PYTHON=python3.13 chooses another interpreter; an environment that exists already is used as it is.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TOOLS  := .tools
SUITE  := $(TOOLS)/conformance

# What `make conformance` hands to the gate, e.g. ARGS="--versions 2026-07-28 --only tools".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format conformance manifest interop bench prove coverage clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# ------------------------------------------------------------------------------------------------------- environments

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcprelay needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": say make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# The stamp holds what was asked for, so that an environment follows pyproject.toml.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(VENV)/.installed ## install the package and its tools into .venv

# The suite brings its own Node.js, so that the one npm runs on may be older.
$(SUITE)/.installed: tests/conformance/package.json tests/conformance/package-lock.json
	@command -v npm >/dev/null || { echo 'make conformance needs npm (it comes with Node.js)' >&2; exit 1; }
	@mkdir -p $(SUITE)
	cp tests/conformance/package.json tests/conformance/package-lock.json $(SUITE)/
	cd $(SUITE) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# --------------------------------------------------------------------------------------------------------------- jobs

demo: $(VENV)/.installed ## serve, call and relay, and say what happens
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed ## the tests of the package
	$(BIN)/python -m pytest $(ARGS)

check: lint layout types pyright public layers ## style, types and layers; with -k all of them, whatever fails

.PHONY: lint layout types pyright public layers
lint: $(VENV)/.installed
	$(BIN)/ruff check .
layout: $(VENV)/.installed
	$(BIN)/ruff format --check .
types: $(VENV)/.installed
	$(BIN)/mypy
pyright: $(VENV)/.installed
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
public: $(VENV)/.installed
	$(BIN)/python -m tests.fitness.public
layers: $(VENV)/.installed
	$(BIN)/lint-imports

format: $(VENV)/.installed ## let ruff mend what it can
	$(BIN)/ruff check --fix-only --exit-zero --quiet .
	$(BIN)/ruff format .

conformance: $(VENV)/.installed $(SUITE)/.installed ## the official conformance suite under our own stricter gate
	$(BIN)/python -m tests.conformance.gate $(ARGS)

manifest: $(VENV)/.installed ## write into tests/manifest which tests prove which clause
	$(BIN)/python -m tests.manifest.manifest

interop: $(VENV)/.installed ## our server and client against programs of other people
	$(BIN)/python -m pytest tests/interop -m interop $(ARGS)

bench: $(VENV)/.installed ## measure; says what it needs and how to get it
	$(BIN)/python benchmarks/run.py $(ARGS)

PROVEN := $(wildcard $(foreach part,wire core revisions types errors contract relay,tests/$(part) tests/test_$(part).py))
prove: $(VENV)/.installed ## that the tests of the pure core and of the relay leave out no branch of either
	$(BIN)/python -m pytest $(PROVEN) --cov --cov-config=tests/proven.toml --cov-report=term $(ARGS)

coverage: $(VENV)/.installed ## the tests, and which branches they leave out
	$(BIN)/python -m pytest --cov --cov-report=term $(ARGS)

clean: ## remove environments, tools and caches
	rm -rf $(VENV) $(TOOLS) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis bench-out dist htmlcov
