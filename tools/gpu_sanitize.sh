#!/usr/bin/env bash
# compute-sanitizer's memcheck and racecheck over every kernel of the engine: on a machine with an NVIDIA
# GPU and the CUDA toolkit, after tools/gpu_check.sh (or any build of the target gpu_tests).
# The launches of a stream run one after the other under it: what begins too early is left to the tests themselves.
# Takes about 15 minutes of an H100 and 16 cores for racecheck. Tests see JALI_GPU_TESTS=brief (tests/gpu/brief.h).
# Usage: tools/gpu_sanitize.sh BUILD [racecheck|memcheck ...]
set -euo pipefail
shards=$(($(nproc) < 16 ? $(nproc) : 16))
tests=$1/tests/gpu
shift
[ $# -gt 0 ] || set -- racecheck memcheck
command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q GPU ||
  { echo "gpu-sanitize: no NVIDIA GPU or driver on this machine: run this where 'make gpu-check' runs" >&2; exit 1; }
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | tail -1) || true
[ -n "$sanitizer" ] || { echo "gpu-sanitize: compute-sanitizer is missing: it comes with the CUDA toolkit" >&2; exit 1; }

# Tools, a program and what of it: together they launch every kernel, and each kernel of rows of 2^16 and 2^17 that
# shorter ones do not have. From N = 2^14 on rows are several blocks or passes. What takes longest comes first.
work=(
  "both test_gpu_switch */GpuSwitch.OuterSums/*_n14_b1"
  "both test_gpu_levels *w32_n14_b1_l1:*w32_n14_b1_l4:*w32_n16_b1_l1"
  "racecheck test_gpu_switch */GpuSwitch.Lifts/*_n16_b1:*/GpuSwitch.Divisions/*_n16_b1"
  "both test_gpu_ntt *_n13_b1:*_n15_b1:*_n16_b1:*_n17_b1"
  "memcheck test_gpu_bootstrap *n15_small_slots_w32"
  "both test_gpu_levels *_n10_b1_l*:*_n10_b3_l4"
  "both test_gpu_switch */GpuSwitch.*_n10_b1:*/GpuSwitch.*_n14_b1:*/GpuSwitchWide.*_n10_b3:*/GpuSwitchWide.*_n13_b1-*OuterSums/*_n14_b1"
  "memcheck test_gpu_switch */GpuSwitch.*_n16_b1:*/GpuSwitch.*_n17_b1:*/GpuSwitchWide.*w32_n17_b1"
  "memcheck test_gpu_levels *_n16_b1_l4:*_n17_b1_l1"
  "both test_gpu_ops *_n10_b3"
  "both test_gpu_fused_ntt *SmallRows:*MiddleRows"
  "both test_gpu_integers *bits_l7_b3:*bits_l33_b1"
  "both test_gpu_sampling *"
  "both test_gpu_variants *"
  "both test_gpu_evaluator *Hoisted*/w32_scale28"
  "both test_gpu_program */GpuProgram.EveryRun*/w32_scale28:*/GpuProgram.Batches*/w32_scale28:*/GpuClient.*/w32_scale28:*/GpuClient.Enc*/n13_w32:GpuFaults.TwoEvaluators*"
)
# What takes racecheck too long. Of rows of 2^16 it sees transforms, lifts, divisions and every operation at one level.
left_out="racecheck of bootstrappings, of key switches and sums on rows of 2^16 and 2^17, of batches of 64"
missing=
parts=()  # tool, program, filter, in how many parts, which
for tool in "$@"; do
  for item in "${work[@]}"; do
    read -r tools program filter <<<"$item"
    [ $tools = both ] || [ $tools = $tool ] || continue
    [ -x "$tests/$program" ] || { missing+=" $program" && continue; }
    count=$("$tests/$program" --gtest_list_tests --gtest_filter="$filter" | grep -c '^  ')
    count=$((count < 2 * shards ? count : 2 * shards))
    for ((part = 0; part < count; ++part)); do parts+=("$tool $program $filter $count $part"); done
  done
done
check() {  # one part; all of its output at once
  local out status=0 start=$SECONDS
  out=$(GTEST_TOTAL_SHARDS=$4 GTEST_SHARD_INDEX=$5 "$sanitizer" --tool "$1" --require-cuda-init no \
    --error-exitcode 9 --print-limit 5 "$tests/$2" --gtest_brief=1 --gtest_filter="$3" 2>&1) || status=$?
  echo "gpu-sanitize: $1 $2 $3, part $5 of $4, $((SECONDS - start)) s: $([ $status = 0 ] && echo clean || echo "exit $status")"
  [ $status = 0 ] || { echo "$out"; return 1; }
}
export -f check
export sanitizer tests JALI_GPU_TESTS=brief
# Beside each other, as most of the time is the host's. Some call no kernel.
printf '%s\n' "${parts[@]}" | xargs -P "$shards" -L 1 bash -c 'check "$@"' check ||
  { echo "gpu-sanitize: not clean: see the parts above that end with an exit status" >&2; exit 1; }
[ -z "$missing" ] || { echo "gpu-sanitize: clean, but not built:$missing" >&2; exit 4; }
echo "gpu-sanitize: clean; left out: $left_out"
