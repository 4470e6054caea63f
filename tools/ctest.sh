#!/usr/bin/env bash
# Runs the test programs of a build folder. The last line says how many tests passed and how many were skipped.
# Usage: tools/ctest.sh BUILD JOBS [ARGUMENTS OF ctest]
set -euo pipefail
ctest --test-dir "$1" -j "$2" --output-on-failure --no-tests=error --timeout 3600 "${@:3}"
awk '/^\[  PASSED  \] / { passed += $4 }
     /^\[  SKIPPED \] [0-9]+ tests?, / { skipped += $4 }
     END { printf "%d tests passed, %d skipped\n", passed, skipped; exit !(passed + skipped) }' \
  "$1/Testing/Temporary/LastTest.log"
