# Firelane's targets. `make help` lists them; each works alone on a fresh Debian 12, as `setup` runs first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Ninja, ctest and pip use the cores; two targets at once would fight over the same build folders.
.NOTPARALLEL:

JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
# What ccache has to overlook where headers are precompiled (tools/cmake/FirelaneRoom.cmake).
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
# What the compiler says it read decides about a hit: preprocessing every file once more takes a twentieth of a cold build.
export CCACHE_DEPEND ?= 1
# So that the wheel's build finds what the release build compiled: its folder is another one, and -Werror changes no code.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_IGNOREOPTIONS ?= -Werror

CODE_DIRS := $(wildcard src include bench fuzz)
CODE = $(shell find $(CODE_DIRS) -name '*.cc' -o -name '*.h')
# Rooms that start threads: their tests run under the thread sanitizer. serve and ranks are such, too, but would bring half of the
# house along: make check-threads THREADED_ROOMS='serve ranks'
THREADED_ROOMS := model traces import record/core live
FUZZ_SECONDS ?= 300
# Of the browser's tests; check takes those of failed ones only.
PICTURES ?= --pictures

empty :=
space := $(empty) $(empty)
# $(call cmake,PRESET,TARGETS): configures and builds; no TARGETS means all. Python's module is part of the release only.
# One at a time in a folder: parts of `check` run beside each other. Configuring imports torch, which takes seconds: only when
# the packages or the presets changed, or somebody configured by hand. (ninja itself looks after the CMakeLists.)
cmake = mkdir -p build && flock build/.$(1).lock sh -c 'made=build/$(1)/.configured; \
  { [ $$made -nt CMakePresets.json ] && [ $$made -nt build/$(1)/CMakeCache.txt ] && [ $$made -nt .venv/firelane-requirements.stamp ]; } || \
  { cmake --preset $(1) $(if $(filter release,$(1)),-DFIRELANE_PYTHON=ON) >/dev/null && touch $$made; } && \
  cmake --build --preset $(1) -j $(JOBS) $(addprefix --target ,$(2))'
ctest = ctest --test-dir build/$(1) --output-on-failure -j $(JOBS)
# $(call units,PRESET,ROOMS): all unit tests of the rooms, a process a room; then how many ran, and which were skipped.
units = { ctest --test-dir build/$(1) --output-on-failure -j $(JOBS) -R '^units[.]($(or $(2),.*))$$' && tools/count_units.sh build/$(1); }

.PHONY: setup
setup: ## install what is missing: apt packages, .venv (quick when nothing is)
	@tools/setup.sh

# The page is part of the program: it is built first, and again only when its sources changed.
VIEWER_SOURCES = $(shell find viewer/src viewer/index.html viewer/vite.config.ts viewer/package-lock.json -type f)
viewer/dist/report.html: $(VIEWER_SOURCES) | setup
	@npm run --silent --prefix viewer build

.PHONY: viewer
viewer: viewer/dist/report.html ## the viewer's page, viewer/dist, which the program holds

.PHONY: build
build: setup viewer ## build/release/firelane and the Python module, optimised
	@$(call cmake,release)

.PHONY: demo
demo: setup viewer ## record a small transformer as it trains: table, .lane and Chrome trace, what to type next
	@$(call cmake,release)
	@tools/demo.sh

.PHONY: test
test: setup viewer ## all tests: units, with sanitizers where bytes are read, the command line, what needs torch (ctest), then Python (pytest)
	@echo "test: units with address and undefined-behaviour sanitizers"
	@$(call cmake,dev)
	@$(call units,dev)
	@echo "test: units of the other rooms, the command line, the recorder against torch, the C++ example"
	@$(call cmake,release,all bench_load make_trace unsanitized_tests)
	@$(call ctest,release) -L '^release$$' && tools/count_units.sh build/release
	@echo "test: Python"
	@$(PYTHON) -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Fetching torch leaves the cores idle: the sanitizers' build begins meanwhile (`test` says what fails in it). Checks of the
# text take one core each, so they run beside the build; the thread sanitizer, fuzzing and the browser run beside Python's tests.
.PHONY: check
check: ## what CI runs: format, layers, docs, viewer, all tests, thread sanitizer, short fuzzing, the viewer in a browser
	@tools/setup.sh native
	@mkdir -p build; { $(call cmake,dev); } >build/check-early.log 2>&1 & early=$$!; \
	  fetched=0; $(MAKE) --no-print-directory setup || fetched=$$?; wait $$early || true; exit $$fetched
	@{ $(MAKE) --no-print-directory check-text check-viewer; } >build/check-text.log 2>&1 & text=$$!; \
	  built=0; $(MAKE) --no-print-directory build || built=$$?; wait $$text || { cat build/check-text.log; exit 1; }; \
	  grep '^check: ' build/check-text.log; exit $$built
	@$(MAKE) --no-print-directory check-docs check-tidy
	@{ $(MAKE) --no-print-directory check-threads JOBS=1 && $(MAKE) --no-print-directory fuzz-short e2e PICTURES=; } >build/check-beside.log 2>&1 & \
	  beside=$$!; tests=0; $(MAKE) --no-print-directory test || tests=$$?; \
	  wait $$beside || { cat build/check-beside.log; exit 1; }; \
	  echo "check: tests with thread sanitizer: $$(grep '^units: ' build/check-beside.log)"; \
	  grep -E '^(fuzz|e2e): ' build/check-beside.log; exit $$tests

.PHONY: check-text
check-text: setup
	@echo "check: format"; clang-format-19 --dry-run --Werror $(CODE)
	@$(PYTHON) -m ruff format --check --quiet
	@echo "check: python"; $(PYTHON) -m ruff check --quiet
	@$(PYTHON) -m mypy --no-error-summary
	@echo "check: layers"; $(PYTHON) tools/check_layers.py
	@echo "check: changelog"; $(PYTHON) tools/check_changelog.py
	@echo "check: words"; $(PYTHON) tools/check_words.py

# The checks of .clang-tidy that find the worst mistakes at little cost, in the rooms where they would hurt most (src/CMakeLists.txt
# gathers them). `make lint`, which is part of check-deep, runs all checks on everything (performance-unnecessary-value-param alone
# takes longer than these together).
TIDY_CHECKS := -*,bugprone-use-after-move,bugprone-dangling-handle,bugprone-infinite-loop,bugprone-sizeof-expression,bugprone-unused-raii,\
performance-for-range-copy,performance-unnecessary-copy-initialization,performance-move-const-arg,\
readability-container-size-empty,modernize-use-override,modernize-use-nullptr
.PHONY: check-tidy
check-tidy: build
	@echo "check: clang-tidy"; ls build/release/src/CMakeFiles/firelane_tidy.dir/Unity/*.cxx | \
	  xargs -P $(JOBS) -n 1 clang-tidy-19 --quiet -p build/release --checks='$(TIDY_CHECKS)' 2>/dev/null

.PHONY: check-viewer
check-viewer: setup ## types, lint and unit tests of the viewer
	@echo "check: viewer"; npm run --silent --prefix viewer lint & lint=$$!; failed=0; \
	  for script in typecheck "test -- --reporter=dot"; do npm run --silent --prefix viewer $$script || failed=1; done; \
	  wait $$lint && exit $$failed

.PHONY: e2e
e2e: build ## the viewer in headless Chromium against the built program; pictures in viewer/e2e/artefacts
	@echo "check: viewer in a browser"; node viewer/e2e/run.mjs $(PICTURES)

.PHONY: check-docs
check-docs: build
	@echo "check: documents"; $(PYTHON) tools/regen_docs.py

.PHONY: check-threads
check-threads: setup viewer
	@echo "check: tests with thread sanitizer: $(THREADED_ROOMS)"
	@$(call cmake,tsan,$(foreach room,$(THREADED_ROOMS),firelane_$(subst /,_,$(room))_test))
	@$(call units,tsan,$(subst $(space),|,$(THREADED_ROOMS)))

# A number of inputs, not of seconds, and none that an earlier run kept: how fast the machine is does not decide which are tried, nor
# whether one takes too long. About ninety of them are the seeds.
.PHONY: fuzz-short
fuzz-short: setup viewer
	@$(call cmake,dev,fuzz_targets)
	@rm -rf build/fuzz/short; FUZZ_CORPUS=build/fuzz/short tools/fuzz.sh 300 -seed=1 -runs=600 -timeout=200

.PHONY: fuzz
fuzz: setup viewer ## fuzz the readers for FUZZ_SECONDS (300) a target, sanitizers in all rooms; crashes land in build/fuzz
	@$(call cmake,deep,fuzz_targets)
	@FUZZ_BUILD=build/deep tools/fuzz.sh $(FUZZ_SECONDS)

.PHONY: bench
bench: setup ## bench/load against simdjson, inflate, json.load and HTA; TRACE=file chooses the input
	@$(call cmake,release,bench_load make_trace)
	@$(PYTHON) bench/load.py $(TRACE)

.PHONY: fmt
fmt: setup ## format all code: C++ as .clang-format says, Python as pyproject.toml says
	@clang-format-19 -i $(CODE)
	@$(PYTHON) -m ruff format --quiet

.PHONY: lint
lint: build ## clang-tidy over all C++ (minutes; not part of check)
	@run-clang-tidy-19 -quiet -p build/release -j $(JOBS) '^$(CURDIR)/(build/release/)?(?!src/CMakeFiles/)($(subst $(space),|,$(CODE_DIRS)))/'

.PHONY: check-deep
check-deep: setup viewer ## what check leaves out for its length: units unoptimized and sanitizers in all rooms, the command line with them, minutes of fuzzing, all of clang-tidy
	@echo "check: units, unoptimized, with sanitizers in all rooms (an optimizer may remove what they would find)"
	@cmake --preset deep -B build/unoptimized -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g1" -DFIRELANE_FUZZ=OFF >/dev/null
	@cmake --build build/unoptimized -j $(JOBS) && export FIRELANE_DEEP=1 && $(call units,unoptimized)
	@$(call cmake,deep,firelane)
	@echo "check: the command line with sanitizers"; $(PYTHON) tests/cli/run.py build/deep/firelane tests/cli/*.test
	@$(MAKE) --no-print-directory fuzz lint

.PHONY: docs
docs: build ## run the documents' commands again and rewrite their outputs
	@$(PYTHON) tools/regen_docs.py --write

.PHONY: test-gpu
test-gpu: ## tests that need an NVIDIA GPU; says why when it skips
	@tools/test_gpu.sh

.PHONY: wheels
wheels: setup viewer ## dist/*.whl for all Pythons and torches (downloads gigabytes; WHEELS="--python 3.12 --torch 2.11" for one pair)
	@$(PYTHON) tools/wheels.py $(WHEELS)

.PHONY: sdist
sdist: setup viewer ## dist/firelane-*.tar.gz: the source archive, with the viewer's page inside
	@$(PYTHON) tools/sdist.py

.PHONY: check-arm64
check-arm64: setup viewer ## compile for aarch64 without warnings, and run the unit tests by QEMU's emulation (not part of check)
	@tools/arm64.sh

.PHONY: package
package: setup viewer ## dist/firelane-*.tar.gz and .deb: the command alone, one static binary
	@tools/package.sh

.PHONY: clean
clean: ## remove build/ (.venv stays)
	@rm -rf build

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
