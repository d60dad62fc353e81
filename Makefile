# make demo | test | check | bench | clean. Each sets up what it needs: an environment in .venv, the native library.
PYTHON ?= python3
RUN    := .venv/bin/python
POETRY := .poetry/bin/poetry
export POETRY_VIRTUALENVS_IN_PROJECT := true
export POETRY_VIRTUALENVS_CREATE := true
# Tests and tools see the working copy's packages, whatever else is installed.
SOURCES := $(shell find shared_ops lite train -name '*.cc' -o -name '*.h' -o -name '*.inc' -o -name '*.fbs') CMakeLists.txt

.PHONY: demo test test-slow check format bench setup clean help
help:
	@echo "make demo    train, export, quantize and run the Fashion-MNIST demo; writes out/report.html"
	@echo "make test    all quick tests         make test-slow  the long ones (cross builds, sanitizers, fuzzing)"
	@echo "make check   lint, format, types, structure"
	@echo "make bench   rillet beside its peers (downloads them)"

.poetry/ready:
	$(PYTHON) -m venv .poetry
	.poetry/bin/python -m pip install --quiet --disable-pip-version-check 'poetry==2.5.1'
	@touch $@

# Dependencies, the native library (through build_native.py), links to the sources and the command `rillet`.
.venv/ready: .poetry/ready pyproject.toml poetry.lock
	test -x $(RUN) || $(PYTHON) -m venv .venv
	VIRTUAL_ENV="$(CURDIR)/.venv" $(POETRY) install --quiet --extras train --with dev,native
	@touch $@ .venv/native

# Again, incrementally, whenever C++ changes.
.venv/native: .venv/ready $(SOURCES)
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(RUN) build_native.py > .venv/build.log 2>&1 || (tail -n 40 .venv/build.log; exit 1)
	@touch $@

setup: .venv/native

demo: setup
	$(RUN) samples/fashion_mnist/demo.py

test: setup
	$(RUN) -m pytest -n 2 --dist loadfile -m "not slow" tests

test-slow: setup
	$(RUN) -m pytest -m slow --durations=0 --durations-min=1 tests

check: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	git ls-files '*.cc' '*.h' '*.c' | xargs .venv/bin/clang-format --dry-run --Werror
	$(RUN) -m pytest tests/structure

format: setup
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .
	git ls-files '*.cc' '*.h' '*.c' | xargs .venv/bin/clang-format -i

bench: setup
	$(RUN) benchmarks/run.py

clean:
	rm -rf build dist out .venv .poetry
