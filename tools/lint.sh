#!/usr/bin/env bash
# Runs every check that reads the source without running it. All checks run; the exit status is 1 if any fails.
# The check "headers" is CMake's own: it compiles each header alone (src/jali/CMakeLists.txt).
# Usage: tools/lint.sh BUILD (a build folder with compile_commands.json) [JOBS] [without-clang-tidy]
set -uo pipefail
build=$1 jobs=${2:-2} without=${3:-}
python_sources=(python tests tools)
cxx_folders=(src tests tools)
for folder in examples bench docs hwmodel; do [ -d $folder ] && python_sources+=($folder); done
for folder in fuzz python bench hwmodel; do [ -d $folder ] && cxx_folders+=($folder); done
cxx_sources() { find "${cxx_folders[@]}" -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh'; }

failed=0
step() { # step NAME COMMAND...
  local output
  if output=$("${@:2}" 2>&1); then
    echo "$1: ok"
  else
    echo "$output"
    echo "$1: FAILED"
    failed=1
  fi
}
clang_format() { cxx_sources | xargs clang-format --dry-run -Werror; }
# Compiler warnings are errors in the build already, so they are not errors here (-Wno-error).
clang_tidy() {
  find src -name '*.cpp' | sort | xargs -P "$jobs" -n 1 clang-tidy --quiet --extra-arg=-Wno-error -p "$build" |
    sed '/warnings generated/d'
}

# Programs that the tests do not build. What nanobind or CUDA compiles has builds of its own.
programs() {
  find fuzz bench/cpp bench/tfhe -name '*.cpp' | sort | xargs -P "$jobs" -n 1 \
    "${CXX:-c++}" -std=c++20 -fsyntax-only -I. -Isrc -Itests/wire -Itests/client -DJALI_FUZZ_LOADER='""'
}

step "layers" python tools/check_layers.py
step "files" python tools/check_files.py
step "writes" python tools/check_writes.py
step "noise" python tools/check_noise.py
step "actions" python tools/check_actions.py
step "ops" python tools/check_ops.py
step "fuzz" python tools/check_fuzz.py
step "headers" cmake --build "$build" --target all_verify_interface_header_sets -- -j "$jobs"
step "programs" programs
step "clang-format" clang_format
step "ruff" ruff check -q "${python_sources[@]}"
step "ruff format" ruff format -q --check "${python_sources[@]}"
step "mypy" mypy python/jali
# A test that imports a name that is no more fails here, before any test runs.
step "collection" python -m pytest -q --collect-only tests/python tests/tools
[ "$without" = without-clang-tidy ] || step "clang-tidy" clang_tidy
if [ $failed = 0 ]; then echo "lint: ok"; else echo "lint: FAILED"; fi
exit $failed
