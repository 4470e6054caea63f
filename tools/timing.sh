#!/usr/bin/env bash
# Checks that the time of secret operations tells nothing of the secrets, with the programs that JALI_BUILD_TIMING
# builds. Each check must first find a leak that is planted for it. Usage: tools/timing.sh PROGRAMS
set -euo pipefail
programs=$1
memcheck=(valgrind -q --error-exitcode=99 --expensive-definedness-checks=yes)

expect() { # CODE WHAT COMMAND...
  local code=0 want=$1 what=$2
  shift 2
  "$@" >/dev/null 2>&1 || code=$?
  [ "$code" = "$want" ] || { echo "the check is blind: $what ended with $code instead of $want" >&2; return 1; }
  echo "$what is found"
}

echo "== branches and addresses, AVX2, under valgrind"
expect 99 "a planted branch on a secret" "${memcheck[@]}" "$programs/secret_flow" --branch
expect 99 "a planted look-up by a secret" "${memcheck[@]}" "$programs/secret_flow" --address
"${memcheck[@]}" "$programs/secret_flow"

echo "== time of decryption, the best instruction set of this machine"
expect 1 "a planted delay" "$programs/decrypt_time" --planted ||
  { echo "other work on this machine hides such a delay: run the check with nothing beside it" >&2; exit 1; }
"$programs/decrypt_time"
echo "no time depends on a secret, as far as these checks see"
