# Tidemark: `make demo` shows it, `make test` proves it. Each target does its own set-up.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # otherwise each of a hundred or so processes compiles every module again
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(BIN)/.runtime  ## Make .venv with the pinned dependencies and the tidemark command

demo: install  ## Run everything once: transactions and a PDF in; reports, decisions and verified webhooks out (and stay: KEEP=1)
	@$(BIN)/tidemark demo $(if $(KEEP),--keep-running)

test: lint imports types  ## Run lint, import contracts, types and short tests: what must pass before a change is merged
	$(BIN)/pytest -m "not slow and not service" -n 3 --dist worksteal

test-service: $(BIN)/.dev  ## Test whole services, in parts (PARTS="service/flows"); needs PostgreSQL, RabbitMQ, Redis, Chromium; see docs/testing.md
	$(BIN)/python -m tests.parts service $(PARTS)

flows: $(BIN)/.dev  ## Test whole services with the lake in a folder, or in an emulated bucket (STORE=s3); needs PostgreSQL, RabbitMQ
	STORE=$(STORE) $(BIN)/pytest -m service tests/flows

test-slow: $(BIN)/.dev  ## Kill processes, inject faults, try more examples, in parts; needs PostgreSQL, RabbitMQ, Redis; see docs/testing.md
	$(BIN)/python -m tests.parts slow $(PARTS)

mutants: $(BIN)/.dev  ## Check that the tests still catch what those of BASE=9b9ce16 caught (hours; can be resumed)
	$(BIN)/python -m tests.mutants $(or $(BASE),$(error name the earlier commit: BASE=9b9ce16)) HEAD

lint: $(BIN)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

imports: $(BIN)/.dev
	$(BIN)/lint-imports --no-cache

types: $(BIN)/.dev
	$(BIN)/pyrefly check

bench: $(BIN)/.dev  ## Measure speed and accuracy, into benchmarks/RESULTS.md (over an hour; needs PostgreSQL, RabbitMQ; only some: PARTS="api reads" ON=SQLite)
	$(BIN)/python -m benchmarks $(PARTS) $(ON:%=--on %)

format: $(BIN)/.dev  ## Sort imports and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generated: $(BIN)/.dev  ## Write the files in docs/ and clients/python that come from the code
	$(BIN)/tidemark policies schema > docs/reference/policy.schema.json
	$(BIN)/tidemark rulesets schema > docs/reference/ruleset.schema.json
	$(BIN)/tidemark rulesets library --markdown > docs/reference/monitoring-library.md
	$(BIN)/tidemark metrics list --markdown > docs/reference/metrics.md
	$(BIN)/python -m pipelines.reports.aggregate.described > docs/reference/report-tables.md
	rm -f docs/reference/events/*.schema.json
	$(BIN)/tidemark events write docs/reference/events
	$(BIN)/python -m docs.reference_pages docs/reference
	$(BIN)/python -m clients.generate build/clients

clients: $(BIN)/.dev clients/typescript/node_modules  ## Generate and build the client libraries, into build/clients (needs Node)
	$(BIN)/python -m clients.generate build/clients
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/clients clients/python
	npm --prefix clients/typescript run build
	npm pack ./clients/typescript --pack-destination build/clients

clients/typescript/node_modules: clients/typescript/package-lock.json
	npm --prefix clients/typescript ci
	@touch $@

# Generators of others, which the OpenAPI document must suit; openapi-python-client needs another typer than Dagster.
build/generators: clients/generators.lock clients/typescript/node_modules
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes -r $<
	@touch $@

CHROMIUM ?= chromium
pictures: install  ## Make the README's picture of a report (needs Chromium)
	rm -rf build/picture
	$(BIN)/tidemark synthetic generate --customers 1 --seed 7 --until 2026-06-30 --out build/picture
	$(BIN)/tidemark analyse build/picture/transactions.csv --as-of 2026-06-30 --name "Wattle Pilates" --html build/picture/report.html
	$(CHROMIUM) --headless --hide-scrollbars --window-size=1200,1150 --screenshot=docs/pictures/report.png build/picture/report.html

console-pictures: $(BIN)/.dev  ## Take a picture of every page of the console at two widths (needs Chromium; only some: PAGES=compare)
	$(BIN)/python -m tests.browser.pictures docs/pictures/console $(PAGES)

docs: $(BIN)/.dev  ## Build the documentation as a site (to read it: python -m http.server -d build/site)
	$(BIN)/python docs/pages.py build/pages
	$(BIN)/zensical build --strict --clean

lock: $(BIN)/.dev  ## Resolve the newest versions into the hash-pinned locks
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -c requirements.lock pyproject.toml --group dev -o requirements-dev.lock
	echo openapi-python-client | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate - -o clients/generators.lock

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(BIN)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the pinned dependencies (a minute or so the first time) …"
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/.dev: requirements-dev.lock $(BIN)/.runtime
	@$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

.PHONY: help install demo test test-service test-slow mutants lint imports types bench format generated clients flows pictures console-pictures docs lock
