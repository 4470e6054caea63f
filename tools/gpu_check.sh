#!/usr/bin/env bash
# Tests and measures the GPU engine. Needs a machine with an NVIDIA GPU, nvcc, CMake, nanobind and NumPy, and no
# network. It builds what is not built, and runs tests/gpu and the Python tests on the GPU. If they pass, it runs the
# benchmarks and writes their figures to bench/results/, as JSON lines with the device and the commit.
# If pytest or hypothesis is missing, Python tests are left out, and named again at the end. If GoogleTest is missing,
# tests/gpu are left out, and the exit status is 4 unless ALLOW_SKIPS=1.
# Usage: tools/gpu_check.sh BUILD [JOBS]. IMAGES=FILE adds the mnist demo. JALI_CUDA_ARCHITECTURES has the values of
# cmake/cuda.cmake and is native by default.
set -euo pipefail
build=$1 jobs=${2:-$(nproc)}
python=${PYTHON:-python3}
shards=$((jobs < 8 ? jobs : 8))
say() { echo "gpu-check: $*"; }
left_out=() incomplete=0
leave_out() { left_out+=("$*") && say "$*"; }

lacks() { say "$*" >&2; exit 1; }
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader ||
  lacks "no NVIDIA GPU or driver on this machine (nvidia-smi does not answer): install the driver, or run this where" \
    "there is a GPU; 'make cuda' compiles the engine and its tests anywhere"
[ -n "${CUDACXX:-}" ] || command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] ||
  "$python" -c 'import nvidia.cu13' 2>/dev/null ||
  lacks "nvcc was not found: put the CUDA toolkit's bin on the PATH, or set CUDA_HOME or CUDACXX"
command -v cmake >/dev/null || lacks "cmake was not found: $python -m pip install cmake, or your system's package"
for module in numpy nanobind; do
  "$python" -c "import $module" 2>/dev/null ||
    lacks "$python has no $module: $python -m pip install $module (PYTHON=... names another Python)"
done
# Without Ninja, CMake's default generator is used, which is slower.
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; else unset CMAKE_GENERATOR; fi
gtest=ON
root=${GTest_ROOT:-/usr}
if ! { [ -e "$root/src/googletest/CMakeLists.txt" ] || [ -e "$root/include/gtest/gtest.h" ] ||
  [ -n "${GTest_DIR:-}" ]; }; then
  timeout 10 curl -sfI https://github.com >/dev/null 2>&1 || gtest=OFF
fi
interpreter=$("$python" -c 'import sys; print(sys.executable)')
cmake -S . -B "$build" -DJALI_CUDA=ON "-DJALI_CUDA_ARCHITECTURES=${JALI_CUDA_ARCHITECTURES:-native}" -DJALI_BUILD_TESTS=$gtest \
  -DJALI_BUILD_BENCH=ON -DJALI_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$interpreter" >/dev/null
cmake --build "$build" -j "$jobs" --target _jali _jali_bench bench_gpu_programs bench_bootstrap \
  bootstrap_many
# Tests whose names end in Long take more than a quarter of an hour; GTEST_FILTER='*' runs them too.
export GTEST_FILTER=${GTEST_FILTER:--*Long.*}
if [ $gtest = ON ]; then
  tests=$(sed -nE 's/^ *jali_test\(([a-z_]+).*/test_\1/p' tests/gpu/CMakeLists.txt)
  cmake --build "$build" -j "$jobs" --target $tests
  for test in $tests; do  # in parts that run at the same time, because most of the time is the host's
    parts=()
    for ((part = 0; part < shards; ++part)); do
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$part "$build/tests/gpu/$test" --gtest_brief=1 &
      parts+=($!)
    done
    for part in "${parts[@]}"; do wait "$part"; done
  done
else
  incomplete=1
  leave_out "tests/gpu are left out: GoogleTest is neither in $root/src/googletest nor installed (Debian: libgtest-dev)"
fi

site=$PWD/$build/site
rm -rf "$site" && mkdir -p "$site" && cp -r python/jali "$site"
cmake --install "$build" --component python --prefix "$site" >/dev/null
export PYTHONPATH=$site
if "$python" -c 'import pytest' 2>/dev/null; then
  ignored=()
  if ! "$python" -c 'import hypothesis' 2>/dev/null; then
    for file in $(grep -l '^from hypothesis' tests/python/*.py); do ignored+=("--ignore=$file"); done
    leave_out "Python tests are left out (${ignored[*]}): hypothesis is missing for $python"
  fi
  JALI_DEVICE=cuda "$python" -m pytest -q tests/python "${ignored[@]}"
else
  leave_out "the Python tests are left out: pytest is missing for $python"
fi

mkdir -p bench/results
results=bench/results/gpu-$(date +%F).jsonl
"$python" bench/gpu_table.py --out "$results" ${IMAGES:+--images "$IMAGES"}
for bench in words switch discrete; do
  "$python" -m jali bench $bench --device cuda --seconds 0.05 --json >>"$results"
done
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1)
major=${capability%%.*}
if [ "${major:-0}" -ge 9 ]; then
  for bench in tfhe tfhe_gates tfhe_integers; do
    "$python" -m jali bench $bench --device cuda --seconds 0.2 --json >>"$results"
  done
else
  leave_out "the benchmarks of TFHE are left out: they need compute capability 9.0, and this GPU has ${capability:-none that the driver tells}"
fi
commit=$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
"$build/bench/cpp/bench_gpu_programs" "$commit" >>"$results"
# First the circuits of all presets and others on small rings, with every result compared, then the presets themselves.
"$build/bench/cpp/bootstrap_many" --device cuda --count 3000 --commit "$commit" >>"$results"
for preset in n15_small n16_fast n16_precise n16_real n17_deep; do
  status=0
  "$build/bench/cpp/bench_bootstrap" --device cuda --word w32 --preset $preset --commit "$commit" >>"$results" || status=$?
  case $status in 0) ;; 3) say "$preset is left out: this GPU's memory is too small" ;; *) exit $status ;; esac
done
say "figures are in $results"
for what in "${left_out[@]}"; do say "$what"; done
[ $incomplete = 0 ] || [ "${ALLOW_SKIPS:-0}" = 1 ] ||
  { say "FAILED: tests/gpu did not run; ALLOW_SKIPS=1 lets that pass" >&2; exit 4; }
