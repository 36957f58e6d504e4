# make setup   .venv and the programs needed          make test    all tests, on the servers found
# make demo    a local cluster; ARGS="--zookeeper"    make lint    ruff and mypy
# make pinboard, make photos   the examples, while a demo runs
# make bench   the benchmark; ARGS="…"                make format  let ruff format the code
# make fuzz    generated statements against one plain server; ARGS="--seed 7 --count 2000"
#              or on random schemas: ARGS="--schemas 20 --count 300"; as prepared statements: --binary
#              WHAT=packets: spoilt packets instead; ARGS="--seed 7 --count 20000" or ARGS=--cuts
#              WHAT=readings: texts that a server may read otherwise than the proxy, with other rights or routes
#              WHAT=sessions: sequences in several sessions, with their state; ARGS="--flavour mysql9 --seed 7"
#              WHAT=conditions: random conditions, whose shards must hold all that they are true for; ARGS="--count 100000"
# make soak    mixed traffic with faults for a while, every answer checked; ARGS="--minutes 60 --flavour mysql9 --seed 7"
# make clean   what setup and the tools have made       make help    this

PYTHON_BIN := .venv/bin
ARGS ?=
# so many run side by side: tests wait for servers, but each process more makes all of them dearer
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); if [ $$n -lt 2 ]; then echo 2; else echo 5; fi)
WHAT ?= statements
FUZZ_statements := differential
FUZZ_packets := fuzz
FUZZ_readings := fuzz.readings
FUZZ_sessions := fuzz.sessions
FUZZ_conditions := fuzz.conditions

.PHONY: help setup demo pinboard photos fuzz soak test lint format bench clean
.DEFAULT_GOAL := setup

help:
	@sed -n 's/^# //p; /^$$/q' Makefile

setup:
	@.ci/setup

demo: setup
	@exec $(PYTHON_BIN)/shardgate demo --ready-file .demo.json $(ARGS)

pinboard photos: setup
	@exec $(PYTHON_BIN)/python -m examples.$@ $(ARGS)

test: setup
	@.ci/bytecode & .ci/drivers; status=$$?; wait; exit $$status
	@HELM=$$(.ci/helm) exec $(PYTHON_BIN)/python -m pytest -n $(JOBS) $(ARGS)

lint: setup
	$(PYTHON_BIN)/ruff check .
	$(PYTHON_BIN)/ruff format --check .
	$(PYTHON_BIN)/mypy

format: setup
	$(PYTHON_BIN)/ruff check --fix .
	$(PYTHON_BIN)/ruff format .

fuzz: setup
	@exec $(PYTHON_BIN)/python -m tests.$(FUZZ_$(WHAT)) $(ARGS)

soak: setup
	@exec $(PYTHON_BIN)/python -m tests.soak $(ARGS)

bench: setup
	@exec $(PYTHON_BIN)/python -m bench $(ARGS)

clean:
	rm -rf .venv .drivers .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find proxy rewriter -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
