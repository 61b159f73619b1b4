# A machine needs git, make, Python 3.11 or newer, and pip. Everything else is installed inside this checkout.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
UV_VERSION := 0.13.9
UV_LOCAL := .uv/$(UV_VERSION)/bin/uv
UV := $(if $(shell uv --version 2>/dev/null),uv,$(UV_LOCAL))
BIN := .venv/bin
READY := .venv/.ready
BENCH_BIN := .bench-venv/bin
BENCH_READY := .bench-venv/.ready
QUALITY_BIN := .quality-venv/bin
QUALITY_READY := .quality-venv/.ready
FRAMEWORKS := agent-framework google-adk langgraph mcp openai-agents pydantic-ai strands

# The machine's Python is the one that counts; uv is not to bring its own.
export UV_PYTHON_DOWNLOADS := never

# uv does not read pip's settings: where pip has an index of its own, uv gets it through the environment, for this run only.
define use_pip_index
index="$${PIP_INDEX_URL:-$$($(PYTHON) -m pip config get global.index-url 2>/dev/null || true)}"; \
if [ -n "$$index" ] && [ -z "$${UV_DEFAULT_INDEX:-}$${UV_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="$$index"; fi
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(READY) ## install the locked dependencies and strandline itself into .venv
	@echo "setup: .venv is ready"

$(UV_LOCAL):
	@echo "setup: installing uv $(UV_VERSION) into .uv/$(UV_VERSION)"
	@$(PYTHON) -m pip install -qq --disable-pip-version-check --root-user-action=ignore \
		--upgrade --target .uv/$(UV_VERSION) "uv==$(UV_VERSION)"

$(READY): requirements.lock pyproject.toml | $(filter $(UV_LOCAL),$(UV))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + "; try make setup PYTHON=python3.12")'
	@if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "setup: creating .venv"; rm -rf .venv; \
		$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .venv; \
	fi
	@echo "setup: syncing .venv with requirements.lock"
	@$(use_pip_index); $(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes --no-build requirements.lock
	@echo "setup: installing strandline (editable)"
	@$(UV) pip install --quiet --python $(BIN)/python --no-index --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src # so that a command starts at once, whatever PYTHONDONTWRITEBYTECODE says
	@touch $@

.PHONY: run
run: setup ## run the demo; FILE=path gives it a file of your own
	$(BIN)/python -m demo.main_job $(if $(FILE),--file "$(FILE)")

.PHONY: test
test: setup ## run the tests of every commit on all cores; ARGS="-k name" is handed to pytest
	@echo "test: pytest, without the long tests"
	@$(BIN)/python -m pytest --numprocesses auto -m "not long" $(ARGS)

.PHONY: long
long: setup ## run the long tests: programs killed, random histories, real transcripts; ARGS as for test
	@echo "long: pytest, the long tests"
	@$(BIN)/python -m pytest --numprocesses auto -m long $(ARGS)

.PHONY: mutants
mutants: setup ## break the protocol line by line, each must fail a test; ARGS="--only NAME" is handed on
	@$(BIN)/python tools/mutants.py $(ARGS)

.PHONY: soak
soak: setup ## run the programmes that break the library, for 30 minutes; ARGS="--minutes 5 --only NAME", ARGS=--report
	@$(BIN)/python -m tools.soak $(ARGS)

.PHONY: check
check: setup ## lint, format, types, architecture, dependencies, sizes
	@echo "check: ruff (lint)"
	@$(BIN)/ruff check .
	@echo "check: ruff (format)"
	@$(BIN)/ruff format --check .
	@echo "check: mypy (types)"
	@$(BIN)/mypy src tools $(wildcard tests/typing)
	@echo "check: import-linter (architecture)"
	@$(BIN)/lint-imports
	@echo "check: deptry (dependencies)"
	@$(BIN)/deptry src
	@echo "check: sizes of modules and functions"
	@$(BIN)/python tools/check_sizes.py src

.PHONY: conformance
conformance: setup ## run LangGraph's public suite for checkpointers on SQLite and PostgreSQL, sync and async
	@$(BIN)/python -m bench.conformance $(ARGS)

.PHONY: bench
bench: $(BENCH_READY) ## measure the store beside raw SQLite and peers (takes an hour); FILE=path is the transcript
	@$(BENCH_BIN)/python -m bench.store $(if $(FILE),--file "$(FILE)") $(ARGS)

.PHONY: bench-langgraph
bench-langgraph: setup ## measure LangGraph's checkpoints beside the stock savers; ARGS="--turns 200" is handed on
	@$(BIN)/python -m bench.langgraph $(ARGS)

.PHONY: bench-quality
bench-quality: $(QUALITY_READY) ## measure the quality of memory on the data sets in DATA=path
	@$(QUALITY_BIN)/python -m bench.quality --data "$(DATA)" $(ARGS)

# Whether another package's kit is satisfied is measured in a venv that holds it, apart from what is developed with.
$(QUALITY_READY): bench/quality.lock pyproject.toml | $(filter $(UV_LOCAL),$(UV))
	@echo "bench-quality: installing Strandline and the kit into .quality-venv"
	@rm -rf .quality-venv
	@$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .quality-venv
	@$(use_pip_index); $(UV) pip sync --quiet --compile-bytecode --python $(QUALITY_BIN)/python --require-hashes --no-build \
		bench/quality.lock
	@$(UV) pip install --quiet --python $(QUALITY_BIN)/python --no-index --no-deps --no-build-isolation --editable .
	@touch $@

$(BENCH_READY): bench/requirements.lock pyproject.toml | $(filter $(UV_LOCAL),$(UV))
	@echo "bench: installing Strandline and its peers into .bench-venv"
	@rm -rf .bench-venv
	@$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .bench-venv
	@$(use_pip_index); $(UV) pip sync --quiet --compile-bytecode --python $(BENCH_BIN)/python --require-hashes --no-build \
		bench/requirements.lock
	@$(UV) pip install --quiet --python $(BENCH_BIN)/python --no-index --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: benchlock
benchlock: $(filter $(UV_LOCAL),$(UV)) ## write the locks of bench/ anew; UPGRADE=1 takes the newest versions
	@for of in requirements quality; do \
		echo "benchlock: resolving bench/$$of.in into bench/$$of.lock"; \
		$(use_pip_index); $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --custom-compile-command "make benchlock" \
			$(if $(UPGRADE),--upgrade) --output-file "bench/$$of.lock" pyproject.toml "bench/$$of.in"; \
	done

.PHONY: lock
lock: $(filter $(UV_LOCAL),$(UV)) ## write requirements.lock anew; UPGRADE=1 takes the newest versions
	@echo "lock: resolving pyproject.toml into requirements.lock"
	@$(use_pip_index); $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --all-extras \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		$(if $(UPGRADE),--upgrade) --output-file requirements.lock pyproject.toml

# What is newest changes by the day, so nothing is locked and each venv is made anew. Each framework is tested in a venv
# without the others, as its users have it: beside each other they hold back what they share. The rest is tested with all
# of them. claude-agent-sdk is there alone: it brings a program of 385 MB. `make -k` goes on after a framework that fails.
NEWEST := $(addprefix newest-,$(FRAMEWORKS) together)
.PHONY: frameworks-latest $(NEWEST)
frameworks-latest: $(NEWEST) ## test the integrations on the newest releases, or one: make newest-mcp; ARGS as for test

$(NEWEST): newest-%: | $(filter $(UV_LOCAL),$(UV))
	@echo "newest-$*: installing the newest releases into .frameworks-venv/$*"
	@rm -rf .frameworks-venv/$*
	@$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .frameworks-venv/$*
	@$(use_pip_index); $(UV) pip install --quiet --compile-bytecode --python .frameworks-venv/$*/bin/python --no-build \
		--requirements pyproject.toml $(NEWEST_EXTRAS)
	@$(UV) pip install --quiet --python .frameworks-venv/$*/bin/python --no-index --no-deps --no-build-isolation --editable .
	@.frameworks-venv/$*/bin/python tools/releases.py claude-agent-sdk
	@echo "newest-$*: pytest"
	@.frameworks-venv/$*/bin/python -m pytest --numprocesses auto $(NEWEST_TESTS) $(ARGS)

newest-%: NEWEST_EXTRAS = --extra $* --extra dev --extra postgres
newest-%: NEWEST_TESTS = $(wildcard tests/integrations/test_$(subst -,_,$*)*.py) $(patsubst examples/%.py, \
	'tests/integrations/test_examples.py::test_example_runs[%]',$(wildcard examples/$(subst -,_,$*)_*.py))
newest-together: NEWEST_EXTRAS = --all-extras claude-agent-sdk
newest-together: NEWEST_TESTS = tests/integrations $(patsubst %,--ignore-glob='*/test_%*',$(subst -,_,$(FRAMEWORKS)))

.PHONY: clean
clean: ## remove everything that make installed or built
	@echo "clean: removing .venv, .uv, caches and builds"
	@rm -rf .venv .bench-venv .quality-venv .frameworks-venv .uv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .soak
	@find src tests tools $(wildcard demo bench) -name __pycache__ -type d -prune -exec rm -rf {} +
