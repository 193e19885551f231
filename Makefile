# make help lists what there is.

PYTHON  ?= python3
VENV    ?= .venv
DEMO    ?= examples.flights
WORKERS ?= 3
TESTS   ?= tests
BENCH   ?=

BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up
PICTURES := build/pictures/.made
CODE   := streamql tests setup.py $(wildcard examples bench docs)

.DEFAULT_GOAL := help
.PHONY: help setup lint format docs site check test test-all demo bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  TESTS=path and WORKERS=n narrow make test; BENCH=names make bench; PYTHON=python3.12 chooses the Python of make setup."

setup: $(STAMP) ## Make .venv, install streamql into it (editable), fetch Delta Lake's jars, compile the extension, write a class data archive
	@echo "ready; next, type: $(BIN)/streamql --data my-data"

$(STAMP): pyproject.toml setup.py
	@echo "[1/3] the virtual environment $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "[2/3] streamql, PySpark and the other dependencies: minutes the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,demo,docs]'
	@echo "[3/3] Delta Lake's jars, the extension, and class data for quick starts: a minute"
	@$(BIN)/streamql prepare
	@touch $@

lint: $(STAMP) ## Style, types, layers, house rules
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_house_rules.py

format: $(STAMP) ## Let ruff format the code and fix what it can
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

docs: $(PICTURES) site ## The documentation site, in build/site, with pictures of the command: minutes

site: $(STAMP) ## The same with the pictures that are there, or without; a broken link or anchor is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

$(PICTURES): docs/site/pictures.py $(wildcard streamql/cli/*/*.py) | $(STAMP)
	$(BIN)/python docs/site/pictures.py build/pictures
	@touch $@

check: $(STAMP) ## The tests that start neither Spark nor another process: under three minutes
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -q -m "not spark" $(TESTS)

test: $(STAMP) ## Every test, with cases drawn anew for each commit: an hour; one Spark session (3 GB) for each of the WORKERS
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(STREAMQL_LONG),,--timeout 900) --durations 25 --durations-min 5 $(TESTS)

test-all: $(STAMP) ## Every test, with every case: hours
	STREAMQL_LONG=$${STREAMQL_LONG:-1} $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

demo: $(STAMP) ## A real job on real data (DEMO names the module)
	$(BIN)/python -m $(DEMO)

bench: $(STAMP) ## Measure, print ratios, write them down with the machine
	$(BIN)/python -m bench $(BENCH)

clean: ## Remove what was built here; .venv and the jar cache stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis streamql-data spark-warehouse
