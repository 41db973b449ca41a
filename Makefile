# Everything runs from .venv, which the first target that needs it creates; nothing is activated and
# nothing outside this folder is changed but KOPT_HOME (default ~/.kopt). Repeating a target is cheap:
# the stamps in .venv are older than pyproject.toml only when something has to be installed again.

KERNEL ?= fused_add_rmsnorm_b8xh4096
RUN_FLAGS ?= --device sim --arch sm_90a --rounds 2
DEMO_FLAGS ?= --rounds 2
STUDY_FLAGS ?=
KERNELBENCH_FLAGS ?= --jobs 2
# What the tests with real MCP clients install: nothing for the four that they need, `all`, or names.
CLIENTS ?=
MCPB ?= npx --yes @anthropic-ai/mcpb@2.1.2
BUNDLE ?= dist/kopt.mcpb
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))

venv := .venv
installed := $(or $(KOPT_CLIENTS),$(CURDIR)/$(venv)/clients)
pip := $(venv)/bin/python -m pip --disable-pip-version-check
# What constraints.txt holds the versions of; the GPU's extra stays free, since torch comes with a driver.
locked := --extra toolkit --extra docs --group test --group lint --group site
# With bytecode, whatever the user's shell says: the tests start kopt some hundred times. A process
# takes neighbours, which share what their module has set up, and helps the other at the end.
pytest := env -u PYTHONDONTWRITEBYTECODE $(venv)/bin/pytest -q -n auto --dist worksteal
# A virtual environment holds absolute paths: if ours was moved with the folder, it is made anew.
# One that was made by other means is kept and added to.
made_in := $(shell cat $(venv)/.stamp-place 2>/dev/null)
ifneq ($(made_in),$(CURDIR))
$(venv)/.stamp-place: .FORCE
endif

.PHONY: run demo-llm demo-study kernelbench test test-all test-nightly test-clients clients session lint types mypy \
	pyright docs lock install bundle clean help g++ .FORCE

run: $(venv)/.stamp-toolkit | g++ ## search for a faster kernel on the CPU simulator: the main job
	@echo "make run: searching $(KERNEL) on the simulator"
	@$(venv)/bin/kopt run --kernel $(KERNEL) $(RUN_FLAGS) --no-models

demo-llm: KERNEL := silu_and_mul_b8xh14336
demo-llm: $(venv)/.stamp-toolkit | g++ ## the search with agents on the simulator; a script plays Claude, no key is needed
	@echo "make demo-llm: searching $(KERNEL) on the simulator with a scripted model"
	@PYTHONPATH=tests $(venv)/bin/python benchmarks/demo_llm.py --kernel $(KERNEL) $(DEMO_FLAGS)

demo-study: $(venv)/.stamp-toolkit | g++ ## with and without memory on four kernels, on the simulator; a script plays Claude, no key is needed
	@echo "make demo-study: comparing searches on the simulator with a scripted model"
	@PYTHONPATH=tests $(venv)/bin/python benchmarks/demo_study.py $(STUDY_FLAGS)

kernelbench: $(venv)/.stamp-torch $(venv)/.stamp-kernelbench | g++ ## import KernelBench's tasks and check their kernels on the simulator (KERNELBENCH=its checkout)
	@KERNELBENCH="$(KERNELBENCH)" $(venv)/bin/python benchmarks/kernelbench_import.py $(KERNELBENCH_FLAGS)

test: $(venv)/.stamp-test $(venv)/.stamp-torch | g++ ## run the tests but the slow ones: seven minutes on two cores
	@echo "make test: running the tests"
	@$(pytest) -m "not slow"

# In one go: the workers collect nineteen thousand tests once, and nobody waits between two parts.
test-all: $(venv)/.stamp-test $(venv)/.stamp-torch | g++ ## run all tests but the nightly: also crashes, endings of processes, every shipped kernel
	@echo "make test-all: running the tests and the slow tests"
	@$(pytest) -m "not nightly"

test-nightly: test-all ## run all tests: test-all, then the rest of what it runs a part of
	@echo "make test-nightly: running the nightly tests"
	@$(pytest) -m nightly

test-clients: clients $(venv)/.stamp-test | g++ ## run the tests with real MCP clients, from npm (CLIENTS=all: Codex, Gemini, opencode too)
	@echo "make test-clients: running the tests"
	@KOPT_CLIENTS=$(installed) $(pytest) tests/clients $(CLIENT_FLAGS)

clients: $(venv)/.stamp-test
	@echo "make clients: installing MCP clients from npm into $(installed) (500 MB the first time)"
	@KOPT_CLIENTS=$(installed) tests/clients/install.sh $(CLIENTS)

session: CLIENT_FLAGS := -k scripted_session --write-session
session: test-clients ## write docs/session.md: a session of Claude Code with a scripted model

lint: $(venv)/.stamp-lint ## ruff: rules and format
	@echo "make lint: ruff"
	@$(venv)/bin/ruff check .
	@$(venv)/bin/ruff format --check .

types: mypy pyright ## mypy and pyright, both strict

mypy: $(venv)/.stamp-lint $(venv)/.stamp-test
	@echo "make types: mypy"
	@$(venv)/bin/mypy -p kopt
	@$(venv)/bin/mypy tests

pyright: $(venv)/.stamp-lint $(venv)/.stamp-test
	@echo "make types: pyright"
	@$(venv)/bin/pyright

docs: $(venv)/.stamp-site ## the manual as a site in build/site; fails on a broken link
	@echo "make docs: building build/site"
	@NO_MKDOCS_2_WARNING=1 $(venv)/bin/mkdocs build --quiet --strict

lock: $(venv)/.stamp-place ## renew constraints.txt: the newest versions that pyproject.toml allows
	@$(pip) install -qq uv
	@$(venv)/bin/uv pip compile --quiet --upgrade --universal --no-header --no-annotate \
		--python-version 3.11 $(locked) pyproject.toml -o constraints.txt

install: $(venv)/.stamp-toolkit ## install kopt and the CUDA compiler into .venv

# What the bundle's pyproject.toml installs from; the manifest stands beside it.
bundled := pyproject.toml README.md LICENSE __init__.py __main__.py py.typed \
	config kernels tools search server

bundle: ## pack kopt as an .mcpb bundle into dist/ (needs npx, from Node.js)
	@command -v $(firstword $(MCPB)) >/dev/null || { echo "make bundle needs npx: install Node.js 18 or later" >&2; exit 3; }
	@echo "make bundle: packing $(BUNDLE)"
	@rm -rf build/mcpb && mkdir -p build/mcpb $(dir $(BUNDLE))
	@tar -cf - --exclude=__pycache__ $(bundled) | tar -xf - -C build/mcpb
	@cp packaging/mcpb/manifest.json build/mcpb/
	@$(MCPB) pack build/mcpb $(BUNDLE)

clean: ## remove .venv and the caches of the tools
	rm -rf $(venv) .mypy_cache .pytest_cache .ruff_cache

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(venv)/.stamp-place:
	@test -n "$(PYTHON)" || { echo "kopt needs Python 3.11 or later; found: $$(python3 --version 2>&1)." \
		"Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 3; }
	@echo "make: creating $(venv) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(if $(made_in),--clear) $(venv) || { echo "This Python cannot create a virtual environment;" \
		"on Debian and Ubuntu: apt install python3-venv" >&2; exit 3; }
	@$(pip) install -qq --upgrade 'pip>=25.1' # the first with --group
	@printf '%s\n' "$(CURDIR)" > $@

$(venv)/.stamp-toolkit: pyproject.toml constraints.txt $(venv)/.stamp-place
	@echo "make: installing kopt and the CUDA compiler from pip into $(venv) (250 MB the first time)"
	@$(pip) install $(if $(MAKE_TERMOUT),,-qq) -c constraints.txt -e '.[toolkit,docs]' # with bars on a terminal
	@touch $@

$(venv)/.stamp-test $(venv)/.stamp-lint $(venv)/.stamp-site $(venv)/.stamp-kernelbench: $(venv)/.stamp-%: pyproject.toml $(venv)/.stamp-toolkit
	@echo "make: installing the $* tools into $(venv)"
	@$(pip) install -qq -c constraints.txt --group $*
	@touch $@
$(venv)/.stamp-lint: | $(venv)/.stamp-torch # one pip at a time

# tests/conftest.py leaves out what needs PyTorch where it is missing; CI must have it.
$(venv)/.stamp-torch: pyproject.toml $(venv)/.stamp-toolkit | $(venv)/.stamp-test
	@echo "make: installing PyTorch for the tests of tools/pytorch into $(venv)"
	@$(pip) install -qq -c constraints.txt --group torch || { test -z "$(CI)" && echo "make: pip finds no PyTorch that" \
		"goes with the CUDA compiler here; the tests of tools/pytorch are left out"; }
	@touch $@
$(venv)/.stamp-site: | $(venv)/.stamp-lint
$(venv)/.stamp-kernelbench: | $(venv)/.stamp-torch

g++:
	@command -v $${KOPT_CXX:-g++} >/dev/null || { echo "kopt needs g++ for the simulator;" \
		"on Debian and Ubuntu: apt install g++" >&2; exit 3; }
