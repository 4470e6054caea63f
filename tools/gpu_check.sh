#!/usr/bin/env bash
# On a machine with an NVIDIA GPU, nvcc, CMake and Ninja; needs no network. Builds what is not built, runs
# tests/gpu, and only if they pass measures the engine: JSON lines with device and commit.
# Usage: tools/gpu_check.sh BUILD [JOBS]
set -euo pipefail
build=$1 jobs=${2:-$(nproc)}
cmake -G Ninja -S . -B "$build" -DJALI_CUDA=ON -DJALI_BUILD_TESTS=ON -DJALI_BUILD_BENCH=ON >/dev/null
cmake --build "$build" -j "$jobs" --target test_gpu_ops test_gpu_evaluator \
  test_gpu_program bench_gpu_ops bench_gpu_programs
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for test in test_gpu_ops test_gpu_evaluator test_gpu_program; do
  "$build/tests/gpu/$test" --gtest_brief=1
done
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
mkdir -p bench/results
{ "$build/bench/cpp/bench_gpu_ops" "$commit"; "$build/bench/cpp/bench_gpu_programs" "$commit"; } | tee "bench/results/gpu-$(date +%F).jsonl"
