# Each target does its own set-up: the environment lives in .venv and is rebuilt when the project's
# dependencies or pins change.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Many processes import the same modules: they are compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Processes that tests run in; each takes whole files.
WORKERS ?= auto

.DELETE_ON_ERROR:
.PHONY: verify test vllm lint crosshair nightly clean

# The main job: all proofs, then free and gather and whole runs checked on the reference. All run
# even if one fails; the exit code is that of the first failure.
verify: .venv/.base
	@code=0; \
	note() { other=$$?; [ $$code -ne 0 ] || code=$$other; }; \
	$(BIN)/python -m proofs || note; \
	$(BIN)/residency check --target reference || note; \
	$(BIN)/residency check --target reference --level loop --device none || note; \
	exit $$code

test: .venv/.base
	$(BIN)/python -m pytest --hypothesis-profile=ci -n $(WORKERS) --no-loadscope-reorder

# Adds what vLLM's own modules import, and fetches the releases that CI checks. vLLM itself is not
# installed: its source is unpacked into the user's cache folder.
vllm: .venv/.vllm
	$(BIN)/residency vllm fetch --ci

lint: .venv/.base
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

crosshair: .venv/.base
	$(BIN)/python -m proofs.crosshair
	$(BIN)/python -m pytest --hypothesis-profile=crosshair -m integers

# Goes on where it was stopped; the whole of the full scope takes many hours.
nightly: .venv/.base
	$(BIN)/python -m pytest --hypothesis-profile=nightly -n $(WORKERS) --no-loadscope-reorder
	$(BIN)/residency explore
	PYTHONHASHSEED=0 $(BIN)/python -m tests.recorders.record_protocol_faults --check
	$(BIN)/python -m tests.support.kills
	$(BIN)/residency explore --scope full --resume build/explore-full

clean:
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

.venv/.base: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[dev]'
	@touch $@

.venv/.vllm: .venv/.base
	$(INSTALL) -e '.[dev,vllm]'
	@touch $@
