# `make demo` and `make test` work from a fresh Debian or Ubuntu: they install once what they need.
# Everything they make lies in build/ and .venv/.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
export LOCKSTEP_VENV        # set it to use a Python environment of yours instead of .venv
VENV_FLAG := $(if $(LOCKSTEP_VENV),-DLOCKSTEP_VENV=$(abspath $(LOCKSTEP_VENV)))
BUILD := build/release

.PHONY: help setup configure programs build test demo bench validate published validate-cpu check format clean clean-setup

help:
	@echo "make demo      measure this machine, predict, validate, plot: build/demo/report.html"
	@echo "make test      build and run all tests"
	@echo "make validate  predict the measured runs that ship, without a GPU"
	@echo "make validate-cpu  measure this machine and hosts emulated on it, and predict that (root, 50 minutes)"
	@echo "make published predict published experiments: build/published.json"
	@echo "make bench     benchmarks of the simulator: build/bench.json"
	@echo "make check     what CI runs: tests, sanitizers, clang-tidy, clang-format, the CUDA build"
	@echo "make format    clang-format in place"
	@echo "make clean     remove build/;  make clean-setup  remove .venv/"

setup:
	@cmake/setup/install.sh

configure: setup
	cmake --preset release $(VENV_FLAG)

programs: configure
	cmake --build --preset release --parallel $(JOBS) --target lockstep lockstep-measure

build: configure
	cmake --build --preset release --parallel $(JOBS)

test: build
	ctest --preset release

demo: programs
	scenarios/demo.sh $(BUILD) build/demo

validate: configure
	cmake --build --preset release --parallel $(JOBS) --target lockstep
	calibration/validate.sh $(BUILD) build/validation.json

published: configure
	cmake --build --preset release --parallel $(JOBS) --target lockstep
	$(BUILD)/lockstep published scenarios/published/*.yaml --json build/published.json --median 10%

validate-cpu: programs
	tests/hosts/validate_cpu.sh $(BUILD) build/validate-cpu

bench: configure
	cmake --build --preset release --parallel $(JOBS) --target lockstep-bench
	$(BUILD)/lockstep-bench --benchmark_out=build/bench.json --benchmark_out_format=json

check:
	.ci/run

format:
	@git ls-files '*.h' '*.cpp' | xargs clang-format-19 -i

clean:
	rm -rf build

clean-setup:
	rm -rf .venv
