# make help lists the targets. Variables: PYTHON (for a new environment), ARGS (additional arguments of
# pytest), WORKERS (parallel test processes), VENV (folder of the environment).

PYTHON ?=
VENV ?= .venv
WORKERS ?= 2
ARGS ?=

SHELL := /bin/bash
.DEFAULT_GOAL := help
# All tools are those of the environment, also in scripts that use PYTHON.
IN_VENV = PATH="$(abspath $(VENV))/bin:$$PATH" PYTHON="$(abspath $(VENV))/bin/python"
# Tests run in parallel, with one thread each; a worker runs neighbouring tests, which share fixtures.
PYTEST = $(IN_VENV) OMP_NUM_THREADS=1 python -m pytest -n $(WORKERS) --dist worksteal
PYTHON_SOURCES = diet_mt tests results setup.py

.PHONY: help setup demo results test test-slow test-gpu test-stock check lint types shell format clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## create the environment .venv (four minutes the first time, then nothing)
	@PYTHON="$(PYTHON)" VENV="$(VENV)" bash scripts/setup.sh

demo: setup ## train, decode and score four tiny models (4 to 16 minutes on two cores)
	@$(IN_VENV) python -m diet_mt sweep demo

results: setup ## regenerate the tables and pictures of results/ from the rows (15 minutes)
	@$(IN_VENV) bash scripts/results.sh

test: setup ## run the tests, except slow ones and those for a GPU
	@$(PYTEST) $(ARGS)

test-slow: setup ## run the slow and all hostile tests: kills, full disks, ... (15 minutes)
	@$(PYTEST) -m "(slow or hostile) and not gpu" $(ARGS)

test-gpu: setup ## run the tests for a GPU
	@$(PYTEST) -m gpu $(ARGS)

test-stock: ## run the tests with stock fairseq 0.12.2 (Python 3.10; downloads a few gigabytes once)
	@bash scripts/test-stock-fairseq.sh $(ARGS)

check: lint types shell test ## all checks of CI

lint: setup ## ruff: rules and formatting
	@$(IN_VENV) ruff check $(PYTHON_SOURCES)
	@$(IN_VENV) ruff format --check $(PYTHON_SOURCES)

types: setup ## mypy
	@$(IN_VENV) mypy

shell: setup ## shellcheck
	@$(IN_VENV) shellcheck -x .ci/run $$(find data-prep scripts tests -name '*.sh')

format: setup ## let ruff fix and format the code
	@$(IN_VENV) ruff check --fix $(PYTHON_SOURCES)
	@$(IN_VENV) ruff format $(PYTHON_SOURCES)

clean: ## remove caches and build products, not environments and trained models
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find diet_mt tests results -name __pycache__ -type d -prune -exec rm -rf {} +
