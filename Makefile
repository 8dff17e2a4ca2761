# Everything from a bare machine with Python 3.11 or newer and internet: `make audit`, `make test`.
IS_NEW_ENOUGH = -c 'import sys; sys.exit(sys.version_info < (3, 11))'
# The first of these that is installed and new enough.
PYTHON ?= $(firstword $(foreach one,python3.11 python3.12 python3.13 python3.14 python3 python,\
	$(shell command -v $(one) >/dev/null && $(one) $(IS_NEW_ENOUGH) 2>/dev/null && echo $(one))))
# Where pip gets torch; empty = as configured. The default on Linux takes 6 GB with CUDA. PyTorch's
# own index for the CPU takes less than 1 GB: pytorch.org/get-started shows its address.
TORCH_INDEX ?=
VENV ?= .venv
BIN := $(VENV)/bin
# Its build depends on the machine, so it is no part of the lock.
TORCH = torch==2.13.0
# Only what is imported gets compiled, at its first import. Compiling all packages takes pip longer
# than the rest of an installation.
INSTALL = $(BIN)/pip install --quiet --no-compile
# The version of every other package, with the hashes of its files: all of them, the part that
# audits need, those that build Overheard, and those that build the documentation site anew.
LOCKED = --require-hashes --no-deps --requirement locks
# Builds with what build.txt has, which is installed before.
BUILD = $(INSTALL) --no-deps --editable
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-package torch
# Writes the files to a folder, keeping the versions in it that still fit.
define write-locks
	$(COMPILE) pyproject.toml --all-extras --output-file $(1)/all.txt
	$(COMPILE) pyproject.toml --extra dp --constraint $(1)/all.txt --output-file $(1)/audit.txt
	sed -n '/^\[build-system\]/,/^$$/s/^requires = \["\(.*\)"\]/\1/p' pyproject.toml | \
		$(COMPILE) - --constraint $(1)/all.txt --output-file $(1)/build.txt
	echo zensical | $(COMPILE) - --constraint $(1)/all.txt --output-file $(1)/site.txt
endef
# One thread a process: two threads of torch beside another busy process are very slow.
export OMP_NUM_THREADS ?= 1
# Store compiled modules, even if a container's default is not to.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help

help: ## print the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

$(BIN)/python:
	@test -n '$(PYTHON)' && $(PYTHON) $(IS_NEW_ENOUGH) || { \
		echo 'Overheard needs Python 3.11 or newer, and $(or $(PYTHON),PATH) has none: install' \
		'one, or name it, as in: make audit PYTHON=/path/to/python3.12'; exit 2; }
	$(PYTHON) -m venv $(VENV)

# What an audit needs, for any Python from 3.11 on.
$(VENV)/installed-for-audits: pyproject.toml locks/audit.txt locks/build.txt | $(BIN)/python
	$(INSTALL) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(INSTALL) $(LOCKED)/audit.txt --requirement locks/build.txt
	$(BUILD) .
	$(BIN)/python -c 'import overheard.auditing.runs_ahead, overheard.report.write'
	touch $@

$(VENV)/installed: $(VENV)/installed-for-audits locks/all.txt studies/pyproject.toml
	$(INSTALL) $(LOCKED)/all.txt
	$(BUILD) ./studies
	touch $@

install: $(VENV)/installed ## make .venv, with the versions in locks/

audit: $(VENV)/installed-for-audits ## audit the built-in plan: audit/report.html
	$(BIN)/overheard audit

test: install ## run all tests, and the examples in the documentation
	$(BIN)/pytest -n 2 -q --dist worksteal --durations=20

test-studies: install ## run the tests of the studies
	$(BIN)/pytest -n 2 -q --dist worksteal --durations=20 studies/tests

test-fast: install ## run the fast tests: without slow ones and examples
	$(BIN)/pytest -n 2 -q --dist worksteal -m 'not slow and not deployment and not nightly' tests

check-nightly: install ## run all tests, long ones too, with eight times as many generated examples
	$(BIN)/pytest -n 2 -q --dist worksteal --hypothesis-profile=nightly \
		-m 'nightly or not deployment' --durations=20

coverage: install ## print the coverage of all tests; .coverage says which test runs which line
	$(BIN)/pytest -n 2 -q --dist worksteal --cov --cov-context=test --cov-report=
	@echo "Coverage of lines and branches: $$($(BIN)/coverage report --format=total) %"

deployments: install ## record real runs of Flower and NVFlare, and simulate on workers of Ray
	$(BIN)/pytest -n 2 -q --dist worksteal -m 'deployment and not nightly' tests/recorders \
		tests/simulation/cluster/test_ray_executor.py

ray-cluster: install ## let machines of a Ray cluster of two fail, for three minutes
	$(BIN)/pytest -q -m deployment tests/simulation/cluster

check-types: install ## run the tests with the types and shapes of all calls checked: nightly, slow
	$(BIN)/pytest -n 2 -q --dist worksteal --jaxtyping-packages=overheard,beartype.beartype tests

lint: install ## run ruff, mypy strict and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# MkDocs Material is no longer developed. Its successor must build the same pages, where it installs.
$(VENV)/site/installed: locks/site.txt | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/site
	$(VENV)/site/bin/pip install --quiet --no-deps --require-hashes --requirement locks/site.txt
	touch $@

docs: install ## build the documentation site: site/index.html
	$(BIN)/python -m website
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@if $(MAKE) --silent $(VENV)/site/installed; then \
		sed 's|^docs_dir: build/|docs_dir: |' mkdocs.yml >build/mkdocs.yml; \
		$(VENV)/site/bin/zensical build --strict --config-file build/mkdocs.yml; \
	else echo 'zensical does not install here: only MkDocs has built the site'; fi

check: ## run everything that CI checks
	$(MAKE) --jobs=2 lint check-locks docs deployments
	$(MAKE) test
	$(MAKE) test-studies

locks: install ## write locks/ anew from pyproject.toml, keeping versions that still fit
	$(call write-locks,locks)

check-locks: install ## check that locks/ fits pyproject.toml
	rm -rf $(VENV)/locks && cp -r locks $(VENV)/locks
	$(call write-locks,$(VENV)/locks)
	diff --brief locks $(VENV)/locks || { echo 'run make locks'; exit 1; }

dist: install ## build wheel and sdist, and their bill of materials: dist/
	$(BIN)/uv build --quiet --require-hashes --build-constraints locks/build.txt --out-dir dist .
	$(BIN)/python locks/sbom.py dist/overheard.cdx.json

# Without internet there is no list of flaws to compare with, which fails nothing.
audit-dependencies: install ## look for known flaws in the packages of locks/, and in torch
	@rm -f $(VENV)/flaws.json
	@{ echo $(TORCH); grep --no-filename --only-matching '^[A-Za-z0-9._-]*==[^\]*' \
		locks/all.txt locks/build.txt; } | sort --unique > $(VENV)/packages.txt
	@$(BIN)/uvx --quiet --from pip-audit==2.10.1 pip-audit --disable-pip --no-deps --format json \
		--requirement $(VENV)/packages.txt --output $(VENV)/flaws.json 2> $(VENV)/flaws.log || true
	@$(BIN)/python locks/flaws.py $(VENV)/flaws.json $(VENV)/flaws.log

release-check: install ## build wheel and sdist, and try each in a clean environment
	$(BIN)/nox --session release

matrix: install ## run tests with each Python and each version of a framework: docs/versions.md
	$(BIN)/nox

bench: install ## measure speed and memory; needs an idle machine
	$(BIN)/python benchmarks

bench-check: install ## compare the ratios of speed with those that bench kept; a few minutes
	$(BIN)/python benchmarks --check

gpu-check: install ## on a machine with a GPU: equality with the CPU, goals, audits
	$(BIN)/python benchmarks/gpu

clean: ## remove what make created
	rm -rf $(VENV) audit dist site reproduced .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .nox .coverage

.PHONY: help install audit test test-studies test-fast check-types check-nightly coverage \
	deployments ray-cluster lint docs check locks check-locks dist audit-dependencies \
	release-check matrix bench bench-check gpu-check clean
