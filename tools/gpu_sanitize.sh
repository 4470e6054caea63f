#!/usr/bin/env bash
# Runs compute-sanitizer's memcheck and racecheck over every kernel of the engine. Needs a machine with an NVIDIA GPU and
# the CUDA toolkit, and a build of the target gpu_tests, e.g. by tools/gpu_check.sh.
# Under compute-sanitizer the kernels of a stream run strictly one after the other, so it does not see a kernel that
# begins before its predecessor is done. The comparisons in the tests themselves find that.
# racecheck takes about 15 minutes on an H100 and 16 cores. The tests run with JALI_GPU_TESTS=brief (tests/gpu/brief.h).
# Usage: tools/gpu_sanitize.sh BUILD [racecheck|memcheck ...]. JOBS=N runs so many parts at once, for a host with little memory.
# ONLY=PATTERN takes the test programs whose names contain it.
set -euo pipefail
shards=${JOBS:-$(($(nproc) < 16 ? $(nproc) : 16))}
tests=$1/tests/gpu
shift
[ $# -gt 0 ] || set -- racecheck memcheck
command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q GPU ||
  { echo "gpu-sanitize: no NVIDIA GPU or driver on this machine: run this where 'make gpu-check' runs" >&2; exit 1; }
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | tail -1) || true
[ -n "$sanitizer" ] || { echo "gpu-sanitize: compute-sanitizer is missing: it comes with the CUDA toolkit" >&2; exit 1; }

# Each line has the tools (racecheck, memcheck or both), a test program and a filter of its tests. A pattern that matches no
# test ends the script before any test runs. Together the tests
# launch every kernel, including those that only N = 2^16 and 2^17 use. From N = 2^14 on a row takes several blocks or
# passes. The longest tests come first.
work=(
  "memcheck test_gpu_tfhe *CudaTfheSize.*"
  "both test_gpu_tfhe CudaTfhe.AgreesWithTheOracleOnSmallSets:CudaTfhe.GraphsRecord*"
  "both test_gpu_tfhe CudaTfheExact.*SmallSets:CudaTfheExact.*Gadget:CudaTfheExact.*EverySize"
  "both test_gpu_tfhe_client *SmallSets:*KeysOfOneSeed*:*FunctionsAreRecorded"
  "both test_gpu_tfhe_presets */CudaTfheLargest.*"
  "memcheck test_gpu_tfhe_presets CudaTfheParts.*:*LooksUpEveryValue/boolean:*LooksUpEveryValue/*_multi_bit"
  "memcheck test_gpu_tfhe_integers CudaTfheIntegers.RecordedCircuits*:CudaTfheIntegers.*OnBytes*"
  "memcheck test_gpu_tfhe_failures *OfSmallSets*"
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
  "memcheck test_gpu_rows */GpuRows.*:GpuMemory.*:SharedGpu.*"
  "memcheck test_gpu_compact */w32_scale28"
  "memcheck test_gpu_discrete */GpuDiscrete.*"
  "both test_gpu_evaluator *Hoisted*/w32_scale28"
  "both test_gpu_program */GpuProgram.EveryRun*/w32_scale28:*/GpuProgram.Batches*/w32_scale28:*/GpuClient.*/w32_scale28:*/GpuClient.Enc*/n13_w32:GpuFaults.TwoEvaluators*"
)
# racecheck would take too long on these. At N = 2^16 it checks transforms, lifts, divisions, and every operation at one
# level.
left_out="racecheck of blind rotations in which warps share tiles of the key (docs/notebook/2026-11-27-racecheck-of-key-tiles.md), of bootstrappings, of key switches and sums on rows of 2^16 and 2^17, of batches of 64, of integers and \
failures of TFHE"
matching() {  # program, filter: how many of its tests match
  "$tests/$1" --gtest_list_tests --gtest_filter="$2" | grep -c '^  ' || true
}
missing=
unmatched=()
parts=()  # tool, program, filter, number of parts, index of the part
for tool in "$@"; do
  for item in "${work[@]}"; do
    read -r tools program filter <<<"$item"
    [ $tools = both ] || [ $tools = $tool ] || continue
    [[ $program = *${ONLY:-}* ]] || continue
    [ -x "$tests/$program" ] || { missing+=" $program" && continue; }
    [[ $filter = *-* ]] && without=-${filter#*-} || without=
    IFS=: read -ra patterns <<<"${filter%%-*}"
    for pattern in "${patterns[@]}"; do
      [ "$(matching "$program" "$pattern$without")" -gt 0 ] || unmatched+=("$program $pattern")
    done
    count=$(matching "$program" "$filter")
    count=$((count < 2 * shards ? count : 2 * shards))
    for ((part = 0; part < count; ++part)); do parts+=("$tool $program $filter $count $part"); done
  done
done
if [ ${#unmatched[@]} -gt 0 ]; then
  printf 'gpu-sanitize: no test matches: %s\n' "${unmatched[@]}" >&2
  echo "gpu-sanitize: nothing was run: put the tests' names right in tools/gpu_sanitize.sh" >&2
  exit 5
fi
check() {  # runs one part and prints its output at once, if it fails
  local out status=0 start=$SECONDS
  out=$(GTEST_TOTAL_SHARDS=$4 GTEST_SHARD_INDEX=$5 "$sanitizer" --tool "$1" --require-cuda-init no \
    --error-exitcode 9 --print-limit 5 "$tests/$2" --gtest_brief=1 --gtest_filter="$3" 2>&1) || status=$?
  echo "gpu-sanitize: $1 $2 $3, part $5 of $4, $((SECONDS - start)) s: $([ $status = 0 ] && echo clean || echo "exit $status")"
  [ $status = 0 ] || { echo "$out"; return 1; }
}
export -f check
export sanitizer tests JALI_GPU_TESTS=brief
# The parts run at the same time, because most of the time is the host's. Some tests launch no kernel, which is allowed
# by --require-cuda-init no.
printf '%s\n' "${parts[@]}" | xargs -P "$shards" -L 1 bash -c 'check "$@"' check ||
  { echo "gpu-sanitize: not clean: see the parts above that end with an exit status" >&2; exit 1; }
[ -z "$missing" ] || { echo "gpu-sanitize: clean, but not built:$missing" >&2; exit 4; }
echo "gpu-sanitize: clean${ONLY:+ as far as programs with \"$ONLY\" in their names go}; left out: $left_out"
