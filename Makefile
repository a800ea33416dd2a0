# The commands of the project. Everything works on a fresh machine with Python 3.11 or newer.
# Another Python or folder: make PYTHON=python3.13 VENV=/tmp/venv test

VENV ?= .venv
BIN := $(VENV)/bin
NEW := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(NEW)' 2>/dev/null && echo $$p && break; done)

.PHONY: help run test test-engines check drill bench mutants pictures format example lock clean venv dev

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

run: venv ## start the gateway
	@exec $(BIN)/laneway run

# Hundreds of tests start a gateway: each would compile all of it anew where nothing may be kept.
unexport PYTHONDONTWRITEBYTECODE

# Most of a test's time is waiting for processes and sockets: more of them run than there are cores.
JOBS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

test: dev ## run the whole test suite
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-engines: dev ## test engines with their real programs (fetches some 800 MB once)
	@test -e .venv-engines/codex || { rm -rf .venv-engines; \
	$(PYTHON) -m venv .venv-engines && .venv-engines/bin/python -m pip install --quiet \
	--disable-pip-version-check --no-deps --only-binary :all: $(CLAUDE) $(CODEX) && \
	ln -s "$$(echo $$PWD/.venv-engines/lib/*/site-packages/claude_agent_sdk/_bundled/claude)" \
	.venv-engines/claude && \
	ln -s "$$(echo $$PWD/.venv-engines/lib/*/site-packages/codex_cli_bin/bin/codex)" \
	.venv-engines/codex; }
	LANEWAY_TEST_CLAUDE="$$PWD/.venv-engines/claude" LANEWAY_TEST_CODEX="$$PWD/.venv-engines/codex" \
	$(BIN)/python -m pytest -n auto tests/engines/test_claude_real.py tests/engines/test_codex_real.py \
	tests/engines/test_claude_thread.py tests/engines/test_codex_thread.py

CODEX = "openai-codex-cli-bin>=0.163,<0.164"
CLAUDE = "claude-agent-sdk>=0.2.189,<0.3"

check: dev ## everything that CI checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory test

thorough: dev ## the whole test suite with ten times as many random inputs
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --timeout 600

drill: dev ## kill it under load, many times, and let all go wrong (KILLS=200 THREADS=60 WAKE=1000 SEED=again)
	LANEWAY_DRILL_KILLS=$(or $(KILLS),200) LANEWAY_DRILL_THREADS=$(or $(THREADS),60) \
	LANEWAY_DRILL_JOBS=$(or $(WAKE),1000) LANEWAY_DRILL_GUESSES=$(or $(GUESSES),10000) \
	LANEWAY_DRILL_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -s tests/drills

bench: dev ## measure, against the goals (NAME=part of a measure's name)
	@$(MAKE) --no-print-directory venv VENV=.venv-bench
	LANEWAY_BENCH_PYTHON="$$PWD/.venv-bench/bin/python" $(BIN)/python -u -m tests.bench $(NAME)

mutants: dev ## plant faults into the rules; tests must notice (NUMBER=40 SEED=1)
	$(BIN)/python -m tests.mutants $(or $(NUMBER),40) $(or $(SEED),1)
	$(BIN)/python tests/lanes/planted_bugs.py

pictures: dev ## draw the pictures of the documentation, those of the page too (needs Chromium)
	$(BIN)/python -m docs.pictures.make

format: dev ## put the code into its shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

example: venv ## write .env.example anew from the table of settings
	$(BIN)/python -m gateway.config > .env.example

routes: dev ## write docs/web-routes.md anew from the routes there are
	$(BIN)/python -m docs.web_routes > docs/web-routes.md

lock: ## choose the newest versions that pyproject.toml allows, with their hashes
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet uv
	$(LOCK) --group build -o requirements.lock
	$(LOCK) --group build --group dev -c requirements.lock -o requirements-dev.lock
	rm -rf .venv-lock

LOCK = .venv-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header --no-annotate pyproject.toml

clean: ## remove what make made
	rm -rf $(VENV) .venv-lock .venv-engines .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A copy of the lock stands in the environment it was installed into: when it differs from ours,
# the environment is made anew. Nothing is fetched that the lock does not name with its hash.

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

venv:
	@cmp -s requirements.lock $(VENV)/run.lock || { \
	test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/it"; exit 2; }; \
	echo "installing into $(VENV)"; rm -rf $(VENV); \
	$(PYTHON) -m venv $(VENV) || { echo "on Debian and Ubuntu: apt install python3-venv"; exit 2; }; \
	$(INSTALL) --require-hashes -r requirements.lock && \
	$(INSTALL) --no-build-isolation --editable . && \
	cp requirements.lock $(VENV)/run.lock; }

dev: venv
	@cmp -s requirements-dev.lock $(VENV)/dev.lock || { \
	echo "installing what tests and checks need"; \
	$(INSTALL) --require-hashes -r requirements-dev.lock && \
	cp requirements-dev.lock $(VENV)/dev.lock; }
