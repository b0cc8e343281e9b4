# Every word does its own set-up: a fresh machine needs only Python (3.11 or newer), pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORTURE_MINUTES ?= 1
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PRODUCT := $(VENV)/.product
INSTALLED := $(VENV)/.installed

.PHONY: demo test matrix check locked page format docs dist bench torture results pictures clean

demo: $(PRODUCT)  ## the main job on embedded data: a forecast, its picture, its verified explanation
	$(BIN)/ibforecast demo --out demo

test: $(INSTALLED)  ## the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations=20

matrix:  ## the product without its extras, on the oldest and newest Python and on pandas 2.3 and 3
	.ci/matrix

check: $(INSTALLED)  ## format, lint, types, import directions, plain words, licences, known vulnerabilities; the page too if its packages are installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python .ci/prose.py check
	$(BIN)/python .ci/sbom.py
	$(BIN)/python .ci/audit.py
	@if [ -d page/node_modules ] && command -v npm >/dev/null; then npm --prefix page run --silent check; \
	else echo "the explorer's page was not checked: it needs Node and 'npm --prefix page ci'"; fi

locked: $(INSTALLED)  ## every pinned package but PyTorch, downloaded to .locked/ only if its fingerprint is in .ci/locked.txt
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --dest .locked -r .ci/locked.txt

page:  ## the explorer's page from page/src, bundled into src/ibforecast/plots/explorer; needs Node and npm
	[ -d page/node_modules ] || npm --prefix page ci
	npm --prefix page run --silent build

format: $(INSTALLED)  ## rewrite the files as `check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(INSTALLED)  ## the documentation site, in site/; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

dist: $(INSTALLED)  ## sdist, wheel and bill of materials of the product, and the wheel of the laboratory, in dist/
	$(BIN)/python -m build --no-isolation
	$(BIN)/python .ci/sbom.py dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist lab

bench: $(INSTALLED)  ## speed and memory, as ratios measured side by side
	$(BIN)/python -m benchmarks

torture: $(INSTALLED)  ## attacks on the library, TORTURE_MINUTES for each kind; figures in results/bench/torture.json
	$(BIN)/python -m torture --minutes $(TORTURE_MINUTES) --out results/bench/torture.json

results: $(INSTALLED)  ## pack the records of new runs into the ledger, then build results/tables, results/figures and docs/results.md
	$(BIN)/python -m ibforecast_lab.experiments.render --pack --out results
	$(BIN)/python -m ibforecast_lab.experiments.page

pictures: $(INSTALLED)  ## every picture of docs/images, from the demo and the theorems; screenshots need Chromium
	$(BIN)/python docs/pictures.py

clean:
	rm -rf $(VENV) .matrix .locked demo site dist

# Two steps into one environment, so that the demo does not wait for the tools of the developers.
$(PRODUCT): pyproject.toml constraints.txt
	@echo "installing into $(VENV): ibforecast[plot], which is PyTorch, pyarrow, matplotlib and a few small packages"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e ".[plot]"
	@touch $@

$(INSTALLED): $(PRODUCT) lab/pyproject.toml
	@echo "installing into $(VENV): ibforecast[dev] and ibforecast-lab, with the tools for tests, types, docs, Ray and sktime"
	@$(PIP) -e ".[dev]" -e ./lab
	@touch $@
