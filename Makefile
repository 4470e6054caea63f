# `make demo` and `make test` do all their own set-up: a Python 3.11+, a C++20 compiler and make are
# enough. Tools and packages go into .venv, builds into build/. `make help` lists the targets.

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 20
WERROR ?= OFF
BIN := $(CURDIR)/.venv/bin
RELEASE := build/release
LOGS := build/logs

# What `make test` and `make check` run, in this order.
CHECKS := lint cpp-test py-test docs-test
# What needs builds of its own, which take longer than the tests: `make instrumented` runs it, and so does `make check`.
INSTRUMENTED := cuda sanitize tsan fuzz
# What `make check` runs besides.
ONLY_CHECK := timing rtl torch-test models-test wasm page-test
# `make test` and `make instrumented` take a share of a check where the whole takes long; `make check`, and a check run
# alone, all of it.
SHARE := whole
test instrumented: SHARE := brief
test instrumented: FUZZ_SECONDS := 5
# $(call share,BRIEF,WHOLE)
share = $(if $(filter brief,$(SHARE)),$(1),$(2))

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test instrumented check summary install build $(CHECKS) $(INSTRUMENTED) $(ONLY_CHECK) gpu-check gpu-sanitize wheel wheel-cuda aarch64 docs format clean
export PATH := $(BIN):$(PATH)
# The caller's would lead the tests to other packages than those of .venv.
unexport PYTHONPATH
# One compiler by one name in every build: ccache takes c++ and g++ for two.
ifeq ($(origin CXX),default)
CXX := $(or $(shell command -v c++),g++)
endif
export CXX
export CMAKE_GENERATOR := Ninja
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# Without the first, ccache keeps nothing of sources with precompiled headers; with the others, the builds of this folder
# share objects (jali_same_in_every_build).
export CCACHE_SLOPPINESS := pch_defines,time_macros
export CCACHE_PCH_EXTSUM := 1
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# $(call or_say,WHAT TO DO): ends a recipe line that may fail.
or_say = || { echo "make $@ failed: $(1)" >&2; exit 1; }
# $(call logged,COMMAND): runs it, and keeps what it printed for the summary.
logged = mkdir -p $(LOGS) build/findings; { $(1); } 2>&1 | tee $(LOGS)/$@.txt
CXX_SOURCES = find src tests fuzz python bench hwmodel tools -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh'
PY_SOURCES = python tests tools examples bench docs

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -ts "$$(printf '\t')"

demo: install ## install, then classify handwritten digits that the server never sees
	$(BIN)/jali demo digits $(call or_say,run '.venv/bin/jali doctor' and read its advice)

test: $(CHECKS) summary ## install, then lint, the tests and the documents, about half an hour on 2 cores: on every change
instrumented: $(INSTRUMENTED) summary ## a share of the checks with builds of their own: CUDA, sanitizers, fuzzers; on every change
check: $(CHECKS) $(INSTRUMENTED) $(ONLY_CHECK) summary ## install, then all of every check: before a release
test: RUN := $(CHECKS)
instrumented: RUN := $(INSTRUMENTED)
check: RUN := $(CHECKS) $(INSTRUMENTED) $(ONLY_CHECK)
summary:
	@echo; echo "== $(SHARE) share of every check"
	@for log in $(RUN); do printf '%-10s ' $$log; tail -1 $(LOGS)/$$log.txt; done

# --- installing and building ---------------------------------------------------------------------
.venv/tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  $(call or_say,Jali needs Python 3.11 or later: make PYTHON=/path/to/python3.11)
	@$(PYTHON) -m venv .venv $(call or_say,install the venv module of $(PYTHON) (Debian: apt install python3-venv))
	$(BIN)/python -m pip install -q 'cmake>=3.26' ninja 'scikit-build-core>=0.10' 'nanobind>=2.4' \
	  $(call or_say,pip could not reach a package index; see the lines above)
	@touch $@

# nvcc from PyPI lies apart from .venv, so that what `make install` puts there is what a user has.
NVCC_FOLDER := build/nvcc

# $(call pip_install,EXTRAS,CMAKE DEFINITIONS); Debian 12's pip knows no -C. If this machine has an NVIDIA GPU, the
# GPU engine is built too.
pip_install = CUDACXX=$$(tools/nvcc.sh if-needed $(BIN)/python $(NVCC_FOLDER)) \
  $(BIN)/python -m pip install -q --no-build-isolation --config-settings=build-dir=$(RELEASE) \
  $(addprefix --config-settings=cmake.define.,$(2)) '.[$(1)]' \
  $(call or_say,the lines above name the cause; a C++20 compiler is GCC 11 or Clang 14 at least (set CXX))

install: .venv/tools ## the package and what the demos need, into .venv
	$(call pip_install,demo,JALI_BUILD_TESTS=OFF)

# Files are compiled one by one: clang-tidy reads them so, and ctest sees what a client takes from the libraries.
build: .venv/tools ## the same with the C++ tests and the developers' tools
	$(call pip_install,demo$(,)dev,JALI_BUILD_TESTS=ON JALI_WERROR=$(WERROR) JALI_UNITY=OFF)
, := ,

# --- checks --------------------------------------------------------------------------------------
# Seeds of tests follow from their names; the whole of a check draws fresh ones, and writes down those with which a test fails
# (tests/seeds, tests/kept_seeds.txt).
FRESH := JALI_FRESH_SEEDS=1 JALI_FINDINGS=$(CURDIR)/build/findings/seeds.txt
# For processes of Python on Linux: the library that replaces the system's entropy. The order of sets of strings is the same, too.
WITH_SEEDS := $(if $(filter Linux,$(shell uname)),LD_PRELOAD=$(CURDIR)/$(RELEASE)/tests/libjali_test_entropy.so) PYTHONHASHSEED=0
lint: build ## layers, headers, formats, clang-tidy, ruff, mypy
	@$(call logged,tools/lint.sh $(RELEASE) $(JOBS) $(call share,without-clang-tidy)) $(call or_say,'make format' mends formats; the rest is named above)

cpp-test: build ## the C++ tests
	@$(call logged,$(call share,,$(FRESH) JALI_PROGRAMS=40000 )tools/ctest.sh $(RELEASE) $(JOBS) $(call share,-LE long)) \
	  $(call or_say,repeat one test with $(RELEASE)/tests/ROOM/test_ROOM --gtest_filter=NAME)

# Two processes, as many tests wait for one thread. Threads of scikit-learn's OpenMP would wait for each other in a loop.
py-test: build ## the Python tests
	@$(call logged,$(WITH_SEEDS) OMP_NUM_THREADS=1 $(call share,,$(FRESH) JALI_FUZZ_SECONDS=$(FUZZ_SECONDS) JALI_WHOLE_PROGRAMS=10000 )python -m pytest -n 2 --dist loadfile $(call share,-m 'not long')) \
	  $(call or_say,repeat one test with .venv/bin/python -m pytest -k NAME)

docs-test: build ## every code block of the documents and every script of examples/
	@$(call logged,python tools/run_docs.py README.md CONTRIBUTING.md docs examples/README.md $(wildcard examples/*.py) --build $(RELEASE)) \
	  $(call or_say,the document and line are named above)

# The whole: for the first generation that Jali runs on, as far as PTX, and machine code for the one with the most kernels of
# its own; `make wheel-cuda` compiles for all generations. Host files have the flags of the release, so that ccache has them. The brief
# share: for the GPUs of this machine, or, if there is none, device code as far as PTX (cmake/cuda_ptx.cmake).
GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo native)
GPU_ARCHITECTURES = $(call share,$(or $(GPU),none),80-virtual;90-real)
# $(call built_for_gpus,IF SO,ELSE)
built_for_gpus = $(if $(filter none,$(GPU_ARCHITECTURES)),$(2),$(1))
cuda: .venv/tools ## compile the CUDA engine and its tests; they skip if there is no GPU
	nvcc=$$(tools/nvcc.sh always $(BIN)/python $(NVCC_FOLDER)) \
	  $(call or_say,pip could not reach a package index; see the lines above); \
	CUDACXX=$$nvcc cmake -S . -B build/cuda -DJALI_CUDA=ON -DJALI_HARDEN=ON "-DJALI_CUDA_ARCHITECTURES=$(GPU_ARCHITECTURES)" \
	  -DJALI_BUILD_TESTS=ON -DJALI_WERROR=$(WERROR) >/dev/null
	cmake --build build/cuda --target $(call built_for_gpus,gpu_tests,cuda_ptx) \
	  $(call or_say,the CUDA engine does not compile: the lines above name the place)
	@$(call logged,$(call built_for_gpus,tools/ctest.sh build/cuda/tests/gpu $(JOBS),echo "compiled as far as PTX; no GPU to run the tests")) \
	  $(call or_say,run 'make gpu-check' on the GPU)

gpu-check: ## where there are a GPU and nvcc, without network: tests/gpu, figures (ALLOW_SKIPS=1: even if GoogleTest is missing)
	tools/gpu_check.sh build/gpu $(JOBS)

gpu-sanitize: ## after gpu-check: compute-sanitizer's memcheck and racecheck over every kernel
	tools/gpu_sanitize.sh build/gpu

# With clang where it works, because libFuzzer comes with it.
SANITIZER_CXX = $(shell echo 'int main() {}' | clang++ -fsanitize=address,undefined -x c++ - -o /dev/null \
  2>/dev/null && echo clang++ || echo $(CXX))
# $(call sanitizing,FOLDER,SANITIZERS,CMAKE DEFINITIONS,TARGETS)
define sanitizing
cmake -S . -B $(1) -DCMAKE_CXX_COMPILER=$(SANITIZER_CXX) -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" \
  "-DJALI_SANITIZE=$(2)" -DJALI_BUILD_TESTS=ON -DJALI_UNITY=ON $(3) >/dev/null
cmake --build $(1) --target $(4)
endef
# $(call programs,NAMES): ctest's choice of these test programs.
empty :=
programs = -R '^($(subst $(empty) ,|,$(strip $(1))))[.]'

# A sanitizer sees nothing new in a test labelled long, which repeats a shorter one on more words, sizes or numbers.
NOT_LONG := -LE long

# The brief share: the rooms that take bytes and addresses apart, and the fuzzers of loaders.
ASAN := build/sanitize
ASAN_TESTS = $(call share,base random device primes arith_reductions ring wire client)
.PHONY: asan
asan: .venv/tools  # one build for the tests and the fuzzers
	$(call sanitizing,$(ASAN),address;undefined,-DJALI_BUILD_FUZZ=ON,$(if $(ASAN_TESTS),$(ASAN_TESTS:%=test_%) loader_fuzzers,all))

# AddressSanitizer's allocator does not unlock in the child what another thread had locked at the fork (LLVM before 17),
# so that a child may hang. The tests that fork beside other threads run without sanitizers.
sanitize: asan ## the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(call logged,GTEST_FILTER='-*Fork*' tools/ctest.sh $(ASAN) $(JOBS) $(NOT_LONG) $(if $(ASAN_TESTS),$(call programs,$(ASAN_TESTS)))) \
	  $(call or_say,the sanitizer's report is above)

# The programs whose tests start threads; the brief share: the pools of threads and of memory, and seeds. ThreadSanitizer does not follow threads across a
# fork. It also reports a fork's own order of locks: a fork takes all of them under one lock (base/at_fork.cpp), which
# makes any order safe, but ThreadSanitizer does not take that lock into account.
TSAN := build/tsan
TSAN_TESTS = base device random $(call share,,api backend_cpu backend_cpu_tfhe backend_cross backend_tfhe backend_trace ckks circuits \
  bootstrap backend_cpu_secret lwe tfhe)
tsan: .venv/tools ## the concurrent C++ tests under ThreadSanitizer
	$(call sanitizing,$(TSAN),thread,,$(TSAN_TESTS:%=test_%))
	@$(call logged,GTEST_FILTER='-*Fork*' tools/ctest.sh $(TSAN) $(JOBS) \
	  $(NOT_LONG) $(call programs,$(TSAN_TESTS))) \
	  $(call or_say,the sanitizer's report is above)

fuzz: asan ## every loader and operation fuzzed for FUZZ_SECONDS (by libFuzzer where there is clang)
	@$(call logged,tools/fuzz.sh $(ASAN) $(FUZZ_SECONDS) $(JOBS) $(call share,1 loaders)) \
	  $(call or_say,the input that failed is under $(ASAN)/findings)

# Optimised as a release, but that memcheck is told where a secret may decide (base/declassify.h).
TIMING := build/timing
timing: .venv/tools ## what time tells of secrets: branches and addresses under valgrind, decryption under a t-test
	@command -v valgrind >/dev/null $(call or_say,it needs valgrind and its headers (Debian: apt install valgrind))
	cmake -S . -B $(TIMING) -DJALI_BUILD_TIMING=ON >/dev/null \
	  $(call or_say,it needs valgrind and its headers (Debian: apt install valgrind))
	cmake --build $(TIMING) --target timing
	@$(call logged,tools/timing.sh $(TIMING)/tests/timing) \
	  $(call or_say,docs/security.md says what must not depend on a secret)

# What apt-get may install here, it installs; the tests skip what is still missing, so a missing tool ends the target.
RTL_TOOLS := verilator iverilog yosys
rtl: build ## the accelerators' units in SystemVerilog: both simulators and synthesis
	@missing=$$(for tool in $(RTL_TOOLS); do command -v $$tool >/dev/null || echo $$tool; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; \
	fi; \
	for tool in $$missing; do command -v $$tool >/dev/null \
	  $(call or_say,$$tool is missing (Debian: apt install $(RTL_TOOLS))); done
	$(BIN)/python -m pip install -q 'cocotb>=2.0' $(call or_say,pip could not reach a package index; see the lines above)
	@$(call logged,JALI_BUILD=$(CURDIR)/$(RELEASE) python -m pytest -p no:cacheprovider hwmodel/tests) \
	  $(call or_say,repeat one test with JALI_BUILD=$(RELEASE) .venv/bin/python -m pytest hwmodel/tests -k NAME)

# What .venv has, and PyTorch besides, whose package for Linux is some gigabytes, with the package of
# a model of it.
TORCH := build/torch
torch-test: build ## modules of PyTorch, compiled; PyTorch is installed apart from .venv
	@$(BIN)/python -m venv $(TORCH)
	@folder() { "$$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }; \
	folder $(BIN)/python >"$$(folder $(TORCH)/bin/python)/jali.pth"
	$(TORCH)/bin/python -m pip install -q "$$($(BIN)/python -c 'import tomllib; \
	  print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["torch"])')" transformers \
	  $(call or_say,pip could not reach a package index; see the lines above)
	$(TORCH)/bin/python -c 'import torch' $(call or_say,PyTorch is installed and cannot be imported)
	@$(call logged,$(TORCH)/bin/python -m pytest -p no:cacheprovider $(wildcard tests/python/test_nn_torch*.py)) \
	  $(call or_say,repeat one test with $(TORCH)/bin/python -m pytest tests/python/test_nn_torch.py -k NAME)

# Packages with models that others publish, each in a folder of its own. They are no part of Jali, and what they need besides
# is not installed.
MODELS := build/models
PUBLISHED := magika==1.0.3 nudenet==3.4.2 onnxruntime==1.32.0 rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3
models-test: build ## models that others publish in packages, read and compiled as they are
	@for one in $(PUBLISHED); do \
	  test -d $(MODELS)/$$one || $(BIN)/python -m pip install -q --no-deps --target $(MODELS)/$$one $$one \
	    || { rm -rf $(MODELS)/$$one; echo "$$one is not tested: pip could not reach a package index"; }; \
	done
	@$(call logged,JALI_MODELS=$(CURDIR)/$(MODELS) python -m pytest -p no:cacheprovider tests/python/test_published_models.py) \
	  $(call or_say,repeat one test with JALI_MODELS=$(MODELS) .venv/bin/python -m pytest tests/python/test_published_models.py -k NAME)

# The compiler and the C library come from PyPI and lie apart from .venv.
ZIG_FOLDER := build/ziglang
WASM := build/wasm
wasm: export CCACHE_COMPILERCHECK := content
wasm: export ZIG_GLOBAL_CACHE_DIR := $(CURDIR)/$(ZIG_FOLDER)/cache
wasm: export ZIG_LOCAL_CACHE_DIR := $(CURDIR)/$(ZIG_FOLDER)/cache
wasm: build ## the client of compiled programs for browsers, in build/wasm/client, and its tests under Node
	@command -v node >/dev/null $(call or_say,its tests need Node 20 or later (Debian: apt install nodejs))
	@tools=$$(tools/zig.sh $(BIN)/python $(ZIG_FOLDER)) \
	  $(call or_say,pip could not reach a package index; see the lines above); \
	cmake -S . -B $(WASM) -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/wasm.cmake -DJALI_ZIG_TOOLS=$$tools >/dev/null
	cmake --build $(WASM) --target jali_wasm \
	  $(call or_say,jali.wasm does not compile: the lines above name the place)
	cmake --build $(RELEASE) --target wasm_peer \
	  $(call or_say,the native side of the tests does not compile: the lines above name the place)
	@$(call logged,JALI_WASM=$(CURDIR)/$(WASM)/client python -m pytest -p no:cacheprovider tests/tools/test_wasm.py) \
	  $(call or_say,repeat one test with .venv/bin/python -m pytest tests/tools/test_wasm.py -k NAME)
	@folder=$$($(BIN)/python -c 'from jali.serve.page import CLIENT; print(CLIENT)') && mkdir -p "$$folder" && \
	  cp $(WASM)/client/jali.mjs $(WASM)/client/jali.wasm "$$folder"  # for the page of `jali serve`

# Playwright lies apart from .venv, and drives the system's browser. Without one the tests are skipped, and say so.
PLAYWRIGHT := build/playwright
page-test: wasm ## the page of `jali serve --demo` in Chromium
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium || true; \
	fi
	@test -d $(PLAYWRIGHT)/playwright || $(BIN)/python -m pip install -q --target $(PLAYWRIGHT) 'playwright>=1.50' \
	  || { rm -rf $(PLAYWRIGHT); echo "the page is not tested in a browser: pip could not reach a package index"; }
	@$(call logged,JALI_WASM=$(CURDIR)/$(WASM)/client PYTHONPATH=$(CURDIR)/$(PLAYWRIGHT) python -m pytest -p no:cacheprovider tests/tools/test_page.py) \
	  $(call or_say,repeat one test with PYTHONPATH=$(PLAYWRIGHT) .venv/bin/python -m pytest tests/tools/test_page.py -k NAME)

# --- the rest ------------------------------------------------------------------------------------
docs: build ## the site in build/site: the documents, what the examples print, the Python and C++ reference, search
	@command -v doxygen >/dev/null $(call or_say,the C++ reference needs doxygen (Debian: apt install doxygen))
	$(BIN)/python -m pip install -q '.[docs]' --no-build-isolation --config-settings=build-dir=$(RELEASE) \
	  $(call or_say,pip could not reach a package index; see the lines above)
	rm -rf build/site docs/reference/generated
	sphinx-build -q -W --keep-going -b html -d build/doctrees docs build/site \
	  $(call or_say,the lines above name the document)
	python tools/check_site.py build/site

# What x86 has and other machines lack, found without one of them. An emulated test takes twenty times as long, and many times that
# where x86 has vectors of 512 bits: of bootstrapping it runs the short tests. The emulator cannot fork beside threads.
AARCH64 := build/aarch64
AARCH64_FILTER = -*Fork*:Bootstrapper.EveryCombination:Failure.*:*MinimumKeys*:*ShippedCircuits*:*Bootstrappers.*:*TargetLevels*:Bootstrapper.LargeBatches*:$\
  *KeySets*:Combinations.*:BootstrapRequest.*:Iterated.*:*Draw*
AARCH64_TESTS = base random device primes arith_reductions ring params noise wire client backend_cpu ckks lwe tfhe circuits bootstrap
aarch64: .venv/tools ## C++ tests for aarch64, run by an emulator; needs g++-aarch64-linux-gnu, qemu-user and libgtest-dev
	@command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null \
	  $(call or_say,it needs a compiler and an emulator (Debian: apt install g++-aarch64-linux-gnu qemu-user libgtest-dev))
	CXX= cmake -S . -B $(AARCH64) -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
	  "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu" \
	  -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DJALI_CUDA=OFF -DJALI_BUILD_TESTS=ON -DJALI_WERROR=$(WERROR) >/dev/null
	cmake --build $(AARCH64) --target $(AARCH64_TESTS:%=test_%)
	@$(call logged,GTEST_FILTER='$(AARCH64_FILTER)' tools/ctest.sh $(AARCH64) $(JOBS) $(call programs,$(AARCH64_TESTS)) -LE long) \
	  $(call or_say,repeat one test with qemu-aarch64 -L /usr/aarch64-linux-gnu $(AARCH64)/tests/ROOM/test_ROOM)

wheel: ## portable wheels for this machine's kind of processor, each tried in a clean environment; in dist/
	tools/wheel.sh cpu
wheel-cuda: ## the same with the GPU engine: for every GPU from Ampere on, or those of JALI_CUDA_ARCHITECTURES
	tools/wheel.sh cuda

format: build ## put every file into the house format
	$(CXX_SOURCES) | xargs clang-format -i
	ruff check -q --fix $(PY_SOURCES); ruff format -q $(PY_SOURCES)

clean: ## remove .venv and build
	rm -rf .venv build
