#!/usr/bin/env bash
# Runs every target of fuzz/ for SECONDS, JOBS at a time: under libFuzzer where clang is installed, else
# by a driver of our own. Usage: tools/fuzz.sh SECONDS JOBS
set -euo pipefail
seconds=$1 jobs=$2
build=build/fuzz

cxx=$(command -v clang++ || command -v "${CXX:-c++}")
cmake -S . -B $build "-DCMAKE_CXX_COMPILER=$cxx" -DJALI_BUILD_FUZZ=ON -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS="-O1 -g1" "-DJALI_SANITIZE=address;undefined" >/dev/null
cmake --build $build --target fuzzers

mkdir -p $build/findings
run_one() {
  target=$1 name=$(basename "$1")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=fuzz/corpus/${name#fuzz_}
  [ -d "$seeds" ] || seeds=
  if "$target" -max_total_time="$2" -max_len=131072 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="build/fuzz/findings/$name-" "$corpus" $seeds >"build/fuzz/$name.log" 2>&1; then
    echo "$name: ok, $(grep -o 'number_of_executed_units: .*' "build/fuzz/$name.log" | grep -o '[0-9]*') inputs"
  else
    cat "build/fuzz/$name.log"
    echo "$name: FAILED"
    return 1
  fi
}
export -f run_one
find $build -maxdepth 1 -type f -executable -name 'fuzz_*' | sort |
  xargs -P "$jobs" -I{} bash -c "run_one {} $seconds"
echo "fuzz: $(find $build -maxdepth 1 -type f -executable -name 'fuzz_*' | wc -l) targets ran $seconds s each"
