# `make help` says what there is. Everything works in ./.venv and touches nothing outside it.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ROOMS  := fedfreeze compression device_profiles tasks strategies client_app server_app cli
ARGS   ?=

# One thread each: the tests run side by side.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help run test lint format fuzz bench-codec bench-devices clean install

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(STAMP)  ## Train the default strategy on simulated boards (ARGS="--rounds 5" adds options)
	@$(BIN)/fedfreeze run $(ARGS)

test: lint  ## Lint, check types and import directions, run all tests
	@$(BIN)/pytest -n auto --dist loadgroup $(ARGS)

lint: $(STAMP)  ## Check style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(addprefix -p ,$(ROOMS))

format: $(STAMP)  ## Rewrite the code in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

fuzz: $(STAMP)  ## Decode 100,000 damaged packets, encode 20,000 random updates
	@FEDFREEZE_MUTANTS=100000 $(BIN)/pytest -q tests/unit/compression/test_decode.py $(ARGS)
	@FEDFREEZE_CASES=20000 $(BIN)/pytest -q --timeout 0 tests/property/test_encoder_properties.py $(ARGS)

bench-codec: $(STAMP)  ## Bytes, error, speed and memory of the codec (ARGS="--help" lists options)
	@$(BIN)/python experiments/codec/benchmark.py $(ARGS)

bench-devices: $(STAMP)  ## Costs and plans against formulas, bounds and real training (ARGS="--quick")
	@$(BIN)/python experiments/devices/benchmark.py $(ARGS)

install: $(STAMP)  ## Make ./.venv, or renew it when pyproject.toml has changed

clean:  ## Delete ./.venv and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info < (3, 14); ok or sys.exit( \
	  "expected Python 3.11, 3.12 or 3.13, got %d.%d (%s); try: make PYTHON=python3.12" \
	  % (*sys.version_info[:2], sys.executable))'
	@echo "Installing into $(VENV). The first time fetches PyTorch, which may take minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@{ PYTHONUNBUFFERED=1 $(BIN)/python -m pip install --disable-pip-version-check -e '.[dev]' 2>&1; \
	   echo $$? > $(VENV)/.pip-exit; } | tee $(VENV)/install.log | awk \
	   '/Downloading/ && !/metadata/ || /^Installing/ || /ERROR|[Ee]rror:/ { print "  " substr($$0, 1, 110); fflush() }'
	@test "$$(cat $(VENV)/.pip-exit)" = 0 || { \
	   echo "pip failed; its own words are in $(VENV)/install.log" >&2; exit 1; }
	@touch $@
	@echo "Installed."
