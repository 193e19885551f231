# make help lists what there is.

PYTHON  ?= python3
SPARK   ?= 4.2
DELTA   ?=
VENV    ?= .venv$(if $(filter 4.2,$(SPARK)),,-$(SPARK))$(if $(DELTA),-$(DELTA))
DEMO    ?= examples.flights
EXTRAS  ?= dev,demo,docs
PREPARE ?= $(BIN)/streamql prepare
WORKERS ?= 3
TESTS   ?= tests
BENCH   ?=
LINES   ?= 4.0 4.1
ORCHESTRATORS ?= airflow dagster
CORE    ?= seed or net-changes or consuming or merge or transactions or dynamic or incremental or cdc

BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up
CLASSES := $(VENV)/.class-data
# The releases of a line of Spark, and of its Delta Lake, that the tests run on: "pyspark==… delta-spark==…".
LINE    = $(shell $(PYTHON) -c 'import json, sys; row = json.load(open("streamql/shared/platforms.json"))[sys.argv[1]]; \
	delta = row["delta"][(sys.argv[2:] or list(row["delta"]))[0]]; \
	print("pyspark==" + delta.get("spark", row["version"]), "delta-spark==" + delta["version"])' \
	$(SPARK) $(DELTA))
PICTURES := build/pictures/.made
CODE   := streamql tests setup.py $(wildcard examples bench docs)

.DEFAULT_GOAL := help
.PHONY: help setup lint format docs site check test lines integrations test-all demo bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  TESTS=path and WORKERS=n narrow make test; BENCH=names make bench; PYTHON=python3.12 chooses the Python of make setup."
	@echo "  SPARK=4.1 and DELTA=4.2 choose another line of Spark, or of Delta Lake, with an environment of its own."

setup: $(CLASSES) ## Make .venv, install streamql into it (editable), fetch Delta Lake's jars, compile the extension, write a class data archive
	@echo "ready; next, type: $(BIN)/streamql --data my-data"

$(STAMP): pyproject.toml setup.py
	@echo "[1/4] the virtual environment $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "[2/4] streamql, PySpark and the other dependencies: minutes the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(firstword $(LINE)) --editable '.[$(EXTRAS)]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(lastword $(LINE))
	@echo "[3/4] Delta Lake's jars, and the extension: a minute"
	@$(PREPARE) --without-classes
	@touch $@

$(CLASSES): $(STAMP)
	@echo "[4/4] class data, with which a start takes 3 s instead of 6: half a minute"
	@$(PREPARE)
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

test: $(CLASSES) ## Every test, with cases drawn anew for each commit: an hour; one Spark session (3 GB) for each of the WORKERS
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(STREAMQL_LONG),,--timeout 900) --durations 25 --durations-min 5 $(TESTS)

lines: ## On the other lines of Spark, each in an environment of its own: transcripts of streams, consumption and dynamic tables
	@set -e; for line in $(LINES); do \
	  $(MAKE) --no-print-directory test SPARK=$$line VENV=.venv-lines-$$line EXTRAS=lines PREPARE=: WORKERS=2 TESTS='tests/transcripts/test_transcripts.py -k "$(CORE)"'; done

integrations: ## Airflow and Dagster themselves, each in an environment of its own, running the flights example: minutes
	@set -e; for name in $(ORCHESTRATORS); do \
	  $(MAKE) --no-print-directory test VENV=.venv-$$name EXTRAS=connect,demo,lines,$$name PREPARE=: WORKERS=1 \
	    TESTS=tests/integrations/$$name; done

test-all: $(CLASSES) ## Every test, with every case: hours
	STREAMQL_LONG=$${STREAMQL_LONG:-1} $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

demo: $(STAMP) ## A real job on real data (DEMO names the module); class data only afterwards
	$(BIN)/python -m $(DEMO)
	@$(MAKE) --no-print-directory $(CLASSES)

bench: $(CLASSES) ## Measure, print ratios, write them down with the machine
	$(BIN)/python -m bench $(BENCH)

clean: ## Remove what was built here; .venv and the jar cache stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis streamql-data spark-warehouse
