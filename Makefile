# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2

.PHONY: setup demo test test-all check bench docs dist clean

setup: $(READY)

# Made anew when what is to be installed changes. The exact set is in constraints.txt; torch first, so that nothing
# else can pull another build of it.
$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV), once: a few minutes, most of them for PyTorch."
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing PyTorch (step 1 of 2)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	@echo "Installing nodenova and its tools (step 2 of 2)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

demo: setup
	$(BIN)/nodenova demo --out nodenova-demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

test-all: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) -m 'slow or not slow'

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# ONLY=rivals, layers, scaling or costs is one part; large and largest are millions of nodes. `python tools/performance.py` makes docs/performance.md of the rows.
bench: setup
	$(BIN)/python benchmarks/run.py $(ONLY)

# The reference is read from the source, so this needs neither torch nor the package: an environment of its own is made in seconds.
# Two builders, one site: Zensical's goes to build/site-zensical, and has to have every page and every word of MkDocs's.
docs: $(VENV)-docs/.ready
	$(VENV)-docs/bin/python tools/site_pages.py
	rm -rf build/site build/site-zensical
	$(VENV)-docs/bin/zensical build --clean --strict
	mv build/site build/site-zensical
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet --clean --strict
	$(VENV)-docs/bin/python tools/compare_sites.py build/site build/site-zensical
	@echo "Open build/site/index.html, or 'python3 -m http.server -d build/site' to search."

$(VENV)-docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt mkdocs mkdocs-material mkdocstrings-python zensical ruff
	touch $(VENV)-docs/.ready

# The wheel and the sdist, with the builder that constraints.txt names.
dist: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf .cache $(VENV) $(VENV)-docs nodenova-demo build dist .pytest_cache .mypy_cache .ruff_cache
