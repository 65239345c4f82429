# Two commands do everything on a fresh machine: `make up` runs the product, `make test` tests it.
.PHONY: help setup setup-dev setup-test up test test-all lint docs dist audit format bench soak compatibility clean

BIN := .venv/bin
UV := $(shell command -v uv || echo .cache/uv/bin/uv)
SHIPPED := --locked --no-dev --all-extras --no-emit-project

help:
	@echo "make up      set up what is missing, then run cluster, metrics, page and demo load"
	@echo "make test    set up what is missing, then run the tests that every change needs"
	@echo "make test-all   the other tests: beside real Kafka, kills, every document"
	@echo "make lint    ruff, mypy, import contracts, house budget, documents"
	@echo "make docs    the documents as a site, in site/"
	@echo "make dist    wheel, sdist, locked versions, SBOM    make audit   known vulnerabilities"
	@echo "make bench   benchmarks beside real Kafka        make soak   long runs"
	@echo "make compatibility   tests on real Kafka 2.8, 4.1 and 4.4, and the table of what they ran"
	@echo "make setup   set-up only                         make clean  remove what was built"

setup:
	@scripts/setup.sh run

setup-dev:
	@scripts/setup.sh dev

setup-test:
	@scripts/setup.sh test

up: setup
	@exec $(BIN)/partiscope up $(ARGS)

test: setup-test
	@$(BIN)/python scripts/run_tests.py change $(ARGS)

test-all: setup-test
	@$(BIN)/python scripts/run_tests.py rest $(ARGS)

lint: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_documents.py tests/test_words.py
	@$(MAKE) --no-print-directory docs

docs: setup-dev
	@NO_COLOR=1 $(BIN)/zensical build --strict

dist: setup-dev
	@rm -rf dist
	@$(UV) build --quiet
	@$(UV) export --quiet $(SHIPPED) --no-hashes -o dist/constraints.txt >/dev/null
	@$(UV) export --quiet --preview-features sbom-export $(SHIPPED) --format cyclonedx1.5 -o dist/sbom.json >/dev/null
	@ls -l dist

# Fails too where the registry does not answer for a package.
audit: setup-dev
	@mkdir -p .cache
	@$(UV) export --quiet $(SHIPPED) --no-hashes -o .cache/audited.txt >/dev/null
	@$(UV)x pip-audit --strict --disable-pip --no-deps -r .cache/audited.txt

format:
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup-test
	@$(BIN)/python -m benchmarks $(ARGS)

soak: setup-test
	@HYPOTHESIS_PROFILE=exploring $(BIN)/python -m pytest tests/property tests/simulation
	@$(BIN)/python -m pytest -m soak --timeout=7200 $(ARGS)

compatibility: setup-test
	@$(BIN)/python -m pytest -m kafka_oracle --junitxml=.cache/compatibility.xml $(ARGS)
	@$(BIN)/python scripts/compatibility_table.py .cache/compatibility.xml

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
