#!/usr/bin/env bash
# Runs every fuzz target of a build folder, JOBS at a time. Usage: tools/fuzz.sh BUILD SECONDS JOBS [SEED [loaders]]
# With a seed every run starts from the same inputs, keys and noise, and tries the inputs in the same order, as many as the
# seconds allow. Without one it draws a seed. With `loaders` it leaves out the targets of operations.
set -euo pipefail
export build=$1 seconds=$2 seed=${4:-}
which=${5:-all}
export JALI_TEST_ENTROPY=${seed:-$((RANDOM * 32768 + RANDOM + 1))}
jobs=$3

mkdir -p $build/findings
run_one() {
  target=$1 name=$(basename "$1")
  corpus=$build/corpus/$name
  [ -z "$seed" ] || rm -rf "$corpus"
  mkdir -p "$corpus"
  seeds=fuzz/corpus/${name#fuzz_}
  [ -d "$seeds" ] || seeds=
  if "$target" -max_total_time="$seconds" -max_len=131072 -rss_limit_mb=2048 -timeout=60 -print_final_stats=1 -verbosity=0 ${seed:+-seed=$seed} \
      -artifact_prefix="$build/findings/$name-" "$corpus" $seeds >"$build/$name.log" 2>&1; then
    echo "$name: ok, $(grep -o 'number_of_executed_units: .*' "$build/$name.log" | grep -o '[0-9]*') inputs"
  else
    cat "$build/$name.log"
    echo "$name: FAILED with JALI_TEST_ENTROPY=$JALI_TEST_ENTROPY, which belongs to the input under $build/findings"
    return 1
  fi
}
export -f run_one
targets=$(find $build -maxdepth 1 -type f -executable -name 'fuzz_*' | sort)
[ "$which" = all ] || targets=$(grep -vE '/fuzz_(bootstrap|[a-z]+_operations)$' <<<"$targets")
xargs -P "$jobs" -I{} bash -c "run_one {}" <<<"$targets"
echo "fuzz: $(wc -l <<<"$targets") targets ran $seconds s each"
