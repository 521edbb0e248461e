# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
JOBS ?= 2

.PHONY: setup demo test test-slow test-all check bench attack docs dist clean

setup: $(VENV)/.dev

# The package and what it needs at run time. constraints.txt pins the exact set; torch is installed
# first, so that no other package can pull a different build of it.
$(VENV)/.package: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; most of the time is PyTorch)."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) torch
	@$(PIP) --editable .
	@touch $@

# What the tests and checks need beyond that.
$(VENV)/.dev: $(VENV)/.package
	@echo "Installing the development tools (once)."
	@$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.package
	$(BIN)/nodenova demo --out nodenova-demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

# Walk-throughs of the documentation, browser, Ray, killed processes, full grids.
test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) -m slow

test-all: test test-slow

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/prose.py

# ONLY=rivals, layers, scaling or costs runs one part; large and largest have millions of nodes.
# `python tools/performance.py` writes docs/performance.md from the rows.
bench: setup
	$(BIN)/python benchmarks/run.py $(ONLY)

# Mutated inputs, killed commands, races, relations, a long run, mutants: about two hours.
# ONLY=fuzz, killer, races, metamorphic, long_run, mutants or report runs one part.
attack: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.attack $(ONLY)

# The reference is read from the source, so this needs neither torch nor the package.
# Two builders make the site; tools/compare_sites.py checks that both have the same pages and words.
docs: $(VENV)-docs/.ready
	$(VENV)-docs/bin/python tools/site_pages.py
	$(VENV)-docs/bin/python tools/badges.py
	rm -rf build/site build/site-zensical
	$(VENV)-docs/bin/zensical build --clean --strict
	mv build/site build/site-zensical
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet --clean --strict
	$(VENV)-docs/bin/python tools/compare_sites.py build/site build/site-zensical
	$(VENV)-docs/bin/python tools/site_pages.py build/site
	@echo "Open build/site/index.html, or 'python3 -m http.server -d build/site' to search."

$(VENV)-docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt mkdocs mkdocs-material mkdocstrings-python zensical ruff
	touch $(VENV)-docs/.ready

# The wheel and the sdist, made by the builder that constraints.txt pins: the same files make the same
# bytes. The bill of materials of what they bring in goes to build/.
dist: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tools/sbom.py --check
	$(BIN)/python tools/sbom.py

clean:
	rm -rf .cache $(VENV) $(VENV)-docs nodenova-demo build dist .pytest_cache .mypy_cache .ruff_cache
