# Everything goes through a virtual environment of its own, made on first use.
#   make demo                                      trains three methods on the maze, draws a report
#   make test                                      the fast tests
#   make bench                                     speed beside other libraries, in a quarter of an hour
#   make check                                     what CI runs: style, types, layers, fast tests
#   make demo DEMO_ARGS="--steps 96000"            options of `eipo demo`
#   make test PYTHON=python3.12 VENV=/tmp/venv     another Python, another place

PYTHON ?= python3
VENV ?= .venv
DEMO_ARGS ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=

bin := $(VENV)/bin
# The page of `eipo report` is tested in Chromium. CI sets CHROMIUM=required: there a missing one is a failure.
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome-stable google-chrome,$(shell command -v $(name))))
without := $(if $(CHROMIUM),,-m "not slow and not browser")

pip := $(bin)/python -m pip install --disable-pip-version-check -c constraints.txt

.DELETE_ON_ERROR:
.PHONY: demo test test-slow check lint bench bench-maze faults clean

demo: $(VENV)/installed
	@$(bin)/eipo demo $(DEMO_ARGS)

test: $(VENV)/installed-dev
	@$(if $(CHROMIUM),:,echo "no Chromium on this machine: the tests of the report page in a browser are left out")
	$(bin)/python -m pytest $(without) $(PYTEST_ARGS)

test-slow: $(VENV)/installed-dev
	$(bin)/python -m pytest -m slow $(PYTEST_ARGS)

check: lint test

lint: $(VENV)/installed-dev
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(bin)/lint-imports

bench: $(VENV)/installed-bench
	$(bin)/python benchmarks/bench.py $(BENCH_ARGS)

bench-maze: $(VENV)/installed
	$(bin)/python benchmarks/maze.py

faults: $(VENV)/installed-dev
	$(bin)/python benchmarks/faults.py --write docs/reliability.md

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	  || { echo "eipo needs Python 3.10 to 3.13, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1 | tail -n 1); say which: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "making $(VENV) and installing into it: once, for a minute or two"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml constraints.txt
	$(pip) -e .
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(pip) -e ".[bench]"
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(pip) -e ".[dev]"
	@touch $@
