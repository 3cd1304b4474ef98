# Everything a developer runs. Each target makes .venv when there is none; nothing but
# Python >= 3.11 and make is needed.
# The first of these that is new enough; PYTHON=… names another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help demo test test-more fuzz bench-compiler bench-engine bench-runner bench-throughput check format clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    compile, deploy and run every example, in PostgreSQL and in process"
	@echo "make test    the whole test suite"
	@echo "make test-more  the database tests on PostgreSQL 14 to 18, behind pgbouncer, under plpgsql_check"
	@echo "make fuzz    1000 new random programs on both engines, broken graphs, broken texts"
	@echo "make bench-compiler  time wf check and wf fmt beside other checkers"
	@echo "make bench-engine    what claim, submit and loops cost as tables grow"
	@echo "make bench-runner    time the local runner beside other interpreters"
	@echo "make bench-throughput  actions per second in PostgreSQL, by size of batch"
	@echo "make check   lint, types, layer contracts"
	@echo "make format  rewrite the Python files in the house format"
	@echo "make clean   remove .venv and caches"

$(VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "wfsql needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m compileall -q dsl compiler emit_pg emit_mssql runtime_sql local_runner wfsql
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/python -m wfsql.demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 -q

test-more: $(VENV)/.installed
	$(BIN)/python tests/more.py

fuzz: $(VENV)/.installed
	WFSQL_FUZZ=1000 $(BIN)/python -m pytest -q tests/property/test_random_graphs.py \
	  tests/property/test_mutated_graphs.py
	WFSQL_FUZZ=300 $(BIN)/python -m pytest -q tests/property/test_fuzz.py tests/property/test_fmt.py

bench-compiler: $(VENV)/.installed
	$(BIN)/python -m benchmarks.compiler

bench-engine: $(VENV)/.installed
	$(BIN)/python -m benchmarks.engine

bench-runner: $(VENV)/.installed
	$(BIN)/python -m benchmarks.runner

bench-throughput: $(VENV)/.installed
	$(BIN)/python -m benchmarks.throughput

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build
