# Both `make demo` and `make test` set themselves up; all they need is Python 3.11 or later, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# LOCK=requirements.lock, as in CI: the versions of that file and no others, by their hashes
LOCK ?=
install = $(if $(LOCK),$(BIN)/python -m pip install --quiet --require-hashes -r $(LOCK) &&) \
	$(BIN)/python -m pip install --quiet $(if $(LOCK),--no-deps --no-build-isolation) --editable '.$(1)'

.PHONY: demo test test-all test-gpu check bench hostile reproduce docs dist lock clean

demo: $(VENV)/.installed
	$(BIN)/marginsieve cohort demo/cohort.csv --n-samples 200 --n-features 300 --n-relevant 8 --n-redundant 0 --prevalence 0.2 --flip 0.03 \
		--n-categorical 20 --n-categorical-relevant 2 --missing 0.02
	$(BIN)/marginsieve select demo/cohort.csv --target outcome --methods two-views,clinical-rfe --labels fallible --false-share 0.1 --n-repeats 1 \
		--out demo/result --truth demo/cohort.truth.json --n-jobs 2

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

test-all: $(VENV)/.installed-test-all
	$(BIN)/python -m pytest -n auto --dist worksteal

test-gpu: $(VENV)/.installed-gpu
	MARGINSIEVE_TEST_DEVICE=cuda $(BIN)/python -m pytest tests/test_batches.py

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks

reproduce: $(VENV)/.installed-test
	$(BIN)/python -m reproduction $(ARGS)

hostile: $(VENV)/.installed-test
	cd tests && ../$(BIN)/python -m hostile.matrix
	cd tests && ../$(BIN)/python -m hostile.models
	cd tests && ../$(BIN)/python -m hostile.commands
	cd tests && ../$(BIN)/python -m hostile.memory
	cd tests && ../$(BIN)/python -m hostile.stores
	cd tests && ../$(BIN)/python -m hostile.cells
	cd tests && ../$(BIN)/python -m hostile.kills
	cd tests && ../$(BIN)/python -m hostile.faults

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# what a release consists of; its bill of materials is that of an environment with the locked versions
dist: $(VENV)/.installed-release
	rm -rf dist build/bill
	$(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv build/bill
	sed -e '/--hash=/d' -e 's/ *\\$$//' requirements.lock > build/constraints.txt
	build/bill/bin/python -m pip install --quiet --constraint build/constraints.txt dist/*.whl
	$(BIN)/cyclonedx-py environment build/bill/bin/python --output-reproducible --of JSON -o build/sbom.cdx.json

lock: | $(BIN)/python
	$(BIN)/python -m pip install --quiet uv
	echo '# Every version that CI and releases install, by its hashes, on every system and Python; made anew by: make lock' > requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra test-all --extra docs --extra release --universal --python-version 3.11 --upgrade --quiet \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header >> requirements.lock

clean:
	rm -rf $(VENV) demo docs/_build docs/gallery dist build

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "marginsieve needs Python 3.11 or later; name it with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(call install,)
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(call install,[test])
	touch $@

$(VENV)/.installed-test-all: pyproject.toml | $(BIN)/python
	$(call install,[test-all])
	touch $@ $(VENV)/.installed-test

$(VENV)/.installed-gpu: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,gpu]'
	touch $@ $(VENV)/.installed-test

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(call install,[docs])
	touch $@

$(VENV)/.installed-release: pyproject.toml | $(BIN)/python
	$(call install,[release])
	touch $@
